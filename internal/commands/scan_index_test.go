package commands_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

var indexedTypes = []string{"limiter", "lock", "semaphore", "delayqueue"}

// scanAll returns all names that SCAN with a type finds, sorted, each once.
func (n *node) scanAll(t *rapid.T, kind string, count int) []string {
	seen, cursor := map[string]bool{}, "0"
	for {
		reply := strings.Fields(n.ask("SCAN", cursor, "TYPE", kind, "COUNT", strconv.Itoa(count)))
		for _, k := range reply[1:] {
			seen[k] = true
		}
		if cursor = reply[0]; cursor == "0" {
			break
		}
		if len(seen) > 1000 {
			t.Fatal("the walk does not end")
		}
	}
	var all []string
	for k := range seen {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// checkIndex compares SCAN TYPE with TYPE of all keys, in both databases.
func (n *node) checkIndex(t *rapid.T, count int) {
	if err := n.db.Check(); err != nil {
		t.Fatal(err)
	}
	for _, db := range []string{"1", "0"} {
		n.ask("SELECT", db)
		want := map[string][]string{}
		for _, k := range strings.Fields(n.ask("KEYS", "*")) {
			kind := n.ask("TYPE", k)
			want[kind] = append(want[kind], k)
		}
		for _, kind := range indexedTypes {
			slices.Sort(want[kind])
			if got := n.scanAll(t, kind, count); !slices.Equal(got, want[kind]) {
				t.Fatalf("database %s, SCAN TYPE %s: %v, want %v", db, kind, got, want[kind])
			}
		}
	}
}

// reload loads a snapshot of the engine into a new one.
func (n *node) reload(t *rapid.T, clock *clock.Manual) *node {
	var file bytes.Buffer
	w := rdb.NewWriter(&file, rdb.WriterOptions{})
	err := n.db.Snapshot(context.Background(), w,
		engine.SnapshotOptions{Preamble: func(w *rdb.Writer, version int) error { w.Header(version); return w.Flush() }})
	if err == nil {
		err = w.End()
	}
	if err != nil {
		t.Fatal(err)
	}
	second := newNode(t, clock, true)
	r := rdb.NewReader(bytes.NewReader(file.Bytes()), rdb.ReaderOptions{Aux: func(name, text []byte) error {
		_, err := second.db.LoadAux(name,
			text)
		return err
	}})
	if err := second.db.Load(context.Background(), r, engine.LoadOptions{Workers: 2}); err != nil {
		t.Fatal(err)
	}
	return second
}

func TestTheIndexOfATypeHasItsKeys(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		clock := clock.NewManual(transcript.Start)
		n, replica := newNode(t, clock, true), newNode(t, clock, false)
		defer func() { n.close(); replica.close() }()
		replica.db.SetReplica(true)
		key := func() string {
			k := fmt.Sprint("k", rapid.IntRange(0, 5).Draw(t, "key"))
			if rapid.IntRange(0, 4).Draw(t, "long") == 0 {
				k += strings.Repeat("x", 9000) // outside of its record
			}
			return k
		}
		run := func(args ...string) {
			if reply := n.ask(args...); strings.HasPrefix(reply, "ERR ") && !strings.Contains(reply, "no such key") &&
				!strings.Contains(reply, "same") {
				t.Fatalf("%.100q: %s", args, reply)
			}
		}
		ms := func() string { return strconv.Itoa(rapid.IntRange(1, 3000).Draw(t, "ms")) }
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			k, other := key(), key()
			switch rapid.SampledFrom([]string{"limiter", "limiter", "log", "lock", "lock", "shared", "semaphore", "semaphore",
				"queue", "queue", "set", "del",
				"rename", "copy", "move", "swap", "flush", "expire", "persist", "restore", "evict", "time", "time",
				"other database"}).Draw(t, "command") {
			case "limiter":
				run("RL.TAKE", k, "9", ms())
			case "log":
				run("RL.TAKE", k, "9", ms(), "ALGO", "log")
			case "lock":
				run("LOCK.ACQUIRE", k, "ann", ms())
			case "shared":
				run("LOCK.ACQUIRE", k, rapid.SampledFrom([]string{"ann", "bob", strings.Repeat("eve", 50)}).Draw(t, "owner"), ms(), "SHARED")
			case "semaphore":
				run("SEM.ACQUIRE", k, rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "owner"), "3", ms())
			case "queue":
				run("DQ.ADD", k, "id", "payload", "DELAY", ms())
			case "set":
				run("SET", k, strings.Repeat("v", rapid.IntRange(0, 100).Draw(t, "bytes")))
			case "del":
				run("DEL", k)
			case "rename":
				run("RENAME", k, other)
			case "copy":
				run("COPY", k, other, "REPLACE")
			case "move":
				run("MOVE", k, "1")
			case "swap":
				run("SWAPDB", "0", "1")
			case "flush":
				if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
					run("FLUSHDB")
				}
			case "expire":
				run("PEXPIRE", k, ms())
			case "persist":
				run("PERSIST", k)
			case "restore":
				if v := n.c.Do([]byte("DUMP"), []byte(k)); !v.IsNull() {
					run("RESTORE", other, "0", v.String(), "REPLACE")
				}
			case "evict":
				run("CONFIG", "SET", "maxmemory-policy", "allkeys-random", "maxmemory-protect", "none", "maxmemory",
					strconv.Itoa(rapid.IntRange(1, 20_000).Draw(t, "limit")))
				clock.Advance(time.Millisecond)
				run("CONFIG", "SET", "maxmemory", "0")
			case "time":
				clock.Advance(time.Duration(rapid.IntRange(1, 2000).Draw(t, "passed")) * time.Millisecond)
			case "other database":
				run("SELECT", "1")
				run("LOCK.ACQUIRE", k, "ann", ms())
				run("SELECT", "0")
			}
		}
		count := rapid.IntRange(1, 4).Draw(t, "count")
		n.checkIndex(t, count)
		if err := replica.svc.Replay(n.db.Drain()); err != nil {
			t.Fatal(err)
		}
		replica.checkIndex(t, count)
		second := n.reload(t, clock)
		defer second.close()
		second.checkIndex(t, count)
	})
}

func TestAScanOfATypeMissesNothingThatStays(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		n := newNode(t, clock.NewManual(transcript.Start), false)
		defer n.close()
		lock := func(k string) { n.ask("LOCK.ACQUIRE", k, "ann", "100000") }
		stay := rapid.IntRange(0, 40).Draw(t, "stay")
		for i := range stay {
			lock(fmt.Sprint("stay", i))
		}
		for i := range rapid.IntRange(0, 300).Draw(t, "go") {
			lock(fmt.Sprint("go", i))
		}
		seen, cursor, made := map[string]bool{}, "0", 0
		for {
			reply := strings.Fields(n.ask("SCAN", cursor, "TYPE", "LOCK", "COUNT", strconv.Itoa(rapid.IntRange(1, 30).Draw(t, "count"))))
			for _, k := range reply[1:] {
				seen[k] = true
			}
			if cursor = reply[0]; cursor == "0" {
				break
			}
			switch change := rapid.IntRange(0, 60).Draw(t, "change"); rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				for range change {
					lock(fmt.Sprint("new", made))
					made++
				}
			case 1:
				for i := range change {
					n.ask("DEL", fmt.Sprint("go", (change*7+i)%300), fmt.Sprint("new", i))
				}
			case 2: // then the records of the other keys move
				for i := range stay {
					n.ask("LOCK.ACQUIRE", fmt.Sprint("stay", i), "ann", strconv.Itoa(100000+change))
					n.ask("PEXPIRE", fmt.Sprint("stay", i), "1000000")
				}
			}
		}
		for i := range stay {
			if !seen[fmt.Sprint("stay", i)] {
				t.Fatalf("stay%d was there all the time, and SCAN TYPE lock did not return it", i)
			}
		}
	})
}
