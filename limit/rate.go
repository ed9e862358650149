package limit

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
)

// Rate allows N requests in each Period.
type Rate struct {
	N      int64         // at least 1
	Period time.Duration // whole milliseconds, at most 35 years
}

// PerSecond returns the rate of n requests in each second.
func PerSecond(n int64) Rate { return Rate{n, time.Second} }

// PerMinute returns the rate of n requests in each minute.
func PerMinute(n int64) Rate { return Rate{n, time.Minute} }

// PerHour returns the rate of n requests in each hour.
func PerHour(n int64) Rate { return Rate{n, time.Hour} }

// PerDay returns the rate of n requests in each 24 hours.
func PerDay(n int64) Rate { return Rate{n, 24 * time.Hour} }

// Per returns the rate of n requests in each period. The period is in whole milliseconds.
func Per(n int64, period time.Duration) Rate { return Rate{n, period} }

// String returns a text such as "5 per 1m0s".
func (r Rate) String() string { return fmt.Sprintf("%d per %v", r.N, r.Period) }

// Algorithm selects how a limiter counts. Each constant says how much it allows at most.
type Algorithm uint8

// The algorithms.
const (
	// GCRA is a leaky bucket: burst + t x rate in any span of time t. Requests after the burst are
	// spaced evenly. A bucket is one number. Only GCRA supports Reserve.
	GCRA Algorithm = iota
	// SlidingWindow counts in windows that are aligned to 1970, and adds a share of the count of the previous
	// window: N in a window, and less than 2N in any period.
	SlidingWindow
	// SlidingLog stores each grant: exactly N in any period. A grant takes about 20 bytes on ebb
	// and about 100 on Redis. N is at most 1,000,000.
	SlidingLog
	// FixedWindow counts in windows that are aligned to 1970: N in a window, and up to 2N around
	// its border.
	FixedWindow
)

var algorithms = [...]struct{ name, words string }{
	GCRA:          {"gcra", "gcra"},
	SlidingWindow: {"window", "sliding window"},
	SlidingLog:    {"log", "sliding log"},
	FixedWindow:   {"fixed", "fixed window"},
}

// String returns the algorithm's name, for instance "gcra" or "sliding window".
func (a Algorithm) String() string {
	if int(a) < len(algorithms) {
		return algorithms[a].words
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

// Bounds of the numbers that scripts count exactly. Scripts use doubles, in which integers are exact up to
// 2^53. An instant in us is below 2^51 until 2041 and below 2^52 until 2112; maxFill bounds the span that a
// script adds to it. A grant of c moves a bucket by c x period / limit: the whole us are below maxFill, and
// the rest is the remainder of c x (period mod limit) < c x limit, which maxProduct bounds. Scripts round
// nothing.
const (
	maxPeriod  = 35 * 365 * 24 * time.Hour
	maxFill    = 1 << 51 // us: 71 years
	maxProduct = 1 << 53
	maxWindow  = 1 << 26 // for window counters, which multiply two counts
	maxLogged  = 1_000_000
)

// plan is a rate in the forms that requests need. It is immutable.
type plan struct {
	rate  Rate
	algo  Algorithm
	burst int64 // the most requests at once

	// For scripts: a grant of 1 is per/den us.
	per, den int64

	// Made once for all calls: the arguments of RL.TAKE behind the key, and the first arguments of each script.
	native []any
	direct direct.TakeOptions
	script []any

	fast    *conn.Script // for most calls, nil if there is none
	fastOne []any        // its arguments for a cost of 1

	burstSpan, burstRest int64 // burst x per/den us, and a rest in 1/den us
}

// newPlan returns the plan of a rate, or an error with ebb.ErrArgument.
func newPlan(rate Rate, algo Algorithm, burst int64) (*plan, error) {
	p := &plan{rate: rate, algo: algo, burst: burst, per: rate.Period.Microseconds(), den: rate.N}
	if burst == 0 {
		p.burst = rate.N
	}
	switch {
	case int(algo) >= len(algorithms):
		return nil, argument("Algorithm is %v; it must be GCRA, SlidingWindow, SlidingLog or FixedWindow", algo)
	case rate.N < 1:
		return nil, argument("the rate is %v; it must be at least 1 in a period", rate)
	case rate.Period < time.Millisecond || rate.Period%time.Millisecond != 0 || rate.Period > maxPeriod:
		return nil, argument("the rate is %v; the period must be whole milliseconds, at most 35 years", rate)
	case burst < 0:
		return nil, argument("Burst is %d; it must be at least 1, or 0 for the rate's %d", burst, rate.N)
	case algo != GCRA && p.burst != rate.N:
		return nil, argument("Burst is %d; only GCRA has one, and %v allows the rate's %d at once", burst, algo, rate.N)
	case algo == SlidingLog && rate.N > maxLogged:
		return nil, argument("the rate is %v; a sliding log keeps every grant, so it takes at most %d in a period; SlidingWindow takes more",
			rate, maxLogged)
	case algo != GCRA && rate.N > maxWindow:
		return nil, argument("the rate is %v; windows take at most %d in a period; GCRA takes more", rate, maxWindow)
	}
	if algo == GCRA && !p.exact() {
		return nil, argument("the rate is %v with a burst of %d; scripts cannot count it exactly; take rounder or smaller numbers, at most 71 "+
			"years to fill", rate, p.burst)
	}
	p.precompute()
	return p, nil
}

// exact reduces per/den if necessary, and reports whether scripts can count exactly with it.
func (p *plan) exact() bool {
	if !productBelow(p.burst+1, p.den, maxProduct) {
		g := gcd(p.per, p.den)
		p.per, p.den = p.per/g, p.den/g
	}
	return p.burst < 1<<50 && productBelow(p.burst+1, p.den, maxProduct) && productBelow(p.burst/p.den+1, p.per, maxFill)
}

// productBelow reports whether a x b < c, for positive numbers.
func productBelow(a, b, c int64) bool {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return hi == 0 && lo < uint64(c)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// precompute computes the arguments of requests that are the same for all calls.
func (p *plan) precompute() {
	p.native = formatInts(p.rate.N, p.rate.Period.Milliseconds())
	if p.algo != GCRA {
		p.native = append(p.native, "ALGO", algorithms[p.algo].name)
	} else if p.burst != p.rate.N {
		p.native = append(append(p.native, "BURST"), formatInts(p.burst)...)
	}
	p.direct = direct.TakeOptions{Algo: uint8(p.algo), Limit: p.rate.N, Period: p.rate.Period.Microseconds(), Burst: p.burst}
	p.script = []any{p.burst, p.rate.Period.Microseconds(), p.den, p.per}
	p.burstSpan, p.burstRest = p.cost(p.burst)
	switch {
	case p.algo == GCRA:
		p.fast = fastGCRA
	case p.algo == FixedWindow:
		p.fast = fastFixed
	}
	p.fastOne = p.fastArgs(1)
}

// String returns a text such as "5 per 1m0s, gcra, burst 10".
func (p *plan) String() string {
	s := fmt.Sprintf("%v, %v", p.rate, p.algo)
	if p.burst != p.rate.N {
		s += fmt.Sprintf(", burst %d", p.burst)
	}
	return s
}
