// Command sidekiq-schedule runs jobs that lie in the layout of Sidekiq: on ebb without polling, with ZMOVEDUE, and
// on other servers with the script and the pauses of a poller.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
)

func main() { example.Main(run) }

// job is a job as Sidekiq writes it. Sidekiq's clients write more fields.
type job struct {
	Class string   `json:"class"`
	Args  []string `json:"args"`
	ID    string   `json:"jid"`
	Queue string   `json:"queue"`
}

// These are Sidekiq's keys: two sorted sets with times in seconds as scores, and a list of jobs that are due.
const (
	schedule = "schedule"
	retry    = "retry"
	list     = "queue:default"
)

// planned are the jobs of the story: when they are due, and in which set they wait.
var planned = []struct {
	name, set string
	after     time.Duration
}{{"third", schedule, 300 * time.Millisecond}, {"first", schedule, 100 * time.Millisecond},
	{"second (a retry)", retry, 200 * time.Millisecond},
	{"last", schedule, 450 * time.Millisecond}}

// look is the pause of the poller. Sidekiq's is 5 s times the number of processes.
const look = 150 * time.Millisecond

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	ran, commands, err := story(ctx, c)
	if err != nil {
		return err
	}
	for _, r := range ran {
		fmt.Fprintf(w, "  %s ran %v after its time\n", r.name, r.late.Round(time.Millisecond))
	}
	how := "a script in intervals of " + look.String()
	if c.Capabilities().Native {
		how = "ZMOVEDUE BLOCK"
	}
	fmt.Fprintf(w, "  %d jobs were moved by %s, with %d commands\n", len(ran), how, commands)
	return nil
}

// result is a job that a worker has run.
type result struct {
	name string
	late time.Duration
}

// story adds jobs as Sidekiq's perform_in does, moves those that are due to the list, and runs them.
func story(ctx context.Context, c *ebb.Conn) (ran []result, commands int64, err error) {
	defer func() {
		_, failed := c.Del(context.WithoutCancel(ctx), schedule, retry, list)
		err = errors.Join(err, failed)
	}()
	began, due := time.Now(), map[string]time.Time{}
	for _, p := range planned {
		at := began.Add(p.after)
		due[p.name] = at
		text, err := json.Marshal(job{Class: "Mail", Args: []string{p.name}, ID: p.name, Queue: "default"})
		if err != nil {
			return nil, 0, err
		}
		if _, err := c.Do(ctx, "ZADD", p.set, float64(at.UnixMicro())/1e6, text); err != nil {
			return nil, 0, err
		}
	}

	moving, stop := context.WithCancel(ctx)
	var movers sync.WaitGroup
	var sent atomic.Int64
	for _, set := range []string{schedule, retry} {
		movers.Go(func() { move(moving, c, set, &sent) })
	}
	for len(ran) < len(planned) && err == nil {
		var v ebb.Value
		if v, err = c.Block(ctx, "BRPOP", list, 5); err != nil {
			break
		}
		if len(v.Elems) != 2 {
			err = errors.New("no job came in five seconds")
			break
		}
		var j job
		if err = json.NewDecoder(strings.NewReader(v.Elems[1].String())).Decode(&j); err == nil {
			ran = append(ran, result{j.ID, time.Since(due[j.ID])})
		}
	}
	stop()
	movers.Wait()
	return ran, sent.Load(), err
}

// move moves the jobs of a set that are due to the list, until the context ends. A job is always in one of the two:
// no process can lose it.
func move(ctx context.Context, c *ebb.Conn, set string, sent *atomic.Int64) {
	for ctx.Err() == nil {
		sent.Add(1)
		if c.Capabilities().Native {
			_, _ = c.Block(ctx, "ZMOVEDUE", set, list, "LEFT", "BLOCK", 1000)
			continue
		}
		moved, err := c.Script(ctx, poll, []string{set, list})
		if err != nil || moved.Int == 0 {
			_ = example.Sleep(ctx, look)
		}
	}
}

// poll is the script that a server without ZMOVEDUE runs in each interval.
var poll = ebb.NewScript(`
local t = redis.call('TIME')
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', t[1] + t[2] / 1000000, 'LIMIT', 0, 1)
if not due[1] then return 0 end
redis.call('ZREM', KEYS[1], due[1])
redis.call('LPUSH', KEYS[2], due[1])
return 1
`)
