package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
)

// jobWorkers is the number of jobs that a contender works on at once.
const jobWorkers = 64

// jobQueue is a queue with workers that call a function for each job's number.
type jobQueue interface {
	// push adds a job that is due after delay.
	push(ctx context.Context, number int, delay time.Duration) error
}

// queueContender opens a queue whose workers run until the benchmark's end.
type queueContender struct {
	name string
	open func(b *testing.B, s *server, handle func(number int)) jobQueue
}

func queueContenders() []queueContender {
	return append(oursQueues(),
		queueContender{"asynq", openAsynq(0)},
		// asked for new and for delayed jobs a hundred times a second; its
		// defaults are 1 s and 5 s
		queueContender{"asynq-10ms", openAsynq(10 * time.Millisecond)})
}

func compareQueues(b *testing.B, measure func(b *testing.B, s *server, c queueContender)) {
	for _, s := range servers {
		for _, c := range queueContenders() {
			b.Run(fmt.Sprintf("%s/c=%d/%s", s.name, jobWorkers, c.name), func(b *testing.B) {
				s.start(b)
				measure(b, s, c)
			})
		}
	}
}

// Jobs a second, pushed by eight goroutines while 64 workers do nothing with them.
func BenchmarkQueueJobs(b *testing.B) {
	compareQueues(b, func(b *testing.B, s *server, c queueContender) {
		var done sync.WaitGroup
		q := c.open(b, s, func(int) { done.Done() })
		done.Add(1)
		if err := q.push(b.Context(), 0, 0); err != nil { // everything is connected
			b.Fatal(err)
		}
		done.Wait()

		const producers = 8
		var pushing sync.WaitGroup
		done.Add(b.N)
		b.ResetTimer()
		for p := range producers {
			pushing.Go(func() {
				for i := p; i < b.N; i += producers {
					if err := q.push(b.Context(), i, 0); err != nil {
						b.Error(err)
						done.Done()
					}
				}
			})
		}
		pushing.Wait()
		done.Wait()
		b.StopTimer()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
	})
}

// From the call that enqueues a job to its worker's start, when the queue is idle: a
// job every 2 to 20 ms.
func BenchmarkQueuePickup(b *testing.B) {
	compareQueues(b, func(b *testing.B, s *server, c queueContender) {
		measureLateness(b, s, c, func() time.Duration { return 0 }, 2*time.Millisecond, 20*time.Millisecond)
	})
}

// How late the workers of delayed jobs start: delays of 50 ms to 2 s, a job every
// millisecond or two. A minimum below zero is a job that came too early.
func BenchmarkQueueDelayed(b *testing.B) {
	compareQueues(b, func(b *testing.B, s *server, c queueContender) {
		measureLateness(b, s, c, func() time.Duration { return within(50*time.Millisecond, 2*time.Second) }, time.Millisecond, 2*time.Millisecond)
	})
}

func within(low, high time.Duration) time.Duration { return low + rand.N(high-low) }

// measureLateness pushes b.N jobs, one after a pause of low to high, and reports
// when each worker has started, since the moment at which the job was due.
func measureLateness(b *testing.B, s *server, c queueContender, delay func() time.Duration, low, high time.Duration) {
	due := make([]time.Time, b.N+1)
	var guard sync.Mutex // due is written by the producer and read by workers
	var late spans
	var done sync.WaitGroup
	q := c.open(b, s, func(number int) {
		now := time.Now()
		guard.Lock()
		d := due[number]
		guard.Unlock()
		if number < b.N { // the last is the first: a warm-up
			late.add(now.Sub(d))
		}
		done.Done()
	})
	push := func(number int, after time.Duration) {
		done.Add(1)
		guard.Lock()
		due[number] = time.Now().Add(after)
		guard.Unlock()
		if err := q.push(b.Context(), number, after); err != nil {
			b.Fatal(err)
		}
	}
	push(b.N, 0)
	done.Wait()
	b.ResetTimer()
	for i := range b.N {
		time.Sleep(within(low, high))
		push(i, delay())
	}
	done.Wait()
	b.StopTimer()
	late.report(b)
}

// asynqQueue is github.com/hibiken/asynq.
type asynqQueue struct{ client *asynq.Client }

func openAsynq(check time.Duration) func(*testing.B, *server, func(int)) jobQueue {
	return func(b *testing.B, s *server, handle func(int)) jobQueue {
		goRedis(b, s)
		o := asynq.RedisClientOpt{Addr: s.addr, PoolSize: jobWorkers + 8}
		q := asynqQueue{asynq.NewClient(o)}
		workers := asynq.NewServer(o, asynq.Config{
			Concurrency: jobWorkers, TaskCheckInterval: check, DelayedTaskCheckInterval: check,
			Logger: quiet{}, LogLevel: asynq.FatalLevel,
		})
		err := workers.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
			if len(t.Payload()) != 4 {
				return errors.New("not a number")
			}
			handle(int(binary.LittleEndian.Uint32(t.Payload())))
			return nil
		}))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			workers.Shutdown()
			_ = q.client.Close()
		})
		return q
	}
}

func (q asynqQueue) push(ctx context.Context, number int, delay time.Duration) error {
	var opts []asynq.Option
	if delay > 0 {
		opts = append(opts, asynq.ProcessIn(delay))
	}
	_, err := q.client.EnqueueContext(ctx, asynq.NewTask("job", binary.LittleEndian.AppendUint32(nil, uint32(number))), opts...)
	return err
}

// quiet is a logger for asynq.
type quiet struct{}

func (quiet) Debug(args ...any) {}
func (quiet) Info(args ...any)  {}
func (quiet) Warn(args ...any)  {}
func (quiet) Error(args ...any) {}
func (quiet) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
