package engine

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
	return limiterInt(b), int64(binary.LittleEndian.Uint32(b[8:]))
}

func putEntry(b []byte, at, cost int64) {
	putLimiterInt(b, at)
	binary.LittleEndian.PutUint32(b[8:], uint32(cost))
}

// forget skips the entries that have left the period.
func (l *limiter) forget(now int64) {
	for n := len(l.tail) / logEntry; l.dead < n; l.dead++ {
		at, cost := entryAt(l.tail, l.dead)
		if at > now-l.period {
			return
		}
		l.used -= cost
	}
}

// earliestLog returns the instant at which enough entries have left for a cost. O(entries that must
// leave).
func (l *limiter) earliestLog(now, cost int64) int64 {
	over := l.used + cost - l.limit
	at := now
	for i := l.dead; over > 0; i++ {
		t, c := entryAt(l.tail, i)
		over -= c
		at = max(now, t+l.period)
	}
	return at
}

func (l *limiter) takeLog(now, cost int64) {
	if n := len(l.tail) / logEntry; 2*l.dead >= n {
		l.tail, l.dead = l.tail[l.dead*logEntry:], 0
	}
	at, all := now, cost
	if n := len(l.tail) / logEntry; n > l.dead {
		if t, c := entryAt(l.tail, n-1); t >= now { // a grant in the same us, or by the clock of another server
			at, all = t, c+cost
			l.tail = l.tail[:(n-1)*logEntry]
		}
	}
	l.used += cost
	l.nextAt, l.nextCost = at, all
}

// fullLog returns the instant at which the last entry leaves.
func (l *limiter) fullLog(now int64) int64 {
	if l.nextCost > 0 {
		return l.nextAt + l.period
	}
	if n := len(l.tail) / logEntry; n > l.dead {
		at, _ := entryAt(l.tail, n-1)
		return at + l.period
	}
	return now
}
