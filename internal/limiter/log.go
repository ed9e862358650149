package limiter

import "encoding/binary"

// This file implements ALGO log, which stores every grant until it leaves the period.
//
//	tail:  dead ... │ when, us 8, how much 4 │ ...      oldest first
//
// A grant at t counts while now < t + period. So the grants of any half-open period [t, t + period)
// cost at most limit. A request skips the entries that have left the period. When they are half of
// the tail, the request removes them. So a grant costs O(1) amortized, and the memory is at most 24
// bytes for each grant of a period.

const logEntry = 12

func entryAt(tail []byte, i int) (at, cost int64) {
	b := tail[i*logEntry:]
	return integer(b), int64(binary.LittleEndian.Uint32(b[8:]))
}

func putEntry(b []byte, at, cost int64) {
	putInteger(b, at)
	binary.LittleEndian.PutUint32(b[8:], uint32(cost))
}

// forget skips the entries that have left the period.
func (s *State) forget(now int64) {
	for n := len(s.tail) / logEntry; s.dead < n; s.dead++ {
		at, cost := entryAt(s.tail, s.dead)
		if at > now-s.period {
			return
		}
		s.used -= cost
	}
}

// earliestLog returns the instant at which enough entries have left for a cost. O(entries that must
// leave).
func (s *State) earliestLog(now, cost int64) int64 {
	over := s.used + cost - s.limit
	at := now
	for i := s.dead; over > 0; i++ {
		t, c := entryAt(s.tail, i)
		over -= c
		at = max(now, t+s.period)
	}
	return at
}

func (s *State) takeLog(now, cost int64) {
	if n := len(s.tail) / logEntry; 2*s.dead >= n {
		s.tail, s.dead = s.tail[s.dead*logEntry:], 0
	}
	at, all := now, cost
	if n := len(s.tail) / logEntry; n > s.dead {
		if t, c := entryAt(s.tail, n-1); t >= now { // a grant in the same us, or by the clock of another server
			at, all = t, c+cost
			s.tail = s.tail[:(n-1)*logEntry]
		}
	}
	s.used += cost
	s.nextAt, s.nextCost = at, all
}

// fullLog returns the instant at which the last entry leaves.
func (s *State) fullLog(now int64) int64 {
	if s.nextCost > 0 {
		return s.nextAt + s.period
	}
	if n := len(s.tail) / logEntry; n > s.dead {
		at, _ := entryAt(s.tail, n-1)
		return at + s.period
	}
	return now
}
