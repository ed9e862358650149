package asynqebb_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/hibiken/asynq"

	asynqebb "github.com/ebbdb/ebb/contrib/asynq"

	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/embed/embedredis"
)

// A delayed task runs when it is due, although the server of asynq looks for such tasks once
// an hour.
func ExampleForward() {
	ctx, stop := context.WithCancel(context.Background())
	c, err := embed.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	rdb, err := embedredis.Client(c) // or redis.NewClient, for an ebb server
	if err != nil {
		log.Fatal(err)
	}
	ran := make(chan string)
	server := asynq.NewServerFromRedisClient(rdb, asynq.Config{DelayedTaskCheckInterval: time.Hour, LogLevel: asynq.FatalLevel})
	err = server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		ran <- t.Type()
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	forwarded := make(chan error, 1)
	go func() { forwarded <- asynqebb.Forward(ctx, rdb, "default") }()

	client := asynq.NewClientFromRedisClient(rdb)
	if _, err := client.Enqueue(asynq.NewTask("mail", nil), asynq.ProcessIn(time.Millisecond)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-ran)

	stop()
	fmt.Println(<-forwarded)
	server.Shutdown()
	_, _ = rdb.Close(), c.Close()
	// Output:
	// mail
	// context canceled
}
