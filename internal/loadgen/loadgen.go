// Package loadgen is the program `ebb bench`: it loads a server that speaks
// the Redis protocol and measures what its clients feel.
//
//	Run     requests as fast as the server answers, or at a fixed rate
//	Storm   millions of items expire in one instant: latency of the others
//	Prompt  how late the server's `expired` events are
//
// Inside Run, each connection has a worker that patches random digits into
// requests encoded once (workload.go), and skips over replies without decoding
// them (reply.go), so that the generator costs less than most servers:
//
//	closed loop   write P requests ── read P replies ── again
//	open loop     pacer ── write what is due ──┐ times due ┌── read, now - due
//	                                           └───────────┘
//
// In the closed loop latency is that of a batch: from its first byte written
// to its last reply. In the open loop it counts from the moment a request was
// due, whether or not the connection was stuck then: a server that stops for a
// second owes a second to every request of it. Start reading at Run.
package loadgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how to load a server. The zero value, with a Target, is 50
// clients without pipelining, for three seconds.
type Config struct {
	Target   Target
	Clients  int           // connections; default 50
	Pipeline int           // requests in flight per connection; default 1; ignored with Rate
	Requests int           // in all; 0: until Duration is over
	Duration time.Duration // default 3 s if Requests is 0
	Rate     float64       // requests a second, whatever the server does; 0: as fast as it answers
	Size     int           // bytes of __data__; default 3
	Keyspace int           // numbers from 0 to Keyspace-1; default 100,000
	Seed     uint64        // of the random numbers; the same seed, the same keys
	PID      int           // of the server, to measure its CPU; 0: do not
	Progress io.Writer     // a line that renews itself ten times a second; nil: none
}

func (c *Config) setDefaults() {
	orDefault(&c.Clients, 50)
	orDefault(&c.Pipeline, 1)
	orDefault(&c.Size, 3)
	orDefault(&c.Keyspace, 100_000)
	if c.Requests <= 0 && c.Duration <= 0 {
		c.Duration = 3 * time.Second
	}
}

// Result has the measurements of one test.
type Result struct {
	Name       string
	Requests   int64 // answered
	Errors     int64 // of them with an error
	FirstError string
	Elapsed    time.Duration
	Latency    Summary
	ServerCPU  time.Duration // -1 if it is not known
}

// PerSecond returns the throughput.
func (r *Result) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Requests) / r.Elapsed.Seconds()
}

// CPUPerRequest returns the server's CPU for each request, -1 if unknown.
func (r *Result) CPUPerRequest() time.Duration {
	if r.ServerCPU < 0 || r.Requests == 0 {
		return -1
	}
	return r.ServerCPU / time.Duration(r.Requests)
}

// run is one test under way.
type run struct {
	cfg     Config
	start   time.Time
	end     time.Time    // zero: none
	left    atomic.Int64 // requests no worker has taken; with Duration: many
	workers []*worker
}

// unlimited is more requests than any run sends, and far from overflow.
const unlimited = 1 << 60

// Run runs one test. It returns an error if a connection fails or ctx ends;
// error replies are counted in the Result.
func Run(ctx context.Context, cfg Config, test Test) (Result, error) {
	cfg.setDefaults()
	r := &run{cfg: cfg}
	defer r.closeConns()
	for id := range cfg.Clients {
		w, err := newWorker(ctx, r, id, test)
		if err != nil {
			return Result{}, err
		}
		r.workers = append(r.workers, w)
	}
	cpu, err := CPUTime(cfg.PID)
	if err != nil {
		return Result{}, err
	}
	err = r.work(ctx)
	res := r.result(test.Name)
	if used, cpuErr := CPUTime(cfg.PID); cpuErr == nil && cfg.PID != 0 {
		res.ServerCPU = used - cpu
	}
	return res, err
}

// work lets all workers loose and waits for them.
func (r *run) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, r.closeConns)
	defer stop()

	r.start = time.Now()
	r.left.Store(unlimited)
	if r.cfg.Requests > 0 {
		r.left.Store(int64(r.cfg.Requests))
	} else {
		r.end = r.start.Add(r.cfg.Duration)
	}
	var wg sync.WaitGroup
	for _, w := range r.workers {
		wg.Go(func() {
			if err := w.work(); err != nil {
				cancel(err)
			}
		})
	}
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { r.progress(done) })
	wg.Wait()
	close(done)
	shown.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}

// result adds up what the workers measured.
func (r *run) result(name string) Result {
	res := Result{Name: name, Elapsed: time.Since(r.start), ServerCPU: -1, Latency: r.summary()}
	for _, w := range r.workers {
		res.Errors += w.errors
		res.FirstError = cmp.Or(res.FirstError, w.firstError)
	}
	res.Requests = int64(res.Latency.N)
	return res
}

func (r *run) summary() Summary {
	var s Summary
	for _, w := range r.workers {
		w.latency.addTo(&s)
	}
	return s
}

// take claims up to n requests; 0 when the run is over.
func (r *run) take(n int) int {
	if !r.end.IsZero() && !time.Now().Before(r.end) {
		return 0
	}
	left := r.left.Add(int64(-n)) + int64(n)
	return int(max(0, min(int64(n), left)))
}

func (r *run) closeConns() {
	for _, w := range r.workers {
		w.conn.Close()
	}
}

// progress renews the progress line until done.
func (r *run) progress(done <-chan struct{}) {
	if r.cfg.Progress == nil {
		return
	}
	line := statusLine{r.cfg.Progress}
	defer line.clear()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last Summary
	then := r.start
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			s := r.summary()
			recent := s.since(&last)
			line.set("%s: %s op/s, p99 %s ms, %s", r.workers[0].name, thousands(float64(recent.N)/now.Sub(then).Seconds()),
				ms(recent.Quantile(0.99)), r.share(s, now))
			last, then = s, now
		}
	}
}

// share words how far the run is.
func (r *run) share(s Summary, now time.Time) string {
	part := now.Sub(r.start).Seconds() / r.cfg.Duration.Seconds()
	if r.cfg.Requests > 0 {
		part = float64(s.N) / float64(r.cfg.Requests)
	}
	return fmt.Sprintf("%.0f%%", 100*min(part, 1))
}
