package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/resp"
)

// The number of jobs of the queue that is looked into, and of those that a worker has.
const (
	jobs   = 100_000
	leased = 1000
)

// question is a question of an operator, with the command for it and what was done without it.
type question struct {
	name string
	ways []way
}

type way struct {
	name string
	ask  func(ctx context.Context, c *ebb.Conn) error
}

var questions = []question{
	{"how much expires when", []way{
		{"EXPIRY SURVEY", ask("EXPIRY", "SURVEY")},
		{"EXPIRY FORECAST", ask("EXPIRY", "FORECAST")},
		{"SCAN, PTTL of each", walk("PTTL")},
	}},
	{"what expires next", []way{
		{"EXPIRY SOON COUNT 100", ask("EXPIRY", "SOON", "COUNT", 100)},
		{"EXPIRY SOON COUNT 100 MATCH hash:*", ask("EXPIRY", "SOON", "COUNT", 100, "MATCH", "hash:*")},
		{"SCAN, PTTL of each", walk("PTTL")},
	}},
	{"which clients are throttled", []way{
		{"RL.TOP COUNT 100", ask("RL.TOP", "COUNT", 100)},
		{"SCAN, TYPE of each, RL.INFO", walk("TYPE", "limiter", "RL.INFO")},
	}},
	{"all limiters", []way{{"SCAN TYPE limiter", scanType("limiter")}, {"SCAN, TYPE of each", walk("TYPE")}}},
	{"all locks", []way{{"SCAN TYPE lock", scanType("lock")}, {"SCAN, TYPE of each", walk("TYPE")}}},
	{"all semaphores", []way{{"SCAN TYPE semaphore", scanType("semaphore")}, {"SCAN, TYPE of each", walk("TYPE")}}},
	{"all queues", []way{{"SCAN TYPE delayqueue", scanType("delayqueue")}, {"SCAN, TYPE of each", walk("TYPE")}}},
	{"jobs that workers have", []way{{"DQ.PEEK STATE LEASED COUNT 100", ask("DQ.PEEK", "{big}", "STATE", "LEASED", "COUNT", 100)}}},
	{"delayed jobs", []way{
		{"DQ.PEEK STATE DELAYED COUNT 100", ask("DQ.PEEK", "{big}", "STATE", "DELAYED", "COUNT", 100)},
		{"DQ.PEEK COUNT of all", ask("DQ.PEEK", "{big}", "COUNT", jobs)},
	}},
	{"one job", []way{
		{"DQ.GET", ask("DQ.GET", "{big}", "job:99999")},
		{"DQ.PEEK COUNT of all", ask("DQ.PEEK", "{big}", "COUNT", jobs)},
	}},
	{"keys that cost most", []way{
		{"HOTKEYS GET, while all commands count", hotkeys},
		{"SCAN, OBJECT FREQ of each (redis-cli --hotkeys)", walk("OBJECT FREQ")},
	}},
}

// ask sends one command.
func ask(args ...any) func(context.Context, *ebb.Conn) error {
	return func(ctx context.Context, c *ebb.Conn) error {
		v, err := c.Do(ctx, args...)
		return errors.Join(err, v.Err())
	}
}

// hotkeys begins to count, unless it has, and asks.
func hotkeys(ctx context.Context, c *ebb.Conn) error {
	v, err := c.Do(ctx, "HOTKEYS", "GET")
	if err == nil && !v.IsNull() && v.Err() == nil && len(v.Elems) > 0 {
		return nil
	}
	_, err = c.Do(ctx, "HOTKEYS", "START", "METRICS", 2, "CPU", "NET", "COUNT", 100)
	return err
}

// scan calls visit for the names of each step of a SCAN over all keys.
func scan(ctx context.Context, c *ebb.Conn, visit func(names []resp.Value) error, more ...any) error {
	cursor := "0"
	for {
		v, err := c.Do(ctx, append([]any{"SCAN", cursor, "COUNT", 1000}, more...)...)
		if err := errors.Join(err, v.Err()); err != nil {
			return err
		}
		if err := visit(v.Elems[1].Elems); err != nil {
			return err
		}
		if cursor = v.Elems[0].Str; cursor == "0" {
			return nil
		}
	}
}

// scanType returns all keys of a type.
func scanType(kind string) func(context.Context, *ebb.Conn) error {
	return func(ctx context.Context, c *ebb.Conn) error {
		n := 0
		err := scan(ctx, c, func(names []resp.Value) error { n += len(names); return nil }, "TYPE", kind)
		if err == nil && n == 0 {
			return fmt.Errorf("no key is a %s", kind)
		}
		return err
	}
}

// walk asks about each key, in pipelines. With further words it asks the last of them about each key whose first answer is the
// one before it.
func walk(about string, then ...string) func(context.Context, *ebb.Conn) error {
	return func(ctx context.Context, c *ebb.Conn) error {
		var b ebb.Batch
		return scan(ctx, c, func(names []resp.Value) error {
			b.Reset()
			for _, k := range names {
				if about == "OBJECT FREQ" {
					b.Do("OBJECT", "FREQ", k.Str)
				} else {
					b.Do(about, k.Str)
				}
			}
			if b.Len() == 0 {
				return nil
			}
			all, err := c.Pipeline(ctx, &b)
			if err != nil || len(then) == 0 {
				return err
			}
			for i, v := range all {
				if v.Str == then[0] {
					if _, err := c.Do(ctx, then[1], names[i].Str); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}
