// Package limiter is the arithmetic of rate limiters: a State is decoded from the bytes of a record, answers for an instant, and is
// encoded again. All state is integers, and each result is a pure function of (state, now, parameters).
//
// A limiter takes 48 bytes, whatever the rate. The log of the algorithm log or the reservations of gcra follow them:
//
//	form 1 │ epoch 7 │ limit 8 │ period, us 8 │ three numbers of the algorithm's │ tail
//
//	gcra    burst, theoretical arrival time (us, and a fraction of one)   gcra.go, reservation.go
//	window  start of the window, taken in the one before, taken in it     window.go
//	fixed   the same without the one before                               window.go
//	log     taken within the period, and each grant in the tail           log.go
//
// Instants are in us since 1970. Start reading at State.
package limiter

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Algo is the algorithm of a limiter. The zero Algo is GCRA.
type Algo uint8

// These are the algorithms. In any span of time t the grants cost at most:
const (
	GCRA   Algo = iota // burst + t x limit / period
	Window             // limit in a window of a period, aligned to 1970; less than 2 x limit in any period
	Log                // limit in any period, exactly; the limiter stores each grant
	Fixed              // limit in a window of a period, aligned to 1970; 2 x limit in any period
	Algos
)

// String returns the name of the algorithm in commands (ALGO).
func (a Algo) String() string { return [...]string{"gcra", "window", "log", "fixed"}[a] }

// Params are the limits that a request applies. A State has those of its last request.
type Params struct {
	Algo   Algo
	Limit  int64 // grants in a period, from 1; at most MaxTokens, and MaxLogged for Log
	Period int64 // us, from 1000; at most MaxPeriod
	Burst  int64 // GCRA: grants at one instant; the others have Limit
}

// Limits of Params, and of a cost. They keep every instant below 2^57 us, and products within 128 bits.
const (
	MaxTokens = 1 << 50
	MaxPeriod = 1 << 50 // us: 35 years
	MaxLogged = 1_000_000

	maxFill = 1 << 55 // us: the longest time that a limiter takes to fill: 1,100 years
)

// These are the errors of Params.
var (
	ErrLimit    = errors.New("the limit must be from 1 to 1125899906842624")
	ErrPeriod   = errors.New("the period must be from 1 ms to 35 years")
	ErrBurst    = errors.New("BURST must be from 1 to 1125899906842624")
	ErrLogLimit = errors.New("ALGO log keeps every grant: its limit is at most 1000000")
	ErrNoBurst  = errors.New("BURST needs ALGO gcra: the others allow the limit at once")
	ErrLongFill = errors.New("BURST x period / limit is more than 1,000 years")
)

// Check returns the error of parameters; a Burst of 0 becomes Limit.
func (p *Params) Check() error {
	switch {
	case p.Limit < 1 || p.Limit > MaxTokens:
		return ErrLimit
	case p.Period < 1000 || p.Period > MaxPeriod:
		return ErrPeriod
	case p.Burst < 0 || p.Burst > MaxTokens:
		return ErrBurst
	case p.Algo == Log && p.Limit > MaxLogged:
		return ErrLogLimit
	case p.Algo != GCRA && p.Burst != 0 && p.Burst != p.Limit:
		return ErrNoBurst
	}
	if p.Burst == 0 {
		p.Burst = p.Limit
	}
	if p.Burst != p.Limit { // avoids a division
		hi, lo := bits.Mul64(uint64(p.Burst), uint64(p.Period))
		over, limit := bits.Mul64(maxFill+1, uint64(p.Limit))
		if hi > over || hi == over && lo >= limit {
			return ErrLongFill
		}
	}
	return nil
}

// State is the state of a limiter. Load or New makes one, Adopt gives it the parameters of a request; the other methods but Algo and
// Save need both. It is not safe for concurrent use.
type State struct {
	algo   Algo
	limit  int64
	period int64 // us
	epoch  int64 // a grant of an earlier epoch cannot be given back

	burst int64 // GCRA
	tat   fine  // GCRA: the theoretical arrival time
	wide  fine  // GCRA: the time that the burst is worth; not stored
	one   fine  // GCRA: the time that a cost of 1 is worth; not stored

	start int64 // Window, Fixed: the start of the window that a request last took from, us
	prev  int64 // Window: the cost taken in the window before
	used  int64 // Window, Fixed: the cost taken in the window; Log: the cost in the tail from dead on

	dead int    // Log: the number of entries at the tail's start that no longer count
	tail []byte // GCRA: reservations; Log: entries. In the memory of the image, or of the caller

	nextAt, nextCost int64 // Log: an entry to add to the tail, if nextCost is above 0
}

const (
	// Head is the length of an image without a tail.
	Head = 48
	form = 0x10 // version 1, and the algorithm in the low four bits
	// Late is a bit of the first byte of an image, which the owner of the image uses. Load ignores it, and Save clears it.
	Late = 0x08
)

// New makes s a full limiter.
func (s *State) New(a Algo, now int64) { *s = State{algo: a, epoch: now} }

// Load decodes a valid image, in whose memory the tail remains.
func (s *State) Load(b []byte) {
	_ = b[Head-1]
	s.algo = Algo(b[0] & 0x07)
	s.epoch, s.limit, s.period = integer(b)>>8, integer(b[8:]), integer(b[16:])
	x, y, z := integer(b[24:]), integer(b[32:]), integer(b[40:])
	switch s.algo {
	case GCRA:
		s.burst, s.tat = x, fine{y, z}
	case Log:
		s.dead, s.used = int(x), z
	default:
		s.start, s.prev, s.used = x, y, z
	}
	s.tail = b[Head:]
}

// Size returns the length of the image that Save needs.
func (s *State) Size() int {
	n := Head + len(s.tail)
	if s.nextCost > 0 {
		n += logEntry
	}
	return n
}

// Save encodes the state into an image of Size bytes, which may already have its tail.
func (s *State) Save(b []byte) {
	if len(s.tail) > 0 && &b[Head] != &s.tail[0] {
		copy(b[Head:], s.tail)
	}
	if s.nextCost > 0 {
		putEntry(b[Head+len(s.tail):], s.nextAt, s.nextCost)
	}
	s.tail, s.nextCost = b[Head:], 0
	_ = b[Head-1]
	putInteger(b, s.epoch<<8|int64(form|s.algo))
	putInteger(b[8:], s.limit)
	putInteger(b[16:], s.period)
	x, y, z := s.start, s.prev, s.used
	switch s.algo {
	case GCRA:
		x, y, z = s.burst, s.tat.us, s.tat.num
	case Log:
		x, y = int64(s.dead), 0
	}
	putInteger(b[24:], x)
	putInteger(b[32:], y)
	putInteger(b[40:], z)
}

// Moved tells s the place to which its saved image was moved.
func (s *State) Moved(b []byte) {
	if len(s.tail) > 0 {
		s.tail = b[Head:]
	}
}

func integer(b []byte) int64       { return int64(binary.LittleEndian.Uint64(b)) }
func putInteger(b []byte, n int64) { binary.LittleEndian.PutUint64(b, uint64(n)) }

// Algo returns the algorithm.
func (s *State) Algo() Algo { return s.algo }

// Params returns the parameters of the last request.
func (s *State) Params() Params { return Params{s.algo, s.limit, s.period, s.burst} }

// Adopt gives s the parameters of a request, of its own algorithm.
//
// After a change, gcra keeps its debt as time. log counts the grants that it still stores; a longer period does not restore those that
// had left the shorter one. window and fixed count the grants of a window that overlaps with the new one.
func (s *State) Adopt(now int64, p Params) {
	if (s.limit != p.Limit || s.period != p.Period) && s.limit != 0 {
		s.epoch++
	}
	switch s.algo {
	case GCRA:
		s.adoptGCRA(now, p)
	case Log:
		s.limit, s.period = p.Limit, p.Period
		s.forget(now)
	default:
		s.adoptWindow(now, p)
	}
}

// Capacity returns the capacity of a full limiter.
func (s *State) Capacity() int64 {
	if s.algo == GCRA {
		return s.burst
	}
	return s.limit
}

// Remaining returns the capacity that is left now.
func (s *State) Remaining(now int64) int64 {
	switch s.algo {
	case GCRA:
		return s.remainingGCRA(now)
	case Log:
		return max(0, s.limit-s.used)
	}
	return max(0, s.limit-s.weight(now))
}

// Earliest returns the first instant at which the limiter allows a cost that is not above
// the capacity, now or later, without other requests.
func (s *State) Earliest(now, cost int64) int64 {
	switch s.algo {
	case GCRA:
		return s.earliestGCRA(now, cost)
	case Log:
		return s.earliestLog(now, cost)
	}
	return s.earliestWindow(now, cost)
}

// Take takes a cost that Earliest allows now.
func (s *State) Take(now, cost int64) {
	switch s.algo {
	case GCRA:
		s.tat = s.after(s.tat, now, cost)
	case Log:
		s.takeLog(now, cost)
	default:
		s.used += cost
	}
}

// Full returns the instant from which on the limiter behaves as a new one.
func (s *State) Full(now int64) int64 {
	switch s.algo {
	case GCRA:
		return s.fullGCRA()
	case Log:
		return s.fullLog(now)
	}
	return s.fullWindow(now)
}
