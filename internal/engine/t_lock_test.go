package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/holders"
)

// locking is an engine on a manual clock, with one lock.
type locking struct {
	db    *DB
	clock *clock.Manual
}

func newLocking(t testing.TB) *locking {
	l := &locking{clock: clock.NewManual(time.UnixMilli(1e12))}
	l.db = Open(Options{Shards: 1, Clock: l.clock})
	t.Cleanup(l.db.Close)
	return l
}

func (l *locking) do(f func(tx *Tx)) {
	tx := l.db.Begin(0, []byte("k"))
	defer tx.Commit()
	f(tx)
}

func (l *locking) acquire(t testing.TB, owner string, o AcquireOptions) (g Lease) {
	t.Helper()
	l.do(func(tx *Tx) {
		var ok bool
		var err error
		if g, ok, err = tx.AcquireLock([]byte("k"), []byte(owner), o); !ok || err != nil {
			t.Fatalf("%s does not get the lock: %v", owner, err)
		}
	})
	return g
}

func TestTokensGrowWhateverTheClockDoes(t *testing.T) {
	l := newLocking(t)
	last := int64(0)
	next := func(why string) {
		t.Helper()
		g := l.acquire(t, "a", AcquireOptions{Lease: 10})
		if g.Token <= last {
			t.Errorf("%s: token %d after %d", why, g.Token, last)
		}
		last = g.Token
	}
	next("at first")
	l.do(func(tx *Tx) { _, _ = tx.ReleaseLock([]byte("k"), []byte("a"), last) })
	next("after a release")
	l.db.del(0, []byte("k"))
	next("after DEL")
	l.clock.Advance(11 * time.Millisecond)
	next("after the lease")
	l.db.del(0, []byte("k"))
	l.db.clock = clock.NewManual(time.UnixMicro(l.clock.Micros() - 3600e6)) // the engine's own clock never does that
	next("after a step back")
	if want := l.clock.Micros(); last < want {
		t.Errorf("the token is %d, the engine has seen %d", last, want)
	}
}

func TestAGrantIsReturnedUnlessItWasAskedForAgain(t *testing.T) {
	key, owner := []byte("k"), []byte("a")
	for _, c := range []struct {
		name    string
		between func(tx *Tx, g Lease)
		want    bool
	}{
		{"nothing", func(*Tx, Lease) {}, true},
		{"again", func(tx *Tx, _ Lease) { _, _, _ = tx.AcquireLock(key, owner, AcquireOptions{Lease: 10}) }, false},
		{"renewed", func(tx *Tx, g Lease) { _, _ = tx.RenewLock(key, owner, g.Token, 10) }, false},
		{"released", func(tx *Tx, g Lease) { _, _ = tx.ReleaseLock(key, owner, g.Token) }, false},
		{"released, and acquired again", func(tx *Tx, g Lease) {
			_, _ = tx.ReleaseLock(key, owner, g.Token)
			_, _, _ = tx.AcquireLock(key, owner, AcquireOptions{Lease: 10})
		}, false},
	} {
		l := newLocking(t)
		g := l.acquire(t, "a", AcquireOptions{Lease: 10})
		l.do(func(tx *Tx) {
			c.between(tx, g)
			if got := tx.ReturnLock(key, owner, g); got != c.want {
				t.Errorf("%s: returned %v", c.name, got)
			}
		})
	}
}

func TestReturnedPermitsAreThoseThatWereTaken(t *testing.T) {
	l := newLocking(t)
	key, owner := []byte("k"), []byte("a")
	l.do(func(tx *Tx) {
		ask := func(n int64) Lease {
			g, ok, err := tx.AcquirePermits(key, owner, n, 5, AcquireOptions{Lease: 10})
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			return g
		}
		first := ask(2)
		more := ask(5)
		if tx.ReturnPermits(key, owner, first) {
			t.Error("permits of a repeated request were returned")
		}
		if !tx.ReturnPermits(key, owner, more) {
			t.Error("a grant whose reply was lost stays")
		}
		if again := ask(1); tx.ReturnPermits(key, owner, again) {
			t.Error("permits of an earlier request were returned")
		}
		if b, _ := tx.Holders(key, Semaphore); b.Taken() != 2 {
			t.Errorf("%d permits are held", b.Taken())
		}
	})
}

// Damaged bytes are always refused, and never cause a panic.
func TestDamagedLocksAreRefused(t *testing.T) {
	l := newLocking(t)
	l.acquire(t, "one", AcquireOptions{Lease: 10, Shared: true})
	l.acquire(t, "two", AcquireOptions{Lease: 20, Shared: true})
	var img []byte
	l.do(func(tx *Tx) {
		b, _ := tx.Holders([]byte("k"), Lock)
		img = append(img, b...)
	})
	if _, ok := holders.List(img).Valid(true, MaxDeadline); !ok {
		t.Fatal("a good lock is refused")
	}
	for n := range img {
		if _, ok := holders.List(img[:n]).Valid(true, MaxDeadline); ok && n != holders.Head+holders.SizeOf([]byte("one")) {
			t.Errorf("the first %d bytes are taken for a lock", n)
		}
		for _, x := range []byte{1, 0x80, 0xff} {
			bad := append([]byte(nil), img...)
			bad[n] ^= x
			if last, ok := holders.List(bad).Valid(true, MaxDeadline); ok && (last < 1 || holders.List(bad).Len() != 2) {
				t.Errorf("byte %d wrong: %d holders, token %d", n, holders.List(bad).Len(), last)
			}
		}
	}
}

func TestLocksAllocateNothing(t *testing.T) {
	l := newLocking(t)
	key, owner := []byte("k"), []byte("worker-1")
	tx := l.db.NewTx()
	n := testing.AllocsPerRun(1000, func() { acquireAndRelease(l.db, tx, key, owner) })
	if n > 0 {
		t.Errorf("%v allocations for a lock acquired and released", n)
	}
}

func acquireAndRelease(_ *DB, tx *Tx, key, owner []byte) {
	tx.LockKey(0, key)
	g, ok, err := tx.AcquireLock(key, owner, AcquireOptions{Lease: 30000})
	tx.Unlock()
	if !ok || err != nil {
		panic(err)
	}
	tx.LockKey(0, key)
	_, _ = tx.ReleaseLock(key, owner, g.Token)
	tx.Unlock()
}

func BenchmarkLock(b *testing.B) {
	db := Open(Options{})
	defer db.Close()
	tx := db.NewTx()
	key, owner := []byte("report"), []byte("worker-1")
	b.ReportAllocs()
	for range b.N {
		acquireAndRelease(db, tx, key, owner)
	}
}

func TestGrantsAndWaitsAreCounted(t *testing.T) {
	l := newLocking(t)
	key := []byte("k")
	l.acquire(t, "a", AcquireOptions{Lease: 10})
	since := l.clock.Micros()
	l.do(func(tx *Tx) {
		_, _, _ = tx.AcquireLock(key, []byte("b"), AcquireOptions{Lease: 10})
		_, _, _ = tx.AcquireLock(key, []byte("b"), AcquireOptions{Lease: 10, Waits: true})
	})
	l.clock.Advance(11 * time.Millisecond)
	l.acquire(t, "b", AcquireOptions{Lease: 10, Since: since})
	c := l.db.Stats()
	if c.LocksGranted != 2 || c.LocksRefused != 1 || c.LeasesExpired != 1 || c.ExpiredItems != 1 ||
		c.Waits.Count != 1 || c.Waits.Max != 11000 {
		t.Errorf("%d granted, %d refused, %d leases and %d items expired, %d waited up to %d us",
			c.LocksGranted, c.LocksRefused, c.LeasesExpired, c.ExpiredItems, c.Waits.Count, c.Waits.Max)
	}
}

// Two owners never have one lock, even if memory is full.
func TestLocksAreNotEvicted(t *testing.T) {
	for _, others := range []int{0, 2000} {
		db := Open(Options{Shards: 2, Clock: clock.NewManual(time.UnixMilli(1e12))})
		db.SetEviction(Eviction{Keys: EvictAll, By: ByChance})
		name := func(s string, n int) []byte { return fmt.Appendf(nil, "%s%d", s, n) }
		const locks = 100
		for n := range locks {
			tx := db.Begin(0, name("lock", n))
			if _, ok, _ := tx.AcquireLock(name("lock", n), []byte("a"), AcquireOptions{Lease: 1e6}); !ok {
				t.Fatal("no lock")
			}
			tx.Commit()
		}
		for n := range others {
			if err := db.set(0, name("key", n), make([]byte, 100), 0); err != nil {
				t.Fatal(err)
			}
		}
		db.LimitMemory(1)
		if db.MakeRoom(time.Second) {
			t.Error("there is room for nothing")
		}
		if n := db.Keyspace(0).Keys; n != locks {
			t.Errorf("%d keys are left of %d locks and %d others", n, locks, others)
		}
		db.Close()
	}
}
