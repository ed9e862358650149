package limiter

import "slices"

// Grant is a grant of a limiter, for Undo.
type Grant struct {
	Cost, At int64 // the cost, and the instant in us
	took     fine  // GCRA: the distance by which it moved the theoretical arrival time
	tat      fine  // GCRA: the theoretical arrival time after the grant
	epoch    int64
}

// Granted returns the grant that Take has just made.
func (s *State) Granted(now, cost int64) Grant { return Grant{cost, now, s.cost(cost), s.tat, s.epoch} }

// Undo removes a grant, and reports whether it could. It cannot if later grants depend on it: gcra only knows the sum of the grants, and
// must not give back more than the grant took. The tail, which Undo changes in place, moves to buf, which Undo returns.
func (s *State) Undo(now int64, g Grant, buf []byte) ([]byte, bool) {
	buf = append(buf[:0], s.tail...)
	s.tail = buf
	return buf, s.undo(now, g)
}

func (s *State) undo(now int64, g Grant) bool {
	if g.epoch != s.epoch {
		return false
	}
	switch s.algo {
	case GCRA:
		return s.undoGCRA(now, g)
	case Log:
		return s.undoLog(g)
	}
	n := &s.used
	switch {
	case g.At >= s.start:
	case g.At >= s.start-s.period && s.algo == Window:
		n = &s.prev
	default:
		return false
	}
	if *n < g.Cost {
		return false
	}
	*n -= g.Cost
	return true
}

// undoGCRA removes a grant from the tat. It is exact if no other grant came since, and also if,
// without this grant, the limiter would have been in debt all the time: then each later grant only
// added to the debt. After one undo, the limiter cannot undo other grants.
func (s *State) undoGCRA(now int64, g Grant) bool {
	if s.tat != g.tat && s.minus(g.tat, g.took).less(fine{us: now}) {
		return false
	}
	s.tat = s.minus(s.tat, g.took)
	s.epoch++
	return true
}

func (s *State) undoLog(g Grant) bool {
	for i := len(s.tail)/logEntry - 1; i >= s.dead; i-- {
		at, cost := entryAt(s.tail, i)
		switch {
		case at < g.At || at == g.At && cost < g.Cost:
			return false
		case at == g.At:
			s.used -= g.Cost
			if cost -= g.Cost; cost > 0 {
				putEntry(s.tail[i*logEntry:], at, cost)
			} else {
				s.tail = slices.Delete(s.tail, i*logEntry, (i+1)*logEntry)
			}
			return true
		}
	}
	return false
}
