package engine

import (
	"github.com/ebbdb/ebb/internal/ordered"
	"github.com/ebbdb/ebb/internal/packed"
)

// ZSetView reads the living members of a sorted set at the transaction's instant. It is valid until
// the next write. Members that it returns are valid until the next call of one of its methods, or
// the next write.
type ZSetView struct {
	tx    *Tx
	now   int64
	small packed.Packed
	large *ordered.Set // small and large are both nil if there is no set
}

// ZSet looks a sorted set up for reading. A missing set has no members. With ranks, the caller may
// address members by rank: ZSet first removes the due members. A replica does not remove them; it
// counts the ranks without them, in O(due). Errors: ErrWrongType.
func (tx *Tx) ZSet(key []byte, ranks bool) (ZSetView, error) {
	h, err := tx.open(key, ZSet)
	if err != nil {
		return ZSetView{}, err
	}
	if ranks && h.r != nil && !tx.hiding() {
		tx.reapZSet(&h, key)
	}
	return tx.viewZSet(&h), nil
}

func (tx *Tx) viewZSet(h *hit) ZSetView {
	v := ZSetView{tx: tx, now: tx.itemTime()}
	if h.r == nil {
		return v
	}
	if b := h.box(); b != nil {
		v.large = b.(zsetTree).Set
	} else {
		v.small = h.image()
	}
	return v
}

// Len returns the number of members.
func (v *ZSetView) Len() int {
	switch {
	case v.large != nil:
		return v.large.Len(v.now)
	case v.small != nil:
		return v.small.Len(v.now)
	}
	return 0
}

// Score returns a member's score; ok is false if there is no such member.
func (v *ZSetView) Score(member []byte) (score float64, ok bool) {
	if v.large != nil {
		return v.large.Score(member, v.now)
	}
	if v.small == nil {
		return 0, false
	}
	at, ok := v.small.Find(member, v.now)
	if !ok {
		return 0, false
	}
	return v.small.Score(at), true
}

// Rank returns the number of members before a member, and its score; ok is false if there is no such member.
// O(log n).
func (v *ZSetView) Rank(member []byte) (rank int, score float64, ok bool) {
	if v.large != nil {
		if rank, ok = v.large.Rank(member, v.now); ok {
			score, _ = v.large.Score(member, v.now)
		}
		return rank, score, ok
	}
	if v.small == nil {
		return 0, 0, false
	}
	rank, at, ok := v.small.Rank(member, v.now)
	if !ok {
		return 0, 0, false
	}
	return rank, v.small.Score(at), true
}

// Deadline returns a member's deadline in ms since 1970, NoDeadline, or NoKey if
// there is no such member.
func (v *ZSetView) Deadline(member []byte) int64 {
	d, ok := int64(0), false
	if v.large != nil {
		d, ok = v.large.Deadline(member, v.now)
	} else if v.small != nil {
		var at packed.At
		if at, ok = v.small.Find(member, v.now); ok {
			d = v.small.Deadline(at)
		}
	}
	return deadlineOf(d, ok)
}

// Scan visits about count members and returns the cursor for the next call. A walk begins with 0
// and ends when Scan returns 0. It visits a member that exists from the first call to the last at
// least once. It visits a small set as a whole.
func (v *ZSetView) Scan(cursor uint64, count int, visit func(member []byte, score float64)) uint64 {
	if v.large == nil {
		for w := v.Range(&ZRange{Stop: -1}); w.Next(); {
			visit(w.Member(), w.Score())
		}
		return 0
	}
	for seen := 0; ; {
		cursor = v.large.Scan(cursor, v.now, func(e ordered.Entry) {
			visit(e.Member, e.Score)
			seen++
		})
		if cursor == 0 || seen >= count {
			return cursor
		}
	}
}
