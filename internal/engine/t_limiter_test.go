package engine

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/limiter"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// Any bytes of a payload are refused, or give a limiter that works.
func TestForeignLimitersAreRefusedOrAnswer(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		db := Open(Options{Clock: clock.NewManual(epoch), Shards: 1})
		defer db.Close()
		tx, key := db.Begin(0, []byte("k")), []byte("k")
		defer tx.Commit()
		algo := limiter.Algo(rapid.IntRange(0, int(limiter.Algos)-1).Draw(t, "algo"))
		o := TakeOptions{Algo: algo, Limit: 10, Period: 1_000_000, Cost: 2}
		for range rapid.IntRange(1, 3).Draw(t, "takes") {
			if algo == limiter.GCRA {
				_, _, _ = tx.Reserve(key, ReserveOptions{TakeOptions: o, MaxWait: -1})
			}
			if _, err := tx.Take(key, o); err != nil {
				t.Fatal(err)
			}
		}
		h := tx.find(key)
		img := append([]byte(nil), limiter.Compact(h.image())...)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			img[rapid.IntRange(0, len(img)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		img = img[:rapid.OneOf(rapid.Just(len(img)), rapid.IntRange(0, len(img))).Draw(t, "length")]

		got, ok := limiter.Restore(img)
		if !ok {
			return
		}
		tx.Del(key)
		h = tx.find(key)
		if err := tx.put(&h, key, got, spec{flags: uint8(Limiter)}); err != nil {
			t.Fatal(err)
		}
		o.Limit, o.Period = rapid.Int64Range(1, limiter.MaxLogged).Draw(t, "limit"), rapid.Int64Range(1000, limiter.MaxPeriod).Draw(t, "period")
		o.Algo, o.Cost = limiter.Algo(got[0]&0x0f), 1
		if a, err := tx.Take(key, o); err != nil || a.Remaining < 0 || a.Remaining > a.Limit || a.Retry < -1 || a.Reset < 0 {
			t.Fatalf("%+v, %v", a, err)
		}
		if _, ok, err := tx.LimiterInfo(key); err != nil || !ok {
			t.Fatal(ok, err)
		}
	})
}

// The limiter's deadline is the first millisecond that is not before the instant at which it is full: until
// then it answers from its state, and afterwards as a missing limiter.
func TestALimiterExpiresWhenItIsFull(t *testing.T) {
	clock := clock.NewManual(epoch)
	db := Open(Options{Clock: clock, Shards: 1})
	defer db.Close()
	key := []byte("k")
	for _, period := range []int64{1000, 7000, 1_000_000, limiter.MaxPeriod / 1000 * 1000} {
		tx := db.Begin(0, key)
		tx.Del(key)
		a, err := tx.Take(key, TakeOptions{Limit: 3, Period: period, Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		full := tx.Now() + a.Reset
		if d := tx.Deadline(key); d*1000 < full || d*1000 >= full+1000 {
			t.Errorf("it is full at %d us, its key's deadline is %d ms", full, d)
		}
		tx.Commit()
	}
}

func TestTakesAreCounted(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(epoch), Shards: 1})
	defer db.Close()
	key := []byte("k")
	tx := db.Begin(0, key)
	for range 3 {
		_, _ = tx.Take(key, TakeOptions{Limit: 2, Period: 1000, Cost: 1})
		_, _ = tx.Take(key, TakeOptions{Limit: 2, Period: 1000, Cost: 1, Peek: true})
		_, _ = tx.Take(key, TakeOptions{Limit: 2, Period: 1000})
	}
	tx.Commit()
	if c := db.Stats(); c.LimiterAllowed != 2 || c.LimiterDenied != 1 {
		t.Errorf("%d were allowed, %d refused", c.LimiterAllowed, c.LimiterDenied)
	}
}

// A state from a server whose clock is ahead does not allow more, and its retry-after is correct.
func TestALimiterFromAheadOfTheClock(t *testing.T) {
	key := []byte("k")
	for algo := range limiter.Algos {
		for _, ahead := range []time.Duration{0, time.Millisecond, 1500 * time.Millisecond, time.Hour} {
			o := TakeOptions{Algo: algo, Limit: 3, Period: 1_000_000, Cost: 3}
			there := Open(Options{Clock: clock.NewManual(epoch.Add(ahead)), Shards: 1})
			tx := there.Begin(0, key)
			_, _ = tx.Take(key, o)
			payload, _ := tx.Dump(nil, key)
			tx.Commit()
			there.Close()

			clock := clock.NewManual(epoch)
			db := Open(Options{Clock: clock, Shards: 1})
			ask := func() (a Taken) {
				tx := db.Begin(0, key)
				defer tx.Commit()
				o.Peek = true
				a, _ = tx.Take(key, o)
				return a
			}
			tx = db.Begin(0, key)
			if err := tx.Restore(key, payload, RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
			tx.Commit()
			a := ask()
			if a.Allowed || a.Retry < ahead.Microseconds() || a.Reset < a.Retry {
				t.Errorf("%v, %v ahead: %+v", algo, ahead, a)
			}
			clock.Advance(time.Duration(a.Retry-1) * time.Microsecond)
			if ask().Allowed {
				t.Errorf("%v, %v ahead: allowed before its time", algo, ahead)
			}
			clock.Advance(time.Microsecond)
			if !ask().Allowed {
				t.Errorf("%v, %v ahead: not allowed at its time", algo, ahead)
			}
			db.Close()
		}
	}
}
