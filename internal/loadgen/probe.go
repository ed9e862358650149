package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb/resp"
)

// probes are clients that send GETs at a fixed rate while something happens to
// the server, and note how long each takes from the moment it was due.
type probes struct {
	target Target
	rate   int // GETs a second
	busy   int // GETs that were answered with BUSY; guarded by mu; they count as answered

	mu      sync.Mutex
	samples []sample
}

// sample is a GET: the time when it was due, and the time from then to its reply.
type sample struct {
	due     time.Time
	latency time.Duration
}

// probeClients is the number of connections that share the rate.
const probeClients = 4

// during probes while f runs.
func (p *probes) during(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for id := range probeClients {
		clients.Go(func() {
			if err := p.probe(ctx, stop, id); err != nil {
				cancel(err)
			}
		})
	}
	err := f(ctx)
	close(stop)
	clients.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// probe sends GETs when they are due until stop is closed; a late one makes
// those behind it late, and all count from when they were due.
func (p *probes) probe(ctx context.Context, stop <-chan struct{}, id int) error {
	c, err := p.target.client(ctx)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	defer c.closeWith(ctx)()
	pace := newPacer()
	defer pace.close()
	gap := time.Second * probeClients / time.Duration(p.rate)
	var own []sample
	busy := 0
	for due := time.Now().Add(gap * time.Duration(id) / probeClients); ; due = due.Add(gap) {
		select {
		case <-stop:
			p.mu.Lock()
			p.samples = append(p.samples, own...)
			p.busy += busy
			p.mu.Unlock()
			return nil
		default:
		}
		pace.until(due)
		if _, err := c.do("GET", "live"); err != nil {
			var refused resp.ReplyError
			if !errors.As(err, &refused) || refused.Code() != "BUSY" {
				return err
			}
			busy++
		}
		own = append(own, sample{due, time.Since(due)})
	}
}

// between returns the latencies of the GETs that were due in an interval,
// sorted.
func (p *probes) between(from, to time.Time) (l []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.samples {
		if !x.due.Before(from) && x.due.Before(to) {
			l = append(l, x.latency)
		}
	}
	slices.Sort(l)
	return l
}

// print prints the latency of the GETs that were due in an interval.
func (p *probes) print(w io.Writer, name string, from, to time.Time) {
	l := p.between(from, to)
	fmt.Fprintf(w, "%-7s n=%-6d p50=%-9s p99=%-9s p99.9=%-9s max=%s\n", name, len(l),
		quantile(l, 0.5, time.Microsecond), quantile(l, 0.99, time.Microsecond), quantile(l, 0.999, time.Microsecond),
		quantile(l, 1, time.Microsecond))
}

// quantile returns a quantile of sorted durations, rounded; 0 of none.
func quantile(sorted []time.Duration, q float64, unit time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(float64(len(sorted)-1)*q)].Round(unit)
}
