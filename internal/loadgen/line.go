package loadgen

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// LineConfig describes clients that wait in line for one list, or one sorted set.
type LineConfig struct {
	Common
	Due     bool // they wait with ZPOPDUE for jobs that are due
	Clients int  // that wait; default 1,000
	Rounds  int  // pushes of one element for each; default 10
}

// Line has clients wait with BLPOP or ZPOPDUE on one key, pushes an element for each, one
// push at a time, and prints whether they were served in the order in which they came, and
// the time from push to delivery. Then one push serves all of them.
func Line(ctx context.Context, cfg LineConfig) error {
	orDefault(&cfg.Clients, 1000)
	orDefault(&cfg.Rounds, 10)
	l := line{cfg: cfg}
	defer l.close()
	if err := l.connect(ctx); err != nil {
		return err
	}
	var single, all []time.Duration
	wrong := 0
	for range cfg.Rounds {
		lat, bad, err := l.round(ctx, false)
		if err != nil {
			return err
		}
		single, wrong = append(single, lat...), wrong+bad
		if lat, bad, err = l.round(ctx, true); err != nil {
			return err
		}
		all, wrong = append(all, lat...), wrong+bad
	}
	fmt.Fprintf(cfg.Out, "%d clients, %d deliveries out of order of %d\n", cfg.Clients, wrong, len(single)+len(all))
	show := func(name string, d []time.Duration) {
		slices.Sort(d)
		fmt.Fprintf(cfg.Out, "%-24s p50=%-9s p99=%-9s max=%s\n", name, quantile(d, 0.5, time.Microsecond), quantile(d, 0.99, time.Microsecond),
			quantile(d, 1, time.Microsecond))
	}
	show("one push, one delivery", single)
	show("one push for all", all)
	return nil
}

// line is one under way.
type line struct {
	cfg     LineConfig
	ctl     *client
	waiters []*client
	start   time.Time
}

func (l *line) close() {
	for _, c := range l.waiters {
		c.conn.Close()
	}
	if l.ctl != nil {
		l.ctl.conn.Close()
	}
}

func (l *line) connect(ctx context.Context) (err error) {
	if l.ctl, err = l.cfg.Target.client(ctx); err != nil {
		return err
	}
	if err := l.ctl.flushable(l.cfg.Flush); err != nil {
		return err
	}
	for range l.cfg.Clients {
		c, err := l.cfg.Target.client(ctx)
		if err != nil {
			return err
		}
		l.waiters = append(l.waiters, c)
	}
	l.start = time.Now()
	return nil
}

// served is a delivery: the element, and when it came.
type served struct {
	elem string
	at   time.Duration
	err  error
}

// round has all clients wait, one after the other, and serves them.
func (l *line) round(ctx context.Context, atOnce bool) (latency []time.Duration, outOfOrder int, err error) {
	for i, c := range l.waiters {
		c.add(l.wait()...)
		if err := c.flush(); err != nil {
			return nil, 0, err
		}
		if err := l.waiting(ctx, i+1); err != nil {
			return nil, 0, err
		}
	}
	got := make([]served, len(l.waiters))
	done := make(chan int, len(l.waiters))
	var readers sync.WaitGroup
	for i, c := range l.waiters {
		readers.Go(func() {
			v, err := wire.ReadValue(c.in)
			got[i] = served{at: time.Since(l.start), err: err}
			got[i].elem = l.elem(v)
			done <- i
		})
	}
	sent := make([]time.Duration, len(l.waiters))
	if err := l.push(atOnce, sent, done); err != nil {
		return nil, 0, err
	}
	readers.Wait()
	for i, s := range got {
		if s.err != nil {
			return nil, 0, s.err
		}
		if s.elem != strconv.Itoa(i) {
			outOfOrder++
		}
		latency = append(latency, s.at-sent[i])
	}
	return latency, outOfOrder, nil
}

// wait returns the command with which a client waits.
func (l *line) wait() []string {
	if l.cfg.Due {
		return []string{"ZPOPDUE", "1", "line", "BLOCK", "0"}
	}
	return []string{"BLPOP", "line", "0"}
}

// elem returns the element in a reply to wait.
func (l *line) elem(v resp.Value) string {
	if len(v.Elems) != 2 {
		return ""
	}
	if !l.cfg.Due {
		return v.Elems[1].Str
	}
	if jobs := v.Elems[1].Elems; len(jobs) == 1 && len(jobs[0].Elems) == 2 {
		return jobs[0].Elems[0].Str
	}
	return ""
}

// pushing returns the command that pushes the elements from to below to. Jobs fell due one second after the other, in 1970.
func (l *line) pushing(from, to int) []string {
	args := []string{"RPUSH", "line"}
	if l.cfg.Due {
		args[0] = "ZADD"
	}
	for i := from; i < to; i++ {
		if l.cfg.Due {
			args = append(args, strconv.Itoa(i))
		}
		args = append(args, strconv.Itoa(i))
	}
	return args
}

// push pushes an element for each waiter: one after the other, each when the
// one before was delivered, or all with one command.
func (l *line) push(atOnce bool, sent []time.Duration, done <-chan int) error {
	if atOnce {
		now := time.Since(l.start)
		for i := range sent {
			sent[i] = now
		}
		_, err := l.ctl.do(l.pushing(0, len(l.waiters))...)
		return err
	}
	for i := range l.waiters {
		sent[i] = time.Since(l.start)
		if _, err := l.ctl.do(l.pushing(i, i+1)...); err != nil {
			return err
		}
		<-done
	}
	return nil
}

// waiting returns when the server counts n blocked clients, so that they stand
// in line in the order in which they came.
func (l *line) waiting(ctx context.Context, n int) error {
	for ctx.Err() == nil {
		v, err := l.ctl.do("INFO", "clients")
		if err != nil {
			return err
		}
		if infoInt(v.String(), "blocked_clients") >= int64(n) {
			return nil
		}
	}
	return ctx.Err()
}
