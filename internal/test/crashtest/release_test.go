package crashtest

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// writeRelease has a build rewrite testdata/release: the one whose files this
// build must take. It is that of commit 310c917.
var writeRelease = flag.String("release.write", "", "the path of a build of ebb that rewrites testdata/release")

// What is written into the base, then into the increment, and what is asked afterwards. Deadlines
// and leases are of the year 2100, periods are of a year: the replies do not depend on the day.
const (
	releaseBase = `
SET string v
SET number 12345 PXAT 4102444800000
SET raw \x00binary\xff
PEXPIREAT number 4102444800000
SET sliding v PX 2000000000000 SLIDE
RPUSH list a b c
LPEXPIREAT list 4102444800000 INDEXES 1 1
HSET hash f v g w
HPEXPIREAT hash 4102444800000 FIELDS 1 f
SADD set a b c
SPEXPIREAT set 4102444800000 MEMBERS 1 b
SADD ints 1 2 3
ZADD zset 1 a 2.5 b
ZPEXPIREAT zset 4102444800000 MEMBERS 1 a
XADD stream 1-1 f v
XGROUP CREATE stream g 0
XREADGROUP GROUP g c COUNT 1 STREAMS stream >
PFADD hll a b c
GEOADD geo 13.361389 38.115556 Palermo
LOCK.ACQUIRE lock me 2000000000000
SEM.ACQUIRE sem me 2 2000000000000
RL.TAKE gcra 5 31536000000 COST 2
RL.TAKE window 5 31536000000 ALGO window
RL.TAKE fixed 5 31536000000 ALGO fixed
RL.TAKE log 5 31536000000 ALGO log
RL.RESERVE reserved 1 31536000000 BURST 2 COST 2
DQ.ADD queue job payload AT 4102444800000 PRIORITY 5
DQ.ADD queue now payload
BF.RESERVE bloom 0.01 100
BF.ADD bloom x
EXPIRY RULE SET rule MATCH told:* TO events
SELECT 3
SET elsewhere v
SELECT 0
FUNCTION LOAD #!lua\x20name=lib\nredis.register_function('f',function()\x20return\x20'from\x20the\x20library'\x20end)`
	releaseIncrement = `
APPEND string 2
INCR number
LSET list 0 z
LPUSHEX list PXAT 4102444800000 ELEMENTS 1 y
HSETEX hash PXAT 4102444800000 FIELDS 1 h x
HINCRBY hash n 5
SADDEX set PXAT 4102444800000 MEMBERS 1 d
SREM set a
ZINCRBY zset 2 b
XADD stream 2-1 f v
XACK stream g 1-1
LOCK.ACQUIRE lock2 you 2000000000000 SHARED
RL.TAKE gcra 5 31536000000
RL.TAKE window 5 31536000000 ALGO window
RL.RESERVE reserved 1 31536000000 BURST 2 COST 1
DQ.POP queue LEASE 2000000000000
DQ.ADD queue later payload AT 4102444800001
BF.ADD bloom y
RENAME geo geo2
COPY zset zset2
MULTI
SET in transaction
INCR counter
EXEC
SPOP ints 1
GETEX string PXAT 4102444800000
EXPIRY RULE SET rule2 MATCH other:* TO events`
	releaseAsked = `
KEYS *
GET string
PEXPIRETIME string
GET number
PEXPIRETIME number
GET raw
PTTL nothing
LRANGE list 0 -1
LPEXPIRETIME list INDEXES 2 0 2
HGET hash f
HGET hash n
HLEN hash
HPEXPIRETIME hash FIELDS 4 f g h n
SMISMEMBER set a b c d
SPEXPIRETIME set MEMBERS 3 b c d
SCARD ints
ZRANGE zset 0 -1 WITHSCORES
ZPEXPIRETIME zset MEMBERS 2 a b
ZSCORE zset2 b
XRANGE stream - +
XPENDING stream g
PFCOUNT hll
GEOPOS geo2 Palermo
LOCK.INFO nothing
DUMP lock
DUMP lock2
DUMP sem
DUMP gcra
DUMP window
DUMP fixed
DUMP log
DUMP reserved
DUMP queue
DUMP bloom
BF.MEXISTS bloom x y z
DQ.LEN queue
EXPIRY RULE LIST
GET in
GET counter
FCALL f 0
DEBUG DIGEST
SELECT 3
GET elsewhere`
)

// releaseRequests splits lines into requests; \n, \x20 and similar escapes stand for bytes.
func releaseRequests(t testing.TB, lines string) (all [][]string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		words := strings.Fields(line)
		for i, w := range words {
			words[i] = strings.NewReplacer(`\n`, "\n", `\x20`, " ", `\x00`, "\x00", `\xff`, "\xff").Replace(w)
		}
		all = append(all, words)
	}
	return all
}

const releaseDir = "testdata/release"

// TestFilesOfTheReleaseBeforeAreTaken loads what the release before has written: a base
// and an increment, and an RDB file, with keys of every type. It answers as that release
// did.
func TestFilesOfTheReleaseBeforeAreTaken(t *testing.T) {
	if *writeRelease != "" {
		writeReleaseFiles(t, *writeRelease)
	}
	want, err := os.ReadFile(filepath.Join(releaseDir, "replies.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, appendonly := range []string{"yes", "no"} {
		t.Run("appendonly "+appendonly, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(releaseDir)); err != nil {
				t.Fatal(err)
			}
			for range 2 { // as they are, and as this build continues them
				if got := askRelease(t, dir, appendonly); got != string(want) {
					diff(t, got, string(want))
				}
			}
		})
	}
}

// askRelease loads a directory, and returns the replies to releaseAsked.
func askRelease(t *testing.T, dir, appendonly string) string {
	t.Helper()
	at, err := os.ReadFile(filepath.Join(releaseDir, "written"))
	if err != nil {
		t.Fatal(err)
	}
	written, err := time.Parse(time.RFC3339, strings.TrimSpace(string(at)))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load([]string{"--dir", dir, "--appendonly", appendonly, "--enable-debug-command", "yes"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var hooks session.Hooks
	db := engine.Open(engine.Options{Clock: clock.NewManual(written.Add(time.Minute)), Hooks: &hooks})
	defer db.Close()
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Config: cfg}, &hooks)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err = s.OpenFiles(session.FileOptions{AcceptClock: true}); err == nil {
		err = s.Load(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	x := s.NewSession(nil)
	defer x.Closed(nil)
	text := releaseReplies(t, func(words []string) resp.Value {
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		return x.Do(args...)
	})
	if err := s.Keeper().Close(); err != nil {
		t.Error(err)
	}
	return text
}

func releaseReplies(t testing.TB, ask func([]string) resp.Value) string {
	var b strings.Builder
	for _, words := range releaseRequests(t, releaseAsked) {
		v := ask(words)
		if words[0] == "KEYS" {
			names, err := v.AsStrings()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "KEYS: %d\n", len(names))
			continue
		}
		fmt.Fprintf(&b, "%s: %q\n", strings.Join(words, " "), v.String())
	}
	return b.String()
}

func diff(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range w {
		if i >= len(g) || g[i] != w[i] {
			t.Errorf("got  %s\nwant %s", append(g, "nothing")[min(i, len(g))], w[i])
		}
	}
}

// writeReleaseFiles has a build write the files.
func writeReleaseFiles(t *testing.T, path string) {
	p := realserver.NewProcess(t, path, "--appendonly", "yes", "--save", "", "--enable-debug-command", "yes")
	p.Start()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	ask := func(words []string) resp.Value {
		if _, err := c.Write(wire.AppendCommand(nil, words...)); err != nil {
			t.Fatal(err)
		}
		v, err := wire.ReadValue(r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	do := func(lines string) {
		for _, words := range releaseRequests(t, lines) {
			if v := ask(words); v.Err() != nil {
				t.Errorf("%q: %v", words, v.Err())
			}
		}
	}
	do(releaseBase)
	do("BGREWRITEAOF")
	for !strings.Contains(ask([]string{"INFO", "persistence"}).Str, "aof_rewrite_in_progress:0") {
	}
	do(releaseIncrement)
	do("SAVE")
	replies := releaseReplies(t, ask)
	written := time.Now().UTC().Format(time.RFC3339)
	p.Stop()
	if err := os.RemoveAll(releaseDir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dump.rdb", "appendonlydir"} {
		from := filepath.Join(p.Dir, name)
		to := filepath.Join(releaseDir, name)
		files, err := filepath.Glob(from + "/*")
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			files, to = []string{from}, releaseDir
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, filepath.Base(f)), bytes.Clone(b), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range map[string]string{"replies.txt": replies, "written": written + "\n"} {
		if err := os.WriteFile(filepath.Join(releaseDir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
