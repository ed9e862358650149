package engine

import (
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/limiter"
)

// A limiter's deadline moves with every grant, mostly to a later time. The wheel then keeps the
// earlier entry, and limiter.Late in the image says that the deadline in the state is valid.
// The reason is cost: relinking an entry touches its neighbours' records, which among a million
// limiters are cache misses. When the wheel releases such a record, the reclaimer puts it back at
// its true deadline. The engine moves an entry when it is early by an eighth of the remaining time,
// so that counts by the wheel stay close to the truth.

// lateSlack is the time, in ms, by which an entry may be early in any case. It is longer than the debt of
// most limiters that are used now and then, and shorter than the horizon of a forecast.
const lateSlack = 1000

// late reports whether the record is a limiter whose deadline differs from that of its
// entry.
func (r *rec) late() bool {
	return r.Kind() == Limiter && !r.has(flagExt) && r.inlineValue()[0]&limiter.Late != 0
}

// lateDeadline returns the deadline of a limiter that is late, in ms.
func (r *rec) lateDeadline() int64 {
	var l limiter.State
	l.Load(r.inlineValue())
	return min(ceilMillis(l.Full(0)), MaxDeadline)
}

// onTime makes the entry's deadline valid again.
func (r *rec) onTime() {
	if r.late() {
		r.inlineValue()[0] &^= limiter.Late
	}
}

// postpone sets the deadline of a limiter whose state has just been stored.
func (tx *Tx) postpone(h *hit, key []byte, l *limiter.State, deadline int64) {
	r := h.r
	if l.Algo() != limiter.Log && r.has(flagDeadline) && r.kind&(flagSlide|flagExt) == 0 {
		switch at := r.entry().Deadline(); {
		case deadline > at && deadline-at <= max(lateSlack, (deadline-tx.ms)/8):
			r.inlineValue()[0] |= limiter.Late
			h.sp.lates = true
			return
		case deadline == at:
			return
		}
	}
	if deadline != r.deadline() || r.has(flagSlide) {
		tx.setDeadline(h, key, deadline, 0)
	}
}

// reschedule puts a record that the wheel has released back at its true deadline.
func (sp *space) reschedule(ref arena.Ref, r *rec) {
	deadline := r.lateDeadline()
	sp.ttls -= r.entry().Deadline()
	r.onTime()
	sp.schedule(ref, deadline)
}

// settleLate puts every limiter that is due only by its entry at its true deadline, so
// that the due keys can be counted. O(due), O(1) if there are no such limiters.
func (sp *space) settleLate(now int64) {
	if !sp.lates || sp.due == nil {
		return
	}
	if n := sp.due.Due(now); n > 0 {
		sp.due.Advance(now, n, func(ref uint32) {
			if r := sp.rec(arena.Ref(ref)); r.late() && !r.expired(now) {
				sp.reschedule(arena.Ref(ref), r)
			} else {
				sp.due.Add(ref, r.entry().Deadline())
			}
		})
	}
}
