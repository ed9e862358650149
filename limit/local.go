package limit

import (
	"math"
	"sync"
	"time"
)

// stopwatch measures spans in this process, by the monotonic clock: how long a
// backend has been away, and what is allowed meanwhile. No instant of it is ever sent.
type stopwatch struct{ from time.Time }

func startWatch() stopwatch { return stopwatch{time.Now()} }

func (w stopwatch) elapsed() time.Duration { return time.Since(w.from) }

// local limits in this process, by GCRA, while the backend is away. A bucket outlives
// the outage: a backend that comes and goes does not fill it each time.
type local struct {
	mu      sync.Mutex         // guards what follows
	arrival map[string]float64 // theoretical arrival times, ns
	clock   stopwatch
	sweepAt int
}

// firstSweep is how many buckets are kept before those that are full are looked for.
const firstSweep = 1024

// spanOf returns what one costs, and what the burst is worth, in whole ns: sums of
// these are exact.
func spanOf(p *plan, share float64) (one, wide float64) {
	one = math.Ceil(float64(p.rate.Period) / (float64(p.rate.N) * share))
	return one, math.Max(1, math.Floor(float64(p.most)*share)) * one
}

// ready makes the map. The caller holds the mutex.
func (l *local) ready() (now float64) {
	if l.arrival == nil {
		l.arrival, l.clock, l.sweepAt = map[string]float64{}, startWatch(), firstSweep
	}
	return float64(l.clock.elapsed())
}

// take decides. More than the share of the burst is allowed from a full bucket, which
// then is in debt: it could never be had otherwise.
func (l *local) take(p *plan, share float64, bucket string, n int64, m mode) Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.ready()
	one, wide := spanOf(p, share)
	tat := math.Max(l.arrival[bucket], now)
	left := int64((now + wide - tat) / one)
	if m == modeMost {
		n = min(n, max(left, 1))
	}
	r := Result{Limit: int64(wide / one), Down: true, Local: true}
	at := math.Min(tat, math.Max(0, tat+float64(n)*one-wide))
	if at <= now {
		r.Allowed = true
		if m != modePeek {
			tat += float64(n) * one
			r.Taken = n
			l.put(bucket, tat, now)
		}
	} else {
		r.RetryAfter = time.Duration(math.Ceil(at - now))
	}
	r.Remaining = max(0, int64((now+wide-tat)/one))
	r.ResetAfter = time.Duration(tat - now)
	return r
}

// reserve takes from the future, and returns in how long that is and what gives it
// back; within is the most to wait, -1 for ever.
func (l *local) reserve(p *plan, share float64, bucket string, n int64, within time.Duration) (wait time.Duration, cancel func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.ready()
	one, wide := spanOf(p, share)
	tat := math.Max(l.arrival[bucket], now)
	cost := float64(n) * one
	at := math.Max(now, math.Min(tat, tat+cost-wide))
	wait = time.Duration(math.Ceil(at - now))
	if within >= 0 && wait > within {
		return wait, nil, false
	}
	mine := tat + cost
	l.put(bucket, mine, now)
	return wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.arrival[bucket] == mine { // no later call built upon it
			l.arrival[bucket] = tat
		}
	}, true
}

// put stores a bucket, and now and then forgets those that are full.
func (l *local) put(bucket string, tat, now float64) {
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

func (l *local) forget(bucket string) {
	l.mu.Lock()
	delete(l.arrival, bucket)
	l.mu.Unlock()
}
