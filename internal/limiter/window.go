package limiter

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
func (s *State) adoptWindow(now int64, p Params) {
	if s.period != p.Period && s.period != 0 {
		s.resize(now, p.Period)
	}
	s.limit, s.period = p.Limit, p.Period
	s.roll(now)
}

func (s *State) roll(now int64) {
	start := now - now%s.period
	switch {
	case start <= s.start:
		return
	case start == s.start+s.period && s.algo == Window:
		s.prev = s.used
	default:
		s.prev = 0
	}
	s.start, s.used = start, 0
}

// resize converts the counts to another period. The grants that still counted are counted in the
// window of the new period, if the two windows overlap.
func (s *State) resize(now, period int64) {
	s.roll(now)
	now = max(now, s.start)
	s.used, s.prev = s.weight(now), 0
	s.start = now - now%period
}

// weight returns the cost that counts as taken now, rounded up.
func (s *State) weight(now int64) int64 {
	if s.prev == 0 {
		return s.used
	}
	left := s.period - (max(now, s.start) - s.start)
	return s.used + mulDivUp(s.prev, left, s.period)
}

// earliestWindow returns the first instant at which the windows have room for a cost. It is in this
// window, while the share of the window before shrinks, or else in the next window, while the share
// of this one shrinks.
func (s *State) earliestWindow(now, cost int64) int64 {
	if s.weight(now) <= s.limit-cost {
		return now
	}
	next := s.start + s.period
	if room := s.limit - s.used - cost; room >= 0 {
		return next - mulDiv(room, s.period, s.prev) // here room < prev, because otherwise the cost would fit now
	}
	if s.algo == Fixed || s.used <= s.limit-cost {
		return next
	}
	return next + s.period - mulDiv(s.limit-cost, s.period, s.used)
}

// fullWindow returns the instant from which on no grant counts.
func (s *State) fullWindow(now int64) int64 {
	switch {
	case s.used > 0 && s.algo == Window:
		return s.start + 2*s.period
	case s.used > 0 || s.prev > 0:
		return s.start + s.period
	}
	return now
}
