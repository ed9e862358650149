// Command scheduled-report makes a report at fixed times. Three programs declare the same
// schedule and handle its jobs; each time one of them makes the report, whichever of them dies.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/queue"
)

func main() { example.Main(run) }

// run plays the story with short times. In production the rule is a cron expression, such as
// queue.Cron("0 9 * * 1-5", "Europe/Berlin"); the test of the same story, in virtual time, uses a day.
func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	return story(ctx, c, w, 400*time.Millisecond, 150*time.Millisecond)
}

// office is the story's state.
type office struct {
	c            *ebb.Conn
	w            io.Writer
	every, lease time.Duration
}

func (o *office) say(format string, args ...any) { fmt.Fprintf(o.w, format+"\n", args...) }

// program opens the queue and declares the schedule, as each program does when it starts.
func (o *office) program(ctx context.Context, name string) (*queue.Queue[string], error) {
	q, err := queue.New(o.c, "reports", queue.Options[string]{Lease: o.lease})
	if err != nil {
		return nil, err
	}
	if _, err = q.Schedule(ctx, "daily", "all customers", queue.Every(o.every)); err != nil {
		return nil, err
	}
	o.say("  %s starts and declares the schedule", name)
	return q, nil
}

func story(ctx context.Context, c *ebb.Conn, w io.Writer, every, lease time.Duration) error {
	o := &office{c, w, every, lease}
	first, err := o.program(ctx, "first")
	if err != nil {
		return err
	}
	defer func() { _ = first.Delete(context.WithoutCancel(ctx)) }()
	o.say("  the schedule: %s", first)
	second, err := o.program(ctx, "second")
	if err != nil {
		return err
	}

	// The first program takes the job and never settles it: its lease ends.
	lost, err := first.Pop(ctx)
	if err != nil {
		return err
	}
	o.say("  first takes a report, and dies")
	job, err := second.Pop(ctx)
	if err != nil {
		return err
	}
	o.say("  second takes the same report (%t) when the lease is over, delivery %d, and makes it", job.ID == lost.ID, job.Deliveries)
	if err := job.Ack(ctx); err != nil {
		return err
	}
	if job, err = second.Pop(ctx); err != nil {
		return err
	}
	o.say("  second makes the next report (%t), and dies", job.ID != lost.ID)
	if err := job.Ack(ctx); err != nil {
		return err
	}

	// No program runs for a while. One report is made afterwards, not one for each missed time.
	if err := example.Sleep(ctx, 3*every); err != nil {
		return err
	}
	third, err := o.program(ctx, "third")
	if err != nil {
		return err
	}
	last, err := third.Pop(ctx)
	if err != nil {
		return err
	}
	if err := last.Ack(ctx); err != nil {
		return err
	}
	all, err := third.Schedules(ctx)
	if err != nil {
		return err
	}
	o.say("  third makes one report; others were skipped (%t), because no program had made the one before", all[0].Skipped > 0)
	return nil
}
