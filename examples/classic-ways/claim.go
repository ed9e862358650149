package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/queue"
)

// claim is the delay queue in which the worker whose ZREM removes the job runs it. That worker is killed before it has.
var claim = classic{
	title: fmt.Sprintf("the same, and only the worker whose ZREM replies 1 runs the job: one of %d dies with its job", jobs),
	right: "0",
	rows:  []row{{"jobs that are lost", lostByClaim}, {"queue.Pop", lostByQueue}},
}

func lostByClaim(ctx context.Context, b *bench) (lost int64, err error) {
	key := b.key("jobs")
	now, err := b.fill(ctx, key)
	if err != nil {
		return 0, err
	}
	lost = jobs
	for killed := true; ; killed = false {
		job, err := b.due(ctx, key, now)
		if err != nil || len(job) == 0 {
			return lost, err
		}
		n, err := b.c.ZRem(ctx, key, job...)
		if err != nil {
			return 0, err
		}
		if n == 1 && !killed { // the first worker dies here
			lost--
		}
	}
}

// lostByQueue runs the jobs of a queue. The first worker is killed, and its lease ends.
func lostByQueue(ctx context.Context, b *bench) (lost int64, err error) {
	q, err := b.queue(ctx, 50*time.Millisecond)
	if err != nil {
		return 0, err
	}
	if _, err := q.Pop(ctx); err != nil { // this worker dies here
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for lost = jobs; lost > 0; {
		j, err := q.Pop(ctx)
		if err != nil {
			return lost, err
		}
		switch err := j.Ack(ctx); {
		case err == nil:
			lost--
		case !errors.Is(err, queue.ErrLost): // a busy machine took longer than the lease: the job comes again
			return lost, err
		}
	}
	return lost, q.Delete(ctx)
}
