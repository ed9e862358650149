package redisson

import (
	"context"
	"errors"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/internal/objects"
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
			return errors.Join(m.Set(ctx, "a", "1", time.Millisecond), m.Set(ctx, "b}{", "2", time.Hour), m.Set(ctx, "c", "3", 0), second(m.Len(ctx)))
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
			return errors.Join(second(s.Add(ctx, time.Millisecond, "a")), second(s.Add(ctx, time.Hour, "b}{")), second(s.Add(ctx, 0, "c")), second(s.Len(ctx)))
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
