package main

import (
	"context"
	"fmt"
)

// brpop is the queue on a list. BRPOP removes the job before the worker has run it.
var brpop = classic{
	title: fmt.Sprintf("a queue by LPUSH and BRPOP: one worker dies with its job, of %d", jobs),
	right: "0",
	rows:  []row{{"jobs that are lost", lostByList}, {"queue.Pop", lostByQueue}},
}

func lostByList(ctx context.Context, b *bench) (lost int64, err error) {
	key := b.key("jobs")
	for i := range jobs {
		if _, err := b.c.LPush(ctx, key, fmt.Sprint("job-", i)); err != nil {
			return 0, err
		}
	}
	if _, err := b.c.Block(ctx, "BRPOP", key, 1); err != nil { // this worker dies here
		return 0, err
	}
	for lost = jobs; ; lost-- {
		n, err := b.c.LLen(ctx, key)
		if err != nil || n == 0 {
			return lost, err
		}
		if _, err := b.c.Block(ctx, "BRPOP", key, 1); err != nil {
			return 0, err
		}
	}
}
