package chunklist

// PopFront removes the first living element, appends it to dst and returns it with its deadline; ok
// is false if there is none. O(1) plus the dead elements that it passes.
func (l *List) PopFront(dst []byte, now int64) (elem []byte, deadline int64, ok bool) {
	it := l.Iter(now)
	return l.pop(dst, &it, it.Next())
}

// PopBack removes the last living element, as PopFront.
func (l *List) PopBack(dst []byte, now int64) (elem []byte, deadline int64, ok bool) {
	it := l.IterBack(now)
	return l.pop(dst, &it, it.Prev())
}

func (l *List) pop(dst []byte, it *Iter, ok bool) ([]byte, int64, bool) {
	if !ok {
		return dst, 0, false
	}
	dst, deadline := it.Value().Append(dst), it.Deadline()
	l.remove(it, l.blocks <= 4) // do not tidy a block among many: it will soon be empty
	return dst, deadline, true
}
