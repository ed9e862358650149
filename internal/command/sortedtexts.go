package command

import (
	"slices"
	"sort"
	"strings"
)

// sortedTexts is a set of texts in order. To insert one and to find a neighbour costs
// O(log n), and moving up to textsInChunk of them. The zero value is empty.
//
//	chunks: [a, b, c]  [d, e]  [f, g, h]     none is empty
type sortedTexts struct{ chunks [][]string }

// textsInChunk is how many texts stand in one piece of memory at most.
const textsInChunk = 512

// find returns where the first text is that is not before s: it may be behind the end of
// the last chunk.
func (t *sortedTexts) find(s string) (chunk, at int) {
	chunk = sort.Search(len(t.chunks), func(i int) bool { c := t.chunks[i]; return c[len(c)-1] >= s })
	if chunk == len(t.chunks) {
		return chunk, 0
	}
	at, _ = slices.BinarySearch(t.chunks[chunk], s)
	return chunk, at
}

// insert adds a text, and reports whether it was not there.
func (t *sortedTexts) insert(s string) bool {
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

// around returns the last text before s, and the first that is not before it.
func (t *sortedTexts) around(s string) (before, from string, hasBefore, hasFrom bool) {
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

// each calls f for all texts in order.
func (t *sortedTexts) each(f func(s string)) {
	for _, c := range t.chunks {
		for _, s := range c {
			f(s)
		}
	}
}

// firstOverlap returns, of a list of texts, the first that begins with another of them or
// with which another begins, and the first behind it of which that holds. It costs
// O(n log n).
func firstOverlap(texts []string) (i, j int, found bool) {
	order := make([]int, len(texts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(texts[a], texts[b]) })
	// What a text begins with stands before it, and all in between begin with that too.
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
		if overlap(texts[first], texts[j]) {
			return first, j, true
		}
	}
	return 0, 0, false
}

func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
