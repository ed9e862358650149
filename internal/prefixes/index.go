package prefixes

import "math/bits"

// Index maps prefixes to values, and finds the values whose prefix a text may begin
// with. It compares the first indexedBytes of a prefix only: entries whose prefixes have
// these bytes in common share a bucket, and the caller checks each of them.
//
//	"user:" ─▶ bucket: entry, entry, ...        lengths: 0, 5, 6
//	"order:" ─▶ bucket: entry
//
// A lookup costs one map access for each length that prefixes have, at most 65, and one
// call for each entry of the buckets that it finds. The zero value is empty. The caller
// synchronizes access.
type Index[T any] struct {
	buckets map[string]*bucket[T]
	lengths [indexedBytes + 1]int // how many buckets have keys of this length
	used    [2]uint64             // bit n is set while lengths[n] > 0
}

// indexedBytes is the number of bytes of a prefix that select its bucket.
const indexedBytes = 64

type bucket[T any] struct {
	key     string
	entries []*Entry[T]
}

// Entry is the place of a value in an Index; Remove needs it.
type Entry[T any] struct {
	value T
	in    *bucket[T]
	at    int
}

// Add enters a value under a prefix and returns its place, for Remove. It costs O(1).
func (x *Index[T]) Add(prefix string, value T) *Entry[T] {
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
	e := &Entry[T]{value: value, in: b, at: len(b.entries)}
	b.entries = append(b.entries, e)
	return e
}

// Remove removes an entry. It costs O(1).
func (x *Index[T]) Remove(e *Entry[T]) {
	b := e.in
	b.entries = SwapRemove(b.entries, e.at, func(moved *Entry[T], at int) { moved.at = at })
	if len(b.entries) > 0 {
		return
	}
	n := len(b.key)
	delete(x.buckets, b.key)
	if x.lengths[n]--; x.lengths[n] == 0 {
		x.used[n>>6] &^= 1 << (n & 63)
	}
}

// Each calls f for every value whose prefix text begins with, and for those that share
// only the first indexedBytes of their prefix with it. f must not change the index.
func (x *Index[T]) Each(text []byte, f func(T)) {
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
