package engine

import (
	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
)

// HashView reads the living fields of a hash at the transaction's instant. It is valid until the
// next write. Fields and values that it returns are valid until the next call of one of its
// methods, or the next write.
type HashView struct {
	tx    *Tx
	now   int64
	small packed.Packed
	large *dict.Dict // small and large are both nil if there is no hash
}

// Hash looks a hash up for reading. A missing hash has no fields. Errors: ErrWrongType.
func (tx *Tx) Hash(key []byte) (HashView, error) {
	h, err := tx.open(key, Hash)
	if err != nil {
		return HashView{}, err
	}
	return tx.viewHash(&h), nil
}

// HGet returns the value of a field; ok is false if there is no such field. The value is valid
// until the next write. Expected O(1). Errors: ErrWrongType.
func (tx *Tx) HGet(key, field []byte) (value []byte, ok bool, err error) {
	v, err := tx.Hash(key)
	if err != nil {
		return nil, false, err
	}
	value, ok = v.Get(field)
	return value, ok, nil
}

func (tx *Tx) viewHash(h *hit) HashView {
	v := HashView{tx: tx, now: tx.itemTime()}
	if h.r == nil {
		return v
	}
	if b := h.box(); b != nil {
		v.large = b.(hashTable).Dict
	} else {
		v.small = h.image()
	}
	return v
}

// Len returns the number of fields.
func (v *HashView) Len() int {
	switch {
	case v.large != nil:
		return v.large.Len(v.now)
	case v.small != nil:
		return v.small.Len(v.now)
	}
	return 0
}

// Get returns the value of a field; ok is false if there is none.
func (v *HashView) Get(field []byte) (value []byte, ok bool) {
	if v.large != nil {
		return v.large.Get(field, v.now)
	}
	if v.small == nil {
		return nil, false
	}
	at, ok := v.small.Find(field, v.now)
	if !ok {
		return nil, false
	}
	return v.tx.text(3, v.small.Value(at)), true
}

// Deadline returns a field's deadline in ms since 1970, NoDeadline, or NoKey if
// there is no such field.
func (v *HashView) Deadline(field []byte) int64 {
	d, ok := int64(0), false
	if v.large != nil {
		d, ok = v.large.Deadline(field, v.now)
	} else if v.small != nil {
		var at packed.At
		if at, ok = v.small.Find(field, v.now); ok {
			d = v.small.Deadline(at)
		}
	}
	return deadlineOf(d, ok)
}

// integer returns the integer in a field; if there is no such field, there is false and n is 0.
func (v *HashView) integer(field []byte) (n int64, there bool, err error) {
	val, ok := v.Get(field)
	if !ok {
		return 0, false, nil
	}
	if n, err = parseInt(val); err != nil {
		return 0, true, ErrFieldNotInteger
	}
	return n, true, nil
}

// Each visits all fields, in no particular order.
func (v *HashView) Each(visit func(field, value []byte)) {
	v.EachTimed(func(field, value []byte, _ int64) { visit(field, value) })
}

// EachTimed visits all fields as Each does, with their deadlines, in ms since 1970 or NoDeadline.
func (v *HashView) EachTimed(visit func(field, value []byte, deadline int64)) {
	if v.large != nil {
		for it := range v.large.Iter(v.now) {
			visit(it.Key, it.Value, deadlineOf(it.Deadline, true))
		}
		return
	}
	if v.small == nil {
		return
	}
	for it := v.small.Iter(v.now); it.Next(); {
		visit(v.tx.text(2, it.Key()), v.tx.text(3, it.Value()), deadlineOf(it.Deadline(), true))
	}
}

// Scan visits about count fields and returns the cursor for the next call. A walk begins with 0 and
// ends when Scan returns 0. It visits a field that exists from the first call to the last at least
// once. It visits a small hash as a whole.
func (v *HashView) Scan(cursor uint64, count int, visit func(field, value []byte)) uint64 {
	if v.large == nil {
		v.Each(visit)
		return 0
	}
	return scanTable(v.large, cursor, count, v.now, func(it dict.Item) { visit(it.Key, it.Value) })
}

// Random returns a random field, each with the same probability; ok is false if there is none.
func (v *HashView) Random() (field, value []byte, ok bool) {
	if v.large != nil {
		it, ok := v.large.Random(v.now, v.tx.random())
		return it.Key, it.Value, ok
	}
	n := v.Len()
	if n == 0 {
		return nil, nil, false
	}
	at, _ := v.small.Index(v.tx.random().IntN(n), v.now)
	return v.tx.text(2, v.small.Key(at)), v.tx.text(3, v.small.Value(at)), true
}

// Draw visits n random fields. It draws each from all fields, so that a field may repeat. O(n); in
// a small hash O(n + fields).
func (v *HashView) Draw(n int, visit func(field, value []byte)) {
	if v.small != nil {
		drawPacked(v.small, n, v.now, v.tx.random(), func(at packed.At) {
			visit(v.tx.text(2, v.small.Key(at)), v.tx.text(3, v.small.Value(at)))
		})
		return
	}
	for ; n > 0; n-- {
		field, value, ok := v.Random()
		if !ok {
			return
		}
		visit(field, value)
	}
}

// Sample visits n different random fields, or all fields if there are fewer. Every subset of n
// fields has the same probability. O(n) if n is much less than the number of fields, else
// O(fields).
func (v *HashView) Sample(n int, visit func(field, value []byte)) {
	all := v.Len()
	if v.large != nil && n < all/sampleShare {
		sampleTable(v.large, n, v.now, v.tx.random(), func(it dict.Item) { visit(it.Key, it.Value) })
		return
	}
	s := sampler{left: all, want: min(n, all), rng: v.tx.random()}
	v.Each(func(field, value []byte) {
		if s.take() {
			visit(field, value)
		}
	})
}
