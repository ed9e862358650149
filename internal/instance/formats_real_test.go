package instance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/resp"
)

// everyForm sends requests after which a server has each layout that it writes: all of peerWrites, sizes on both
// sides of the limits between layouts, deadlines, several databases, and libraries.
func everyForm(c client) {
	c.t.Helper()
	if err := c.writeAll(linesFor(c), "a"); err != nil {
		c.t.Fatal(err)
	}
	var all [][]string
	add := func(args ...string) { all = append(all, args) }
	for _, n := range []string{"-129", "-128", "127", "128", "-32769", "-32768", "32767", "32768", "-2147483649", "-2147483648", "2147483647",
		"2147483648", "9223372036854775807"} {
		add("SET", "int"+n, n)
	}
	for _, n := range []int{0, 1, 20, 44, 45, 63, 64, 16383, 16384, 70_000} {
		add("SET", fmt.Sprint("same", n), strings.Repeat("x", n))
		add("SET", fmt.Sprint("other", n), varied(n))
		add("SET", "key"+strings.Repeat("k", n/100), "v")
	}
	for _, n := range []int{1, 127, 128, 129, 511, 512, 513} {
		for name, item := range map[string]func(i int) string{
			"int": strconv.Itoa, "text": func(i int) string { return fmt.Sprint("item", i) },
			"64": func(i int) string { return fmt.Sprintf("%064d", i) }, "65": func(i int) string { return fmt.Sprintf("%065d", i) },
		} {
			list, set := []string{"RPUSH", fmt.Sprint("list", name, n)}, []string{"SADD", fmt.Sprint("set", name, n)}
			zset, hash := []string{"ZADD", fmt.Sprint("zset", name, n)}, []string{"HSET", fmt.Sprint("hash", name, n)}
			for i := range n {
				list, set = append(list, item(i)), append(set, item(i*70_000))
				zset, hash = append(zset, fmt.Sprint(float64(i)/4), item(i)), append(hash, item(i), item(n-i))
			}
			all = append(all, list, set, zset, hash)
		}
	}
	add("RPUSH", "nodes", strings.Repeat("n", 9000), varied(9000), "small")
	add("ZADD", "scores", "-inf", "a", "inf", "b", "0.1", "c", "-17976931348623157e292", "d", "9007199254740993", "e")
	for i := range 300 {
		add("XADD", "stream", fmt.Sprint(1+i/3, "-", i), "f", fmt.Sprint(i), fmt.Sprint("g", i%7), varied(30))
	}
	for _, line := range []string{"XDEL stream 1-1 100-298", "XGROUP CREATE stream g 0", "XGROUP CREATE stream empty $ MKSTREAM",
		"XREADGROUP GROUP g c COUNT 40 STREAMS stream >",
		"XREADGROUP GROUP g d COUNT 40 STREAMS stream >", "XACK stream g 1-0 2-3", "XGROUP CREATECONSUMER stream g idle",
		"XADD gone 1-1 f v", "XDEL gone 1-1",
		"SET until v PXAT 4102444800000", "SADD untilset a", "PEXPIREAT untilset 4102444800001", "PFADD hll a b c d e f"} {
		all = append(all, strings.Split(line, " "))
	}
	if commandsOf(c)["hpexpireat"] {
		for _, n := range []int{1, 127, 128, 129, 513} {
			hash, due := []string{"HSET", fmt.Sprint("due", n)}, []string{"HPEXPIREAT", fmt.Sprint("due", n), "4102444800002",
				"FIELDS", strconv.Itoa((n + 1) / 2)}
			for i := range n {
				hash = append(hash, fmt.Sprint("f", i), varied(i))
				if i%2 == 0 {
					due = append(due, fmt.Sprint("f", i))
				}
			}
			add(hash...)
			add(due...)
			add("HPEXPIREAT", hash[1], "4102444800999", "FIELDS", "1", "f0")
		}
	}
	add("FUNCTION", "LOAD", "REPLACE", peerLibrary)
	add("SELECT", "9")
	add("SET", "nine", "v", "PXAT", "4102444800003")
	add("SELECT", "15")
	add("HSET", "fifteen", "f", "v")
	add("SELECT", "0")
	for i, v := range c.all(all) {
		if v.Kind == resp.KindError {
			c.t.Fatalf("%.100q: %s", all[i], v.Str)
		}
	}
}

// databases are the databases that everyForm writes to.
var databases = []string{"0", "2", "4", "9", "15"}

// varied returns a text of n bytes that compresses little.
func varied(n int) string {
	b := make([]byte, n)
	x := uint32(n)*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return string(b)
}

// timedFields reports whether a server supports deadlines of hash fields.
func (p otherServer) timedFields() bool { return p.program != realserver.Redis7 }

// ebb loads each key of a file that a peer has saved: with and without the peer's compression, with access times and
// with counters.
func TestFilesOfThePeersAreLoaded(t *testing.T) {
	for _, p := range peers {
		for _, options := range [][]string{{"--rdbcompression", "yes", "--maxmemory-policy", "allkeys-lfu", "--maxmemory", "1gb"},
			{"--rdbcompression", "no", "--rdbchecksum", "no", "--maxmemory-policy", "allkeys-lru", "--maxmemory", "1gb"}} {
			t.Run(p.name+" "+options[1], func(t *testing.T) {
				dir := t.TempDir()
				theirs := dialTCP(t, p.start(t, append(options, "--dir", dir, "--databases", "16")...))
				everyForm(theirs)
				theirs.must("SAVE")
				in, end := startIn(t, dir, "--save", "3600 1000000", "--maxmemory-policy", options[len(options)-3], "--maxmemory", "1gb")
				defer end()
				ours := dialTCP(t, in.Addrs()[0].String())
				sameKeyspaces(t, theirs, ours, p.timedFields())
			})
		}
	}
}

// ebb restores what a peer dumps. All peers restore what ebb dumps, except for hashes with deadlines of fields: only
// Redis 8.0 has the layout that ebb writes for these.
func TestPayloadsAreExchangedWithThePeers(t *testing.T) {
	all := make([]client, len(peers))
	for i, p := range peers {
		all[i] = dialTCP(t, p.start(t))
	}
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			source := dialTCP(t, p.start(t))
			everyForm(source)
			ours := dialTCP(t, startNode(t))
			ours.must("FUNCTION", "RESTORE", source.must("FUNCTION", "DUMP").Str)
			for _, db := range databases {
				source.must("SELECT", db)
				ours.must("SELECT", db)
				if refused := sendAll(source, ours); len(refused) > 0 {
					t.Errorf("ebb refuses of %s: %q", p.name, refused)
				}
			}
			source.must("SELECT", "0")
			ours.must("SELECT", "0")
			sameKeyspaces(t, source, ours, p.timedFields())
			var due []string
			for key, text := range keyspaceOf(ours, true) {
				if db, key, _ := strings.Cut(key, " "); db == "0" && strings.Contains(text, "fields until") && hasDeadline(text) {
					due = append(due, key)
				}
			}
			slices.Sort(due)
			if p.timedFields() != (len(due) > 0) {
				t.Fatalf("hashes with deadlines: %q", due)
			}
			for i, other := range peers {
				to := all[i]
				to.must("FLUSHALL")
				to.must("FUNCTION", "FLUSH")
				refused := sendAll(ours, to)
				to.must("FUNCTION", "RESTORE", ours.must("FUNCTION", "DUMP").Str)
				var want []string
				if other.program != realserver.Redis8 {
					want = due
				}
				if !slices.Equal(refused, want) {
					t.Errorf("%s refuses of ebb %q, not %q", other.name, refused, want)
				}
			}
		})
	}
}

// hasDeadline reports whether a text of keyspaceOf has a field with a deadline.
func hasDeadline(text string) bool {
	_, due, _ := strings.Cut(text, "fields until ")
	return strings.ContainsAny(strings.ReplaceAll(due, "-1", ""), "0123456789")
}

// sendAll restores all keys of the database on another server, and returns the keys that this server refuses.
func sendAll(from, to client) (refused []string) {
	from.t.Helper()
	var ask [][]string
	keys := from.must("KEYS", "*").Elems
	for _, k := range keys {
		ask = append(ask, []string{"DUMP", k.Str}, []string{"PEXPIRETIME", k.Str})
	}
	facts := from.all(ask)
	ask = ask[:0]
	var names []string
	for i, k := range keys {
		if payload := facts[2*i]; !payload.IsNull() { // the key may have expired since
			names = append(names, k.Str)
			ask = append(ask, []string{"RESTORE", k.Str, strconv.FormatInt(max(facts[2*i+1].Int, 0), 10), payload.Str, "ABSTTL", "REPLACE"})
		}
	}
	for i, v := range to.all(ask) {
		if v.Kind == resp.KindError {
			refused = append(refused, names[i])
		}
	}
	slices.Sort(refused)
	return refused
}

// All peers load the file that ebb saves, unless a hash field has a deadline: the file then has version 12, which
// only Redis 8.0 loads.
func TestThePeersLoadEbbsFile(t *testing.T) {
	for _, timed := range []bool{false, true} {
		dir := t.TempDir()
		in, end := startIn(t, dir, "--save", "3600 1000000")
		defer end()
		ours := dialTCP(t, in.Addrs()[0].String())
		source := dialTCP(t, peers[0].start(t)) // hash fields have no deadlines there
		everyForm(source)
		for _, db := range databases {
			source.must("SELECT", db)
			ours.must("SELECT", db)
			sendAll(source, ours)
		}
		ours.must("SELECT", "0")
		ours.must("FUNCTION", "RESTORE", source.must("FUNCTION", "DUMP").Str)
		if timed {
			ours.must("HSET", "due", "a", "1", "b", "2")
			ours.must("HPEXPIREAT", "due", "4102444800002", "FIELDS", "1", "a")
		}
		ours.must("SAVE")
		file, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
		if want := map[bool]string{false: "REDIS0010", true: "REDIS0012"}[timed]; err != nil || !strings.HasPrefix(string(file), want) {
			t.Fatalf("%.9q, %v", file, err)
		}
		for _, p := range peers {
			x := realserver.NewProcess(t, p.program, "--save", "")
			if err := os.WriteFile(filepath.Join(x.Dir, "dump.rdb"), file, 0o600); err != nil {
				t.Fatal(err)
			}
			if timed && p.program != realserver.Redis8 {
				if err := x.Begin(); err != nil {
					t.Fatal(err)
				}
				if status := x.Wait(); status == 0 || !strings.Contains(x.Said(), "Can't handle RDB format version 12") {
					t.Errorf("%s ends with status %d and says %s", p.name, status, x.Said())
				}
				continue
			}
			x.Start()
			sameKeyspaces(t, ours, dialTCP(t, x.Addr()), p.timedFields())
		}
	}
}
