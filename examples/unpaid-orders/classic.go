package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expset"
	"github.com/ebbdb/ebb/internal/example"
)

// This file compares package expset with the two ways in which programs usually store
// unpaid orders:
//
//   - a set for each minute, with a TTL: the orders of a user are in thirty sets, which every
//     new order counts;
//   - a sorted set by deadline: ZCARD, and then ZADD if there is room.
//
// All three run the same two trials, and the table shows what was measured.

const (
	minutes = 30 // minutes for which an order may be paid
	crowd   = 50 // orders of one user that arrive together
	// think is the time that a program needs between counting and adding, for instance to
	// read a price.
	think = 5 * time.Millisecond
)

// method is one way to store the unpaid orders of a user.
type method struct {
	name string
	// place adds an order if the limit allows it, and reports whether it did.
	place func(ctx context.Context, user, order string) (bool, error)
	// unpaid returns the number of orders that count as unpaid.
	unpaid func(ctx context.Context, user string) (int, error)
	// clear removes what a trial has left.
	clear func(ctx context.Context, users ...string) error
}

// row holds the results of a method.
type row struct {
	accepted, commands int64
	first, second      float64 // when two orders stopped to count, in minutes after their deadlines
}

// compare runs the trials of each method, and prints a row for each.
func (s *shop) compare(ctx context.Context) error {
	sets, err := s.family()
	if err != nil {
		return err
	}
	methods := []method{s.buckets(), s.sorted(), s.toolkit(sets)}
	rows, errs := make([]row, len(methods)), make([]error, len(methods))
	for i, m := range methods {
		if rows[i].accepted, err = s.atOnce(ctx, m); err == nil {
			rows[i].commands, err = s.commands(ctx, m)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	var wg sync.WaitGroup
	for i, m := range methods {
		wg.Go(func() { rows[i].first, rows[i].second, errs[i] = s.ends(ctx, m) })
	}
	wg.Wait()
	s.say("\n%d orders of one user at once, where %d are allowed; two orders that are never paid", crowd, quota)
	s.say("  %-34s  %8s  %14s  %s", "", "accepted", "commands/order", "end, by the minutes that an order has")
	for i, m := range methods {
		if errs[i] != nil {
			return fmt.Errorf("%s: %w", m.name, errs[i])
		}
		s.say("  %-34s  %8d  %14d  %+.1f and %+.1f", m.name, rows[i].accepted, rows[i].commands, rows[i].first, rows[i].second)
		if err := m.clear(ctx, "cy", "dee", "eve"); err != nil {
			return err
		}
	}
	return nil
}

// atOnce places many orders at the same time, and returns how many were accepted.
func (s *shop) atOnce(ctx context.Context, m method) (int64, error) {
	var accepted atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, crowd)
	start := make(chan struct{})
	for i := range crowd {
		wg.Go(func() {
			<-start
			ok, err := m.place(ctx, "cy", fmt.Sprint("c-", i))
			if errs[i] = err; ok {
				accepted.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return accepted.Load(), nil
}

// commands returns how many commands the server ran for one order, by its own count. A script
// counts as one and each command in it as one more.
func (s *shop) commands(ctx context.Context, m method) (int64, error) {
	processed := func() (int64, error) {
		v, err := s.c.Do(ctx, "INFO", "stats")
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(v.String(), "total_commands_processed:")
		n, _, _ := strings.Cut(rest, "\r\n")
		return strconv.ParseInt(n, 10, 64)
	}
	before, err := processed()
	if err != nil {
		return 0, err
	}
	if ok, err := m.place(ctx, "eve", "e-1"); err != nil || !ok {
		return 0, fmt.Errorf("an order was accepted: %t: %w", ok, err)
	}
	after, err := processed()
	return after - before - 1, err // less INFO itself
}

// ends places two orders in one minute, half a minute apart, and returns how long after its
// deadline each of them no longer counted, in minutes.
func (s *shop) ends(ctx context.Context, m method) (first, second float64, err error) {
	minute := s.payable / minutes
	if err := s.toMinute(ctx, minute); err != nil {
		return 0, 0, err
	}
	var placed [2]time.Time
	for i := range placed {
		if ok, err := m.place(ctx, "dee", fmt.Sprint("d-", i)); err != nil || !ok {
			return 0, 0, fmt.Errorf("an order was accepted: %t: %w", ok, err)
		}
		placed[i] = time.Now()
		if err := example.Sleep(ctx, minute/2); err != nil {
			return 0, 0, err
		}
	}
	var late [2]time.Duration
	for left := 2; left > 0; {
		n, err := m.unpaid(ctx, "dee")
		if err != nil {
			return 0, 0, err
		}
		for ; left > n; left-- {
			late[2-left] = time.Since(placed[2-left]) - s.payable
		}
		if err := example.Sleep(ctx, minute/40); err != nil {
			return 0, 0, err
		}
	}
	return late[0].Seconds() / minute.Seconds(), late[1].Seconds() / minute.Seconds(), nil
}

// toMinute waits for the beginning of a minute, by the server's clock.
func (s *shop) toMinute(ctx context.Context, minute time.Duration) error {
	now, err := serverTime(ctx, s.c)
	if err != nil {
		return err
	}
	return example.Sleep(ctx, minute-time.Duration(now.UnixNano())%minute)
}

func serverTime(ctx context.Context, c *ebb.Conn) (time.Time, error) {
	v, err := c.Do(ctx, "TIME")
	if err != nil || len(v.Elems) != 2 {
		return time.Time{}, fmt.Errorf("TIME replied %s: %w", v, err)
	}
	sec, err1 := v.Elems[0].AsInt()
	us, err2 := v.Elems[1].AsInt()
	if err1 != nil || err2 != nil {
		return time.Time{}, fmt.Errorf("TIME replied %s", v)
	}
	return time.Unix(sec, us*1000), nil
}

// buckets stores orders in a set for each minute, which expires as a whole when its orders
// may no longer be paid. It counts all sets of the last minutes before it adds an order.
func (s *shop) buckets() method {
	minute := s.payable / minutes
	key := func(user string, nr int64) string { return fmt.Sprintf("orders:{%s}:%d", user, nr) }
	keys := func(ctx context.Context, user string) ([]string, error) {
		now, err := serverTime(ctx, s.c)
		if err != nil {
			return nil, err
		}
		nr := now.UnixNano() / int64(minute)
		all := make([]string, minutes+1) // one more, because a set exists for up to a minute longer
		for i := range all {
			all[i] = key(user, nr-int64(i))
		}
		return all, nil
	}
	unpaid := func(ctx context.Context, user string) (int, []string, error) {
		all, err := keys(ctx, user)
		if err != nil {
			return 0, nil, err
		}
		var b ebb.Batch
		for _, k := range all {
			b.Do("SCARD", k)
		}
		replies, err := s.c.Pipeline(ctx, &b)
		n := 0
		for _, r := range replies {
			n += int(r.Int)
		}
		return n, all, err
	}
	return method{
		name: "a set with a TTL for each minute",
		place: func(ctx context.Context, user, order string) (bool, error) {
			n, all, err := unpaid(ctx, user)
			if err != nil || n >= quota {
				return false, err
			}
			if err := example.Sleep(ctx, think); err != nil {
				return false, err
			}
			var b ebb.Batch
			b.Do("SADD", all[0], order)
			b.Do("PEXPIRE", all[0], s.payable.Milliseconds())
			_, err = s.c.Pipeline(ctx, &b)
			return err == nil, err
		},
		unpaid: func(ctx context.Context, user string) (int, error) {
			n, _, err := unpaid(ctx, user)
			return n, err
		},
		clear: func(ctx context.Context, users ...string) error {
			for _, user := range users {
				all, err := keys(ctx, user)
				if err != nil {
					return err
				}
				if _, err := s.c.Del(ctx, all...); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// sorted stores each order in a sorted set with its deadline as the score. ZCARD and ZADD
// are two steps.
func (s *shop) sorted() method {
	key := func(user string) string { return "orders:{" + user + "}" }
	count := func(ctx context.Context, user string) (int, time.Time, error) {
		now, err := serverTime(ctx, s.c)
		if err != nil {
			return 0, now, err
		}
		var b ebb.Batch
		b.Do("ZREMRANGEBYSCORE", key(user), "-inf", fmt.Sprint("(", now.UnixMilli()))
		b.Do("ZCARD", key(user))
		replies, err := s.c.Pipeline(ctx, &b)
		if err != nil {
			return 0, now, err
		}
		return int(replies[1].Int), now, nil
	}
	return method{
		name: "ZCARD, then ZADD",
		place: func(ctx context.Context, user, order string) (bool, error) {
			began := time.Now()
			n, now, err := count(ctx, user)
			if err != nil || n >= quota {
				return false, err
			}
			if err := example.Sleep(ctx, think); err != nil {
				return false, err
			}
			_, err = s.c.Do(ctx, "ZADD", key(user), now.Add(time.Since(began)+s.payable).UnixMilli(), order)
			return err == nil, err
		},
		unpaid: func(ctx context.Context, user string) (int, error) {
			n, _, err := count(ctx, user)
			return n, err
		},
		clear: func(ctx context.Context, users ...string) error {
			for _, user := range users {
				if _, err := s.c.Del(ctx, key(user)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// toolkit uses the family of main.go. Add counts, adds and sets the deadline in one step.
func (s *shop) toolkit(orders *expset.Family[string]) method {
	return method{
		name: "expset.Add",
		place: func(ctx context.Context, user, order string) (bool, error) {
			if err := example.Sleep(ctx, think); err != nil {
				return false, err
			}
			_, err := orders.Set(user).Add(ctx, s.payable, order)
			if isFull(err) {
				return false, nil
			}
			return err == nil, err
		},
		unpaid: func(ctx context.Context, user string) (int, error) {
			n, err := orders.Set(user).Len(ctx)
			return int(n), err
		},
		clear: func(ctx context.Context, users ...string) error {
			for _, user := range users {
				if err := orders.Set(user).Clear(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
