package asynqebb_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	asynqebb "github.com/ebbdb/ebb/contrib/asynq"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// patience bounds a wait, which takes some seconds on an idle machine.
var patience = tier.Patience

// start returns a client of a new ebb server.
func start(t *testing.T) *redis.Client {
	p := realserver.NewProcess(t, realserver.Ebb(t))
	p.Start()
	c := redis.NewClient(&redis.Options{Addr: p.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The server of asynq would look for due tasks after an hour.
func TestDelayedTasksAndRetriesRunOnTime(t *testing.T) {
	c := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ran := make(chan string, 10)
	fail := true
	server := asynq.NewServerFromRedisClient(c, asynq.Config{
		Concurrency: 1, DelayedTaskCheckInterval: time.Hour, Queues: map[string]int{"default": 1, "critical": 1}, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Second },
	})
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		if task.Type() == "retried" && fail {
			fail = false
			return errors.New("not yet")
		}
		ran <- task.Type()
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()

	var forwards sync.WaitGroup
	defer forwards.Wait()
	defer cancel()
	for range 2 { // asynq moves each task once
		forwards.Go(func() {
			if err := asynqebb.Forward(ctx, c, "default", "critical"); !errors.Is(err, context.Canceled) {
				t.Errorf("Forward ended with %v", err)
			}
		})
	}
	client := asynq.NewClientFromRedisClient(c)
	enqueue := func(name string, at time.Time, queue string) {
		if _, err := client.Enqueue(asynq.NewTask(name, nil), asynq.ProcessAt(at), asynq.Queue(queue)); err != nil {
			t.Error(err)
		}
	}
	first := time.Now().Add(2 * time.Second).Truncate(time.Second) // asynq stores whole seconds
	enqueue("tomorrow", first.Add(24*time.Hour), "default")
	enqueue("second", first.Add(time.Second), "default")
	enqueue("first", first, "critical")
	enqueue("retried", first.Add(time.Second), "critical")
	seen := map[string]time.Time{}
	for range 3 {
		select {
		case name := <-ran:
			if _, again := seen[name]; again {
				t.Errorf("%s ran twice", name)
			}
			seen[name] = time.Now()
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
	for name, due := range map[string]time.Time{"first": first, "second": first.Add(time.Second), "retried": first.Add(2 * time.Second)} {
		if seen[name].Before(due) {
			t.Errorf("%s ran at %v, is due at %v", name, seen[name], due)
		}
	}
}

func TestForwardReportsATaskThatCannotBeRun(t *testing.T) {
	c := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.ZAdd(ctx, "asynq:{default}:scheduled", redis.Z{Score: 1, Member: "no task"}).Err(); err != nil {
		t.Fatal(err)
	}
	err := asynqebb.Forward(ctx, c, "default")
	if want := "asynqebb: task no task in asynq:{default}:scheduled is due and cannot be run: asynq: "; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("Forward: %v", err)
	}
	if err := asynqebb.Forward(ctx, c); err == nil {
		t.Error("Forward of no queue is not an error")
	}
}
