package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/delayq"
)

// walkExpiries returns everything in a database that has a deadline, earliest first.
func walkExpiries(db *DB, dbi int) (all []Expiry) {
	tx := db.BeginAll(dbi)
	defer tx.Commit()
	now := tx.Millis()
	tx.Each(func(k Key) {
		last := k.Deadline()
		name := []byte(string(k.Name()))
		if last != 0 {
			all = append(all, Expiry{last, LevelKey, name, nil})
		}
		item := func(l Level, item []byte, d int64) {
			if d >= now && (last == 0 || d < last) {
				all = append(all, Expiry{d, l, name, []byte(string(item))})
			}
		}
		h := hit{sh: k.sp.sh, sp: k.sp, r: k.r}
		switch kind := k.Kind(); kind {
		case Lock, Semaphore:
			for x := range h.holders().All() {
				item(LevelLease, x.Owner, x.Deadline)
			}
		case DelayQueue:
			q := h.box().(queueBox)
			q.Each(func(j delayq.Job) bool {
				switch f := q.Fate(&j, now); {
				case f == delayq.Spent || f == delayq.Expired:
				case j.Leased:
					item(LevelLease, j.ID, j.Until)
				case j.Expire != 0:
					item(LevelLease, j.ID, j.Expires())
				}
				return true
			})
		default:
			k.Items(func(it Item) {
				if it.Deadline != 0 {
					item(levelOf(kind), it.Key, it.Deadline)
				}
			})
		}
	})
	slices.SortFunc(all, func(x, y Expiry) int { return x.compare(&y) })
	return all
}

// fillExpiries makes keys of all types whose items have deadlines, small and large ones.
func fillExpiries(t *testing.T, db *DB, rng *rand.Rand, from, n int) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	done := func(int) {}
	for i := from; i < from+n; i++ {
		key := fmt.Append(nil, []string{"a:", "b:"}[rng.IntN(2)], i)
		tx := db.Begin(0, key)
		items := make([][]byte, 1+rng.IntN(20))
		for j := range items {
			items[j] = fmt.Append(nil, "item", j)
			if rng.IntN(3) == 0 {
				items[j] = fmt.Append(nil, j)
			}
		}
		later := func() int64 { return tx.Millis() + max(1, someDeadline(rng)) }
		switch rng.IntN(8) {
		case 0:
			_, _, err := tx.Set(key, []byte("v"), SetOptions{Deadline: later()}, nil)
			must(err)
		case 1:
			var pairs [][]byte
			for _, it := range items {
				pairs = append(pairs, it, []byte("v"))
			}
			_, err := tx.HSet(key, pairs)
			must(err)
			for _, it := range items[len(items)/2:] {
				must(tx.HExpire(key, [][]byte{it}, later(), 0, done))
			}
		case 2:
			_, err := tx.SAdd(key, items)
			must(err)
			for _, it := range items[len(items)/2:] {
				must(tx.SExpire(key, [][]byte{it}, later(), 0, done))
			}
		case 3:
			for _, it := range items {
				_, _, err := tx.ZAdd(key, []Scored{{1, it}}, ZAddOptions{})
				must(err)
				must(tx.ZExpire(key, [][]byte{it}, later(), 0, done))
			}
		case 4:
			_, err := tx.LPush(key, Tail, items, false)
			must(err)
			must(tx.LExpire(key, []int64{0, int64(len(items) - 1)}, later(), 0, done))
		case 5:
			_, _, err := tx.AcquireLock(key, []byte("owner"), AcquireOptions{Lease: later() - tx.Millis()})
			must(err)
		case 6:
			_, _, err := tx.AcquirePermits(key, []byte("owner"), 1, 9, AcquireOptions{Lease: later() - tx.Millis()})
			must(err)
		case 7:
			for _, it := range items {
				_, _, err := tx.QueueAdd(key, &QueueAdd{ID: it, Due: tx.Millis(), Expire: later() - tx.Millis()})
				must(err)
			}
			_, err := tx.QueuePop(key, 1+len(items)/2, later()-tx.Millis(), func(Job) {})
			must(err)
		}
		if rng.IntN(4) == 0 {
			tx.Expire(key, later(), 0, 0)
		}
		tx.Commit()
	}
}

// checkSoon compares Soon with the beginning of a sorted walk.
func checkSoon(t *testing.T, db *DB, o SoonOptions) {
	t.Helper()
	got, whole := db.Soon(0, o)
	now := db.Clock().Micros() / 1000
	var want []Expiry
	for _, x := range walkExpiries(db, 0) {
		if (o.Within == 0 || x.Deadline <= now+o.Within) && (o.Levels == 0 || o.Levels.Has(x.Level)) && (o.Match == nil || o.Match(x.Key)) {
			want = append(want, x)
		}
	}
	want = want[:min(len(want), max(o.Count, 1))]
	if !whole || !slices.EqualFunc(got, want, func(x, y Expiry) bool { return x.compare(&y) == 0 }) {
		t.Fatalf("%+v, whole %v:\n%s\nwant\n%s", o, whole, rowsText(got), rowsText(want))
	}
	tx := db.BeginAll(0)
	defer tx.Commit()
	if in, ok := tx.Soon(o); !ok || !slices.EqualFunc(in, got, func(x, y Expiry) bool { return x.compare(&y) == 0 }) {
		t.Fatalf("in a transaction:\n%s\nwant\n%s", rowsText(in), rowsText(got))
	}
}

func rowsText(rows []Expiry) (s string) {
	for _, x := range rows {
		s += fmt.Sprintf("%d %v %q %q\n", x.Deadline, x.Level, x.Key, x.Item)
	}
	return s
}

func TestWhatExpiresSoonIsTheBeginningOfASortedWalk(t *testing.T) {
	for _, small := range []bool{true, false} {
		db, clock := surveyed(t)
		if !small {
			l := db.Layout()
			l.HashEntries, l.SetEntries, l.ZSetEntries, l.ListSize = 2, 2, 2, 3
			db.SetLayout(l)
		}
		rng := rand.New(rand.NewPCG(7, 8))
		match := func(key []byte) bool { return key[0] == 'a' }
		for round := range 8 {
			fillExpiries(t, db, rng, round*40, 40)
			for _, o := range []SoonOptions{{}, {Count: 10}, {Count: MaxSoon}, {Count: 5, Match: match}, {Count: 100, Within: minute},
				{Count: 1000, Within: hour, Match: match},
				{Count: 20, Levels: 1 << LevelKey}, {Count: 20, Levels: 1 << LevelField}, {Count: 20, Levels: 1<<LevelMember | 1<<LevelElement},
				{Count: 50, Levels: 1<<LevelLease | 1<<LevelKey, Match: match}} {
				checkSoon(t, db, o)
			}
			db.SetActiveExpiry(round%2 == 0) // expired data stays for a while, and is invisible
			clock.Advance(time.Duration(rng.Int64N(20*minute)) * time.Millisecond)
		}
	}
}

func TestALookForWhatExpiresSoonIsBounded(t *testing.T) {
	db, _ := surveyed(t)
	for i := range soonLooks + 1000 {
		setFor(t, db, 0, fmt.Sprint("k", i), 20*hour+int64(i))
	}
	looked := 0
	rows, whole := db.Soon(0, SoonOptions{Count: 5, Match: func([]byte) bool { looked++; return false }})
	if len(rows) != 0 || whole || looked > soonLooks || looked < soonLooks*9/10 {
		t.Errorf("%d rows after %d looks, whole: %v; want none after %d at most", len(rows), looked, whole, soonLooks)
	}
	rows, whole = db.Soon(0, SoonOptions{Count: 5})
	if len(rows) != 5 || !whole || string(rows[0].Key) != "k0" || string(rows[4].Key) != "k4" {
		t.Errorf("whole: %v, rows:\n%s", whole, rowsText(rows))
	}
}

func BenchmarkSoon(b *testing.B) {
	db := Open(Options{Shards: 16})
	defer db.Close()
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 1_000_000 {
		tx := db.Begin(0, fmt.Append(nil, i))
		_, _, _ = tx.Set(fmt.Append(nil, i), []byte("v"), SetOptions{Deadline: tx.Millis() + 1000 + someDeadline(rng)}, nil)
		tx.Commit()
	}
	for b.Loop() {
		db.Soon(0, SoonOptions{Count: 10})
	}
}
