package asynqebb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	// block is the time that one command waits, in ms: less than the default ReadTimeout of go-redis, 3 s.
	block = 2000
	// batch is the largest number of tasks that Forward takes from one reply, as many as asynq's own
	// script moves.
	batch = 100
)

// Forward makes the scheduled tasks and the retries of queues pending when they are due, until ctx ends or the
// server replies with an error. It returns the error of ctx, within 2 s, or of the server. ReadTimeout of the client must be longer
// than 2 s, as by default. Forward may run in several processes, and beside asynq's own
// forwarder: asynq moves each task once.
//
// Forward uses asynq.Inspector.RunTask, which does not know groups: a due task with asynq.Group
// becomes pending without aggregation. Leave queues with such tasks to asynq's forwarder.
func Forward(ctx context.Context, c redis.UniversalClient, queues ...string) error {
	if len(queues) == 0 {
		return errors.New("asynqebb: Forward needs at least one queue")
	}
	inspector := asynq.NewInspectorFromRedisClient(c)
	args := []any{"ZPOPDUE", 2 * len(queues)}
	for _, q := range queues {
		args = append(args, key(q, "scheduled"), key(q, "retry"))
	}
	args = append(args, "COUNT", batch, "BLOCK", block, "PEEK")
	for {
		v, err := c.Do(ctx, args...).Slice()
		if errors.Is(err, redis.Nil) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		if err != nil {
			return err
		}
		set, ids, err := parse(v)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := run(ctx, c, inspector, set, id); err != nil {
				return err
			}
		}
	}
}

// key returns the key of a queue's sorted set.
func key(queue, set string) string { return "asynq:{" + queue + "}:" + set }

// run makes a task pending. A task that is no longer in the set was moved by another process.
func run(ctx context.Context, c redis.UniversalClient, inspector *asynq.Inspector, set, id string) error {
	queue, _, _ := strings.Cut(strings.TrimPrefix(set, "asynq:{"), "}:")
	failed := inspector.RunTask(queue, id)
	if failed == nil {
		return nil
	}
	switch err := c.ZScore(ctx, set, id).Err(); {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("asynqebb: task %s in %s is due and cannot be run: %w", id, set, failed)
}

// parse reads the reply of ZPOPDUE: a key, and members with their scores.
func parse(v []any) (set string, ids []string, err error) {
	wrong := fmt.Errorf("asynqebb: ZPOPDUE replied %v", v)
	if len(v) != 2 {
		return "", nil, wrong
	}
	set, ok := v[0].(string)
	members, all := v[1].([]any)
	if !ok || !all {
		return "", nil, wrong
	}
	for _, m := range members {
		pair, ok := m.([]any)
		if !ok || len(pair) != 2 {
			return "", nil, wrong
		}
		id, ok := pair[0].(string)
		if !ok {
			return "", nil, wrong
		}
		ids = append(ids, id)
	}
	return set, ids, nil
}
