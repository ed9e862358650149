package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/queue"
)

// openQueue opens the queue of all schedules with package queue.
func openQueue(ctx context.Context) (*ebb.Conn, *queue.Queue[string], error) {
	c, err := ebb.Open(ctx, "redis://"+address())
	if err != nil {
		return nil, nil, err
	}
	q, err := queue.New[string](c, key, queue.Options[string]{Lease: lease})
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, q, nil
}

func declareQueue(ctx context.Context) error {
	c, q, err := openQueue(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var all sync.WaitGroup
	errs := make([]error, 16)
	for k := range errs {
		all.Go(func() {
			for i := k; i < *schedules && errs[k] == nil; i += len(errs) {
				_, errs[k] = q.Schedule(ctx, fmt.Sprintf("s%05d", i), "x", queue.Cron("* * * * *", ""))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// workQueue takes jobs one by one with package queue.
func workQueue(ctx context.Context, out *journal) error {
	var c *ebb.Conn
	var q *queue.Queue[string]
	for c == nil {
		var err error
		if c, q, err = openQueue(ctx); err != nil {
			wait(ctx, 5*time.Millisecond)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	defer c.Close()
	var all sync.WaitGroup
	errs := make([]error, *conns)
	for i := range *conns {
		all.Go(func() {
			for ctx.Err() == nil && errs[i] == nil {
				job, err := q.Pop(ctx)
				if err != nil {
					wait(ctx, 5*time.Millisecond)
					continue
				}
				d, err := occurrenceOf(job.ID, time.Now().UnixMicro())
				d.nth = job.Deliveries
				if err != nil {
					errs[i] = err
				} else if out.delivered(d) != nil {
					errs[i] = errJournal
				} else if job.Ack(ctx) == nil && out.done(d) != nil {
					errs[i] = errJournal
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func skippedQueue(ctx context.Context) (skipped int, err error) {
	c, q, err := openQueue(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	all, err := q.Schedules(ctx)
	if err != nil {
		return 0, err
	}
	if len(all) != *schedules {
		return 0, fmt.Errorf("the queue has %d schedules, want %d", len(all), *schedules)
	}
	for _, s := range all {
		skipped += int(s.Skipped)
	}
	return skipped, nil
}

func leftQueue(ctx context.Context) (int, error) {
	c, q, err := openQueue(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	i, err := q.Info(ctx)
	return int(i.Ready + i.Delayed + i.Leased), err
}
