package servercmd

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/rdbtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// realConn is a connection to a redis-server.
type realConn struct {
	net.Conn
	r *bufio.Reader
}

func dialReal(t testing.TB, args ...string) *realConn {
	t.Helper()
	conn, err := net.Dial("tcp", realserver.Start(t, "redis-server", args...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &realConn{conn, bufio.NewReader(conn)}
}

// tester has the methods that testing.T and rapid.T share.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (c *realConn) do(t tester, args ...string) resp.Value {
	t.Helper()
	if _, err := c.Write(wire.AppendCommand(nil, args...)); err != nil {
		t.Fatalf("%v", err)
	}
	v, err := wire.ReadValue(c.r)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return v
}

// ok sends a request that must not fail.
func (c *realConn) ok(t tester, args ...string) resp.Value {
	t.Helper()
	v := c.do(t, args...)
	if v.Err() != nil {
		t.Fatalf("%.100q: %v", args, v.Err())
	}
	return v
}

// engineSession is an engine with a session.
type engineSession struct {
	*session.Session
	db *engine.DB
}

func embedded(t testing.TB) engineSession {
	t.Helper()
	db := engine.Open(engine.Options{})
	svc, err := session.NewService(session.Options{DB: db, Table: Table}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := svc.NewSession(nil)
	t.Cleanup(func() {
		s.Closed(nil)
		svc.Close()
		db.Close()
	})
	return engineSession{s, db}
}

func (c engineSession) ok(t tester, args ...string) resp.Value {
	t.Helper()
	words := make([][]byte, len(args))
	for i, a := range args {
		words[i] = []byte(a)
	}
	v := c.Do(words...)
	if v.Err() != nil {
		t.Fatalf("%.100q: %v", args, v.Err())
	}
	return v
}

// strs returns the elements of an array as strings.
func strs(v resp.Value) (out []string) {
	for _, e := range v.Elems {
		out = append(out, e.Str)
	}
	return out
}

// content returns a key's type and all of its items.
func (c *realConn) content(t tester, key string) []string {
	kind := c.ok(t, "TYPE", key).Str
	out := []string{kind}
	switch kind {
	case "string":
		out = append(out, c.ok(t, "GET", key).Str)
	case "list":
		out = append(out, strs(c.ok(t, "LRANGE", key, "0", "-1"))...)
	case "set":
		m := strs(c.ok(t, "SMEMBERS", key))
		sort.Strings(m)
		out = append(out, m...)
	case "zset":
		out = append(out, strs(c.ok(t, "ZRANGE", key, "0", "-1", "WITHSCORES"))...)
	case "hash":
		all := strs(c.ok(t, "HGETALL", key))
		var pairs []string
		for i := 0; i < len(all); i += 2 {
			pairs = append(pairs, strconv.Quote(all[i])+" "+strconv.Quote(all[i+1]))
		}
		sort.Strings(pairs)
		out = append(out, pairs...)
	case "stream":
		for _, e := range c.ok(t, "XRANGE", key, "-", "+").Elems {
			out = append(out, e.Elems[0].Str)
			out = append(out, strs(e.Elems[1])...)
		}
		out = append(out, string(wire.AppendTTY(nil, streamState(c.ok(t, "XINFO", "STREAM", key, "FULL", "COUNT", "1")))))
	}
	return out
}

// streamState removes the fields that describe a server's layout of a stream.
func streamState(v resp.Value) resp.Value {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		switch v.Elems[i].Str {
		case "radix-tree-keys", "radix-tree-nodes":
			v.Elems[i+1] = resp.Value{}
		}
	}
	return v
}

// TestPayloadsPassThroughToRedis restores payloads of real servers, and lets redis-server restore the dumps
// of the result.
func TestPayloadsPassThroughToRedis(t *testing.T) {
	real, ours := dialReal(t), embedded(t)
	for _, s := range rdbtest.Payloads(t, "../rdb/testdata", "*") {
		if strings.HasPrefix(s.Name, "hash timed") {
			continue // redis-server 7.0 knows no deadlines of fields
		}
		ours.ok(t, "RESTORE", "k", "0", string(s.Dump), "REPLACE")
		if kind := ours.ok(t, "TYPE", "k").Str; kind != s.Kind {
			t.Errorf("%s: a %s", s, kind)
		}
		dump := ours.ok(t, "DUMP", "k").Str
		real.ok(t, "RESTORE", "ours", "0", dump, "REPLACE")
		got := real.content(t, "ours")
		if s.Server == "redis70" {
			real.ok(t, "RESTORE", "theirs", "0", string(s.Dump), "REPLACE")
			if want := real.content(t, "theirs"); !slices.Equal(got, want) {
				t.Errorf("%s:\n got %.2000q\nwant %.2000q", s, got, want)
			}
			continue
		}
		if s.Kind != "stream" && s.Kind != "zset" && s.Kind != "hash" && !slices.Equal(got[1:], s.Want) {
			t.Errorf("%s:\n got %q\nwant %q", s, got, s.Want)
		}
	}
}

// TestWholeScoresAreDumpedAsInRedis compares payloads of sorted sets byte by byte: Redis stores whole numbers
// up to 1<<62 as integers in a listpack. The output of LZF differs, so each server restores the compressed
// payload of the other.
func TestWholeScoresAreDumpedAsInRedis(t *testing.T) {
	real, ours := dialReal(t), embedded(t)
	all := []string{"ZADD", "all"}
	for _, s := range []string{"49", "50", "99", "127", "128", "4095", "4096", "4097", "32768", "8388608", "2147483648",
		"4503599627370495", "4503599627370496", "4503599627370497", "9007199254740991", "9007199254740992", "9007199254740994",
		"1e17", "4611686018427387904", "1e19", "0.5"} {
		for _, score := range []string{s, "-" + s} {
			real.ok(t, "ZADD", "z"+score, score, "m")
			ours.ok(t, "ZADD", "z"+score, score, "m")
			if got, want := ours.ok(t, "DUMP", "z"+score).Str, real.ok(t, "DUMP", "z"+score).Str; got != want {
				t.Errorf("%s: %x, redis-server has %x", score, got, want)
			}
			all = append(all, score, "member:"+score)
		}
	}
	real.ok(t, all...)
	ours.ok(t, all...)
	mine, theirs := ours.ok(t, "DUMP", "all").Str, real.ok(t, "DUMP", "all").Str
	const lzf = 0xc3 // the first byte of a compressed string
	if mine[1] != lzf || theirs[1] != lzf {
		t.Errorf("a payload is not compressed: %x, %x", mine[:8], theirs[:8])
	}
	real.ok(t, "RESTORE", "back", "0", mine)
	if got, want := real.content(t, "back"), real.content(t, "all"); !slices.Equal(got, want) {
		t.Errorf("redis-server restores %q, want %q", got, want)
	}
	ours.ok(t, "RESTORE", "back", "0", theirs)
	if got := ours.ok(t, "DUMP", "back").Str; got != mine {
		t.Errorf("restored, it is %x, want %x", got, mine)
	}
}

func drawItem(t *rapid.T, i int) string {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return strconv.Itoa(i)
	case 1:
		return strconv.FormatInt(rapid.Int64().Draw(t, "int"), 10)
	case 2:
		return strings.Repeat(rapid.StringN(1, 4, 4).Draw(t, "unit"), rapid.IntRange(1, 40).Draw(t, "times"))
	case 3:
		return string(rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes"))
	}
	return fmt.Sprintf("item:%d", i)
}

// build makes a random value under a key, by commands.
func build(t *rapid.T, key string, do func(args ...string)) {
	n := rapid.SampledFrom([]int{1, 3, 60, 130, 600}).Draw(t, "n")
	kind := rapid.SampledFrom([]string{"SET", "RPUSH", "SADD", "ZADD", "HSET"}).Draw(t, "type")
	if kind == "SET" {
		do("SET", key, drawItem(t, 7))
		return
	}
	ints := rapid.Bool().Draw(t, "ints")
	args := []string{kind, key}
	for i := range n {
		item := strconv.Itoa(i * 1000)
		if !ints {
			item = drawItem(t, i)
		}
		switch kind {
		case "ZADD":
			score := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1, -7, math.Inf(1), math.Inf(-1), 0.1})).Draw(t, "score")
			args = append(args, strconv.FormatFloat(score, 'g', -1, 64), item)
		case "HSET":
			args = append(args, item, drawItem(t, i))
		default:
			args = append(args, item)
		}
	}
	do(args...)
}

// TestRandomValuesGoToRedisAndBack builds values on one server, and moves them to the other and back by DUMP
// and RESTORE.
func TestRandomValuesGoToRedisAndBack(t *testing.T) {
	real, ours := dialReal(t, "--enable-debug-command", "yes"), embedded(t)
	draw.Check(t, func(t *rapid.T) {
		real.ok(t, "FLUSHALL")
		ours.ok(t, "FLUSHALL")
		build(t, "k", func(args ...string) { real.ok(t, args...) })
		ours.ok(t, "RESTORE", "k", "0", real.ok(t, "DUMP", "k").Str)
		back := ours.ok(t, "DUMP", "k").Str
		real.ok(t, "RESTORE", "back", "0", back)
		digests := real.ok(t, "DEBUG", "DIGEST-VALUE", "k", "back")
		if digests.Elems[0].Str != digests.Elems[1].Str {
			t.Fatalf("went out as %q\ncame back as %q", real.content(t, "k"), real.content(t, "back"))
		}
		ours.ok(t, "RESTORE", "again", "0", back)
		if a, b := ours.ok(t, "OBJECT", "ENCODING", "k").Str, ours.ok(t, "OBJECT", "ENCODING", "again").Str; a != b {
			t.Fatalf("the same value is %s and %s", a, b)
		}
	})
}
