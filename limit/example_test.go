package limit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/limit"
)

func open() (context.Context, *ebb.Conn) {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	return ctx, c
}

func ExampleLimiter_Allow() {
	ctx, c := open()
	defer c.Close()
	api, err := limit.New(c, "api", limit.PerHour(2), limit.Local(0.5))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		r, err := api.Allow(ctx, "ann")
		fmt.Println(r.Allowed, r.Remaining, r.RetryAfter.Round(time.Minute), err)
	}
	fmt.Println(api)
	// Output:
	// true 1 0s <nil>
	// true 0 0s <nil>
	// false 0 30m0s <nil>
	// limiter "api" (2 per 1h0m0s, gcra; RL.TAKE of ebb)
}

func ExampleLimiter_Wait() {
	ctx, c := open()
	defer c.Close()
	smtp, _ := limit.New(c, "smtp", limit.PerSecond(100), limit.FailClosed, limit.Options{Burst: 1})
	for i := range 3 {
		if err := smtp.Wait(ctx, ""); err != nil { // 10 ms apart
			fmt.Println(err)
		}
		fmt.Println("letter", i+1)
	}
	// Output:
	// letter 1
	// letter 2
	// letter 3
}

func ExampleAllowAll() {
	ctx, c := open()
	defer c.Close()
	minute, _ := limit.New(c, "minute", limit.PerMinute(10), limit.FailOpen)
	day, _ := limit.New(c, "day", limit.PerDay(1), limit.FailOpen, limit.Options{Algorithm: limit.FixedWindow})
	for range 2 {
		ok, r, err := limit.AllowAll(ctx, minute.Request("{ann}"), day.Request("{ann}"))
		fmt.Println(ok, "minute:", r[0].Remaining, "day:", r[1].Remaining, err)
	}
	// Output:
	// true minute: 9 day: 0 <nil>
	// false minute: 9 day: 0 <nil>
}

func ExampleNew() {
	_, c := open()
	defer c.Close()
	_, err := limit.New(c, "api", limit.PerMinute(60), limit.Down{})
	fmt.Println(errors.Is(err, ebb.ErrArgument), err)
	// Output:
	// true limit "api": ebb: unusable argument: down is not set; it must be FailOpen, FailClosed or Local(share)
}

func ExampleConcurrency() {
	ctx, c := open()
	defer c.Close()
	resize, _ := limit.NewConcurrency(c, "resize", 1)
	slot, err := resize.Acquire(ctx, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = resize.TryAcquire(ctx, "")
	fmt.Println(err)
	fmt.Println("under slot.Context():", slot.Context().Err(), slot.Release(ctx))
	// Output:
	// limit: concurrency "resize": acquire "": all slots are taken
	// under slot.Context(): <nil> <nil>
}
