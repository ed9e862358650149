package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bits"
	"github.com/ebbdb/ebb/bloom"
	"github.com/ebbdb/ebb/cache"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/expset"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/near"
	"github.com/ebbdb/ebb/queue"
	"github.com/ebbdb/ebb/stream"
	"github.com/ebbdb/ebb/topic"
	"github.com/ebbdb/ebb/unique"
)

const (
	// lease is much longer than soon, so that a test notices an object that only its expiry
	// frees.
	lease = time.Minute
	// soon is the time for which a test waits, on a busy machine, for an object that must be
	// free at once.
	soon = 15 * time.Second
)

// All returns the objects of the toolkit.
func All() []Object {
	all := []Object{
		{"bits.New", newBitmap}, {"bits.NewCalendar", newCalendar},
		{"bloom.New", newFilter},
		{"cache.New", newCache},
		{"expmap.New", newMap}, {"expmap.NewFamily", newMapFamily},
		{"expset.New", newSet}, {"expset.NewFamily", newSetFamily},
		{"limit.New", newLimiter}, {"limit.NewConcurrency", newConcurrency},
		{"near.New", newIndex},
		{"queue.New", newQueue},
		{"stream.New", newStream}, {"stream.Stream.Group", newGroup},
		{"topic.New", newTopic},
		{"unique.New", newCounter},
	}
	return append(all, locks()...)
}

func newBitmap(c *ebb.Conn, name string) (*Instance, error) {
	m, err := bits.New(c, name)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use:    func(ctx context.Context) error { return second(m.Set(ctx, 7, true)) },
		Delete: m.Delete,
		Loops:  []Loop{{"All", Finite, func(ctx context.Context) error { return errs(m.All(ctx, 0)) }}},
	}, nil
}

func newCalendar(c *ebb.Conn, name string) (*Instance, error) {
	k, err := bits.NewCalendar(c, name)
	if err != nil {
		return nil, err
	}
	first, last := bits.Day{Year: 2026, Month: 11, Day: 5}, bits.Day{Year: 2028, Month: 1, Day: 3}
	return &Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(second(k.Mark(ctx, "a{n", first)), second(k.Mark(ctx, "a{n", last)))
		},
		Delete: func(ctx context.Context) error { return k.Delete(ctx, "a{n", first, last) },
	}, nil
}

func newFilter(c *ebb.Conn, name string) (*Instance, error) {
	f, err := bloom.New(c, name, bloom.Options[string]{Capacity: 100, Window: time.Hour})
	if err != nil {
		return nil, err
	}
	return &Instance{Use: func(ctx context.Context) error { return second(f.Add(ctx, "x")) }, Delete: f.Delete}, nil
}

func newCache(c *ebb.Conn, name string) (*Instance, error) {
	x, err := cache.New(c, name, cache.Options[string, string]{Lease: lease, AbsentTTL: time.Hour})
	if err != nil {
		return nil, err
	}
	load := func(_ context.Context, key string) (string, error) {
		if key == "none" {
			return "", cache.ErrAbsent
		}
		return key, nil
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			_, err := x.Get(ctx, "none", load)
			if err == cache.ErrAbsent {
				err = nil
			}
			return errors.Join(err, second(x.Get(ctx, "a}{", load)), x.Set(ctx, "b", "1"), x.Stale(ctx, "b"))
		},
		Delete: func(ctx context.Context) error { return x.Delete(ctx, "none", "a}{", "b", "loaded") },
		Within: func(ctx context.Context, inside func()) error {
			_, err := x.Get(ctx, "loaded", func(context.Context, string) (string, error) {
				inside()
				return "", errNotNow
			})
			if errors.Is(err, errNotNow) {
				return nil
			}
			return err
		},
	}, nil
}

// useMap leaves an entry that has expired, one that will, and one that stays.
func useMap(ctx context.Context, m *expmap.Map[string, string]) error {
	return errors.Join(m.Set(ctx, "a", "1", time.Millisecond), m.Set(ctx, "b}{", "2", time.Hour), m.Set(ctx, "c", "3", 0), second(m.Len(ctx)))
}

func newMap(c *ebb.Conn, name string) (*Instance, error) {
	m, err := expmap.New(c, name, expmap.Options[string, string]{Events: true, LoadLease: lease})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use:    func(ctx context.Context) error { return useMap(ctx, m) },
		Delete: m.Delete,
		Loops: []Loop{
			{"All", Finite, func(ctx context.Context) error { return errs(m.All(ctx)) }},
			{"Keys", Finite, func(ctx context.Context) error { return errs(m.Keys(ctx)) }},
			{"OnExpired", Function, func(ctx context.Context) error {
				return m.OnExpired(ctx, "listener", func(context.Context, expmap.Expired[string, string]) error { return nil })
			}},
			{"Watch", Function, m.Watch},
		},
		Within: func(ctx context.Context, inside func()) error {
			_, err := m.GetOrLoad(ctx, "loaded", time.Minute, func(context.Context, string) (string, error) {
				inside()
				return "", errNotNow
			})
			if errors.Is(err, errNotNow) {
				return nil
			}
			return err
		},
	}, nil
}

var errNotNow = errors.New("the value cannot be loaded now")

func newMapFamily(c *ebb.Conn, name string) (*Instance, error) {
	f, err := expmap.NewFamily(c, name, expmap.Options[string, string]{Events: true})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(useMap(ctx, f.Map("ann")), useMap(ctx, f.Map("b}{b")))
		},
		Delete: f.Delete,
		Loops: []Loop{
			{"OnExpired", Function, func(ctx context.Context) error {
				return f.OnExpired(ctx, "listener", func(context.Context, expmap.Expired[string, string]) error { return nil })
			}},
			{"Watch", Function, f.Watch},
		},
	}, nil
}

func useSet(ctx context.Context, s *expset.Set[string]) error {
	return errors.Join(second(s.Add(ctx, time.Millisecond, "a")), second(s.Add(ctx, time.Hour, "b}{")),
		second(s.Add(ctx, 0, "c")), second(s.Len(ctx)))
}

func newSet(c *ebb.Conn, name string) (*Instance, error) {
	s, err := expset.New(c, name, expset.Options[string]{Events: true})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use:    func(ctx context.Context) error { return useSet(ctx, s) },
		Delete: s.Delete,
		Loops: []Loop{
			{"All", Finite, func(ctx context.Context) error { return errs(s.All(ctx)) }},
			{"OnExpired", Function, func(ctx context.Context) error {
				return s.OnExpired(ctx, "listener", func(context.Context, expset.Expired[string]) error { return nil })
			}},
			{"Watch", Function, s.Watch},
		},
	}, nil
}

func newSetFamily(c *ebb.Conn, name string) (*Instance, error) {
	f, err := expset.NewFamily(c, name, expset.Options[string]{Events: true})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(useSet(ctx, f.Set("ann")), useSet(ctx, f.Set("b}{b")))
		},
		Delete: f.Delete,
		Loops: []Loop{
			{"OnExpired", Function, func(ctx context.Context) error {
				return f.OnExpired(ctx, "listener", func(context.Context, expset.Expired[string]) error { return nil })
			}},
			{"Watch", Function, f.Watch},
		},
	}, nil
}

func newLimiter(c *ebb.Conn, name string) (*Instance, error) {
	l, err := limit.New(c, name, limit.PerHour(2), limit.FailClosed, limit.Options{Timeout: soon})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(second(l.Allow(ctx, "")), second(l.AllowN(ctx, "a}{n", 2)))
		},
		Delete: func(ctx context.Context) error { return l.Delete(ctx, "", "a}{n") },
		Loops: []Loop{{"WaitN", Function, func(ctx context.Context) error {
			for {
				if err := l.WaitN(ctx, "w", 2); err != nil {
					return err
				}
			}
		}}},
	}, nil
}

func newConcurrency(c *ebb.Conn, name string) (*Instance, error) {
	q, err := limit.NewConcurrency(c, name, 1, limit.ConcurrencyOptions{Lease: lease, UntilRelease: true})
	if err != nil {
		return nil, err
	}
	short, err := limit.NewConcurrency(c, name, 1, limit.ConcurrencyOptions{Lease: lease})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(second(short.TryAcquire(ctx, "")), second(short.TryAcquire(ctx, "a}{n")))
		},
		Delete: func(ctx context.Context) error { return q.Delete(ctx, "", "a}{n") },
		Hold: func(ctx context.Context) (func(context.Context) error, error) {
			ctx, cancel := context.WithTimeout(ctx, soon)
			defer cancel()
			s, err := q.Acquire(ctx, "held")
			if err != nil {
				return nil, err
			}
			return s.Release, nil
		},
		Loops: []Loop{{"Acquire", Function, func(ctx context.Context) error {
			held, err := short.Acquire(ctx, "loop")
			if err != nil {
				return err
			}
			_, err = short.Acquire(ctx, "loop")
			return errors.Join(err, second(0, held.Release(ctx)))
		}}},
	}, nil
}

func newIndex(c *ebb.Conn, name string) (*Instance, error) {
	x, err := near.New(c, name)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(x.Place(ctx, "ann", 13, 52, time.Hour), x.Place(ctx, "bob", 13, 52, 0))
		},
		Delete: x.Delete,
		Loops:  []Loop{{"Watch", Function, x.Watch}},
	}, nil
}

func newQueue(c *ebb.Conn, name string) (*Instance, error) {
	q, err := queue.New(c, name, queue.Options[string]{
		Lease: lease, MaxDeliveries: 5, Backoff: func(int) time.Duration { return time.Millisecond },
	})
	if err != nil {
		return nil, err
	}
	push := func(ctx context.Context, o queue.PushOptions) error { return second(q.Push(ctx, "x", o)) }
	return &Instance{
		Use: func(ctx context.Context) error {
			err := errors.Join(push(ctx, queue.PushOptions{ID: "a}{n", Unique: time.Hour}), push(ctx, queue.PushOptions{Delay: time.Hour}),
				push(ctx, queue.PushOptions{TTL: time.Hour}), push(ctx, queue.PushOptions{Priority: 3}))
			for _, end := range []func(j *queue.Job[string]) error{
				func(j *queue.Job[string]) error { return j.Bury(ctx, "no good") },
				func(j *queue.Job[string]) error { return j.Nack(ctx, 0) },
				func(*queue.Job[string]) error { return nil },
			} {
				j, bad := q.Pop(ctx)
				if bad == nil {
					bad = end(j)
				}
				err = errors.Join(err, bad)
			}
			return err
		},
		Delete: q.Delete,
		Loops: []Loop{
			{"Consume", Endless, func(ctx context.Context) error { return errs(q.Consume(ctx)) }},
			{"Pop", Function, func(ctx context.Context) error { return second(q.Pop(ctx)) }},
			{"Run", Function, func(ctx context.Context) error {
				return q.Run(ctx, 2, func(context.Context, *queue.Job[string]) error { return nil })
			}},
		},
		// What is held is the one job, which comes back at once if it is cut short, and is
		// gone if it is done: then it may be pushed again.
		Within: func(ctx context.Context, inside func()) error {
			if err := push(context.WithoutCancel(ctx), queue.PushOptions{ID: "held"}); err != nil && !errors.Is(err, queue.ErrDuplicate) {
				return err
			}
			ctx, stop := context.WithTimeout(ctx, soon)
			defer stop()
			ran := false
			err := q.Run(ctx, 1, func(_ context.Context, j *queue.Job[string]) error {
				defer stop()
				if ran = true; inside != nil {
					inside()
				}
				return nil
			})
			if ran {
				return nil
			}
			return err
		},
	}, nil
}

func newStream(c *ebb.Conn, name string) (*Instance, error) {
	s, err := stream.New(c, name, stream.Options[string]{Retention: time.Hour})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(useGroup(ctx, s, "g}{"), useGroup(ctx, s, "destroyed"))
		},
		Delete: s.Delete,
		Loops:  []Loop{{"Read", Endless, func(ctx context.Context) error { return errs(s.Read(ctx, "")) }}},
	}, nil
}

// useGroup leaves an entry that waits out a Nack, and a dead letter.
func useGroup(ctx context.Context, s *stream.Stream[string], name string) error {
	g, err := s.Group(name, stream.GroupOptions{MaxDeliveries: 1, From: stream.Tail})
	if err != nil {
		return err
	}
	patient, err := s.Group(name, stream.GroupOptions{MaxDeliveries: 9})
	if err != nil {
		return err
	}
	if err := errors.Join(g.Create(ctx), second(s.Add(ctx, "x")), second(s.Add(ctx, "y"))); err != nil {
		return err
	}
	for _, g := range []*stream.Group[string]{g, patient} {
		for d, err := range g.Consume(ctx, "me") {
			if err == nil {
				err = d.Nack(ctx, time.Hour)
			}
			if err != nil {
				return err
			}
			break
		}
	}
	if name == "destroyed" {
		return g.Destroy(ctx)
	}
	return nil
}

func newGroup(c *ebb.Conn, name string) (*Instance, error) {
	s, err := stream.New[string](c, name)
	if err != nil {
		return nil, err
	}
	g, err := s.Group("g")
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error { return useGroup(ctx, s, "g") },
		Delete: func(ctx context.Context) error {
			return errors.Join(g.Delete(ctx), inStream(second(c.Del(ctx, c.Prefix()+name))))
		},
		Loops: []Loop{
			{"Consume", Endless, func(ctx context.Context) error { return errs(g.Consume(ctx, "me")) }},
			{"Consume without a name", Endless, func(ctx context.Context) error { return errs(g.Consume(ctx, "")) }},
		},
	}, nil
}

func newTopic(c *ebb.Conn, name string) (*Instance, error) {
	o, err := topic.New[string](c, name)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use:          func(ctx context.Context) error { return second(o.Publish(ctx, "x")) },
		KeepsNothing: true,
		Loops: []Loop{{"Subscription.All", Endless, func(ctx context.Context) error {
			sub, err := o.Subscribe(context.WithoutCancel(ctx))
			if err != nil {
				return err
			}
			return errors.Join(errs(sub.All(ctx)), sub.Close())
		}}},
	}, nil
}

func newCounter(c *ebb.Conn, name string) (*Instance, error) {
	u, err := unique.New(c, name, unique.Options{Window: time.Hour, Bucket: time.Minute})
	if err != nil {
		return nil, err
	}
	return &Instance{Use: func(ctx context.Context) error { return u.Add(ctx, "x") }, Delete: u.Delete}, nil
}

// locks returns the rows of package lock.
func locks() []Object {
	return []Object{
		{"lock.New", func(c *ebb.Conn, name string) (*Instance, error) { return newLock(lock.New, c, name) }},
		{"lock.NewFair", func(c *ebb.Conn, name string) (*Instance, error) { return newLock(lock.NewFair, c, name) }},
		{"lock.NewRW", newRW}, {"lock.NewSemaphore", newSemaphore}, {"lock.Multi", newMany},
		{"lock.NewLeader", newLeader}, {"lock.NewLatch", newLatch}, {"lock.NewOnce", newOnce},
		{"lock.NewOnceValue", newOnceValue},
	}
}

var options = lock.Options{TTL: lease, UntilRelease: true}

// Held returns the function that releases a lease.
func Held(l *lock.Lease, err error) (func(ctx context.Context) error, error) {
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

// Leave leaves a lease that ends with the context.
func Leave(ctx context.Context, l *lock.Lease, err error) error {
	if err == nil {
		context.AfterFunc(ctx, func() { _ = l.Release(ctx) })
	}
	return err
}

// waits returns a loop that waits for a lock that is held.
func waits(name string, acquire func(ctx context.Context) (*lock.Lease, error)) Loop {
	return Loop{name, Function, func(ctx context.Context) error {
		l, err := acquire(ctx)
		if err != nil {
			return err
		}
		_, err = acquire(ctx)
		return errors.Join(err, l.Release(ctx))
	}}
}

func newLock(make func(*ebb.Conn, string, ...lock.Options) (*lock.Lock, error), c *ebb.Conn, name string) (*Instance, error) {
	l, err := make(c, name, options)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			lease, err := l.TryAcquire(ctx)
			return Leave(ctx, lease, err)
		},
		Delete: l.Delete,
		Hold:   func(ctx context.Context) (func(context.Context) error, error) { return Held(l.Acquire(ctx, soon)) },
		Loops:  []Loop{waits("Acquire", func(ctx context.Context) (*lock.Lease, error) { return l.Acquire(ctx, 0) })},
	}, nil
}

func newRW(c *ebb.Conn, name string) (*Instance, error) {
	l, err := lock.NewRW(c, name, options)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			lease, err := l.TryShare(ctx)
			return Leave(ctx, lease, err)
		},
		Delete: l.Delete,
		Hold:   func(ctx context.Context) (func(context.Context) error, error) { return Held(l.Acquire(ctx, soon)) },
		Loops:  []Loop{waits("Acquire", func(ctx context.Context) (*lock.Lease, error) { return l.Acquire(ctx, 0) })},
	}, nil
}

func newSemaphore(c *ebb.Conn, name string) (*Instance, error) {
	s, err := lock.NewSemaphore(c, name, 3, options)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			lease, err := s.TryAcquire(ctx, 2)
			return Leave(ctx, lease, err)
		},
		Delete: s.Delete,
		Hold:   func(ctx context.Context) (func(context.Context) error, error) { return Held(s.Acquire(ctx, 2, soon)) },
		Loops:  []Loop{waits("Acquire", func(ctx context.Context) (*lock.Lease, error) { return s.Acquire(ctx, 2, 0) })},
	}, nil
}

func newMany(c *ebb.Conn, name string) (*Instance, error) {
	a, err := lock.New(c, name, options)
	if err != nil {
		return nil, err
	}
	b, err := lock.New(c, name+"2", options)
	if err != nil {
		return nil, err
	}
	m, err := lock.Multi(a, b)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			all, err := m.TryAcquire(ctx)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = all.Release(ctx) })
			}
			return err
		},
		Delete: m.Delete,
		Hold: func(ctx context.Context) (func(context.Context) error, error) {
			all, err := m.Acquire(ctx, soon)
			if err != nil {
				return nil, err
			}
			return all.Release, nil
		},
	}, nil
}

func newLeader(c *ebb.Conn, name string) (*Instance, error) {
	e, err := lock.NewLeader(c, name, "host-1", options)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			lease, err := e.Campaign(ctx)
			return Leave(ctx, lease, err)
		},
		Delete: e.Delete,
		Hold: func(ctx context.Context) (func(context.Context) error, error) {
			ctx, cancel := context.WithTimeout(ctx, soon)
			defer cancel()
			return Held(e.Campaign(ctx))
		},
		Within: func(ctx context.Context, inside func()) error {
			return e.Lead(ctx, func(context.Context, int64) error {
				inside()
				return nil
			})
		},
		Loops: []Loop{
			{"Observe", Endless, func(ctx context.Context) error { return errs(e.Observe(ctx)) }},
			waits("Campaign", e.Campaign),
			{"Lead", Function, func(ctx context.Context) error {
				return e.Lead(ctx, func(ctx context.Context, _ int64) error {
					<-ctx.Done()
					return ctx.Err()
				})
			}},
		},
	}, nil
}

func newLatch(c *ebb.Conn, name string) (*Instance, error) {
	l, err := lock.NewLatch(c, name)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(second(l.Set(ctx, 3)), second(l.CountDown(ctx)))
		},
		Delete: l.Delete,
		Loops: []Loop{{"Wait", Function, func(ctx context.Context) error {
			if _, err := l.Set(ctx, 1); err != nil {
				return err
			}
			return l.Wait(ctx)
		}}},
	}, nil
}

func newOnce(c *ebb.Conn, name string) (*Instance, error) {
	o, err := lock.NewOnce(c, name, lease)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			return second(o.Do(ctx, func(context.Context) error { return nil }))
		},
		Delete: o.Delete,
		// What is held is the right to do it, which comes back if the work fails.
		Within: func(ctx context.Context, inside func()) error {
			outcome, err := o.Do(ctx, func(context.Context) error {
				inside()
				return errNotNow
			})
			if errors.Is(err, errNotNow) {
				return nil
			}
			if err == nil {
				err = fmt.Errorf("once: %v", outcome)
			}
			return err
		},
		Stays: true,
	}, nil
}

func newOnceValue(c *ebb.Conn, name string) (*Instance, error) {
	o, err := lock.NewOnceValue(c, name, time.Hour, lock.OnceValueOptions[string]{Lease: lease})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Use: func(ctx context.Context) error {
			_, _, err := o.Do(ctx, "a}{", func(context.Context) (string, error) { return "x", nil })
			return err
		},
		Delete: func(ctx context.Context) error { return o.Delete(ctx, "a}{", "held") },
		// What is held is the turn, which comes back if the work fails.
		Within: func(ctx context.Context, inside func()) error {
			_, _, err := o.Do(ctx, "held", func(context.Context) (string, error) {
				inside()
				return "", errNotNow
			})
			if errors.Is(err, errNotNow) {
				return nil
			}
			return err
		},
		Loops: []Loop{{"Do", Function, func(ctx context.Context) error {
			_, _, err := o.Do(context.WithoutCancel(ctx), "waits", func(context.Context) (string, error) {
				_, _, err := o.Do(ctx, "waits", func(context.Context) (string, error) { return "x", nil })
				return "", err
			})
			return err
		}}},
	}, nil
}

// inStream says that the stream of a group could not be deleted.
func inStream(err error) error {
	if err != nil {
		err = fmt.Errorf("stream: %w", err)
	}
	return err
}
