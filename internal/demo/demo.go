// Package demo is a small shop that uses the toolkit, for `ebb demo` and for the tests of the
// console. It keeps data of every kind in motion: sessions whose deadlines slide, carts whose
// fields expire, unpaid orders, a limiter with one client that sends too much, locks of
// workers that die, a mail queue with dead letters, and 50,000 coupons that expire at each
// full minute.
//
//	Fill, once
//	Run ┬ visitors.go   sessions, carts, orders, requests, pages
//	    ├ workers.go    reports (lock), images (semaphore), mail (queue)
//	    └ coupons.go    keys that expire together
//
// Start reading at Run.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ebbdb/ebb/bloom"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/expset"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

// Options configures the shop. The zero value works.
type Options struct {
	// Seed selects the random choices: equal seeds give equal data in Fill.
	Seed uint64
	// Speed divides the pauses between the shop's actions; 0: 1. Deadlines stay as they are.
	Speed float64
	// Logger gets the errors after which a part of the shop tries again. nil: no log.
	Logger *slog.Logger
}

// shop holds the objects of the demo.
type shop struct {
	c     *conn.Conn
	o     Options
	api   *limit.Limiter
	seen  *bloom.Filter[string]
	carts time.Duration // the longest time that an item stays in a cart

	unpaid  *expset.Family[string]
	reports []*lock.Lock // of each worker
	images  *lock.Semaphore
	mail    *queue.Queue[mail]

	mu   sync.Mutex
	rand *rand.Rand
}

// users are the shop's customers. The last one sends too many requests.
var users = []string{
	"ann", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy",
	"kate", "leo", "maria", "niko", "olga", "peter", "rosa", "sam", "tina", "mallory",
}

func open(c *conn.Conn, o Options) (*shop, error) {
	if o.Speed < 0 {
		return nil, fmt.Errorf("demo: %w: the speed is %g; it must be above 0", conn.ErrArgument, o.Speed)
	}
	o.Speed = cmp.Or(o.Speed, 1)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s := &shop{c: c, o: o, carts: 90 * time.Second, rand: rand.New(rand.NewPCG(o.Seed, 1))}
	var errs [8]error
	s.api, errs[0] = limit.New(c, "api", limit.PerMinute(60), limit.FailOpen)
	s.seen, errs[1] = bloom.New(c, "pages:seen", bloom.Options[string]{Capacity: 100_000, Window: time.Hour})
	s.unpaid, errs[2] = expset.NewFamily(c, "unpaid", expset.Options[string]{MaxLen: 3, Events: true, MaxEvents: 5_000})
	for i := range 3 {
		var l *lock.Lock
		l, errs[3+i] = lock.New(c, "report", lock.Options{TTL: 10 * time.Second, Owner: fmt.Sprintf("worker-%d", i+1)})
		s.reports = append(s.reports, l)
	}
	s.images, errs[6] = lock.NewSemaphore(c, "images", 3, lock.Options{TTL: 10 * time.Second, Owner: "resizer"})
	s.mail, errs[7] = queue.New(c, "mail", queue.Options[mail]{Lease: 10 * time.Second, MaxDeliveries: 3, Backoff: s.backoff})
	return s, errors.Join(errs[:]...)
}

// Run runs the shop on c until ctx ends, and returns the context's error. Call Fill before. If a
// command fails, the part of the shop that sent it tries again after a second, so a user
// may delete its data, kill its connections and pause its queue.
func Run(ctx context.Context, c *conn.Conn, o Options) error {
	s, err := open(c, o)
	if err != nil {
		return err
	}
	parts := map[string]func(context.Context) error{
		"visits": s.visits, "orders": s.orders, "warehouse": s.warehouse, "requests": s.requests, "abuse": s.abuse,
		"mail": s.send, "postman": s.deliver, "coupons": s.coupons,
	}
	for i := range s.reports {
		parts[fmt.Sprint("report ", i)] = func(ctx context.Context) error { return s.report(ctx, i) }
	}
	for i := range 5 {
		parts[fmt.Sprint("images ", i)] = s.resize
	}
	var all sync.WaitGroup
	for name, part := range parts {
		all.Go(func() { s.persist(ctx, name, part) })
	}
	all.Wait()
	return ctx.Err()
}

// Fill writes the data with which the shop begins. Equal seeds give equal data.
func Fill(ctx context.Context, c *conn.Conn, o Options) error {
	s, err := open(c, o)
	if err != nil {
		return err
	}
	return s.fill(ctx)
}

func (s *shop) fill(ctx context.Context) error {
	for _, part := range []func(context.Context) error{s.fillSessions, s.fillCarts, s.fillOrders, s.fillMail, s.fillLimits} {
		if err := part(ctx); err != nil {
			return fmt.Errorf("demo: fill: %w", err)
		}
	}
	return nil
}

// persist runs a part of the shop until ctx ends, and again a second after each error.
func (s *shop) persist(ctx context.Context, name string, part func(context.Context) error) {
	for ctx.Err() == nil {
		if err := part(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("the demo tries again in a second", "part", name, "err", err)
		}
		s.pause(ctx, time.Second)
	}
}

// every calls do at each step until ctx ends or do fails.
func (s *shop) every(ctx context.Context, step time.Duration, do func(context.Context) error) error {
	for {
		if err := do(ctx); err != nil {
			return err
		}
		if !s.pause(ctx, s.scaled(step)) {
			return ctx.Err()
		}
	}
}

// pause waits for d, and reports whether ctx has not ended.
func (s *shop) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// scaled returns a pause at the speed of the shop.
func (s *shop) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) / s.o.Speed) }

// n returns a random number from 0 to below n.
func (s *shop) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

// between returns a random time from low to high.
func (s *shop) between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.n(int((high-low)/time.Millisecond)+1))*time.Millisecond
}

// user returns a random customer, but not the one that sends too many requests.
func (s *shop) user() string { return users[s.n(len(users)-1)] }
