package redisson

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
)

// javaLocks is a program with Redisson: it knows its keys and channels, and uses plain
// commands on a client of its own where the backend has an address.
type javaLocks struct {
	t   testing.TB
	b   *backends.Backend
	own *redis.Client
}

func newJavaLocks(t testing.TB, b *backends.Backend) *javaLocks {
	j := &javaLocks{t: t, b: b}
	if opt, err := redis.ParseURL(b.URL()); err == nil && b.Kind != "cluster" && b.Kind != "sentinel" {
		j.own = redis.NewClient(opt)
		t.Cleanup(func() { _ = j.own.Close() })
	}
	return j
}

// do runs a command and returns its reply as text; a map's fields in order.
func (j *javaLocks) do(args ...any) string {
	j.t.Helper()
	ctx := j.b.Context()
	if j.own == nil || args[0] == "HGETALL" {
		v, err := j.b.Do(ctx, args...)
		ok(j.t, err)
		if args[0] != "HGETALL" {
			return v.String()
		}
		all := map[string]string{}
		for key, x := range v.Pairs {
			all[key.Str] = x.Str
		}
		var fields []string
		for _, k := range slices.Sorted(maps.Keys(all)) {
			fields = append(fields, k+"="+all[k])
		}
		return strings.Join(fields, " ")
	}
	v, err := j.own.Do(ctx, args...).Result()
	if errors.Is(err, redis.Nil) {
		return "(nil)"
	}
	ok(j.t, err)
	return fmt.Sprint(v)
}

// is fails unless a command replies so.
func (j *javaLocks) is(want string, args ...any) {
	j.t.Helper()
	if got := j.do(args...); got != want {
		j.t.Errorf("%v: %q, want %q", args, got, want)
	}
}

// gone fails unless there is no such key.
func (j *javaLocks) gone(keys ...string) {
	j.t.Helper()
	for _, key := range keys {
		j.is("0", "EXISTS", key)
	}
}

// lives fails unless a key's lease is about a minute.
func (j *javaLocks) lives(key string) {
	j.t.Helper()
	ttl, err := j.b.TTL(j.b.Context(), key)
	ok(j.t, err)
	if ttl <= 30*time.Second || ttl > time.Minute {
		j.t.Errorf("%s lives for %v", key, ttl)
	}
}

// hears returns a function that waits for the next message of a channel, and fails
// unless it is the one that is wanted; "" is any.
func (j *javaLocks) hears(channel string) func(want string) {
	j.t.Helper()
	s, err := j.b.Subscribe(j.b.Context(), channel)
	ok(j.t, err)
	j.t.Cleanup(func() { _ = s.Close() })
	return func(want string) {
		j.t.Helper()
		m, err := s.Next(j.b.Context())
		ok(j.t, err)
		if want != "" && m.Payload != want {
			j.t.Errorf("the message is %q, want %q", m.Payload, want)
		}
	}
}

// taken fails unless another holder has the requested lock.
func taken(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, lock.ErrTaken) {
		t.Errorf("%s: %v", what, err)
	}
}

// withJava runs a test of a name that is shared with Java, on every backend.
func withJava(t *testing.T, test func(t *testing.T, b *backends.Backend, j *javaLocks, name string)) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) { test(t, b, newJavaLocks(t, b), b.Name("k")) })
}

const (
	us   = "11111111-2222-4333-8444-555555555555"
	them = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
)

// client is a client of this process, and minute its options.
func client(b *backends.Backend) *Client { return NewClient(b.Conn, us) }

var minute = LockOptions{TTL: time.Minute}

func TestALockIsAHashOfCounts(t *testing.T) {
	withJava(t, func(t *testing.T, b *backends.Backend, j *javaLocks, name string) {
		ctx := b.Context()
		l, err := NewFencedLock(client(b), name, minute)
		ok(t, err)
		said := j.hears("redisson_lock__channel:{" + name + "}")

		first, err := l.TryAcquire(ctx, 7)
		ok(t, err)
		j.is(us+":7=1", "HGETALL", name)
		j.is("1", "GET", "redisson_lock_token:{"+name+"}")
		j.lives(name)
		taken(t, "another thread", second(l.TryAcquire(ctx, 8)))
		again, err := l.TryAcquire(ctx, 7)
		ok(t, err)
		j.is(us+":7=2", "HGETALL", name)
		ok(t, again.Renew(ctx))
		ok(t, again.Release(ctx))
		j.is(us+":7=1", "HGETALL", name)
		ok(t, first.Release(ctx))
		j.gone(name)
		said("0")

		// Now Java has it, and gives it to us.
		j.do("HSET", name, them+":1", 1)
		j.do("PEXPIRE", name, 60000)
		j.do("INCR", "redisson_lock_token:{"+name+"}")
		taken(t, "Java has it", second(l.TryAcquire(ctx, 7)))
		var wg sync.WaitGroup
		var next *lock.Lease
		wg.Go(func() { next, err = l.Acquire(ctx, 7, 0) })
		b.Pass(5 * time.Millisecond)
		j.do("DEL", name)
		j.do("PUBLISH", "redisson_lock__channel:{"+name+"}", "0")
		wg.Wait()
		ok(t, err)
		if next.Token() != 3 {
			t.Errorf("token %d", next.Token())
		}
		// And takes it away, by force.
		j.do("DEL", name)
		if err := next.Renew(ctx); !errors.Is(err, lock.ErrLost) {
			t.Error(err)
		}
		if err := next.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Error(err)
		}

		tagged, err := NewLock(client(b), "a{"+name+"}z", minute)
		ok(t, err)
		said = j.hears("redisson_lock__channel:a{" + name + "}z")
		lease, err := tagged.TryAcquire(ctx, 1)
		ok(t, err)
		ok(t, lease.Release(ctx))
		said("0")
	})
}

func TestAReadWriteLockKeepsEachReadersLease(t *testing.T) {
	withJava(t, func(t *testing.T, b *backends.Backend, j *javaLocks, name string) {
		ctx := b.Context()
		l, err := NewReadWriteLock(client(b), name, minute)
		ok(t, err)
		said := j.hears("redisson_rwlock:{" + name + "}")
		ours, theirs := "{"+name+"}:"+us+":7:rwlock_timeout:", "{"+name+"}:"+them+":1:rwlock_timeout:"

		// A reader in Java.
		j.do("HSET", name, "mode", "read", them+":1", 1)
		j.do("SET", theirs+"1", 1, "PX", 60000)
		j.do("PEXPIRE", name, 60000)
		taken(t, "alone beside a reader", second(l.TryAcquire(ctx, 7)))
		first, err := l.TryShare(ctx, 7)
		ok(t, err)
		other, err := l.Share(ctx, 7, time.Second)
		ok(t, err)
		j.is(us+":7=2 "+them+":1=1 mode=read", "HGETALL", name)
		j.lives(ours + "1")
		j.lives(ours + "2")
		ok(t, other.Renew(ctx))
		ok(t, other.Release(ctx))
		j.gone(ours + "2")
		ok(t, first.Release(ctx))
		j.gone(ours + "1")
		j.is(them+":1=1 mode=read", "HGETALL", name)
		j.lives(name)

		// It leaves, and we write, and read while we write.
		var wg sync.WaitGroup
		var writer *lock.Lease
		wg.Go(func() { writer, err = l.Acquire(ctx, 7, 0) })
		b.Pass(5 * time.Millisecond)
		j.do("DEL", theirs+"1", name)
		j.do("PUBLISH", "redisson_rwlock:{"+name+"}", "0")
		wg.Wait()
		ok(t, err)
		said("")
		j.is(us+":7:write=1 mode=write", "HGETALL", name)
		taken(t, "shared beside a writer", second(l.TryShare(ctx, 8)))
		reader, err := l.TryShare(ctx, 7)
		ok(t, err)
		j.is(us+":7=1 "+us+":7:write=1 mode=write", "HGETALL", name)
		ok(t, writer.Renew(ctx))
		ok(t, writer.Release(ctx))
		j.is(us+":7=1 mode=read", "HGETALL", name)
		said("0")
		ok(t, reader.Release(ctx))
		j.gone(name, ours+"1")
		said("0")
	})
}

func TestASemaphoreIsANumber(t *testing.T) {
	withJava(t, func(t *testing.T, b *backends.Backend, j *javaLocks, name string) {
		ctx := b.Context()
		s, err := NewSemaphore(b.Conn, name, minute)
		ok(t, err)
		said := j.hears("redisson_sc:{" + name + "}")
		taken(t, "there are none", s.TryAcquire(ctx, 1))
		if did, err := s.TrySetPermits(ctx, 3); !did || err != nil {
			t.Error(did, err)
		}
		said("3")
		ok(t, s.TryAcquire(ctx, 2))
		j.is("1", "GET", name)
		if did, err := s.TrySetPermits(ctx, 9); did || err != nil {
			t.Error(did, err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.Acquire(ctx, 2, 0); err != nil {
				t.Error(err)
			}
		})
		b.Pass(5 * time.Millisecond)
		j.do("INCRBY", name, 4) // Java releases what it had taken
		j.do("PUBLISH", "redisson_sc:{"+name+"}", "5")
		wg.Wait()
		j.is("3", "GET", name)
		said("")
		ok(t, s.Release(ctx, 2))
		said("5")
		taken(t, "more than there are", s.Acquire(ctx, 6, 10*time.Millisecond))
		if n, err := s.AvailablePermits(ctx); n != 5 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestPermitsExpireOneByOne(t *testing.T) {
	withJava(t, func(t *testing.T, b *backends.Backend, j *javaLocks, name string) {
		ctx := b.Context()
		s, err := NewPermits(b.Conn, name, minute)
		ok(t, err)
		// Of two permits in Java's hands one has no lease, and the other's is over.
		j.do("SET", name, 0)
		j.do("ZADD", "{"+name+"}:timeout", "922337203685477", "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f")
		j.do("ZADD", "{"+name+"}:timeout", "946684800000", "\xff\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f")
		if did, err := s.TrySetPermits(ctx, 9); did || err != nil {
			t.Error(did, err)
		}
		lease, err := s.TryAcquire(ctx)
		ok(t, err)
		j.is("0", "GET", name)
		j.is("2", "ZCARD", "{"+name+"}:timeout")
		if id := lease.Owner(); len(id) != 16 || j.do("ZSCORE", "{"+name+"}:timeout", id) == "(nil)" {
			t.Errorf("the permit %x is not there", id)
		}
		taken(t, "more than there are", second(s.Acquire(ctx, 10*time.Millisecond)))
		ok(t, lease.Renew(ctx))
		said := j.hears("redisson_sc:{" + name + "}")
		ok(t, lease.Release(ctx))
		said("1")
		if n, err := s.AvailablePermits(ctx); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestALatchIsANumber(t *testing.T) {
	withJava(t, func(t *testing.T, b *backends.Backend, j *javaLocks, name string) {
		ctx := b.Context()
		l, err := NewLatch(b.Conn, name, minute)
		ok(t, err)
		if did, err := l.Set(ctx, 2); !did || err != nil {
			t.Error(did, err)
		}
		j.is("2", "GET", name)
		waits := func() func() {
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := l.Wait(ctx); err != nil {
					t.Error(err)
				}
			})
			b.Pass(5 * time.Millisecond)
			return wg.Wait
		}
		wait := waits()
		j.do("DECR", name)
		said := j.hears("redisson_countdownlatch__channel__{" + name + "}")
		if n, err := l.CountDown(ctx); n != 0 || err != nil {
			t.Error(n, err)
		}
		said("0")
		wait()
		j.gone(name)

		j.do("SET", name, 1) // and the other way round
		wait = waits()
		j.do("DEL", name)
		j.do("PUBLISH", "redisson_countdownlatch__channel__{"+name+"}", "0")
		wait()
	})
}

func TestALockHasOneHolderInBothLanguages(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, name := b.Context(), b.Name("k")
		var wg sync.WaitGroup
		total := 0 // guarded by the lock itself, as the race detector sees
		for thread := range 3 {
			l, err := NewLock(NewClient(b.Open(), ""), name, minute)
			ok(t, err)
			wg.Go(func() {
				for range 5 {
					lease, err := l.Acquire(ctx, int64(thread), 0)
					if err != nil {
						t.Error(err)
						return
					}
					total++
					if err := lease.Release(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		j := newJavaLocks(t, b)
		wg.Go(func() { // Java takes it when it is free
			for n := 0; n < 5; {
				if !j.take(ctx, name) {
					_ = kit.Sleep(ctx, time.Millisecond)
					continue
				}
				total++
				n++
				j.do("DEL", name)
				j.do("PUBLISH", "redisson_lock__channel:{"+name+"}", "0")
			}
		})
		wg.Wait()
		if total != 20 {
			t.Errorf("%d turns", total)
		}
	})
}

// take is Java's tryLock: all or nothing by WATCH, as the test has no script of Java's.
func (j *javaLocks) take(ctx context.Context, name string) bool {
	j.t.Helper()
	err := j.b.Watch(ctx, func(w *ebb.Watched) error {
		v, err := w.Do(ctx, "EXISTS", name)
		if err != nil || v.Int == 1 {
			return errors.Join(err, lock.ErrTaken)
		}
		var tx ebb.Batch
		tx.Do("HINCRBY", name, them+":1", 1)
		tx.Do("PEXPIRE", name, 60000)
		_, err = w.Tx(ctx, &tx)
		return err
	}, name)
	if err != nil && !errors.Is(err, ebb.ErrConflict) && !errors.Is(err, lock.ErrTaken) {
		j.t.Error(err)
	}
	return err == nil
}
