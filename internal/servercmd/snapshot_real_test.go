package servercmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
)

// grown sends requests until a container has the given size in bytes.
func grown(t *testing.T, s engineSession, size int, key string, request func(add func(args ...string), i int)) {
	t.Helper()
	for i := 0; ; i += 500 {
		var args [][]byte
		add := func(more ...string) {
			for _, a := range more {
				args = append(args, []byte(a))
			}
		}
		for j := range 500 {
			if j == 0 {
				args = nil
			}
			request(add, i+j)
		}
		if v := s.Do(args...); v.Err() != nil {
			t.Fatal(key, v.Err())
		}
		tx := s.db.Begin(0, []byte(key))
		now := tx.ValueSize([]byte(key))
		tx.Commit()
		if now >= size {
			return
		}
	}
}

// growAll makes a large container of each of Redis's types.
func growAll(t *testing.T, s engineSession, size int) {
	t.Helper()
	text := func(i int) string { return fmt.Sprint(i*7919, strings.Repeat(string(rune('a'+i%26)), 200)) }
	head := func(add func(...string), i int, args ...string) {
		if i%500 == 0 {
			add(args...)
		}
	}
	grown(t, s, size, "hash", func(add func(...string), i int) { head(add, i, "HSET", "hash"); add(fmt.Sprint(i), text(i)) })
	grown(t, s, size, "set", func(add func(...string), i int) { head(add, i, "SADD", "set"); add(text(i)) })
	grown(t, s, size, "zset", func(add func(...string), i int) { head(add, i, "ZADD", "zset"); add(fmt.Sprint(float64(i)/8), text(i)) })
	grown(t, s, size, "list", func(add func(...string), i int) { head(add, i, "RPUSH", "list"); add(text(i)) })
	grown(t, s, size/4, "stream", func(add func(...string), i int) {
		head(add, i, "XADD", "stream", "*")
		add(fmt.Sprint(i), text(i))
	})
}

// saved writes a snapshot to a file, starts a redis-server that loads it, and returns a connection to that
// server.
func saved(t *testing.T, s engineSession, o engine.SnapshotOptions) *realConn {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "large.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	o.Preamble = func(w *rdb.Writer, version int) error { w.Header(version); return w.Err() }
	w := rdb.NewWriter(f, rdb.WriterOptions{Checksum: true})
	err = s.db.Snapshot(t.Context(), w, o)
	if err == nil {
		err = w.End()
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	t.Logf("a file of %d MiB", w.Written()>>20)
	return dialReal(t, "--dir", dir, "--dbfilename", "large.rdb", "--enable-debug-command", "yes")
}

func digestNow(s engineSession) string {
	tx := s.db.BeginAll(0)
	defer tx.Commit()
	d := digestOf(tx)
	return d.String()
}

// TestRedisLoadsLargeContainers checks that redis-server reads containers that the snapshot stores in several
// parts.
func TestRedisLoadsLargeContainers(t *testing.T) {
	tier.Sequential(t)
	size := 64 << 20
	if tier.Short() {
		size = 4 << 20
	}
	s := embedded(t)
	growAll(t, s, size)
	want := digestNow(s)
	real := saved(t, s, engine.SnapshotOptions{})
	if got := real.ok(t, "DEBUG", "DIGEST").String(); got != want {
		t.Errorf("redis-server's data is %s, ours %s", got, want)
	}
}

// TestRedisLoadsAPlainSnapshot checks that a plain snapshot has items with deadlines, without these
// deadlines, and no values of ebb's own types.
func TestRedisLoadsAPlainSnapshot(t *testing.T) {
	s, plain := embedded(t), embedded(t)
	both := func(line string) {
		for _, x := range []engineSession{s, plain} {
			sends(t, x, line)
		}
	}
	both("SET str v")
	both("HSET hash a 1 b 2 c 3")
	both("SADD set a b c")
	both("ZADD zset 1 a 2.5 b 3 c")
	both("RPUSH list a b c")
	both("XADD stream 1-1 f v")
	for i := range 600 {
		both(fmt.Sprintf("HSET large %d %d", i, i))
		both(fmt.Sprintf("RPUSH largelist %d-%s", i, strings.Repeat("x", 100)))
	}
	for _, line := range []string{
		"HEXPIRE hash 1000 FIELDS 1 a", "HEXPIRE large 1000 FIELDS 2 1 500", "SEXPIRE set 1000 MEMBERS 1 a", "ZEXPIRE zset 1000 MEMBERS 1 b",
		"BF.ADD filter x", "DQ.ADD queue id payload", "LOCK.ACQUIRE lock me 100000",
	} {
		sends(t, s, line)
	}
	real := saved(t, s, engine.SnapshotOptions{Plain: true})
	if got, want := real.ok(t, "DEBUG", "DIGEST").String(), digestNow(plain); got != want {
		t.Errorf("redis-server's data is %s, want %s: %s", got, want, wire.AppendTTY(nil, real.ok(t, "KEYS", "*")))
	}
}

// sends sends a request of words, which must not fail.
func sends(t *testing.T, s engineSession, line string) {
	t.Helper()
	var args [][]byte
	for _, w := range strings.Fields(line) {
		args = append(args, []byte(w))
	}
	if v := s.Do(args...); v.Err() != nil {
		t.Fatal(line, v.Err())
	}
}
