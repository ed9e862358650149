// Command delay-queue sends the mails of a shop at their time: a welcome now, and a little
// later a reminder of an order, unless the user has paid. Two workers share the work. One
// mail fails twice, one fails for ever, and one worker loses its connection.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/queue"
)

func main() { example.Main(run) }

// mail is the content of a job.
type mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	q, err := queue.New(c, "shop:mails", queue.Options[mail]{
		Lease:         400 * time.Millisecond,
		MaxDeliveries: 3,
		Backoff:       func(n int) time.Duration { return time.Duration(n) * 100 * time.Millisecond },
	})
	if err != nil {
		return err
	}
	defer func() { _ = q.Delete(context.WithoutCancel(ctx)) }()
	fmt.Fprintln(w, q)
	s := &shop{q: q, w: w, taken: map[string]int{}}
	if err := s.push(ctx); err != nil {
		return err
	}
	if err := s.cutOff(ctx); err != nil {
		return err
	}
	if err := s.work(ctx); err != nil {
		return err
	}
	return s.report(ctx)
}

// shop is the program's state.
type shop struct {
	q *queue.Queue[mail]
	w io.Writer

	mu     sync.Mutex // guards what follows, and w
	taken  map[string]int
	order  []string
	latest time.Duration
}

func (s *shop) printf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.w, format, args...)
}

// push adds mails in no order.
func (s *shop) push(ctx context.Context) error {
	after := func(id string, ms int) queue.PushOptions {
		return queue.PushOptions{ID: id, Delay: time.Duration(ms) * time.Millisecond}
	}
	// An interrupted run may have left these jobs.
	if _, err := s.q.Cancel(ctx, "reminder-ann", "reminder-bob", "survey-cy", "retry-dee", "bounce", "welcome-eve"); err != nil {
		return err
	}
	_, err := s.q.PushMany(ctx, []queue.Item[mail]{
		{Value: mail{"ann", "your order waits"}, PushOptions: after("reminder-ann", 600)},
		{Value: mail{"bob", "your order waits"}, PushOptions: after("reminder-bob", 500)},
		{Value: mail{"cy", "rate us"}, PushOptions: after("survey-cy", 400)},
		{Value: mail{"dee", "busy server"}, PushOptions: after("retry-dee", 200)},
		{Value: mail{"unknown", "no such address"}, PushOptions: after("bounce", 300)},
		{Value: mail{"eve", "welcome"}, PushOptions: after("welcome-eve", 0)},
	})
	if err != nil {
		return err
	}
	_, err = s.q.Push(ctx, mail{"eve", "welcome again"}, queue.PushOptions{ID: "welcome-eve"})
	s.printf("a second welcome-eve is refused: %t\n", errors.Is(err, queue.ErrDuplicate))
	n, err := s.q.Cancel(ctx, "reminder-bob")
	s.printf("bob has paid: %d reminder cancelled\n", n)
	return err
}

// cutOff takes the first mail and never acknowledges it.
func (s *shop) cutOff(ctx context.Context) error {
	job, err := s.q.Pop(ctx)
	if err == nil {
		s.printf("worker 0 has %s and is cut off\n", job.ID)
	}
	return err
}

// work runs two workers until the queue is empty.
func (s *shop) work(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var workers sync.WaitGroup
	for n := 1; n <= 2; n++ {
		workers.Go(func() {
			_ = s.q.Run(ctx, 1, func(ctx context.Context, j *queue.Job[mail]) error { return s.send(n, j) })
		})
	}
	defer workers.Wait()
	defer stop()
	for {
		left, err := s.q.Len(ctx)
		if left == 0 || err != nil {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// send handles a mail in a worker. It measures the lateness of first deliveries only.
func (s *shop) send(worker int, j *queue.Job[mail]) error {
	late := time.Since(j.Due)
	s.mu.Lock()
	s.taken[j.ID]++
	if j.Deliveries == 1 {
		s.order = append(s.order, j.ID)
		s.latest = max(s.latest, late)
	}
	s.mu.Unlock()
	switch {
	case j.Value.To == "unknown":
		return fmt.Errorf("no mailbox: %w", queue.ErrPermanent)
	case j.Value.To == "dee" && j.Deliveries < 3:
		return errors.New("try later")
	}
	s.printf("worker %d sent %s, delivery %d: %s, %s\n", worker, j.ID, j.Deliveries, j.Value.To, j.Value.Text)
	return nil
}

func (s *shop) report(ctx context.Context) error {
	s.printf("first deliveries in the order of their time: %v\n", s.order)
	s.printf("deliveries: dee %d, bounce %d, ann %d; the latest began %s after its time\n",
		s.taken["retry-dee"], s.taken["bounce"], s.taken["reminder-ann"], about(s.latest))
	dead, err := s.q.DeadLetters(ctx, 10)
	if err != nil {
		return err
	}
	for _, d := range dead {
		s.printf("dead letter %s after delivery %d: %s\n", d.ID, d.Deliveries, d.Reason)
		if _, err := s.q.Discard(ctx, d.ID); err != nil {
			return err
		}
	}
	return nil
}

// about rounds a duration up, so that a reader can compare it.
func about(d time.Duration) string {
	for _, bound := range []time.Duration{time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		if d <= bound {
			return fmt.Sprint("less than ", bound)
		}
	}
	return d.Round(time.Millisecond).String()
}
