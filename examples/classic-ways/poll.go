package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/queue"
)

const jobs = 10

// poll is the delay queue that two workers poll. Both see a due job before one of them has removed it.
var poll = classic{
	title: fmt.Sprintf("a delay queue by ZRANGEBYSCORE, run, ZREM: two workers poll for %d jobs", jobs),
	right: fmt.Sprint(jobs),
	rows:  []row{{"runs", runsByPolling}, {"queue.Pop", runsByQueue}},
}

func runsByPolling(ctx context.Context, b *bench) (runs int64, err error) {
	key := b.key("jobs")
	now, err := b.fill(ctx, key)
	if err != nil {
		return 0, err
	}
	for {
		var due [2][]string // what the workers see, at the same time
		for worker := range due {
			if due[worker], err = b.due(ctx, key, now); err != nil {
				return 0, err
			}
		}
		if len(due[0]) == 0 {
			return runs, nil
		}
		for _, job := range due {
			runs++
			if _, err := b.c.ZRem(ctx, key, job...); err != nil {
				return 0, err
			}
		}
	}
}

// fill adds jobs that are due, and returns the time.
func (b *bench) fill(ctx context.Context, key string) (now int64, err error) {
	if now, err = b.now(ctx); err != nil {
		return 0, err
	}
	for i := range int64(jobs) {
		if _, err := b.c.Do(ctx, "ZADD", key, now-i, fmt.Sprint("job-", i)); err != nil {
			return 0, err
		}
	}
	return now, nil
}

// due returns the first job that is due, if there is one.
func (b *bench) due(ctx context.Context, key string, now int64) ([]string, error) {
	v, err := b.c.Do(ctx, "ZRANGEBYSCORE", key, "-inf", now, "LIMIT", 0, 1)
	if err != nil {
		return nil, err
	}
	return v.AsStrings()
}

func runsByQueue(ctx context.Context, b *bench) (runs int64, err error) {
	q, err := b.queue(ctx, time.Minute)
	if err != nil {
		return 0, err
	}
	for {
		var taken []*queue.Job[string] // by the workers, at the same time
		for range 2 {
			j, err := q.TryPop(ctx)
			if errors.Is(err, queue.ErrEmpty) {
				continue
			}
			if err != nil {
				return 0, err
			}
			taken = append(taken, j)
		}
		if len(taken) == 0 {
			return runs, q.Delete(ctx)
		}
		for _, j := range taken {
			runs++
			if err := j.Ack(ctx); err != nil {
				return 0, err
			}
		}
	}
}

// queue returns a queue with jobs that are due.
func (b *bench) queue(ctx context.Context, lease time.Duration) (*queue.Queue[string], error) {
	q, err := queue.New(b.c, b.key("jobs"), queue.Options[string]{Lease: lease})
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		if _, err := q.Push(ctx, fmt.Sprint("job-", i)); err != nil {
			return nil, err
		}
	}
	return q, nil
}
