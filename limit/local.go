package limit

import (
	"math"
	"sync"
	"time"
)

// stopwatch measures spans in this process by the monotonic clock: leases, the pauses of a breaker, and local limits. Its instants
// are never sent.
type stopwatch struct{ from time.Time }

func startWatch() stopwatch { return stopwatch{time.Now()} }

func (w stopwatch) elapsed() time.Duration { return time.Since(w.from) }

// when returns the local time at which the span is d. It reads the clock, which may have been set since the beginning.
func (w stopwatch) when(d time.Duration) time.Time {
	now := time.Now()
	return now.Add(d - now.Sub(w.from))
}

// local is a rate limiter in this process, by GCRA, for the time in which the backend is unavailable. Its
// buckets outlive the outage, so that a backend with many short outages does not fill them each time.
type local struct {
	mu      sync.Mutex         // guards arrival and sweep
	arrival map[string]float64 // theoretical arrival times, ns
	clock   stopwatch
	sweepAt int
}

// firstSweep is the number of buckets at which local first removes those that are full.
const firstSweep = 1024

// localSpans returns the cost of one request and of the burst, in whole ns, whose sums are exact.
func localSpans(p *plan, share float64) (one, burst float64) {
	one = math.Ceil(float64(p.rate.Period) / (float64(p.rate.N) * share))
	return one, math.Max(1, math.Floor(float64(p.burst)*share)) * one
}

// init makes the map if there is none, and returns the time. The caller holds the mutex.
func (l *local) init() (now float64) {
	if l.arrival == nil {
		l.arrival, l.clock, l.sweepAt = map[string]float64{}, startWatch(), firstSweep
	}
	return float64(l.clock.elapsed())
}

// take decides about n requests. A full bucket allows a request that exceeds the share of the burst, and is
// then in debt: otherwise such a request could never succeed.
func (l *local) take(p *plan, share float64, bucket string, n int64, m mode) Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.init()
	one, burst := localSpans(p, share)
	tat := math.Max(l.arrival[bucket], now)
	left := int64((now + burst - tat) / one)
	if m == modeMost {
		n = min(n, max(left, 1))
	}
	r := Result{Limit: int64(burst / one), Down: true, Local: true}
	at := math.Min(tat, math.Max(0, tat+float64(n)*one-burst))
	if at <= now {
		r.Allowed = true
		if m != modePeek {
			tat += float64(n) * one
			r.Taken = n
			l.store(bucket, tat, now)
		}
	} else {
		r.RetryAfter = time.Duration(math.Ceil(at - now))
	}
	r.Remaining = max(0, int64((now+burst-tat)/one))
	r.ResetAfter = time.Duration(tat - now)
	return r
}

// reserve takes n requests for a later instant. It returns the time until then, and a function that gives them back. within is the
// longest wait, -1 for no bound.
func (l *local) reserve(p *plan, share float64, bucket string, n int64, within time.Duration) (wait time.Duration, cancel func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.init()
	one, burst := localSpans(p, share)
	tat := math.Max(l.arrival[bucket], now)
	cost := float64(n) * one
	at := math.Max(now, math.Min(tat, tat+cost-burst))
	wait = time.Duration(math.Ceil(at - now))
	if within >= 0 && wait > within {
		return wait, nil, false
	}
	mine := tat + cost
	l.store(bucket, mine, now)
	return wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.arrival[bucket] == mine { // no later call has taken
			l.arrival[bucket] = tat
		}
	}, true
}

// store stores a bucket, and sometimes removes those that are full.
func (l *local) store(bucket string, tat, now float64) {
	l.arrival[bucket] = tat
	if len(l.arrival) < l.sweepAt {
		return
	}
	for b, t := range l.arrival {
		if t <= now {
			delete(l.arrival, b)
		}
	}
	l.sweepAt = max(firstSweep, 2*len(l.arrival))
}

func (l *local) remove(bucket string) {
	l.mu.Lock()
	delete(l.arrival, bucket)
	l.mu.Unlock()
}
