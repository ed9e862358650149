package prefixes

import "slices"

// SwapRemove removes the element at i from an unordered list: the last element takes its
// place, and setIndex tells that element its new index. A list that has become much shorter
// is copied, so that its memory is freed. It costs O(1) amortized.
func SwapRemove[T any](list []*T, i int, setIndex func(moved *T, i int)) []*T {
	last := len(list) - 1
	list[i] = list[last]
	setIndex(list[i], i)
	list[last] = nil
	list = list[:last]
	switch {
	case last == 0:
		return nil
	case cap(list) > 64 && last < cap(list)/4:
		return slices.Clone(list)
	}
	return list
}
