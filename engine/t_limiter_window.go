package engine

// Counters of aligned windows: ALGO window and ALGO fixed.
//
//	fixed    taken in this window <= limit
//	window   taken in this window + taken in the one before x the share of it that
//	         a window ending now would still cover <= limit
//
// Windows begin at whole multiples of the period since 1970. ALGO window bets that
// the grants of the window before were spread evenly. Where they came at its end,
// a span of one period sees what it held, at most limit, and what came after by
// the offset e into this one, at most limit x e / period: less than 2 x limit
// together, and never more than limit in an aligned window.

// adoptWindow gives the state a call's parameters, and rolls it on to the window
// of now. If the state is ahead of now, which only a clock of another server
// makes, it stays in its window.
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

// resize takes over what was taken under another period: all that still counted
// counts in the window of the new one, if the two overlap.
func (l *limiter) resize(now, period int64) {
	l.roll(now)
	now = max(now, l.start)
	l.used, l.prev = l.weight(now), 0
	l.start = now - now%period
}

// weight is what counts as taken now, rounded up.
func (l *limiter) weight(now int64) int64 {
	if l.prev == 0 {
		return l.used
	}
	left := l.period - (max(now, l.start) - l.start)
	return l.used + mulDivUp(l.prev, left, l.period)
}

// earliestWindow: in this window, as the share of the one before shrinks; else in
// the next one, where this one's count does.
func (l *limiter) earliestWindow(now, cost int64) int64 {
	if l.weight(now) <= l.limit-cost {
		return now
	}
	next := l.start + l.period
	if room := l.limit - l.used - cost; room >= 0 {
		return next - mulDiv(room, l.period, l.prev) // room < prev, or it would fit now
	}
	if l.algo == Fixed || l.used <= l.limit-cost {
		return next
	}
	return next + l.period - mulDiv(l.limit-cost, l.period, l.used)
}

// fullWindow is the instant at which nothing counts any more.
func (l *limiter) fullWindow(now int64) int64 {
	switch {
	case l.used > 0 && l.algo == Window:
		return l.start + 2*l.period
	case l.used > 0 || l.prev > 0:
		return l.start + l.period
	}
	return now
}
