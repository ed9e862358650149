// Command bullmq-delayed runs delayed jobs that lie in the layout of BullMQ. One connection waits for the jobs of
// several queues: on ebb without polling, with ZPOPDUE PEEK, and on other servers it looks in intervals.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
)

func main() { example.Main(run) }

// planned are the jobs of the story, by queue: when they are due.
var planned = []struct {
	queue, id string
	after     time.Duration
}{{"mail", "1", 300 * time.Millisecond}, {"report", "1", 100 * time.Millisecond}, {"mail", "2", 100 * time.Millisecond},
	{"image", "1", 200 * time.Millisecond}}

var queues = []string{"mail", "report", "image"}

// key returns a key of BullMQ: the hash of a job, the sorted set "delayed", or the lists "wait" and "active".
func key(queue, what string) string { return "bull:" + queue + ":" + what }

// perMilli is the unit of the scores of "delayed": ms since 1970 x 4096, and a counter for jobs of the same ms.
const perMilli = 4096

// look is the interval of a program that has to look.
const look = 100 * time.Millisecond

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	s := newStory(c)
	err := s.play(ctx)
	for _, r := range s.ran {
		fmt.Fprintf(w, "  %s ran %v after its time\n", r.name, r.late.Round(time.Millisecond))
	}
	how := "looks each " + look.String()
	if c.Capabilities().Native {
		how = "ZPOPDUE PEEK BLOCK"
	}
	fmt.Fprintf(w, "  one connection waited for %d queues: %s, %d times\n", len(queues), how, s.waits)
	return err
}

// story is the state of the program.
type story struct {
	c     *ebb.Conn
	due   map[string]time.Time
	ran   []result
	waits int
}

func newStory(c *ebb.Conn) *story { return &story{c: c, due: map[string]time.Time{}} }

// result is a job that was run.
type result struct {
	name string
	late time.Duration
}

func (s *story) play(ctx context.Context) (err error) {
	defer func() {
		var all []string
		for _, q := range queues {
			all = append(all, key(q, "delayed"), key(q, "wait"), key(q, "active"), key(q, "1"), key(q, "2"))
		}
		_, failed := s.c.Del(context.WithoutCancel(ctx), all...)
		err = errors.Join(err, failed)
	}()
	began := time.Now()
	for n, p := range planned {
		at := began.Add(p.after)
		s.due[p.queue+" "+p.id] = at
		var b ebb.Batch
		b.Do("HSET", key(p.queue, p.id), "name", p.queue, "data", "{}", "delay", p.after.Milliseconds())
		b.Do("ZADD", key(p.queue, "delayed"), at.UnixMilli()*perMilli+int64(n), p.id)
		if _, err := s.c.Pipeline(ctx, &b); err != nil {
			return err
		}
	}
	for len(s.ran) < len(planned) {
		queue, err := s.wait(ctx)
		if err != nil {
			return err
		}
		if err := s.work(ctx, queue); err != nil {
			return err
		}
	}
	return nil
}

// wait returns a queue that has a delayed job whose time has come.
func (s *story) wait(ctx context.Context) (string, error) {
	delayed := make([]string, len(queues))
	for i, q := range queues {
		delayed[i] = key(q, "delayed")
	}
	for {
		s.waits++
		var v ebb.Value
		var err error
		if s.c.Capabilities().Native {
			args := []any{"ZPOPDUE", len(delayed)}
			for _, k := range delayed {
				args = append(args, k)
			}
			// PEEK leaves the job to the script that moves it.
			if v, err = s.c.Block(ctx, append(args, "UNIT", perMilli, "PEEK", "BLOCK", 1000)...); err == nil && len(v.Elems) > 0 {
				v = v.Elems[0]
			}
		} else {
			v, err = s.c.Script(ctx, anyDue, delayed)
		}
		if err != nil {
			return "", err
		}
		for i, k := range delayed {
			if v.String() == k {
				return queues[i], nil
			}
		}
		if !s.c.Capabilities().Native {
			if err := example.Sleep(ctx, look); err != nil {
				return "", err
			}
		}
	}
}

// work runs the jobs of a queue that are due.
func (s *story) work(ctx context.Context, queue string) error {
	if _, err := s.c.Script(ctx, promote, []string{key(queue, "delayed"), key(queue, "wait")}); err != nil {
		return err
	}
	for {
		id, err := s.c.Do(ctx, "LMOVE", key(queue, "wait"), key(queue, "active"), "RIGHT", "LEFT")
		if err != nil || id.IsNull() {
			return err
		}
		name := queue + " " + id.String()
		s.ran = append(s.ran, result{name, time.Since(s.due[name])})
		var b ebb.Batch
		b.Do("LREM", key(queue, "active"), 1, id.String())
		b.Do("DEL", key(queue, id.String()))
		if _, err := s.c.Pipeline(ctx, &b); err != nil {
			return err
		}
	}
}

// promote stands for the script of BullMQ that moves jobs whose time has come from "delayed" to "wait".
var promote = ebb.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], 0, string.format('%.0f', (now + 1) * 4096 - 1))
for _, id in ipairs(ids) do
  redis.call('ZREM', KEYS[1], id)
  redis.call('LPUSH', KEYS[2], id)
end
return #ids
`)

// anyDue returns the first of its keys that has a job whose time has come.
var anyDue = ebb.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
for _, key in ipairs(KEYS) do
  if redis.call('ZCOUNT', key, 0, string.format('%.0f', (now + 1) * 4096 - 1)) > 0 then return key end
end
return ''
`)
