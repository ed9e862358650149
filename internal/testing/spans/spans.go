// Package spans counts what certainly happened within a time, from the spans in which it was seen to happen.
package spans

import (
	"cmp"
	"slices"
	"time"
)

// Span is a time within which something happened, in ns from any origin.
type Span struct{ From, To int64 }

// MostIn returns the largest number of spans that lie within a window of a given length. It sorts them by their beginning.
// O(n log n + n times the spans in a window).
func MostIn(all []Span, window time.Duration) (most int) {
	slices.SortFunc(all, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for i, first := range all {
		n, end := 0, first.From+int64(window)
		for _, s := range all[i:] {
			if s.From > end {
				break
			}
			if s.To <= end {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
