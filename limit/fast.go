package limit

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/conn"
)

// What goes to the fast scripts, and what their short answers mean. The numbers are
// those of the whole scripts: an instant, and a span, are whole us and a rest in 1/den
// us, so only what callers get is rounded.

// span is what n cost: n x per/den us, and the rest.
func (p *plan) span(n int64) (us, rest int64) {
	t, r := p.per/p.den, p.per%p.den
	return n*t + n*r/p.den, n * r % p.den
}

// minus is a - b.
func (p *plan) minus(a, an, b, bn int64) (us, rest int64) {
	if a, an = a-b, an-bn; an < 0 {
		return a - 1, an + p.den
	}
	return a, an
}

// fastArgs are the arguments of the fast script, none if there is no such.
func (p *plan) fastArgs(n int64) []string {
	if n == 1 && p.one != nil {
		return p.one
	}
	us, rest := p.span(n)
	switch p.fast {
	case nil:
		return nil
	case fastGCRA:
		return []string{strconv.FormatInt(us, 10), strconv.FormatInt(p.wide, 10)}
	case fastFraction:
		return []string{packed(us, rest, p.wide, p.widen, p.den, p.per)}
	}
	return []string{packed(p.most, p.rate.Period.Microseconds(), n)}
}

// packed is one argument that holds numbers below 2^53, which scripts unpack as doubles.
func packed(numbers ...int64) string {
	b := make([]byte, 0, 8*len(numbers))
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
	}
	return string(b)
}

// texts boxes numbers as their texts, which cost nothing to send.
func texts(numbers ...int64) []any {
	all := make([]any, len(numbers))
	for i, n := range numbers {
		all[i] = strconv.FormatInt(n, 10)
	}
	return all
}

// granted returns the Result of a request for n from the reply of the fast script, which is one
// number or two.
func (p *plan) granted(n int64, told conn.Ints) Result {
	if p.algo == FixedWindow {
		return p.grantedFixed(n, told.At[0], span(told.At[1]))
	}
	return p.grantedGCRA(n, told.At[0], told.At[1])
}

// grantedFixed: used with n of it, and when the window ends.
func (p *plan) grantedFixed(n, used int64, ends time.Duration) Result {
	if used > p.most {
		return Result{Limit: p.most, Remaining: max(0, p.most-(used-n)), RetryAfter: ends, ResetAfter: ends}
	}
	return Result{Allowed: true, Limit: p.most, Remaining: p.most - used, Taken: n, ResetAfter: ends}
}

// grantedGCRA is granted for GCRA: x and a rest are left, or if x is negative, the limiter is in
// debt by -1 - x and the rest.
func (p *plan) grantedGCRA(n, x, rest int64) Result {
	if x >= 0 {
		owed, part := p.minus(p.wide, p.widen, x, rest)
		return Result{Allowed: true, Limit: p.most, Remaining: p.count(x, rest), Taken: n, ResetAfter: p.told(owed, part)}
	}
	owed := -1 - x
	left, part := p.minus(p.wide, p.widen, owed, rest)
	us, more := p.span(n)
	us, more = p.minus(us, more, left, part) // what is missing
	return Result{Limit: p.most, Remaining: p.count(left, part), RetryAfter: p.told(us, more), ResetAfter: p.told(owed, rest)}
}

// count is how many go into a span.
func (p *plan) count(us, rest int64) int64 {
	if us < 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(us), uint64(p.den))
	lo, carry := bits.Add64(lo, uint64(rest), 0)
	if hi += carry; hi >= uint64(p.per) {
		return p.most
	}
	n, _ := bits.Div64(hi, lo, uint64(p.per))
	return int64(min(n, uint64(p.most)))
}

// told returns a span for the caller, rounded up.
func (p *plan) told(us, rest int64) time.Duration {
	if rest > 0 {
		us++
	}
	return span(us)
}
