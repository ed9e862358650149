package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// key is the queue of all schedules.
const key = "bench:schedules"

func dial() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address(), MaxRetries: -1, ReadTimeout: 5 * time.Second, PoolSize: *conns + 1})
}

func declareEbb(ctx context.Context) error {
	c := dial()
	defer c.Close()
	for from := 0; from < *schedules; from += 1000 {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := from; i < min(from+1000, *schedules); i++ {
				p.Do(ctx, "DQ.SCHEDULE", key, fmt.Sprintf("s%05d", i), "x", "CRON", "* * * * *")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// batch is the number of jobs that a connection takes at once.
const batch = 16

// workEbb takes jobs with DQ.POP and acknowledges them. A lost connection is opened again.
func workEbb(ctx context.Context, out *journal) error {
	c := dial()
	defer c.Close()
	var all sync.WaitGroup
	errs := make([]error, *conns)
	for i := range *conns {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := workOnce(ctx, c, out); errors.Is(err, errJournal) {
					errs[i] = err
					return
				} else if err != nil {
					wait(ctx, 5*time.Millisecond) // the server is away
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// errJournal is the error of a worker that cannot write down what it does.
var errJournal = errors.New("cannot write to standard output")

func workOnce(ctx context.Context, c *redis.Client, out *journal) error {
	v, err := c.Do(ctx, "DQ.POP", key, "COUNT", batch, "LEASE", lease.Milliseconds(), "BLOCK", 1000).Slice()
	if err != nil {
		return err
	}
	now := time.Now().UnixMicro()
	var got []delivery
	var tokens []int64
	for _, e := range v {
		f, ok := e.([]any)
		if !ok || len(f) != 5 {
			return fmt.Errorf("DQ.POP: unexpected reply %v", e)
		}
		d, err := occurrenceOf(fmt.Sprint(f[0]), now)
		if err != nil {
			return err
		}
		n, _ := f[2].(int64)
		d.nth = int(n)
		token, _ := f[3].(int64)
		got, tokens = append(got, d), append(tokens, token)
	}
	if out.delivered(got...) != nil {
		return errJournal
	}
	replies, failed := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, d := range got {
			p.Do(ctx, "DQ.ACK", key, d.job, tokens[i])
		}
		return nil
	})
	var done []delivery
	for i, r := range replies {
		if n, err := r.(*redis.Cmd).Int64(); err == nil && n == 1 {
			done = append(done, got[i])
		}
	}
	if out.done(done...) != nil {
		return errJournal
	}
	return failed
}

// occurrenceOf returns a delivery of the job with an id, name@due.
func occurrenceOf(id string, now int64) (d delivery, err error) {
	name, due, _ := strings.Cut(id, "@")
	d = delivery{name: name, job: id, at: now}
	if d.due, err = strconv.ParseInt(due, 10, 64); err != nil {
		return d, fmt.Errorf("the id of a job is %q, want name@due", id)
	}
	return d, nil
}

// skippedEbb adds the occurrences that DQ.SCHEDULES counts as skipped.
func skippedEbb(ctx context.Context) (skipped int, err error) {
	c := dial()
	defer c.Close()
	all, err := c.Do(ctx, "DQ.SCHEDULES", key).Slice()
	if err != nil {
		return 0, err
	}
	if len(all) != *schedules {
		return 0, fmt.Errorf("the queue has %d schedules, want %d", len(all), *schedules)
	}
	for _, s := range all {
		fields, ok := s.(map[any]any)
		if !ok {
			return 0, fmt.Errorf("DQ.SCHEDULES: unexpected reply %v", s)
		}
		n, _ := fields["skipped"].(int64)
		skipped += int(n)
	}
	return skipped, nil
}

// leftEbb adds the jobs that DQ.INFO counts.
func leftEbb(ctx context.Context) (left int, err error) {
	c := dial()
	defer c.Close()
	fields, err := c.Do(ctx, "DQ.INFO", key).Result()
	if err != nil {
		return 0, err
	}
	info, ok := fields.(map[any]any)
	if !ok {
		return 0, fmt.Errorf("DQ.INFO: unexpected reply %v", fields)
	}
	for _, state := range []string{"delayed", "ready", "leased"} {
		n, _ := info[state].(int64)
		left += int(n)
	}
	return left, nil
}
