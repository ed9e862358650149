package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/rdb"
)

// freshEngine returns an engine whose clock the test moves.
func freshEngine(t *testing.T, hooks Hooks) (*DB, *clock.Manual) {
	t.Helper()
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	db := Open(Options{Clock: clock, Shards: 2, RecordEffects: true, Hooks: hooks})
	t.Cleanup(db.Close)
	return db, clock
}

// get returns the result of GetFresh.
func get(t *testing.T, db *DB, key string, o FreshOptions) FreshValue {
	t.Helper()
	tx := db.Begin(0, []byte(key))
	defer tx.Commit()
	v, err := tx.GetFresh([]byte(key), o)
	if err != nil {
		t.Fatal(err)
	}
	v.Value = bytes.Clone(v.Value)
	return v
}

func setFreshly(t *testing.T, db *DB, key, val string, o SetOptions) bool {
	t.Helper()
	tx := db.Begin(0, []byte(key))
	defer tx.Commit()
	o.Fresh, o.Deadline = tx.Millis()+o.Fresh, tx.Millis()+o.Deadline
	done, _, err := tx.Set([]byte(key), []byte(val), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestAFileHasFreshDeadlinesAndLeases(t *testing.T) {
	db, clock := freshEngine(t, nil)
	for i, val := range []string{"v", string(bytes.Repeat([]byte("long"), 10_000)), string(bytes.Repeat([]byte("x"), 1<<20))} {
		setFreshly(t, db, fmt.Sprint("k", i), val, SetOptions{Deadline: 60_000, Fresh: 30_000})
		setFreshly(t, db, fmt.Sprint("stale", i), val, SetOptions{Deadline: 60_000, Fresh: 1})
	}
	clock.Advance(2 * time.Millisecond)
	token := get(t, db, "stale0", FreshOptions{Lease: 5000}).Token
	absent := get(t, db, "none", FreshOptions{Lease: 5000, Owner: []byte("me")}).Token
	var file bytes.Buffer
	w := rdb.NewWriter(&file, rdb.WriterOptions{})
	if err := db.Snapshot(context.Background(), w, SnapshotOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}

	second, _ := freshEngine(t, nil)
	r := rdb.NewReader(bytes.NewReader(file.Bytes()), rdb.ReaderOptions{Aux: func(name, text []byte) error {
		_, err := second.LoadAux(name, text)
		return err
	}})
	if err := second.Load(context.Background(), r, LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := second.Check(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for _, key := range []string{fmt.Sprint("k", i), fmt.Sprint("stale", i)} {
			a, b := get(t, db, key, FreshOptions{}), get(t, second, key, FreshOptions{})
			if a.State != b.State || !bytes.Equal(a.Value, b.Value) {
				t.Errorf("%s was %v, and is %v in the file", key, a.State, b.State)
			}
		}
	}
	if !setFreshly(t, second, "stale0", "new", SetOptions{Deadline: 1000, Fresh: 500, Token: token}) {
		t.Error("the token of a stale value was not in the file")
	}
	if v := get(t, second, "none", FreshOptions{Lease: 100}); v.State != FreshAbsent || !v.Loading {
		t.Errorf("the lease of a missing key is not in the file: %v", v.State)
	}
	if v := get(t, second, "none", FreshOptions{Lease: 5000, Owner: []byte("me")}); v.State != FreshRefresh || v.Token != absent {
		t.Errorf("the owner of a lease is not in the file: %v, token %d, want %d", v.State, v.Token, absent)
	}
	if !setFreshly(t, second, "none", "new", SetOptions{Deadline: 1000, Fresh: 500, Token: absent}) {
		t.Error("the token of a missing value was not in the file")
	}
}

func TestAReplicaElectsNoClientAndGoesOnWithTheLeasesWhenItIsPromoted(t *testing.T) {
	db, clock := freshEngine(t, nil)
	setFreshly(t, db, "k", "v", SetOptions{Deadline: 60_000, Fresh: 10})
	clock.Advance(11 * time.Millisecond)
	v := get(t, db, "k", FreshOptions{Lease: 5000})
	if v.State != FreshRefresh {
		t.Fatal(v.State)
	}

	replica, now := freshEngine(t, nil)
	now.Advance(11 * time.Millisecond)
	tx := replica.BeginAll(0)
	tx.SetReplica(true)
	tx.Replaying()
	if _, _, err := tx.Set([]byte("k"), []byte("v"), SetOptions{Deadline: tx.Millis() + 50_000, Fresh: tx.Millis() - 1}, nil); err != nil {
		t.Fatal(err)
	}
	if err := tx.Leased([]byte("k"), v.Token, tx.Millis()+5000, []byte("me")); err != nil {
		t.Fatal(err)
	}
	tx.Commit()
	if v := get(t, replica, "k", FreshOptions{Lease: 100}); v.State != FreshStale {
		t.Errorf("the replica replied %v", v.State)
	}
	if v := get(t, replica, "none", FreshOptions{Lease: 100}); v.State != FreshAbsent || v.Loading {
		t.Errorf("the replica replied %v for a missing key", v.State)
	}
	replica.SetReplica(false)
	if v := get(t, replica, "k", FreshOptions{Lease: 100}); v.State != FreshStale {
		t.Errorf("the new master elects a second client: %v", v.State)
	}
	if again := get(t, replica, "k", FreshOptions{Lease: 100, Owner: []byte("me")}); again.State != FreshRefresh || again.Token != v.Token {
		t.Errorf("the owner of the lease got %v and token %d of the new master, want %d", again.State, again.Token, v.Token)
	}
	if !setFreshly(t, replica, "k", "new", SetOptions{Deadline: 1000, Fresh: 500, Token: v.Token}) {
		t.Error("the new master refuses the token of the old one")
	}
	if err := replica.Check(); err != nil {
		t.Error(err)
	}
}

// followFresh runs the effects of db on replica.
func followFresh(t *testing.T, db, replica *DB) {
	t.Helper()
	for _, e := range db.Drain() {
		tx := replica.Begin(0, e.Args[1])
		tx.Replaying()
		number := func(i int) int64 {
			n, err := strconv.ParseInt(string(e.Args[i]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		var err error
		switch string(e.Args[0]) {
		case "SET":
			_, _, err = tx.Set(e.Args[1], e.Args[2], SetOptions{Deadline: number(4)}, nil)
		case "EBB.FRESH":
			err = tx.Refresh(e.Args[1], number(2))
		case "EBB.LEASE":
			err = tx.Leased(e.Args[1], number(2), number(3), bytes.Join(e.Args[4:], nil))
		}
		tx.Commit()
		if err != nil {
			t.Fatalf("%s: %v", e.Args, err)
		}
	}
}

func TestAReplicaSendsTheEventOfAStaleValueAndAPromotedOneWhatIsMissing(t *testing.T) {
	db, clock := freshEngine(t, nil)
	hooks := &journal{}
	replica, now := freshEngine(t, hooks)
	replica.SetReplica(true)
	replica.SetEvents(EventExpired)
	setFreshly(t, db, "k", "v", SetOptions{Deadline: 60_000, Fresh: 10})
	setFreshly(t, db, "l", "v", SetOptions{Deadline: 60_000, Fresh: 20})
	followFresh(t, db, replica)
	now.Advance(50 * time.Millisecond)
	if got := hooks.take(); len(got) > 0 {
		t.Errorf("the replica sent %q before its master", got)
	}
	clock.Advance(11 * time.Millisecond)
	token := get(t, db, "k", FreshOptions{Lease: 5000}).Token
	followFresh(t, db, replica)
	if got := hooks.take(); len(got) != 1 || !strings.Contains(got[0], "stale") || !strings.Contains(got[0], "k") {
		t.Errorf("the replica sent %q for one stale value", got)
	}

	do(replica, func(tx *Tx) {
		if err := tx.SetRule(Rule{Name: "r", Match: "*", Levels: 1 << LevelFresh, Stream: "s", MaxLen: 10, MaxValue: -1}); err != nil {
			t.Fatal(err)
		}
	})
	replica.SetReplica(false)
	now.Advance(time.Millisecond)
	do(replica, func(tx *Tx) {
		if got := told(tx, "s"); !slices.Equal(got, []string{"fresh l"}) {
			t.Errorf("the new master records %q, want that of l", got)
		}
	})
	if !setFreshly(t, replica, "k", "new", SetOptions{Deadline: 1000, Fresh: 500, Token: token}) {
		t.Error("going stale has ended a lease")
	}
}

func TestAFileHasTheStaleValuesThatAreNotRecorded(t *testing.T) {
	db, clock := freshEngine(t, nil)
	setFreshly(t, db, "fired", "v", SetOptions{Deadline: 60_000, Fresh: 10})
	clock.Advance(11 * time.Millisecond)
	db.SetActiveExpiry(false)
	setFreshly(t, db, "waits", "v", SetOptions{Deadline: 60_000, Fresh: 10})
	setFreshly(t, db, "later", "v", SetOptions{Deadline: 60_000, Fresh: 15})
	clock.Advance(11 * time.Millisecond)
	do(db, func(tx *Tx) {
		if err := tx.SetRule(Rule{Name: "r", Match: "*", Levels: 1 << LevelFresh, Stream: "s", MaxLen: 10, MaxValue: -1}); err != nil {
			t.Fatal(err)
		}
	})
	var file bytes.Buffer
	w := rdb.NewWriter(&file, rdb.WriterOptions{})
	if err := errors.Join(db.Snapshot(context.Background(), w, SnapshotOptions{}), w.End()); err != nil {
		t.Fatal(err)
	}
	second, now := freshEngine(t, nil)
	now.Advance(time.Second)
	r := rdb.NewReader(bytes.NewReader(file.Bytes()), rdb.ReaderOptions{Aux: func(name, text []byte) error {
		_, err := second.LoadAux(name, text)
		return err
	}})
	if err := second.Load(context.Background(), r, LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	now.Advance(time.Millisecond)
	do(second, func(tx *Tx) {
		got := told(tx, "s")
		slices.Sort(got)
		if !slices.Equal(got, []string{"fresh later", "fresh waits"}) {
			t.Errorf("after the load the stream has %q", got)
		}
		if rules := tx.Rules(); len(rules) != 1 || rules[0].Levels != 1<<LevelFresh {
			t.Errorf("the rules are %v", rules)
		}
	})
	if err := second.Check(); err != nil {
		t.Error(err)
	}
}

func TestEvictionEndsNoLease(t *testing.T) {
	db, clock := freshEngine(t, nil)
	setFreshly(t, db, "k", "v", SetOptions{Deadline: 60_000, Fresh: 10})
	clock.Advance(11 * time.Millisecond)
	token := get(t, db, "k", FreshOptions{Lease: 5000}).Token
	tx := db.Begin(0, []byte("k"))
	h := tx.find([]byte("k"))
	sh := h.sh
	sh.evictor.policy = Eviction{Keys: EvictAll, By: ByChance}
	if !sh.remove(tx, candidate{hash: h.h, ref: h.ref()}) {
		t.Fatal("the key was not evicted")
	}
	tx.Commit()
	effects := db.Drain()
	if n := len(effects); n < 2 || string(effects[n-2].Args[0]) != "DEL" || string(effects[n-1].Args[0]) != "EBB.LEASE" {
		t.Errorf("the last of %d effects are not DEL and EBB.LEASE", n)
	}
	if !setFreshly(t, db, "k", "w", SetOptions{Deadline: 1000, Fresh: 500, Token: token}) {
		t.Error("the eviction of the key has ended the lease")
	}
}

func TestRecordsWithTwoDeadlinesStaySoundWhenTheyMoveAndGrow(t *testing.T) {
	db, clock := freshEngine(t, nil)
	key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
	for round := range 40 {
		for i := range 60 {
			n := (i*7919 + round*104729) % 3000
			if i%17 == 0 {
				n = 20_000
			}
			tx := db.Begin(0, key(i))
			o := SetOptions{Deadline: tx.Millis() + 1000 + int64(n)}
			if (i+round)%3 > 0 {
				o.Fresh = tx.Millis() + int64(1+n%900)
			}
			var err error
			switch (i + round) % 7 {
			case 0:
				_, err = tx.Append(key(i), bytes.Repeat([]byte("a"), n/10))
			case 1:
				_, err = tx.MakeStale(key(i))
			case 2:
				tx.Persist(key(i))
			case 3:
				tx.Expire(key(i), tx.Millis()+int64(n), int64(round%2)*500, 0)
			case 4:
				tx.Del(key(i))
			default:
				_, _, err = tx.Set(key(i), bytes.Repeat([]byte("v"), n), o, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			tx.Commit()
		}
		if err := db.Check(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		clock.Advance(time.Duration(round*13) * time.Millisecond)
		if err := db.Check(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

func TestGetFreshAllocatesNothing(t *testing.T) {
	db, _ := freshEngine(t, nil)
	setFreshly(t, db, "k", "v", SetOptions{Deadline: 60_000, Fresh: 30_000})
	key, val := []byte("k"), []byte("w")
	tx := db.NewTx()
	if n := testing.AllocsPerRun(100, func() {
		tx.Lock(0, [][]byte{key})
		v, err := tx.GetFresh(key, FreshOptions{Lease: 1000})
		if err != nil || v.State != FreshFresh {
			t.Fatal(v.State, err)
		}
		if _, _, err := tx.Set(key, val, SetOptions{Deadline: tx.Millis() + 60_000, Fresh: tx.Millis() + 30_000}, nil); err != nil {
			t.Fatal(err)
		}
		tx.fx.clear()
		tx.Unlock()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
