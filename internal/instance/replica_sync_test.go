package instance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/rdbtest"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// record returns the RDB record of a key; raw is its value, without the type.
func record(key, raw string) []byte {
	b := append([]byte{raw[0], byte(len(key))}, key...)
	return append(b, raw[1:]...)
}

// rdbFile returns an RDB file with a library, a rule, a key called new, and more records.
func rdbFile(t *testing.T, checksum bool, more ...[]byte) string {
	t.Helper()
	var b strings.Builder
	w := rdb.NewWriter(&b, rdb.WriterOptions{Checksum: checksum})
	w.Header(10)
	w.Function([]byte("#!lua name=fresh\nredis.register_function('fresh', function() return 'fresh' end)"))
	var e rdb.Encoder
	e.Reset(nil)
	e.Key = []byte("new")
	e.Record(0, -1, -1)
	e.String([]byte("value of the new key"))
	w.Records(0, e.Buf)
	for _, m := range more {
		w.Records(1, m)
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A failed full synchronisation loses nothing: keys, libraries, rules and the offset stay, with each way of loading,
// and INFO has the error.
func TestAFailedSynchronisationLosesNothing(t *testing.T) {
	good := rdbFile(t, true)
	damaged := []byte(good)
	damaged[len(damaged)-12] ^= 1 // in the last value, where only the checksum detects it
	answers := map[string]struct{ answer, why string }{
		"damaged":              {full(1000, string(damaged), ""), fmt.Sprintf("at offset %d: rdb: the checksum is wrong", len(good))},
		"damaged, no checksum": {full(1000, rdbFile(t, false, record("bad", "\x10\x03xyz")), ""), "key \"bad\""},
		"cut off":              {full(1000, good, "")[:len(full(1000, good, ""))-30] + "close", fmt.Sprintf("at offset %d, in", len(good)-30)},
		"a type too new": {full(1000, strings.Replace(rdbFile(t, false, record("k", "\x1c\x01x")), "REDIS0010", "REDIS0014", 1),
			""), "type 28 (an array)"},
		"an opcode too new": {full(1000, strings.Replace(rdbFile(t, false, []byte{241, 0}), "REDIS0010", "REDIS0014", 1), ""), "opcode 241"},
		"a version too new": {full(1000, "VALKEY099"+good[9:], ""), "version 99"},
		"no RDB file":       {full(1000, "GARBAGE..."+good, ""), "not an RDB file"},
		"a library is wrong": {full(1000, strings.Replace(rdbFile(t, false), "register_function", "register_nonsense", 1), ""),
			"register_nonsense"},
		"a database too many":  {full(1000, rdbFile(t, false, []byte{254, 0x40, 99}, record("k", "\x00\x01x")), ""), "no such database"},
		"bytes behind the end": {full(1000, good+"xx", ""), "got 2 bytes after the end of the data"},
		"a path hash":          {full(1000, packed(t, "VALKEY081"+rdbFile(t, false, record("k", "\x17\x01x"))[9:]), ""), "type 23 (a path hash)"},
		"a command in it": {full(1000, "VALKEY081"+rdbFile(t, false, []byte("\xf2*1\r\n$8\r\nFLUSHALL\r\n"))[9:], ""),
			"opcode 242 (a command from a synchronisation without a fork)"},
		"damaged, compressed":  {full(1000, packed(t, string(damaged)), ""), fmt.Sprintf("at offset %d of what the LZ4 file holds", len(good))},
		"a frame is damaged":   {full(1000, inverted(packed(t, good), -3), ""), "the LZ4 frame is damaged"},
		"another algorithm":    {full(1000, inverted(packed(t, good), 4), ""), "algorithm 254"},
		"more in the envelope": {full(1000, packed(t, good+"xx"), ""), "2 bytes or more follow"},
		"more behind it":       {full(1000, packed(t, good)+"xxx", ""), "got 3 bytes after the end of the data"},
		"cut off, compressed": {full(1000, packed(t, good), "")[:len(full(1000, packed(t, good), ""))-30] + "close",
			fmt.Sprintf("its offset %d: ", len(packed(t, good))-30)},
	}
	for _, how := range []string{"disabled", "on-empty-db", "swapdb"} {
		t.Run(how, func(t *testing.T) {
			last := newScripted(t, full(1000, good, "")) // ends after the replica
			c := dialTCP(t, startNode(t, "--repl-diskless-load", how, "--replica-read-only", "no"))
			c.must("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('old', function() return 'old' end)")
			c.must("EXPIRY", "RULE", "SET", "rule", "MATCH", "*", "TO", "stream")
			for i := range 100 {
				c.must("SET", fmt.Sprint("k", i), "v")
			}
			for name, a := range answers {
				followScripted(c, newScripted(t, a.answer))
				tier.Eventually(t, name+": the synchronisation has failed",
					func() bool { return strings.Contains(c.field("master_sync_last_error"), a.why) })
				if why := c.field("master_sync_last_error"); !strings.Contains(why, "is kept") {
					t.Errorf("%s: INFO says %q", name, why)
				}
				holdsOld(t, name, c)
				c.must("REPLICAOF", "NO", "ONE")
			}
			followScripted(c, last)
			linked(t, c)
			holdsNew(t, c)
		})
	}
}

// packed compresses a whole file.
func packed(t *testing.T, file string) string { return string(rdbtest.LZ4(t, []byte(file))) }

// inverted inverts the byte at an index, counted from the end if at is negative.
func inverted(s string, at int) string {
	b := []byte(s)
	if at < 0 {
		at += len(b)
	}
	b[at] = ^b[at]
	return string(b)
}

// ebb follows a master that compresses all its data as one frame: with a length or a mark, with both algorithms, and
// with each way of loading. The stream continues after the frame.
func TestACompressedSynchronisationIsLoaded(t *testing.T) {
	const mark = "0123456789abcdef0123456789abcdef01234567"
	var more [][]byte
	for i := range 2000 { // several blocks
		more = append(more, record(fmt.Sprint("key:", i*7919), "\x00\x3c"+strings.Repeat(fmt.Sprint(i), 60)[:60]))
	}
	file := []byte(rdbFile(t, true, more...))
	stream := "*3\r\n$3\r\nSET\r\n$6\r\nstream\r\n$1\r\nv\r\n"
	start := fmt.Sprintf("+FULLRESYNC %s %d\r\n", streamID, 1000)
	for with, data := range map[string]string{"LZ4": string(rdbtest.LZ4(t, file)), "Zstandard": string(rdbtest.Zstandard(t, file))} {
		for _, how := range []string{"disabled", "on-empty-db", "swapdb"} {
			for form, answer := range map[string]string{"length": full(1000, data, stream),
				"mark": start + "$EOF:" + mark + "\r\n" + data + mark + stream} {
				for _, holds := range []bool{false, true} {
					t.Run(fmt.Sprint(with, " ", how, " ", form, " ", holds), func(t *testing.T) {
						s := newScripted(t, answer) // ends after the replica
						c := dialTCP(t, startNode(t, "--repl-diskless-load", how))
						if holds {
							c.must("SET", "old", "v")
						}
						followScripted(c, s)
						linked(t, c)
						tier.Eventually(t, "the stream has come", func() bool { return c.must("GET", "stream").Str == "v" })
						if v := c.must("EXISTS", "old", "new"); v.Int != 1 || c.must("GET", "new").Str != "value of the new key" {
							t.Error("the old data is there, or the new is not")
						}
						c.must("SELECT", "1")
						if v := c.must("DBSIZE"); v.Int != 2000 || c.must("GET", fmt.Sprint("key:", 1999*7919)).Str != strings.Repeat("1999", 15) {
							t.Errorf("%d keys", v.Int)
						}
					})
				}
			}
		}
	}
}

func holdsOld(t *testing.T, name string, c client) {
	t.Helper()
	if v := c.must("DBSIZE"); v.Int != 100 {
		t.Errorf("%s: %d keys are left of 100", name, v.Int)
	}
	if v := c.ask("FCALL", "old", "0"); v.Str != "old" {
		t.Errorf("%s: the library answers %v", name, v)
	}
	if v := c.ask("EXPIRY", "RULE", "LIST"); len(v.Elems) != 1 {
		t.Errorf("%s: the rules are %v", name, v)
	}
	if at := c.field("master_repl_offset"); at == "1000" {
		t.Errorf("%s: it claims to be where the master is", name)
	}
}

func holdsNew(t *testing.T, c client) {
	t.Helper()
	if v := c.must("KEYS", "*"); len(v.Elems) != 1 || v.Elems[0].Str != "new" {
		t.Errorf("the keys are %v", v)
	}
	if v := c.must("FUNCTION", "LIST"); len(v.Elems) != 1 || v.Elems[0].Elems[1].Str != "fresh" {
		t.Errorf("the libraries are %v", v)
	}
	if v := c.ask("EXPIRY", "RULE", "LIST"); len(v.Elems) != 0 {
		t.Errorf("the rules are %v", v)
	}
	if at, why := c.field("master_repl_offset"), c.field("master_sync_last_error"); at != "1000" || why != "" {
		t.Errorf("the offset is %s, the error %q", at, why)
	}
}

// A check keeps no data, so it cannot detect a key that occurs twice. If the old data is dropped before the load, it
// is lost then, and INFO says so; if it is kept beside the new data, nothing is lost.
func TestAKeyThatComesTwiceFailsTheLoad(t *testing.T) {
	twice := full(1000, rdbFile(t, true, record("k", "\x00\x01x"), record("k", "\x00\x01y")), "")
	for how, lost := range map[string]bool{"disabled": true, "swapdb": false} {
		s := newScripted(t, twice)
		c := dialTCP(t, startNode(t, "--repl-diskless-load", how))
		c.must("SET", "old", "v")
		followScripted(c, s)
		tier.Eventually(t, "the synchronisation has failed", func() bool { return c.field("master_sync_last_error") != "" })
		why := c.field("master_sync_last_error")
		if v := c.must("EXISTS", "old"); (v.Int == 0) != lost || strings.Contains(why, "is gone") != lost {
			t.Errorf("%s: the old key is there %d times; INFO says %q", how, v.Int, why)
		}
		if at := c.field("master_repl_offset"); at == "1000" {
			t.Errorf("%s: the offset is %s", how, at)
		}
	}
}

// With swapdb clients are served from the old data until all new data is loaded, if the master's history is the
// replica's; otherwise they get LOADING.
func TestSwapdbServesTheOldDataMeanwhile(t *testing.T) {
	good := full(1000, rdbFile(t, true), "")
	half := good[:len(good)-30]
	s := newScripted(t, good+"close", half)
	stranger := newScripted(t, strings.Replace(half, streamID, strings.Repeat("e", 40), 1))
	c := dialTCP(t, startNode(t, "--repl-diskless-load", "swapdb"))
	followScripted(c, s)
	tier.Eventually(t, "the half of a second one has come", func() bool { return c.field("async_loading") == "1" })
	if v := c.must("GET", "new"); v.Str == "" {
		t.Errorf("meanwhile: %v", v)
	}
	if v := c.field("loading"); v != "0" {
		t.Errorf("loading is %s", v)
	}
	followScripted(c, stranger)
	tier.Eventually(t, "it is loading", func() bool { return strings.HasPrefix(c.ask("GET", "new").Str, "LOADING") })
	if v := c.field("async_loading"); v != "0" {
		t.Errorf("async_loading is %s", v)
	}
}

// CLIENT PAUSE on a replica holds back the master's writes and keeps the link up, even for longer than repl-timeout.
func TestAPauseHoldsTheMastersStreamBack(t *testing.T) {
	ping := commands("PING")
	for _, stream := range []string{commands("SET k v"), commands("MULTI", "SET k v", "EXEC")} {
		s := newScripted(t, full(50, snapshot(t, "new"), ping+stream))
		c := dialTCP(t, startNode(t))
		c.must("CLIENT", "PAUSE", "100000", "WRITE")
		followScripted(c, s)
		tier.Eventually(t, "the replica is at the first write", func() bool { return c.field("slave_repl_offset") == fmt.Sprint(50+len(ping)) })
		if v := c.must("EXISTS", "k"); v.Int != 0 || c.field("master_link_status") != "up" {
			t.Errorf("the key is there %d times during the pause; the link is %s", v.Int, c.field("master_link_status"))
		}
		c.must("CLIENT", "UNPAUSE")
		tier.Eventually(t, "the key is there", func() bool { return c.ask("EXISTS", "k").Int == 1 })
	}
}

// A paused replica can be promoted. The stream that it holds back is then not applied.
func TestAPausedReplicaCanBePromoted(t *testing.T) {
	s := newScripted(t, full(50, snapshot(t, "new"), commands("SET k v")))
	c := dialTCP(t, startNode(t))
	c.must("CLIENT", "PAUSE", "100000", "WRITE")
	followScripted(c, s)
	linked(t, c)
	c.must("REPLICAOF", "NO", "ONE")
	c.must("CLIENT", "UNPAUSE")
	if v := c.must("EXISTS", "k"); v.Int != 0 {
		t.Error("what the old master wrote was applied after the promotion")
	}
}

// During a CLIENT PAUSE nothing expires, neither actively nor by a read, as in Redis: the offset does not change.
func TestNothingExpiresDuringAPause(t *testing.T) {
	in := startMaster(t)
	c := connect(t, in.Addrs()[0].String())
	r := raw(t, in, "REPLCONF capa ebb")
	_, _ = afterFullSync(t, r)
	for i := range 200 {
		c.must("SET", fmt.Sprint("k", i), "v", "PX", "40")
	}
	c.must("HSET", "h", "f", "v", "g", "v")
	c.must("HPEXPIRE", "h", "40", "FIELDS", "1", "f")
	c.must("CLIENT", "PAUSE", "100000", "WRITE")
	before, offset := c.field("expired_keys"), c.field("master_repl_offset")
	tier.Eventually(t, "all are due", func() bool { return c.must("DBSIZE").Int == 1 })
	for i := range 200 {
		if v := c.must("EXISTS", fmt.Sprint("k", i)); v.Int != 0 {
			t.Errorf("k%d is seen", i)
		}
	}
	c.must("MULTI")
	c.must("GET", "k1")
	c.must("HGETALL", "h")
	if v := c.must("EXEC"); len(v.Elems) != 2 || len(v.Elems[1].Elems) != 2 {
		t.Errorf("EXEC: %v", v)
	}
	if v := c.must("EVAL_RO", "return redis.call('EXISTS', 'k2')", "0"); v.Int != 0 {
		t.Error("k2 is seen by a script")
	}
	if n, at := c.field("expired_keys"), c.field("master_repl_offset"); n != before || at != offset {
		t.Errorf("expired_keys was %s and is %s, the offset was %s and is %s", before, n, offset, at)
	}
	c.must("CLIENT", "UNPAUSE")
	tier.Eventually(t, "they expire", func() bool { return c.field("expired_keys") == "200" })
}

// A compressed synchronisation of a few kilobytes that would need more memory than the replica has ends the link with
// an error, and the old data stays.
func TestASynchronisationThatUnpacksToTooMuchEndsTheLink(t *testing.T) {
	var more [][]byte
	for i := range 100 {
		more = append(more, record(fmt.Sprint("zeros:", i), "\x00\x80\x00\x10\x00\x00"+strings.Repeat("\x00", 1<<20)))
	}
	data := string(rdbtest.Zstandard(t, []byte(rdbFile(t, false, more...))))
	for _, how := range []string{"disabled", "on-empty-db", "swapdb"} {
		t.Run(how, func(t *testing.T) {
			s := newScripted(t, full(1000, data, ""), full(1000, rdbFile(t, true), ""))
			c := dialTCP(t, startNode(t, "--repl-diskless-load", how, "--maxmemory", "20mb"))
			c.must("SET", "old", "v")
			followScripted(c, s)
			tier.Eventually(t, "the replica refuses", func() bool { return strings.Contains(c.field("master_sync_last_error"), "are allowed") })
			if why := c.field("master_sync_last_error"); !strings.Contains(why, "(a higher maxmemory allows more); the old data is kept") {
				t.Errorf("INFO says %q", why)
			}
			if n, _ := strconv.ParseInt(c.field("used_memory_peak"), 10, 64); n > 40<<20 {
				t.Errorf("used_memory was %d; maxmemory is 20mb", n)
			}
			linked(t, c) // the next synchronisation is valid
			holdsNew(t, c)
		})
	}
}
