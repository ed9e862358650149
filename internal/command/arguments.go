package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/numeral"
)

// This file reads the arguments that commands of several types have in common: counts, ranges,
// numbers of keys, timeouts.

// The errors of numbers that are out of range.
const (
	ErrPositive      = ReplyError("ERR value is out of range, must be positive")
	ErrInt32         = ReplyError("ERR value is out of range, value must between -2147483648 and 2147483647")
	ErrNegMax        = ReplyError("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
	ErrRange         = ReplyError("ERR value is out of range")
	ErrNumKeys       = ReplyError("ERR numkeys should be greater than 0")
	ErrCount         = ReplyError("ERR count should be greater than 0")
	errLimit         = ReplyError("ERR LIMIT can't be negative")
	errTimeoutInt    = ReplyError("ERR timeout is not an integer or out of range")
	errTimeoutFloat  = ReplyError("ERR timeout is not a float or out of range")
	ErrTimeoutRange  = ReplyError("ERR timeout is out of range")
	errTimeoutBefore = ReplyError("ERR timeout is negative")
)

// BoolToInt returns 1 for true and 0 for false, as most commands reply them.
func BoolToInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// ParseTwo reads two integers: the bounds of a range, an offset and a count.
func ParseTwo(a, b []byte) (first, second int64, err error) {
	first, ok := numeral.ParseInt(a)
	second, also := numeral.ParseInt(b)
	if !ok || !also {
		return 0, 0, ErrNotInteger
	}
	return first, second, nil
}

// ParseLimit reads the options of commands that count an intersection: LIMIT,
// which may be given again; 0 is none.
func ParseLimit(args [][]byte) (limit int64, err error) {
	for ; len(args) > 0; args = args[2:] {
		if len(args) < 2 || !EqualFold(args[0], "LIMIT") {
			return 0, ErrSyntax
		}
		var ok bool
		if limit, ok = numeral.ParseInt(args[1]); !ok || limit < 0 {
			return 0, errLimit
		}
	}
	return limit, nil
}

const (
	// MaxDraw is the most items that a command picks with repetitions.
	MaxDraw = 1 << 27
	// MaxDrawBytes is the largest size of their reply in memory, unless the whole value is larger:
	// a count is nine bytes, and its product with a member has no limit.
	MaxDrawBytes = 64 << 20
	// drawnBytes is the least size of an item in a reply besides its bytes: "$1", and two ends of
	// lines.
	drawnBytes = 6
	// drawPart is the number of items that a command picks before it checks the size again.
	drawPart = 256
)

const ErrDrawSize = ReplyError("ERR the reply of the count given would be larger than 64 MB and than the value: give a count nearer to 0")

// DrawErrors documents ErrDrawSize, for the commands that pick items with repetitions.
var DrawErrors = []string{string(ErrDrawSize) + ": the count is negative"}

// Drawing measures the reply of a command that picks items with repetitions.
type Drawing struct {
	c     *Ctx
	n     int // so far
	limit int
}

// Draw picks n items of the first key in parts: pick picks n items, and calls More before it writes
// one. If the reply is too large, an error replaces it; if it exceeds the client's output limit,
// the server also closes the connection.
func (c *Ctx) Draw(n int, pick func(d *Drawing, n int)) error {
	d := &Drawing{c: c, limit: max(MaxDrawBytes, c.Tx.ValueSize(c.Args[1]))}
	if n > d.limit/drawnBytes {
		return ErrDrawSize // before any work
	}
	for ; n > 0; n -= drawPart {
		pick(d, min(n, drawPart))
		if d.n > d.limit {
			return ErrDrawSize
		}
		if d.n >= drawMeasured && c.Host.Outgrown(d.n) {
			return ErrDrawSize
		}
	}
	return nil
}

// drawMeasured is the size from which on a reply is checked against the output limit, as for other
// replies.
const drawMeasured = 16 << 10

// More reports whether an item of n bytes, of one part or two, is to be replied. The first
// one is.
func (d *Drawing) More(n int) bool {
	if d.n > d.limit {
		return false
	}
	d.n += n + drawnBytes
	return d.n <= d.limit || d.n == n+drawnBytes
}

// ParseDraw reads "count [option]" after the key, for a command that picks items at random. A
// negative count allows repetitions. values reports whether the option was given.
func ParseDraw(args [][]byte, option string) (n int64, values bool, err error) {
	n, ok := numeral.ParseInt(args[2])
	values = len(args) > 3
	switch {
	case !ok:
		return 0, false, ErrNotInteger
	case n == math.MinInt64:
		return 0, false, ErrNegMax
	case values && (len(args) > 4 || !EqualFold(args[3], option)):
		return 0, false, ErrSyntax
	case values && (n < -math.MaxInt64/2 || n > math.MaxInt64/2), n < -MaxDraw:
		return 0, false, ErrRange
	}
	return n, values, nil
}

// ManyPop holds the arguments of LMPOP and ZMPOP.
type ManyPop struct {
	Keys  [][]byte
	Last  bool // from the tail, or the highest
	Count int64
}

// ManyPopArgs returns the grammar of ManyPop; where is the grammar of the end to pop from.
func ManyPopArgs(where Arg) []Arg {
	return []Arg{Count("numkeys"), ManyKeys("key", Access|Delete), where, Opt(TokenArg("COUNT", Int("count")))}
}

// ParseManyPop reads "numkeys key ... end [COUNT n]", where end is first or last.
func ParseManyPop(args [][]byte, first, last string) (m ManyPop, err error) {
	n, ok := numeral.ParseInt(args[0])
	switch {
	case !ok || n < 1:
		return m, ErrNumKeys
	case n > int64(len(args)-2):
		return m, ErrSyntax
	}
	m.Keys, args, m.Count = args[1:1+n], args[1+n:], 1
	m.Last = EqualFold(args[0], last)
	if !m.Last && !EqualFold(args[0], first) {
		return m, ErrSyntax
	}
	switch args = args[1:]; {
	case len(args) == 0:
	case len(args) == 2 && EqualFold(args[0], "COUNT"):
		if m.Count, ok = numeral.ParseInt(args[1]); !ok || m.Count < 1 {
			return m, ErrCount
		}
	default:
		return m, ErrSyntax
	}
	return m, nil
}

// CountTo returns n as an int, cut to plus or minus MaxInt32, which is more than any number of
// items.
func CountTo(n int64) int { return int(max(min(n, math.MaxInt32), -math.MaxInt32)) }

// maxWait is the longest time to wait in ms: some 290,000 years.
const maxWait = math.MaxInt64 / 1000

// ParseTimeout reads a timeout in seconds, which may have a fraction, and returns milliseconds,
// rounded up; 0 means no timeout.
func ParseTimeout(b []byte) (ms int64, err error) {
	f, ok := numeral.ParseDouble(b)
	switch {
	case !ok || math.IsNaN(f):
		return 0, errTimeoutFloat
	case f < 0:
		return 0, errTimeoutBefore
	case f*1000 >= maxWait:
		return 0, ErrTimeoutRange
	}
	return int64(math.Ceil(f * 1000)), nil
}

// ParseMillis reads a time in whole milliseconds that is not negative.
func ParseMillis(b []byte) (ms int64, err error) {
	ms, ok := numeral.ParseInt(b)
	switch {
	case !ok:
		return 0, errTimeoutInt
	case ms < 0:
		return 0, errTimeoutBefore
	}
	return ms, nil
}

// ParseBlock reads a timeout in milliseconds, as BLOCK takes it; 0 means no timeout.
func ParseBlock(b []byte) (ms int64, err error) {
	if ms, err = ParseMillis(b); ms >= maxWait {
		return 0, ErrTimeoutRange
	}
	return ms, err
}

// ParseLongBlock reads a timeout as ParseBlock does, and cuts one that is out of range to the longest wait.
func ParseLongBlock(b []byte) (ms int64, err error) {
	ms, err = ParseMillis(b)
	return min(ms, maxWait-1), err
}
