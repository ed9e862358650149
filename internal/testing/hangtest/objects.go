package hangtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bits"
	"github.com/ebbdb/ebb/bloom"
	"github.com/ebbdb/ebb/cache"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/expset"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/near"
	"github.com/ebbdb/ebb/queue"
	"github.com/ebbdb/ebb/stream"
	"github.com/ebbdb/ebb/topic"
	"github.com/ebbdb/ebb/unique"
)

// made returns the result of a constructor, and fails the test after an error.
func made[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func drop[T any](_ T, err error) error { return err }

// held is an object that a program holds for a time.
type held interface {
	Release(ctx context.Context) error
}

// briefly returns a call that acquires something and releases it.
func briefly[H held](try func(ctx context.Context) (H, error)) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		h, err := try(ctx)
		if err != nil {
			return err
		}
		return h.Release(ctx)
	}
}

// line returns a call that waits for something and releases it. If the release fails, the
// lease expires.
func line[H held](acquire func(ctx context.Context) (H, error)) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		h, err := acquire(ctx)
		if err == nil {
			_ = h.Release(context.WithoutCancel(ctx))
		}
		return err
	}
}

func (s *site) objects() []*object {
	all := []*object{
		s.limiter(), s.concurrency(), s.lock(), s.semaphore(), s.latch(), s.onceValue(),
		s.queue(), s.topic(), s.stream(), s.group(), s.expmap(), s.expset(),
	}
	f := made(bloom.New(s.c, s.name("bloom"), bloom.Options[string]{}))(s.T)
	u := made(unique.New(s.c, s.name("unique")))(s.T)
	w := made(unique.New(s.c, s.name("window"), unique.Options{Window: time.Hour, Bucket: time.Minute}))(s.T)
	m := made(bits.New(s.c, s.name("bits")))(s.T)
	k := made(bits.NewCalendar(s.c, s.name("calendar")))(s.T)
	x := made(near.New(s.c, s.name("near")))(s.T)
	ch := made(cache.New(s.c, s.name("cache"), cache.Options[string, string]{}))(s.T)
	load := func(context.Context, string) (string, error) { return "v", nil }
	return append(all,
		&object{name: "cache.Cache", key: s.name("cache"), cleanup: 3 * time.Second,
			write: func(ctx context.Context) error { return ch.Set(ctx, "ann", "v") },
			read:  func(ctx context.Context) error { return drop(ch.Get(ctx, "ann", load)) }},
		&object{name: "bloom.Filter", key: s.name("bloom"),
			write: func(ctx context.Context) error { return drop(f.Add(ctx, "ann")) },
			read:  func(ctx context.Context) error { return drop(f.Contains(ctx, "ann")) }},
		&object{name: "unique.Counter", key: s.name("unique"),
			write: func(ctx context.Context) error { return u.Add(ctx, "ann") },
			read:  func(ctx context.Context) error { return drop(u.Count(ctx)) }},
		&object{name: "unique.Counter with a window", key: s.name("window"),
			write: func(ctx context.Context) error { return w.Add(ctx, "ann") },
			read:  func(ctx context.Context) error { return drop(w.CountLast(ctx, time.Minute)) }},
		&object{name: "bits.Bitmap", key: s.name("bits"),
			write: func(ctx context.Context) error { return drop(m.Set(ctx, 7, true)) },
			read:  func(ctx context.Context) error { return drop(m.Count(ctx)) }},
		&object{name: "bits.Calendar", key: s.name("calendar"),
			write: func(ctx context.Context) error { return drop(k.SignIn(ctx, "ann")) },
			read:  func(ctx context.Context) error { return drop(k.Today(ctx)) }},
		&object{name: "near.Index", key: s.name("near"),
			write: func(ctx context.Context) error { return x.Place(ctx, "ann", 13.4, 52.5, time.Hour) },
			read:  func(ctx context.Context) error { return drop(x.Within(ctx, 13, 52, 100*near.Kilometer)) }},
	)
}

func (s *site) limiter() *object {
	key := s.name("limit")
	l := made(limit.New(s.c, key, limit.PerMinute(1e6), limit.FailClosed,
		limit.Options{Probe: 20 * time.Millisecond, Timeout: 300 * time.Millisecond}))(s.T)
	full := made(limit.New(s.c, key+"-full", limit.PerHour(1), limit.FailClosed,
		limit.Options{Probe: 20 * time.Millisecond, Timeout: 300 * time.Millisecond}))(s.T)
	o := &object{name: "limit.Limiter", key: key, cleanup: time.Second,
		write: func(ctx context.Context) error { return drop(l.Allow(ctx, "ann")) },
		read:  func(ctx context.Context) error { return drop(l.Peek(ctx, "ann")) },
		wait: func(ctx context.Context) error {
			if err := drop(full.Allow(ctx, "ann")); err != nil { // spent
				return err
			}
			return full.Wait(ctx, "ann")
		},
		wake: func(ctx context.Context) error { return full.Reset(ctx, "ann") },
	}
	return o
}

func (s *site) onceValue() *object {
	key := s.name("once")
	o := made(lock.NewOnceValue[string](s.c, key, time.Hour))(s.T)
	other := made(lock.NewOnceValue(s.other, key, time.Hour, lock.OnceValueOptions[string]{Lease: theirs}))(s.T)
	work := func(context.Context) (string, error) { return "v", nil }
	var taken sync.WaitGroup
	begun, end := make(chan struct{}), make(chan struct{})
	finish := sync.OnceFunc(func() { close(end) })
	taken.Go(func() {
		_, _, err := other.Do(s.b.Context(), "waits", func(context.Context) (string, error) {
			close(begun)
			<-end
			return "v", nil
		})
		if err != nil {
			s.Error(err)
		}
	})
	<-begun
	s.Cleanup(func() {
		finish()
		taken.Wait()
	})
	return &object{name: "lock.OnceValue", key: key, cleanup: 3 * time.Second,
		write: func(ctx context.Context) error {
			_, _, err := o.Do(ctx, kit.ID(), work)
			return err
		},
		read: func(ctx context.Context) error {
			_, _, err := o.State(ctx, "ann")
			return err
		},
		wait: func(ctx context.Context) error {
			_, _, err := o.Do(ctx, "waits", work)
			return err
		},
		wake: func(context.Context) error {
			finish()
			taken.Wait()
			return nil
		},
	}
}

func (s *site) concurrency() *object {
	key := s.name("slots")
	ask := made(limit.NewConcurrency(s.c, key, 1000))(s.T)
	one := made(limit.NewConcurrency(s.other, key+"-one", 1, limit.ConcurrencyOptions{Lease: theirs}))(s.T)
	full := made(limit.NewConcurrency(s.c, key+"-one", 1))(s.T)
	slot := made(one.TryAcquire(s.b.Context(), "ann"))(s.T)
	take := briefly(func(ctx context.Context) (*limit.Slot, error) { return ask.TryAcquire(ctx, "ann") })
	return &object{name: "limit.Concurrency", key: key, cleanup: time.Second, write: take, read: take,
		wait: line(func(ctx context.Context) (*limit.Slot, error) { return full.Acquire(ctx, "ann") }),
		wake: slot.Release,
	}
}

func (s *site) lock() *object {
	key := s.name("lock")
	l := made(lock.New(s.c, key, lock.Options{TTL: s.lease}))(s.T)
	kept := made(lock.New(s.c, key+"-kept", lock.Options{TTL: s.lease}))(s.T)
	lease := first(s, kept.TryAcquire)
	take := briefly(l.TryAcquire)
	o := &object{name: "lock.Lock", key: key, cleanup: time.Second, write: take, read: take, endless: true}
	o.wait, o.wake = s.inLine(key+"-taken", func(c *ebb.Conn, key string, o lock.Options) (acquirer, error) { return lock.New(c, key, o) })
	o.during = func(t *testing.T, _ *object) {
		select {
		case <-lease.Context().Done():
		case <-time.After(tier.Patience):
		}
		if err := context.Cause(lease.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("a lease that its holder could not renew: %v", err)
		}
	}
	o.after = func(t *testing.T, _ *object) {
		if err := lease.Release(context.Background()); !errors.Is(err, lock.ErrLost) && !errors.Is(err, ebb.ErrUnavailable) {
			t.Errorf("its release: %v", err)
		}
		s.again(o, "the lock that was lost", briefly(kept.TryAcquire))
	}
	return o
}

// acquirer is a lock or a similar object.
type acquirer interface {
	TryAcquire(ctx context.Context) (*lock.Lease, error)
	Acquire(ctx context.Context, wait time.Duration) (*lock.Lease, error)
}

// inLine lets the other program acquire something. It returns a call that waits for it,
// and one that releases it.
func (s *site) inLine(key string, of func(c *ebb.Conn, key string, o lock.Options) (acquirer, error)) (wait,
	wake func(ctx context.Context) error) {
	lease := made(made(of(s.other, key, lock.Options{TTL: theirs}))(s.T).TryAcquire(s.b.Context()))(s.T)
	ours := made(of(s.c, key, lock.Options{TTL: s.lease}))(s.T)
	return line(func(ctx context.Context) (*lock.Lease, error) { return ours.Acquire(ctx, 0) }), lease.Release
}

// one lets a test use a semaphore as a lock.
type one struct{ *lock.Semaphore }

func (o one) TryAcquire(ctx context.Context) (*lock.Lease, error) {
	return o.Semaphore.TryAcquire(ctx, 1)
}

func (o one) Acquire(ctx context.Context, wait time.Duration) (*lock.Lease, error) {
	return o.Semaphore.Acquire(ctx, 1, wait)
}

func (s *site) semaphore() *object {
	key := s.name("semaphore")
	take := briefly(one{made(lock.NewSemaphore(s.c, key, 1000, lock.Options{TTL: s.lease}))(s.T)}.TryAcquire)
	o := &object{name: "lock.Semaphore", key: key, cleanup: time.Second, write: take, read: take, endless: true}
	o.wait, o.wake = s.inLine(key+"-taken", func(c *ebb.Conn, key string, o lock.Options) (acquirer, error) {
		sem, err := lock.NewSemaphore(c, key, 1, o)
		return one{sem}, err
	})
	return o
}

func (s *site) latch() *object {
	key := s.name("latch")
	counts := made(lock.NewLatch(s.c, key))(s.T)
	l := made(lock.NewLatch(s.c, key+"-gate"))(s.T)
	gate := made(lock.NewLatch(s.other, key+"-gate"))(s.T)
	if _, err := gate.Set(s.b.Context(), 1); err != nil {
		s.Fatal(err)
	}
	return &object{name: "lock.Latch", key: key, cleanup: time.Second, endless: true,
		write: func(ctx context.Context) error { return drop(counts.Set(ctx, 3)) },
		read:  func(ctx context.Context) error { return drop(counts.Count(ctx)) },
		wait:  l.Wait,
		wake:  func(ctx context.Context) error { return drop(gate.CountDown(ctx)) },
	}
}

// jobs holds the jobs that a queue has certainly accepted, and those that it delivered.
type jobs struct {
	mu      sync.Mutex // guards what follows
	n       int
	in, out map[string]bool
}

func (s *site) queue() *object {
	key := s.name("queue")
	o := queue.Options[string]{Lease: s.lease, MaxDeliveries: 1000}
	q := made(queue.New(s.c, key, o))(s.T)
	line := made(queue.New(s.c, key+"-empty", o))(s.T)
	feeds := made(queue.New(s.other, key+"-empty", o))(s.T)
	j := &jobs{in: map[string]bool{}, out: map[string]bool{}}
	push := func(ctx context.Context) error {
		j.mu.Lock()
		j.n++
		v := fmt.Sprint("job-", j.n)
		j.mu.Unlock()
		err := drop(q.Push(ctx, v))
		j.mu.Lock()
		defer j.mu.Unlock()
		if err == nil {
			j.in[v] = true
		}
		return err
	}
	for range 3 {
		first(s, func(ctx context.Context) (any, error) { return nil, push(ctx) })
	}
	held := first(s, q.Pop)
	return &object{name: "queue.Queue", key: key, cleanup: time.Second, write: push, endless: true,
		read: func(ctx context.Context) error { return drop(q.Info(ctx)) },
		wait: func(ctx context.Context) error {
			job, err := line.Pop(ctx)
			if err == nil {
				_ = job.Ack(context.WithoutCancel(ctx)) // otherwise the queue delivers it again
			}
			return err
		},
		wake: func(ctx context.Context) error { return drop(feeds.Push(ctx, "work")) },
		after: func(t *testing.T, _ *object) {
			err := held.Ack(context.Background())
			for n := 0; errors.Is(err, ebb.ErrUnavailable) && n < 10; n++ {
				err = held.Ack(context.Background())
			}
			if !errors.Is(err, queue.ErrLost) {
				t.Errorf("a job whose lease has run out was acknowledged: %v", err)
			}
			for !j.complete() {
				ctx, cancel := context.WithTimeout(context.Background(), 2*s.lease+10*time.Second)
				job, err := q.Pop(ctx)
				if err == nil {
					j.out[job.Value] = true
					_ = job.Ack(ctx) // otherwise the queue delivers it again
				}
				if cancel(); err != nil {
					t.Errorf("a job is lost: in %v, out %v: %v", j.in, j.out, err)
					return
				}
			}
			if !j.out[held.Value] {
				t.Errorf("%s was not handed out again", held.Value)
			}
		},
	}
}

func (j *jobs) complete() bool {
	for v := range j.in {
		if !j.out[v] {
			return false
		}
	}
	return true
}

func (s *site) topic() *object {
	key := s.name("topic")
	p := made(topic.New[string](s.c, key))(s.T)
	other := made(topic.New[string](s.other, key))(s.T)
	sub := first(s, p.Subscribe)
	s.Cleanup(func() { _ = sub.Close() })
	// The reading call is a subscription.
	read := func(ctx context.Context) error {
		sub, err := p.Subscribe(ctx)
		if err != nil {
			return err
		}
		return sub.Close()
	}
	return &object{name: "topic.Topic", key: key, read: read, endless: true,
		write: func(ctx context.Context) error { return drop(p.Publish(ctx, "mine")) },
		wait: func(ctx context.Context) error {
			for {
				m, err := sub.Next(ctx)
				if err != nil && !errors.Is(err, ebb.ErrInterrupted) {
					return err
				}
				if m.Value == "theirs" {
					return nil
				}
			}
		},
		wake: func(ctx context.Context) error { return drop(other.Publish(ctx, "theirs")) },
	}
}

func (s *site) stream() *object {
	key := s.name("stream")
	w := made(stream.New[string](s.c, key))(s.T)
	empty := made(stream.New[string](s.c, key+"-empty"))(s.T)
	other := made(stream.New[string](s.other, key+"-empty"))(s.T)
	return &object{name: "stream.Stream", key: key, endless: true,
		write: func(ctx context.Context) error { return drop(w.Add(ctx, "x")) },
		read:  func(ctx context.Context) error { return drop(w.Range(ctx, "-", "+", 1)) },
		wait: func(ctx context.Context) error {
			for e, err := range empty.Read(ctx, "") {
				if err != nil && !errors.Is(err, ebb.ErrUnavailable) || err == nil && e.Value == "theirs" {
					return err
				}
			}
			return fmt.Errorf("stream %q: the loop ended: %w", key, ctx.Err())
		},
		wake: func(ctx context.Context) error { return drop(other.Add(ctx, "theirs")) },
	}
}

func (s *site) group() *object {
	key := s.name("group")
	w := made(stream.New[string](s.c, key))(s.T)
	other := made(stream.New[string](s.other, key))(s.T)
	g := made(w.Group("g", stream.GroupOptions{ClaimAfter: s.lease, MaxDeliveries: -1}))(s.T)
	return &object{name: "stream.Group", key: key, endless: true, cleanup: 2 * time.Second,
		write: g.Create,
		read:  func(ctx context.Context) error { return drop(g.DeadLetters(ctx, "", 1)) },
		wait: func(ctx context.Context) error {
			for d, err := range g.Consume(ctx, "") {
				if err != nil {
					if !errors.Is(err, ebb.ErrUnavailable) {
						return err
					}
					continue
				}
				_ = d.Ack(context.WithoutCancel(ctx))
				return nil
			}
			return fmt.Errorf("group of stream %q: the loop ended: %w", key, ctx.Err())
		},
		wake: func(ctx context.Context) error { return drop(other.Add(ctx, "theirs")) },
	}
}

func (s *site) expmap() *object {
	key := s.name("map")
	o := expmap.Options[string, int]{Events: true}
	m := made(expmap.New(s.c, key, o))(s.T)
	other := made(expmap.New(s.other, key, o))(s.T)
	return &object{name: "expmap.Map", key: key, endless: true, cleanup: 2 * time.Second,
		write: func(ctx context.Context) error { return m.Set(ctx, "k", 1, time.Hour) },
		read:  func(ctx context.Context) error { _, _, err := m.Get(ctx, "k"); return err },
		wait:  hear(m.OnExpired),
		wake:  func(ctx context.Context) error { return other.Set(ctx, "short", 1, time.Millisecond) },
	}
}

var errHeard = errors.New("the expiry was heard")

// hear listens until it receives an expired entry.
func hear[E, Listen any](on func(ctx context.Context, listener string, fn func(context.Context, E) error,
	opts ...Listen) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		ctx, heard := context.WithCancelCause(ctx)
		defer heard(nil)
		err := on(ctx, "listener", func(context.Context, E) error {
			heard(errHeard)
			return nil
		})
		if context.Cause(ctx) == errHeard {
			return nil
		}
		return err
	}
}

func (s *site) expset() *object {
	key := s.name("set")
	o := expset.Options[string]{Events: true}
	m := made(expset.New(s.c, key, o))(s.T)
	other := made(expset.New(s.other, key, o))(s.T)
	return &object{name: "expset.Set", key: key, endless: true, cleanup: 2 * time.Second,
		write: func(ctx context.Context) error { return drop(m.Add(ctx, time.Hour, "k")) },
		read:  func(ctx context.Context) error { return drop(m.Contains(ctx, "k")) },
		wait:  hear(m.OnExpired),
		wake:  func(ctx context.Context) error { return drop(other.Add(ctx, time.Millisecond, "short")) },
	}
}
