// Command stream is an order desk: two workers share out the orders of a stream. One
// of them dies, one order cannot be shipped, and nothing is lost.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/stream"
)

func main() { example.Main(run) }

type order struct {
	ID   int
	Item string
}

const (
	claimAfter = time.Second // a worker that is silent for longer counts as dead
	retryAfter = 100 * time.Millisecond
)

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	orders, err := stream.New(c, "example:orders", stream.Options[order]{MaxLen: 1000, Retention: 24 * time.Hour})
	if err != nil {
		return err
	}
	defer func() { _ = orders.Delete(context.WithoutCancel(ctx)) }()
	desk, err := orders.Group("desk", stream.GroupOptions{ClaimAfter: claimAfter, MaxDeliveries: 3})
	if err != nil {
		return err
	}
	// Delete the data of an earlier run.
	if _, err := c.Del(ctx, "example:orders", "{example:orders}:retry:desk", "{example:orders}:dead:desk"); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n%s\n\n", orders, desk)

	const n = 10
	for i := range n {
		item := "book"
		if i == 6 {
			item = "elephant"
		}
		if _, err := orders.Add(ctx, order{i + 1, item}); err != nil {
			return err
		}
	}
	if err := workerThatDies(ctx, w, orders, desk); err != nil {
		return err
	}
	if err := work(ctx, w, desk, n); err != nil {
		return err
	}
	return aftermath(ctx, c, w, orders, desk)
}

// workerThatDies takes two orders, ships one, and never acknowledges the other.
func workerThatDies(ctx context.Context, w io.Writer, orders *stream.Stream[order], desk *stream.Group[order]) error {
	taken := 0
	for d, err := range desk.Consume(ctx, "worker-1") {
		if err != nil {
			return err
		}
		if taken++; taken == 2 {
			fmt.Fprintf(w, "worker-1 takes order %d and dies\n", d.Value.ID)
			break
		}
		if err := d.Ack(ctx); err != nil {
			return err
		}
		fmt.Fprintf(w, "worker-1 ships order %d\n", d.Value.ID)
	}
	i, err := orders.Info(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "the group has %d pending and a lag of %d\n\n", i.Groups[0].Pending, i.Groups[0].Lag)
	return nil
}

// work runs two workers that ship the orders.
func work(ctx context.Context, w io.Writer, desk *stream.Group[order], n int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var shipped []int
	var failed error
	again, left := "", n-1 // worker-1 has shipped one
	handle := func(d *stream.Delivery[order]) error {
		tooBig := d.Value.Item == "elephant"
		settle := func() error { return d.Ack(ctx) }
		if tooBig {
			settle = func() error { return d.Nack(ctx, retryAfter) } // after the third delivery it becomes a dead letter
		}
		err := settle()
		lost := errors.Is(err, stream.ErrLost) // this worker was too slow, and another has the order
		if err != nil && !lost {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case tooBig && d.Deliveries < 3 || lost && !tooBig:
			return nil // the group delivers it again
		case !tooBig:
			if d.Deliveries > 1 {
				again = fmt.Sprintf("order %d was claimed: delivery %d", d.Value.ID, d.Deliveries)
			}
			shipped = append(shipped, d.Value.ID)
		}
		if left--; left == 0 {
			cancel()
		}
		return nil
	}
	var wg sync.WaitGroup
	for _, name := range []string{"worker-2", "worker-3"} {
		wg.Go(func() {
			for d, err := range desk.Consume(ctx, name) {
				if err == nil {
					err = handle(d)
				}
				if err != nil && !errors.Is(err, ebb.ErrUnavailable) {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
					cancel()
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(shipped)
	fmt.Fprintf(w, "worker-2 and worker-3 ship %v\n%s\n", shipped, again)
	return failed
}

// aftermath prints the dead letter, reads the stream again, and trims it.
func aftermath(ctx context.Context, c *ebb.Conn, w io.Writer, orders *stream.Stream[order], desk *stream.Group[order]) error {
	dead, err := desk.DeadLetters(ctx, "", 10)
	if err != nil {
		return err
	}
	for _, l := range dead {
		fmt.Fprintf(w, "dead letter: order %d, %s, after %d deliveries\n", l.Value.ID, l.Value.Item, l.Deliveries)
	}
	i, err := orders.Info(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "the group has %d pending and a lag of %d\n\n", i.Groups[0].Pending, i.Groups[0].Lag)
	sum := 0
	for e, err := range orders.Read(ctx, "") { // a reader outside of a group begins at any entry
		if err != nil {
			return err
		}
		if sum += e.Value.ID; e.ID == i.LastID {
			break
		}
	}
	fmt.Fprintf(w, "an auditor reads all %d again; the numbers add up to %d\n", i.Len, sum)
	short, err := stream.New(c, "example:orders", stream.Options[order]{MaxLen: 3})
	if err != nil {
		return err
	}
	gone, err := short.Trim(ctx)
	fmt.Fprintf(w, "trimmed to 3: %d are gone\n", gone)
	return err
}
