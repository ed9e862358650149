package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/queue"
)

type mail struct {
	To, Text string
}

func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()

	q, err := queue.New[mail](c, "mail")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Push(ctx, mail{"ann", "hello"}); err != nil {
		log.Fatal(err)
	}
	job, err := q.Pop(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.Value.To, job.Value.Text, job.Deliveries)
	fmt.Println(job.Ack(ctx))
	// Output:
	// ann hello 1
	// <nil>
}

// The error that a worker's function returns decides how the job is settled.
func ExampleQueue_Run() {
	ctx, stop := context.WithCancel(context.Background())
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	q, err := queue.New(c, "mail", queue.Options[mail]{
		Backoff: func(delivery int) time.Duration { return time.Duration(delivery) * time.Millisecond },
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Push(ctx, mail{"ann", "hello"}); err != nil {
		log.Fatal(err)
	}
	err = q.Run(ctx, 4, func(ctx context.Context, j *queue.Job[mail]) error {
		if j.Deliveries < 3 {
			fmt.Println("delivery", j.Deliveries, "failed")
			return errors.New("try again later")
		}
		fmt.Println("delivery", j.Deliveries, "sent to", j.Value.To)
		stop()
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// delivery 1 failed
	// delivery 2 failed
	// delivery 3 sent to ann
	// true
}

// A reminder is pushed with an id and a delay, and cancelled when it is not needed.
func ExampleQueue_Push() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	q, err := queue.New[string](c, "reminders")
	if err != nil {
		log.Fatal(err)
	}
	o := queue.PushOptions{ID: "order-7", Delay: 30 * time.Minute, Unique: time.Hour}
	fmt.Println(q.Push(ctx, "pay, please", o))
	_, err = q.Push(ctx, "pay, please", o)
	fmt.Println(errors.Is(err, queue.ErrDuplicate))
	i, err := q.Info(ctx)
	fmt.Println(i.Delayed, i.NextDue > 29*time.Minute, err)
	fmt.Println(q.Cancel(ctx, "order-7"))
	// Output:
	// order-7 <nil>
	// true
	// 1 true <nil>
	// 1 <nil>
}

// A schedule adds a job at each occurrence; each program declares it when it starts.
func ExampleQueue_Schedule() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	q, err := queue.New[string](c, "reports")
	if err != nil {
		log.Fatal(err)
	}
	rule := queue.Cron("0 9 * * 1-5", "Europe/Berlin")
	first, err := q.Schedule(ctx, "report", "all customers", rule)
	fmt.Println(rule, first.After(time.Now()), err)
	if _, err := q.Schedule(ctx, "beat", "x", queue.Every(20*time.Millisecond)); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		job, err := q.Pop(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(job.Value, job.Ack(ctx))
	}
	fmt.Println(q.Unschedule(ctx, "report", "beat"))
	// Output:
	// cron "0 9 * * 1-5" in Europe/Berlin true <nil>
	// x <nil>
	// x <nil>
	// 2 <nil>
}

// Middleware sees each job that Run handles, with its headers.
func ExampleMiddleware() {
	ctx, stop := context.WithCancel(context.Background())
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	logged := func(next queue.Handler[mail]) queue.Handler[mail] {
		return func(ctx context.Context, j *queue.Job[mail]) error {
			err := next(ctx, j)
			fmt.Println("request", j.Headers["request"], "mail to", j.Value.To, err)
			return err
		}
	}
	q, err := queue.New(c, "mail", queue.Options[mail]{Middleware: []queue.Middleware[mail]{logged}})
	if err != nil {
		log.Fatal(err)
	}
	o := queue.PushOptions{Headers: map[string]string{"request": "r-17"}}
	if _, err := q.Push(ctx, mail{"ann", "hello"}, o); err != nil {
		log.Fatal(err)
	}
	err = q.Run(ctx, 1, func(context.Context, *queue.Job[mail]) error {
		stop()
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// request r-17 mail to ann <nil>
	// true
}
