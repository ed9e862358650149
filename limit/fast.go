package limit

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/conn"
)

// The arguments of the fast scripts, and the Results of their short replies. The numbers are those of the
// whole scripts: an instant or a span is a number of whole us and a rest in 1/den us. Only the times of a
// Result are rounded.

// cost returns the time that n requests cost: n x per/den us, and the rest.
func (p *plan) cost(n int64) (us, rest int64) {
	t, r := p.per/p.den, p.per%p.den
	return n*t + n*r/p.den, n * r % p.den
}

// subtract returns a - b for spans of us and a rest.
func (p *plan) subtract(a, an, b, bn int64) (us, rest int64) {
	if a, an = a-b, an-bn; an < 0 {
		return a - 1, an + p.den
	}
	return a, an
}

// fastArgs returns the arguments of the fast script; nil if the plan has none.
func (p *plan) fastArgs(n int64) []any {
	if n == 1 && p.fastOne != nil {
		return p.fastOne
	}
	us, rest := p.cost(n)
	switch p.fast {
	case nil:
		return nil
	case fastGCRA:
		return []any{packDoubles(us, rest, p.burstSpan, p.burstRest, p.den, p.per)}
	}
	return []any{packDoubles(p.burst, p.rate.Period.Microseconds(), n)}
}

// packDoubles returns one argument with numbers below 2^53, which scripts unpack as doubles.
func packDoubles(numbers ...int64) string {
	b := make([]byte, 0, 8*len(numbers))
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
	}
	return string(b)
}

// formatInts returns the texts of numbers, which need no further conversion when they are sent.
func formatInts(numbers ...int64) []any {
	all := make([]any, len(numbers))
	for i, n := range numbers {
		all[i] = strconv.FormatInt(n, 10)
	}
	return all
}

// fastResult converts the fast script's reply to the Result of a request for n.
func (p *plan) fastResult(n int64, v conn.Value) (Result, error) {
	if len(v.Elems) != 2 {
		return Result{}, fmt.Errorf("%w: the reply is %s; want two integers", conn.ErrValue, v)
	}
	first, err := v.Elems[0].AsInt()
	if err != nil {
		return Result{}, err
	}
	second, err := v.Elems[1].AsInt()
	if err != nil {
		return Result{}, err
	}
	if p.algo == FixedWindow {
		return p.fixedResult(n, first, microseconds(second)), nil
	}
	return p.gcraResult(n, first, second), nil
}

// fixedResult returns the Result of fastFixed: used counts the requests of the window including these n, and
// the window ends at ends.
func (p *plan) fixedResult(n, used int64, ends time.Duration) Result {
	if used > p.burst {
		return Result{Limit: p.burst, Remaining: max(0, p.burst-(used-n)), RetryAfter: ends, ResetAfter: ends}
	}
	return Result{Allowed: true, Limit: p.burst, Remaining: p.burst - used, Taken: n, ResetAfter: ends}
}

// gcraResult returns the Result of fastGCRA: x and a rest are left, or if x is negative, the bucket is in debt by
// -1 - x and the rest.
func (p *plan) gcraResult(n, x, rest int64) Result {
	if x >= 0 {
		owed, part := p.subtract(p.burstSpan, p.burstRest, x, rest)
		return Result{Allowed: true, Limit: p.burst, Remaining: p.requestsIn(x, rest), Taken: n, ResetAfter: p.roundUp(owed, part)}
	}
	owed := -1 - x
	left, part := p.subtract(p.burstSpan, p.burstRest, owed, rest)
	us, more := p.cost(n)
	us, more = p.subtract(us, more, left, part) // the missing time
	return Result{Limit: p.burst, Remaining: p.requestsIn(left, part), RetryAfter: p.roundUp(us, more), ResetAfter: p.roundUp(owed, rest)}
}

// requestsIn returns how many requests a span pays for.
func (p *plan) requestsIn(us, rest int64) int64 {
	if us < 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(us), uint64(p.den))
	lo, carry := bits.Add64(lo, uint64(rest), 0)
	if hi += carry; hi >= uint64(p.per) {
		return p.burst
	}
	n, _ := bits.Div64(hi, lo, uint64(p.per))
	return int64(min(n, uint64(p.burst)))
}

// roundUp returns a span as a duration of whole us, rounded up.
func (p *plan) roundUp(us, rest int64) time.Duration {
	if rest > 0 {
		us++
	}
	return microseconds(us)
}
