package command

import (
	"math/bits"
	"slices"
)

// prefixIndex finds, among many entries that each want what begins with a prefix, those
// that a text may be for. It goes by the first indexedBytes of a prefix: entries whose
// prefixes have these in common stand together, and the caller looks at each.
//
//	"user:" ─▶ bucket: entry, entry, ...        lengths: 0, 5, 6
//	"order:" ─▶ bucket: entry
//
// A look-up costs one look into a map for each length that prefixes have, at most 65, and
// the entries of the buckets that it finds. The zero value is empty.
type prefixIndex[T any] struct {
	buckets map[string]*bucket[T]
	lengths [indexedBytes + 1]int // how many buckets have keys of this length
	used    [2]uint64             // the lengths that some have, a bit each
}

// indexedBytes is how much of a prefix decides where an entry stands.
const indexedBytes = 64

type bucket[T any] struct {
	key     string
	entries []*indexed[T]
}

// indexed is an entry's place in an index.
type indexed[T any] struct {
	value T
	in    *bucket[T]
	at    int
}

// add enters a value under a prefix, and returns its place, for remove. O(1).
func (x *prefixIndex[T]) add(prefix string, value T) *indexed[T] {
	key := prefix[:min(len(prefix), indexedBytes)]
	b := x.buckets[key]
	if b == nil {
		if x.buckets == nil {
			x.buckets = map[string]*bucket[T]{}
		}
		b = &bucket[T]{key: key}
		x.buckets[key] = b
		if x.lengths[len(key)]++; x.lengths[len(key)] == 1 {
			x.used[len(key)>>6] |= 1 << (len(key) & 63)
		}
	}
	e := &indexed[T]{value: value, in: b, at: len(b.entries)}
	b.entries = append(b.entries, e)
	return e
}

// remove takes an entry out. O(1).
func (x *prefixIndex[T]) remove(e *indexed[T]) {
	b := e.in
	last := b.entries[len(b.entries)-1]
	b.entries[e.at], last.at = last, e.at
	b.entries[len(b.entries)-1] = nil
	b.entries = b.entries[:len(b.entries)-1]
	switch n := len(b.key); {
	case len(b.entries) == 0:
		delete(x.buckets, b.key)
		if x.lengths[n]--; x.lengths[n] == 0 {
			x.used[n>>6] &^= 1 << (n & 63)
		}
	case cap(b.entries) > 64 && len(b.entries) < cap(b.entries)/4:
		b.entries = slices.Clone(b.entries)
	}
}

// each calls f for the entries of the buckets whose keys text begins with: all whose
// prefix it begins with, and those with which it has indexedBytes in common.
func (x *prefixIndex[T]) each(text []byte, f func(T)) {
	for w, lengths := range x.used {
		for ; lengths != 0; lengths &= lengths - 1 {
			n := w<<6 + bits.TrailingZeros64(lengths)
			if n > len(text) {
				return
			}
			if b := x.buckets[string(text[:n])]; b != nil {
				for _, e := range b.entries {
					f(e.value)
				}
			}
		}
	}
}
