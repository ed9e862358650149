package prefixes

import (
	"slices"
	"sort"
	"strings"
)

// Set is an ordered set of texts. Insert and Around cost O(log n); Insert also moves up
// to textsInChunk texts. The zero value is empty. The caller synchronizes access.
//
//	chunks: [a, b, c]  [d, e]  [f, g, h]     none is empty
type Set struct{ chunks [][]string }

// textsInChunk is the greatest number of texts in one chunk.
const textsInChunk = 512

// find returns the position of the first text that is not less than s. The position may be
// after the end of the last chunk.
func (t *Set) find(s string) (chunk, at int) {
	chunk = sort.Search(len(t.chunks), func(i int) bool { c := t.chunks[i]; return c[len(c)-1] >= s })
	if chunk == len(t.chunks) {
		return chunk, 0
	}
	at, _ = slices.BinarySearch(t.chunks[chunk], s)
	return chunk, at
}

// Insert adds a text and reports whether the set did not have it.
func (t *Set) Insert(s string) bool {
	i, at := t.find(s)
	if i == len(t.chunks) {
		if i == 0 {
			t.chunks = [][]string{{s}}
			return true
		}
		i, at = i-1, len(t.chunks[i-1])
	}
	c := t.chunks[i]
	if at < len(c) && c[at] == s {
		return false
	}
	if len(c) < textsInChunk {
		t.chunks[i] = slices.Insert(c, at, s)
		return true
	}
	half := len(c) / 2
	low, high := slices.Clone(c[:half]), slices.Clone(c[half:])
	if at <= half {
		low = slices.Insert(low, at, s)
	} else {
		high = slices.Insert(high, at-half, s)
	}
	t.chunks[i] = low
	t.chunks = slices.Insert(t.chunks, i+1, high)
	return true
}

// Around returns the neighbours of s in the order: the last text that is less than s and
// the first that is not. hasBefore and hasFrom report whether they exist.
func (t *Set) Around(s string) (before, from string, hasBefore, hasFrom bool) {
	i, at := t.find(s)
	switch {
	case i < len(t.chunks) && at > 0:
		before, hasBefore = t.chunks[i][at-1], true
	case i > 0:
		c := t.chunks[i-1]
		before, hasBefore = c[len(c)-1], true
	}
	if i < len(t.chunks) {
		from, hasFrom = t.chunks[i][at], true
	}
	return before, from, hasBefore, hasFrom
}

// Each calls f for all texts in order.
func (t *Set) Each(f func(s string)) {
	for _, c := range t.chunks {
		for _, s := range c {
			f(s)
		}
	}
}

// FirstOverlap returns the positions i < j of two texts of a list of which one is a
// prefix of the other: the smallest i that has such a j, and the smallest j for it. It
// costs O(n log n).
func FirstOverlap(texts []string) (i, j int, found bool) {
	order := make([]int, len(texts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(texts[a], texts[b]) })
	// In this order a prefix of a text is before the text, and all texts between the two
	// begin with that prefix too.
	first := len(texts)
	var open []int // each begins with the one before it
	for _, k := range order {
		for len(open) > 0 && !strings.HasPrefix(texts[k], texts[open[len(open)-1]]) {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			first = min(first, k, open[len(open)-1])
		}
		open = append(open, k)
	}
	for j := first + 1; j < len(texts); j++ {
		if Overlap(texts[first], texts[j]) {
			return first, j, true
		}
	}
	return 0, 0, false
}

// Overlap reports whether one of two texts is a prefix of the other.
func Overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
