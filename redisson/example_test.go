package redisson_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/redisson"
)

func open() (context.Context, *ebb.Conn) {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	return ctx, c
}

// Go and Java programs that share a rate limiter: getRateLimiter("labels").
func ExampleNewRateLimiter() {
	ctx, c := open()
	defer c.Close()
	l, _ := redisson.NewRateLimiter(c, "labels")
	set, err := l.TrySetRate(ctx, redisson.Rate{Rate: 2, Interval: time.Minute})
	fmt.Println(set, err)
	ok, err := l.TryAcquire(ctx, 2, 0)
	fmt.Println(ok, err)
	ok, err = l.TryAcquire(ctx, 1, 5*time.Second)
	fmt.Println(ok, err)
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}

// A queue that Java programs share through Redisson.
func ExampleNewDelayedQueue() {
	ctx, c := open()
	defer c.Close()
	q, err := redisson.NewDelayedQueue[string](c, "mail")
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Push(ctx, "good morning", 12*time.Hour); err != nil {
		log.Fatal(err)
	}
	fmt.Println(q.Len(ctx))
	if err := q.Push(ctx, "hello", 10*time.Millisecond); err != nil {
		log.Fatal(err)
	}
	fmt.Println(q.Pop(ctx))
	// Output:
	// 1 0 <nil>
	// hello <nil>
}

// A lock that Java programs share: getLock("report").
func ExampleNewLock() {
	ctx, c := open()
	defer c.Close()
	client := redisson.NewClient(c, "")
	l, err := redisson.NewLock(client, "report")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := l.TryAcquire(ctx, 7) // by the thread 7 of this client
	fmt.Println(err)
	_, err = l.TryAcquire(ctx, 8)
	fmt.Println(err)
	fmt.Println(lease.Release(ctx))
	// Output:
	// <nil>
	// redisson: lock "report": acquire: another owner holds it
	// <nil>
}
