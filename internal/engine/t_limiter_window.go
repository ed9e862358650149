package engine

// This file implements the counters of aligned windows: ALGO window and ALGO fixed.
//
//	fixed    taken in this window <= limit
//	window   taken in this window + taken in the one before x the share of it that
//	         a window ending now would still cover <= limit
//
// Windows begin at whole multiples of the period since 1970. ALGO window assumes that the grants of
// the window before were spread evenly. If they came at its end, a span of one period contains all
// of them, at most limit, and the grants of this window up to the offset e, at most limit x e /
// period. Together that is less than 2 x limit, and an aligned window never has more than limit.

// adoptWindow gives the state a call's parameters, and advances it to the window of now. If the
// state is ahead of now, because of another server's clock, it stays in its window.
func (l *limiter) adoptWindow(now int64, o *TakeOptions) {
	if l.period != o.Period && l.period != 0 {
		l.resize(now, o.Period)
	}
	l.limit, l.period = o.Limit, o.Period
	l.roll(now)
}

func (l *limiter) roll(now int64) {
	start := now - now%l.period
	switch {
	case start <= l.start:
		return
	case start == l.start+l.period && l.algo == Window:
		l.prev = l.used
	default:
		l.prev = 0
	}
	l.start, l.used = start, 0
}

// resize converts the counts to another period. The grants that still counted are counted in the
// window of the new period, if the two windows overlap.
func (l *limiter) resize(now, period int64) {
	l.roll(now)
	now = max(now, l.start)
	l.used, l.prev = l.weight(now), 0
	l.start = now - now%period
}

// weight returns the cost that counts as taken now, rounded up.
func (l *limiter) weight(now int64) int64 {
	if l.prev == 0 {
		return l.used
	}
	left := l.period - (max(now, l.start) - l.start)
	return l.used + mulDivUp(l.prev, left, l.period)
}

// earliestWindow returns the first instant at which the windows have room for a cost. It is in this
// window, while the share of the window before shrinks, or else in the next window, while the share
// of this one shrinks.
func (l *limiter) earliestWindow(now, cost int64) int64 {
	if l.weight(now) <= l.limit-cost {
		return now
	}
	next := l.start + l.period
	if room := l.limit - l.used - cost; room >= 0 {
		return next - mulDiv(room, l.period, l.prev) // here room < prev, because otherwise the cost would fit now
	}
	if l.algo == Fixed || l.used <= l.limit-cost {
		return next
	}
	return next + l.period - mulDiv(l.limit-cost, l.period, l.used)
}

// fullWindow returns the instant from which on no grant counts.
func (l *limiter) fullWindow(now int64) int64 {
	switch {
	case l.used > 0 && l.algo == Window:
		return l.start + 2*l.period
	case l.used > 0 || l.prev > 0:
		return l.start + l.period
	}
	return now
}
