// Command unpaid-orders holds orders that lapse unless the user pays in time, at most
// three for each user. The warehouse, which must release the goods, gets each lapsed
// order, even after it was down and after it crashed while it handled one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expset"
	"github.com/ebbdb/ebb/internal/example"
)

func main() { example.Main(run) }

const quota = 3

// shop is the story's state. Each of its programs has a family of its own, as if it ran
// on a machine of its own.
type shop struct {
	c       *ebb.Conn
	w       io.Writer
	payable time.Duration // the time for which an order may be paid
}

// run plays the story with short times. In production a user may pay an order for thirty
// minutes; the test of the same story, in virtual time, uses thirty minutes.
func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	return story(ctx, c, w, 2*time.Second)
}

func story(ctx context.Context, c *ebb.Conn, w io.Writer, payable time.Duration) error {
	s := &shop{c, w, payable}
	orders, err := s.family()
	if err != nil {
		return err
	}
	defer func() { _ = orders.Delete(context.WithoutCancel(ctx)) }()
	if err := s.orders(ctx); err != nil {
		return err
	}
	return s.compare(ctx)
}

func (s *shop) say(format string, args ...any) { fmt.Fprintf(s.w, format+"\n", args...) }

// family opens the orders, with the options that all programs must share.
func (s *shop) family() (*expset.Family[string], error) {
	return expset.NewFamily(s.c, "unpaid", expset.Options[string]{MaxLen: quota, Events: true})
}

func (s *shop) orders(ctx context.Context) error {
	orders, err := s.family()
	if err != nil {
		return err
	}
	s.say("Orders: %s", orders)
	ann, bob := orders.Set("ann"), orders.Set("bob")
	for _, id := range []string{"o-1", "o-2", "o-3", "o-4"} {
		switch _, err := ann.Add(ctx, s.payable, id); {
		case isFull(err):
			s.say("  ann orders %s: refused, she has %d to pay", id, quota)
		case err != nil:
			return err
		default:
			s.say("  ann orders %s: to be paid within %v", id, s.payable)
		}
	}
	if _, err := bob.Add(ctx, s.payable, "o-5"); err != nil {
		return err
	}
	s.say("  bob orders o-5")

	// A payment removes the order, so exactly one of payment and lapse happens.
	if n, err := ann.Remove(ctx, "o-2"); err != nil || n != 1 {
		return fmt.Errorf("o-2 was paid %d times: %w", n, err)
	}
	if n, err := ann.Remove(ctx, "o-2"); err != nil || n != 0 {
		return fmt.Errorf("o-2 was paid again, %d times: %w", n, err)
	}
	if _, err := ann.Add(ctx, s.payable, "o-4"); err != nil {
		return err
	}
	s.say("  ann pays o-2, and has room for o-4")
	return s.lapse(ctx, ann, bob)
}

// lapse runs a warehouse that crashes while it handles the first lapsed order. The next
// warehouse, of the same name, gets it again, and all orders that lapsed meanwhile.
func (s *shop) lapse(ctx context.Context, ann, bob *expset.Set[string]) error {
	first, crash := context.WithCancel(ctx)
	defer crash()
	orders, err := s.family()
	if err != nil {
		return err
	}
	me := expset.ListenOptions{Consumer: "warehouse-1"}
	err = orders.OnExpired(first, "warehouse", func(ctx context.Context, e expset.Expired[string]) error {
		s.say("  the warehouse takes a lapsed order, and crashes")
		crash()
		return ctx.Err()
	}, me)
	if !errors.Is(err, context.Canceled) || ctx.Err() != nil {
		return err
	}

	if orders, err = s.family(); err != nil {
		return err
	}
	second, stop := context.WithTimeout(ctx, s.payable+10*time.Second)
	defer stop()
	released := map[string]bool{}
	var worst time.Duration
	err = orders.OnExpired(second, "warehouse", func(ctx context.Context, e expset.Expired[string]) error {
		if e.Err != nil {
			return e.Err
		}
		released[e.Set+" "+e.Member] = true // delivery is at least once: releasing twice must be safe
		worst = max(worst, e.FiredAt.Sub(e.Deadline))
		if len(released) == 4 {
			stop()
		}
		return nil
	}, me)
	if !errors.Is(err, context.Canceled) || ctx.Err() != nil {
		return fmt.Errorf("%d of 4 lapses were heard of: %w", len(released), err)
	}
	s.say("  the next warehouse is told of it again, and of the others, and releases the goods of")
	s.say("    %s", strings.Join(slices.Sorted(maps.Keys(released)), ", "))
	s.say("  each lapse was noticed %v after its deadline at the latest", worst)
	a, err := ann.Len(ctx)
	if err != nil {
		return err
	}
	b, err := bob.Len(ctx)
	s.say("  unpaid now: ann %d, bob %d", a, b)
	return err
}

func isFull(err error) bool { return errors.Is(err, expset.ErrFull) }
