package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/expset"
)

const (
	visitors = 300             // sessions at the start
	idle     = 2 * time.Minute // the time after which a session expires
)

// session is the key of a visitor.
func session(i int) string { return fmt.Sprintf("session:%06x", uint32(i)*2654435761>>8) }

func (s *shop) login(ctx context.Context, i int, ttl time.Duration) error {
	user := users[i%(len(users)-1)]
	value := fmt.Sprintf(`{"user":%q,"visits":%d,"page":"/item/%d"}`, user, i%7+1, i%40)
	_, err := s.c.Do(ctx, "SET", session(i), value, "PX", ttl.Milliseconds(), "SLIDE")
	return err
}

func (s *shop) fillSessions(ctx context.Context) error {
	for i := range visitors {
		if err := s.login(ctx, i, s.between(time.Second, idle)); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) put(ctx context.Context, user string) error {
	item := fmt.Sprintf("item-%03d", s.n(40))
	return s.c.HSetTTL(ctx, "cart:"+user, item, s.n(3)+1, s.between(s.carts/4, s.carts))
}

func (s *shop) fillCarts(ctx context.Context) error {
	for range 60 {
		if err := s.put(ctx, s.user()); err != nil {
			return err
		}
	}
	return nil
}

// visits lets visitors come, read pages and fill carts. A read extends the deadline of a
// session; sessions of visitors who have left expire.
func (s *shop) visits(ctx context.Context) error {
	next := visitors
	return s.every(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		for range 3 {
			i := max(0, next-visitors+s.n(visitors))
			switch _, err := s.c.Get(ctx, session(i)); {
			case errors.Is(err, conn.ErrNil):
				if err := s.login(ctx, next, idle); err != nil {
					return err
				}
				next++
			case err != nil:
				return err
			}
			if _, err := s.seen.Add(ctx, fmt.Sprintf("/item/%d", s.n(5000))); err != nil {
				return err
			}
		}
		if s.n(3) > 0 {
			return nil
		}
		return s.put(ctx, s.user())
	})
}

// order adds an unpaid order. A user with three unpaid orders gets no more.
func (s *shop) order(ctx context.Context) (*expset.Set[string], string, error) {
	orders, id := s.unpaid.Set(s.user()), fmt.Sprintf("o-%05d", s.n(100_000))
	if _, err := orders.Add(ctx, s.between(10*time.Second, 40*time.Second), id); err != nil && !errors.Is(err, expset.ErrFull) {
		return nil, "", err
	}
	return orders, id, nil
}

func (s *shop) fillOrders(ctx context.Context) error {
	for range 25 {
		if _, _, err := s.order(ctx); err != nil {
			return err
		}
	}
	return nil
}

// orders adds an order a second. Customers pay one of three; the others expire, and the rule
// of the family records that.
func (s *shop) orders(ctx context.Context) error {
	return s.every(ctx, time.Second, func(ctx context.Context) error {
		orders, id, err := s.order(ctx)
		if err == nil && s.n(3) == 0 {
			_, err = orders.Remove(ctx, id)
		}
		return err
	})
}

// warehouse returns the goods of expired orders. It takes three seconds for each, so its
// consumer group lags.
func (s *shop) warehouse(ctx context.Context) error {
	return s.unpaid.OnExpired(ctx, "warehouse", func(ctx context.Context, _ expset.Expired[string]) error {
		s.pause(ctx, s.scaled(3*time.Second))
		return ctx.Err()
	}, expset.ListenOptions{Consumer: "warehouse-1"})
}

func (s *shop) fillLimits(ctx context.Context) error {
	for _, user := range users[:8] {
		if _, err := s.api.AllowN(ctx, user, int64(s.n(30)+1)); err != nil {
			return err
		}
	}
	return nil
}

// requests are those of ordinary customers, far below the limit.
func (s *shop) requests(ctx context.Context) error {
	return s.every(ctx, 250*time.Millisecond, func(ctx context.Context) error {
		_, err := s.api.Allow(ctx, s.user())
		return err
	})
}

// abuse is a customer that sends ten requests a second, ten times the limit.
func (s *shop) abuse(ctx context.Context) error {
	return s.every(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		_, err := s.api.Allow(ctx, users[len(users)-1])
		return err
	})
}
