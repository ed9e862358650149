package modeltest

import (
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

var (
	plainTime = flag.Duration("plain.time", 0, "how long random sequences run while redis-server replicates them; 0: a fixed number of rounds")
	plainSeed = flag.Uint64("plain.seed", 0, "the seed of the first sequence; 0: see package draw")
	plainLen  = flag.Int("plain.len", 100, "operations in a sequence")
)

// plainRounds is the number of sequences without a flag.
const plainRounds = 20

// A redis-server 7.0 that replicates an ebb server has its plain data, at the same
// offsets, and has been sent nothing that it refuses, whatever was asked for: our own
// types and the deadlines of items included.
func TestARedisServerReplicatesThePlainData(t *testing.T) {
	in, err := Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	master, err := open(in.Addr, true, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(master.close)
	say(t, master, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(in.Addr)
	other := realserver.NewProcess(t, "redis-server", "--save", "", "--replicaof", host+" "+port)
	other.Start()
	replica := &end{}
	t.Cleanup(replica.close)
	p, err := dial(other.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica.conns = append(replica.conns, p)
	inStep(t, master, replica)

	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	from := draw.Seed(t, *plainSeed)
	sequences, requests := 0, 0
	for round := range draw.Rounds(*plainTime, plainRounds) {
		if t.Failed() {
			break
		}
		seed := from + uint64(round)
		requests += sayAll(t, master, table, NewOwnGenerator(seed, table).Sequence(*plainLen))
		sequences++
		inStep(t, master, replica)
		if why := samePlain(t, master, replica); why != "" {
			t.Errorf("-plain.seed %d: %s", seed, why)
		}
		if log := complaints(t, other.Log()); log != "" {
			t.Errorf("-plain.seed %d: the replica says: %s", seed, log)
		}
		if sequences%7 == 0 { // it continues where it was
			say(t, master, "CLIENT", "KILL", "TYPE", "replica")
			inStep(t, master, replica)
		}
	}
	t.Logf("%d sequences, %d requests", sequences, requests)
}

func say(t *testing.T, e *end, args ...string) string {
	t.Helper()
	v, err := e.conns[0].do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return v.Str
}

// sayAll sends what does not block, and returns how many requests that were.
func sayAll(t *testing.T, e *end, table *command.Table, ops []Op) (n int) {
	memory := Memory{}
	for _, o := range ops {
		if len(o.Args) == 0 {
			continue
		}
		if s := table.LookupFull(strings.ToLower(o.Args[0])); s != nil && (s.Has(command.Blocking) || s.Has(command.Slow)) {
			continue
		}
		args := memory.Resolve(o.Args, time.Now().UnixMilli())
		v, err := e.conns[0].do(args...)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		memory.Learn(args, v)
		n++
	}
	for _, end := range []string{"DISCARD", "UNWATCH", "SELECT 0", "DEBUG SET-ACTIVE-EXPIRE 1"} {
		_, _ = e.conns[0].do(strings.Fields(end)...)
	}
	return n
}

// inStep waits until the replica has everything, and compares the offsets.
func inStep(t *testing.T, master, replica *end) {
	t.Helper()
	until := time.Now().Add(patience)
	for {
		v, err := master.conns[0].do("WAIT", "1", "1000")
		if err != nil {
			t.Fatal(err)
		}
		if v.Int >= 1 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the replica does not follow:\n%s\n%s", say(t, master, "INFO", "replication"), say(t, replica, "INFO", "replication"))
		}
	}
}

// samePlain compares the plain data, and says what differs. What expires meanwhile
// reaches the replica a little later.
func samePlain(t *testing.T, master, replica *end) (why string) {
	for until := time.Now().Add(patience / 2); ; {
		ours, theirs := plainState(t, master), plainState(t, replica)
		if why = ours.differsFrom(theirs); why == "" {
			if a, b := offset(t, master), offset(t, replica); a != b {
				why = fmt.Sprintf("the offsets differ: %s, %s", a, b)
			}
		}
		if why == "" || time.Now().After(until) {
			return why
		}
		inStep(t, master, replica)
	}
}

// plainKeys are the keys of the types that redis-server has, and how long they live.
type plainKeys struct {
	values    string // a line each
	deadlines map[string]int64
	now       int64
}

// differsFrom compares with a replica. A deadline that slides is there where it was
// when the log last heard of it: less than a tenth of its span ago, which is what is
// left to a key that was read just now.
func (a *plainKeys) differsFrom(b *plainKeys) string {
	if a.values != b.values {
		return fmt.Sprintf("the master alone has\n%s\nthe replica alone has\n%s", missing(a.values, b.values), missing(b.values, a.values))
	}
	for k, d := range a.deadlines {
		if e := b.deadlines[k]; e > d || d-e > max(d-a.now, 0)/10+10 || (d < 0) != (e < 0) {
			return fmt.Sprintf("%s expires at %d, on the replica at %d", k, d, e)
		}
	}
	return ""
}

// missing returns the lines of a that b has not.
func missing(a, b string) string {
	there := strings.Split(b, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(a, "\n"), func(l string) bool { return slices.Contains(there, l) }), "\n")
}

func offset(t *testing.T, e *end) string {
	_, after, _ := strings.Cut(say(t, e, "INFO", "replication"), "master_repl_offset:")
	n, _, _ := strings.Cut(after, "\r\n")
	return n
}

func plainState(t *testing.T, e *end) *plainKeys {
	var b strings.Builder
	p := &plainKeys{deadlines: map[string]int64{}, now: time.Now().UnixMilli()}
	for db := range databases {
		say(t, e, "SELECT", fmt.Sprint(db))
		names, err := e.scan()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range names {
			kind := say(t, e, "TYPE", k)
			if !slices.Contains([]string{"string", "hash", "list", "set", "zset", "stream"}, kind) {
				continue
			}
			value, err := e.value(k, kind)
			if err != nil {
				continue // it has just become another
			}
			until, err := e.conns[0].do("PEXPIRETIME", k)
			if err != nil {
				t.Fatal(err)
			}
			if until.Int != -2 {
				name := fmt.Sprintf("db%d %q", db, k)
				value = strings.ReplaceAll(value+" ", "=-0 ", "=0 ") // equal scores: ZADD leaves the one that is there
				fmt.Fprintf(&b, "%s %s %q\n", name, kind, value)
				p.deadlines[name] = until.Int
			}
		}
	}
	say(t, e, "SELECT", "0")
	p.values = b.String()
	return p
}

// complaints returns what a redis-server has logged about commands of its master,
// and about full synchronisations beyond the first.
func complaints(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var bad []string
	full := 0
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "Full resync") {
			full++
		}
		if strings.Contains(line, "CRITICAL") || strings.Contains(line, "sending an error") ||
			strings.Contains(line, "Protocol error") || full > 1 {
			bad = append(bad, line)
		}
	}
	return strings.Join(bad, "")
}
