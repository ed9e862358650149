package limiter

import "math/bits"

// This file implements the generic cell rate algorithm, with reservations.
//
//	T = period / limit: a grant of cost c at the instant t moves the theoretical
//	arrival time (tat) to max(tat, t) + c x T, which may be at most t + burst x T
//
// A reservation is a grant in the future. The reservations, in the order of their instants, are a
// schedule in which each must conform. A new grant goes to the first position where it conforms and
// the later reservations still conform. So the capacity of a cancelled reservation goes to a later
// request that comes in time, and only once.
//
// T is seldom a whole number of us. The tat is a number of whole us and a fraction whose
// denominator is the limit, so the algorithm never rounds.

// fine is an instant or a span: us + num / limit, 0 <= num < limit.
type fine struct{ us, num int64 }

// endless replaces all longer spans, in us. Sums of a few of them do not overflow.
const endless = 1 << 60

// fineOf returns n x period / limit, at most endless.
func fineOf(n, period, limit int64) fine {
	hi, lo := bits.Mul64(uint64(n), uint64(period))
	var q, r uint64
	switch {
	case hi == 0:
		q, r = lo/uint64(limit), lo%uint64(limit)
	case hi >= uint64(limit):
		q = endless
	default:
		q, r = bits.Div64(hi, lo, uint64(limit))
	}
	if q >= endless {
		return fine{us: endless}
	}
	return fine{int64(q), int64(r)}
}

func (a fine) less(b fine) bool { return a.us < b.us || a.us == b.us && a.num < b.num }

func (a fine) plus(b fine, limit int64) fine {
	sum := fine{a.us + b.us, a.num + b.num}
	if sum.num >= limit {
		sum.us, sum.num = sum.us+1, sum.num-limit
	}
	sum.us = min(sum.us, 2*endless)
	return sum
}

func (a fine) minus(b fine, limit int64) fine {
	d := fine{a.us - b.us, a.num - b.num}
	if d.num < 0 {
		d.us, d.num = d.us-1, d.num+limit
	}
	return d
}

// ceil returns the first whole us that is not before a.
func (a fine) ceil() int64 {
	if a.num > 0 {
		return a.us + 1
	}
	return a.us
}

func (s *State) plus(a, b fine) fine  { return a.plus(b, s.limit) }
func (s *State) minus(a, b fine) fine { return a.minus(b, s.limit) }

// cost returns c x T.
func (s *State) cost(c int64) fine {
	if c == 1 && s.one != (fine{}) {
		return s.one
	}
	return fineOf(c, s.period, s.limit)
}

// after returns the tat after a grant at an instant.
func (s *State) after(tat fine, at, cost int64) fine {
	if t := (fine{us: at}); tat.less(t) {
		tat = t
	}
	return s.plus(tat, s.cost(cost))
}

func (s *State) adoptGCRA(now int64, p Params) {
	if s.limit != p.Limit && s.limit != 0 && s.tat.num > 0 {
		// The limit changes, and with it the denominator. Rounding up gives the client no capacity.
		num := mulDivUp(s.tat.num, p.Limit, s.limit)
		if s.tat.num = num; num == p.Limit {
			s.tat = fine{us: s.tat.us + 1}
		}
	}
	s.limit, s.period, s.burst = p.Limit, p.Period, p.Burst
	s.one = fineOf(1, s.period, s.limit)
	if s.wide = (fine{us: s.period}); s.burst != s.limit {
		s.wide = fineOf(s.burst, s.period, s.limit)
	}
	s.settleDue(now)
}

// settleDue makes the reservations that are due grants like any other.
func (s *State) settleDue(now int64) {
	for len(s.tail) > 0 {
		r := reservationAt(s.tail, 0)
		if r.Due > now {
			return
		}
		s.tat = s.after(s.tat, r.Due, r.Cost)
		s.tail = s.tail[reservationSize:]
	}
}

// earliestGCRA returns the first instant at which the schedule has room for a cost. O(1) without
// reservations.
func (s *State) earliestGCRA(now, cost int64) int64 {
	back := s.minus(s.wide, s.cost(cost))
	tat, from := s.tat, now
	for rest := s.tail; ; {
		at := max(from, s.minus(tat, back).ceil())
		if len(rest) == 0 {
			return at
		}
		r := reservationAt(rest, 0)
		if at < r.Due && s.conform(s.after(tat, at, cost), rest) {
			return at
		}
		tat, from = s.after(tat, r.Due, r.Cost), max(now, r.Due)
		rest = rest[reservationSize:]
	}
}

// conform reports whether the reservations in rest conform after a tat. O(reservations in rest).
func (s *State) conform(tat fine, rest []byte) bool {
	for ; len(rest) > 0; rest = rest[reservationSize:] {
		r := reservationAt(rest, 0)
		tat = s.after(tat, r.Due, r.Cost)
		if s.plus(fine{us: r.Due}, s.wide).less(tat) {
			return false
		}
	}
	return true
}

// remainingGCRA returns the greatest cost that conforms now, given the burst and the reservations.
func (s *State) remainingGCRA(now int64) int64 {
	tat := s.tat
	if t := (fine{us: now}); tat.less(t) {
		tat = t
	}
	room := s.minus(s.plus(fine{us: now}, s.wide), tat)
	for rest := s.tail; len(rest) > 0; rest = rest[reservationSize:] {
		r := reservationAt(rest, 0)
		tat = s.plus(tat, s.cost(r.Cost))
		if x := s.minus(s.plus(fine{us: r.Due}, s.wide), tat); x.less(room) {
			room = x
		}
	}
	if room.us < 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(room.us), uint64(s.limit))
	lo, carry := bits.Add64(lo, uint64(room.num), 0)
	if hi += carry; hi == 0 {
		return int64(lo / uint64(s.period))
	}
	n, _ := bits.Div64(hi, lo, uint64(s.period))
	return int64(n)
}

// fullGCRA returns the tat after all reservations, in us.
func (s *State) fullGCRA() int64 {
	tat := s.tat
	for rest := s.tail; len(rest) > 0; rest = rest[reservationSize:] {
		r := reservationAt(rest, 0)
		tat = s.after(tat, r.Due, r.Cost)
	}
	return tat.ceil()
}

// mulDiv returns a x b / c, rounded down; the result fits.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

// mulDivUp is mulDiv, rounded up.
func mulDivUp(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(c))
	if r > 0 {
		q++
	}
	return int64(q)
}
