package redisson

import (
	"context"
	"errors"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/internal/testing/objects"
)

func newFilter(c *ebb.Conn, name string) (*objects.Instance, error) {
	f, err := NewBloomFilter[string](c, name)
	if err != nil {
		return nil, err
	}
	return &objects.Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(second(f.TryInit(ctx, 100, 0.1)), second(f.Add(ctx, "x")))
		},
		Delete: f.Delete,
	}, nil
}

func newLimiter(c *ebb.Conn, name string) (*objects.Instance, error) {
	l, err := NewRateLimiter(c, name)
	if err != nil {
		return nil, err
	}
	other, err := NewRateLimiter(c, name)
	if err != nil {
		return nil, err
	}
	return &objects.Instance{
		Use: func(ctx context.Context) error {
			_, err := l.TrySetRate(ctx, Rate{Type: PerClient, Rate: 1, Interval: time.Hour})
			return errors.Join(err, second(l.TryAcquire(ctx, 1, 0)), second(other.TryAcquire(ctx, 1, 0)))
		},
		Delete: l.Delete,
		Loops: []objects.Loop{{Name: "Acquire", Kind: objects.Function, Run: func(ctx context.Context) error {
			for {
				if err := l.Acquire(ctx, 1); err != nil && !errors.Is(err, ErrNoRate) {
					return err
				} else if err != nil {
					_, err = l.TrySetRate(ctx, Rate{Type: PerClient, Rate: 1, Interval: time.Hour})
					if err != nil {
						return err
					}
				}
			}
		}}},
	}, nil
}

func newQueue(c *ebb.Conn, name string) (*objects.Instance, error) {
	q, err := NewDelayedQueue[string](c, name)
	if err != nil {
		return nil, err
	}
	return &objects.Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(q.Push(ctx, "x", 0), q.Push(ctx, "y", time.Hour))
		},
		Delete: q.Delete,
		Loops: []objects.Loop{
			{Name: "Pop", Kind: objects.Function, Run: func(ctx context.Context) error { return second(q.Pop(ctx)) }},
			{Name: "Transfer", Kind: objects.Function, Run: q.Transfer},
		},
	}, nil
}

func newMap(c *ebb.Conn, name string) (*objects.Instance, error) {
	m, err := NewMapCache(c, name, expmap.Options[string, string]{IdleTTL: time.Hour})
	if err != nil {
		return nil, err
	}
	return &objects.Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(m.Set(ctx, "a", "1", time.Millisecond), m.Set(ctx, "b}{", "2", time.Hour), m.Set(ctx, "c", "3", 0),
				second(m.Len(ctx)))
		},
		Delete: m.Delete,
		Loops: []objects.Loop{
			{Name: "Watch", Kind: objects.Function, Run: m.Watch},
			{Name: "All", Kind: objects.Finite, Run: func(ctx context.Context) (err error) {
				for _, e := range m.All(ctx) {
					err = errors.Join(err, e)
				}
				return err
			}},
		},
	}, nil
}

func newSet(c *ebb.Conn, name string) (*objects.Instance, error) {
	s, err := NewSetCache[string](c, name)
	if err != nil {
		return nil, err
	}
	return &objects.Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(second(s.Add(ctx, time.Millisecond, "a")), second(s.Add(ctx, time.Hour, "b}{")), second(s.Add(ctx, 0, "c")),
				second(s.Len(ctx)))
		},
		Delete: s.Delete,
		Loops: []objects.Loop{
			{Name: "Watch", Kind: objects.Function, Run: s.Watch},
			{Name: "All", Kind: objects.Finite, Run: func(ctx context.Context) (err error) {
				for _, e := range s.All(ctx) {
					err = errors.Join(err, e)
				}
				return err
			}},
		},
	}, nil
}

const (
	// lease is much longer than soon, so that a test notices an object that only its expiry frees.
	lease = time.Minute
	// soon is the time for which a test waits, on a busy machine, for an object that must be free at once.
	soon = 15 * time.Second
)

var options = LockOptions{TTL: lease, UntilRelease: true}

func newSimpleLock(c *ebb.Conn, name string) (*objects.Instance, error) {
	return locked(NewLock(NewClient(c, ""), name, options))
}

func newFencedLock(c *ebb.Conn, name string) (*objects.Instance, error) {
	return locked(NewFencedLock(NewClient(c, ""), name, options))
}

func locked(l *Lock, err error) (*objects.Instance, error) {
	if err != nil {
		return nil, err
	}
	return &objects.Instance{
		Use: func(ctx context.Context) error {
			lease, err := l.TryAcquire(ctx, 1)
			return objects.Leave(ctx, lease, err)
		},
		Delete: l.Delete,
		Hold: func(ctx context.Context) (func(context.Context) error, error) {
			return objects.Held(l.Acquire(ctx, 1, soon))
		},
		Counts: true,
	}, nil
}

func newReadWriteLock(c *ebb.Conn, name string) (*objects.Instance, error) {
	l, err := NewReadWriteLock(NewClient(c, ""), name, options)
	if err != nil {
		return nil, err
	}
	return &objects.Instance{
		Use: func(ctx context.Context) error {
			for thread := range int64(2) {
				for range 2 {
					lease, err := l.TryShare(ctx, thread)
					if err := objects.Leave(ctx, lease, err); err != nil {
						return err
					}
				}
			}
			return nil
		},
		Delete: l.Delete,
		Hold: func(ctx context.Context) (func(context.Context) error, error) {
			return objects.Held(l.Acquire(ctx, 1, soon))
		},
		Counts: true,
	}, nil
}

func newSemaphore(c *ebb.Conn, name string) (*objects.Instance, error) {
	s, err := NewSemaphore(c, name, options)
	if err != nil {
		return nil, err
	}
	return &objects.Instance{
		Use:    func(ctx context.Context) error { return second(s.TrySetPermits(ctx, 2)) },
		Delete: s.Delete,
		Loops: []objects.Loop{{Name: "Acquire", Kind: objects.Function, Run: func(ctx context.Context) error {
			return s.Acquire(ctx, 1<<20, 0)
		}}},
	}, nil
}

func newPermits(c *ebb.Conn, name string) (*objects.Instance, error) {
	s, err := NewPermits(c, name, options)
	if err != nil {
		return nil, err
	}
	return &objects.Instance{
		Use: func(ctx context.Context) error {
			if _, err := s.TrySetPermits(ctx, 1); err != nil {
				return err
			}
			lease, err := s.TryAcquire(ctx)
			return objects.Leave(ctx, lease, err)
		},
		Delete: s.Delete,
		Hold: func(ctx context.Context) (func(context.Context) error, error) {
			if _, err := s.TrySetPermits(ctx, 1); err != nil {
				return nil, err
			}
			return objects.Held(s.Acquire(ctx, soon))
		},
	}, nil
}

func newLatch(c *ebb.Conn, name string) (*objects.Instance, error) {
	l, err := NewLatch(c, name)
	if err != nil {
		return nil, err
	}
	return &objects.Instance{
		Use: func(ctx context.Context) error {
			return errors.Join(second(l.Set(ctx, 3)), second(l.CountDown(ctx)))
		},
		Delete: l.Delete,
		Loops: []objects.Loop{{Name: "Wait", Kind: objects.Function, Run: func(ctx context.Context) error {
			if _, err := l.Set(ctx, 1); err != nil {
				return err
			}
			return l.Wait(ctx)
		}}},
	}, nil
}
