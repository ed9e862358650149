package engine

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
	s := fine{a.us + b.us, a.num + b.num}
	if s.num >= limit {
		s.us, s.num = s.us+1, s.num-limit
	}
	s.us = min(s.us, 2*endless)
	return s
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

func (l *limiter) plus(a, b fine) fine  { return a.plus(b, l.limit) }
func (l *limiter) minus(a, b fine) fine { return a.minus(b, l.limit) }

// cost returns c x T.
func (l *limiter) cost(c int64) fine {
	if c == 1 && l.one != (fine{}) {
		return l.one
	}
	return fineOf(c, l.period, l.limit)
}

// after returns the tat after a grant at an instant.
func (l *limiter) after(tat fine, at, cost int64) fine {
	if t := (fine{us: at}); tat.less(t) {
		tat = t
	}
	return l.plus(tat, l.cost(cost))
}

func (l *limiter) adoptGCRA(now int64, o *TakeOptions) {
	if l.limit != o.Limit && l.limit != 0 && l.tat.num > 0 {
		// The limit changes, and with it the denominator. Rounding up gives the client no capacity.
		num := mulDivUp(l.tat.num, o.Limit, l.limit)
		if l.tat.num = num; num == o.Limit {
			l.tat = fine{us: l.tat.us + 1}
		}
	}
	l.limit, l.period, l.burst = o.Limit, o.Period, o.Burst
	l.one = fineOf(1, l.period, l.limit)
	if l.wide = (fine{us: l.period}); l.burst != l.limit {
		l.wide = fineOf(l.burst, l.period, l.limit)
	}
	l.settleDue(now)
}

// settleDue makes the reservations that are due grants like any other.
func (l *limiter) settleDue(now int64) {
	for len(l.tail) > 0 {
		r := reservationAt(l.tail, 0)
		if r.Due > now {
			return
		}
		l.tat = l.after(l.tat, r.Due, r.Cost)
		l.tail = l.tail[reservationSize:]
	}
}

// earliestGCRA returns the first instant at which the schedule has room for a cost. O(1) without
// reservations.
func (l *limiter) earliestGCRA(now, cost int64) int64 {
	back := l.minus(l.wide, l.cost(cost))
	tat, from := l.tat, now
	for rest := l.tail; ; {
		at := max(from, l.minus(tat, back).ceil())
		if len(rest) == 0 {
			return at
		}
		r := reservationAt(rest, 0)
		if at < r.Due && l.conform(l.after(tat, at, cost), rest) {
			return at
		}
		tat, from = l.after(tat, r.Due, r.Cost), max(now, r.Due)
		rest = rest[reservationSize:]
	}
}

// conform reports whether the reservations in rest conform after a tat. O(reservations in rest).
func (l *limiter) conform(tat fine, rest []byte) bool {
	for ; len(rest) > 0; rest = rest[reservationSize:] {
		r := reservationAt(rest, 0)
		tat = l.after(tat, r.Due, r.Cost)
		if l.plus(fine{us: r.Due}, l.wide).less(tat) {
			return false
		}
	}
	return true
}

// remainingGCRA returns the greatest cost that conforms now, given the burst and the reservations.
func (l *limiter) remainingGCRA(now int64) int64 {
	tat := l.tat
	if t := (fine{us: now}); tat.less(t) {
		tat = t
	}
	room := l.minus(l.plus(fine{us: now}, l.wide), tat)
	for rest := l.tail; len(rest) > 0; rest = rest[reservationSize:] {
		r := reservationAt(rest, 0)
		tat = l.plus(tat, l.cost(r.Cost))
		if x := l.minus(l.plus(fine{us: r.Due}, l.wide), tat); x.less(room) {
			room = x
		}
	}
	if room.us < 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(room.us), uint64(l.limit))
	lo, carry := bits.Add64(lo, uint64(room.num), 0)
	if hi += carry; hi == 0 {
		return int64(lo / uint64(l.period))
	}
	n, _ := bits.Div64(hi, lo, uint64(l.period))
	return int64(n)
}

// fullGCRA returns the tat after all reservations, in us.
func (l *limiter) fullGCRA() int64 {
	tat := l.tat
	for rest := l.tail; len(rest) > 0; rest = rest[reservationSize:] {
		r := reservationAt(rest, 0)
		tat = l.after(tat, r.Due, r.Cost)
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
