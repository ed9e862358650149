package packed

// ListpackInt returns the number of bytes of an integer in a listpack of Redis: its encoding, its contents, and after them
// their length, which a walk from the end needs.
func ListpackInt(v int64) int {
	switch {
	case v >= 0 && v <= 127:
		return 2
	case v >= -4096 && v <= 4095:
		return 3
	case v == int64(int16(v)):
		return 4
	case v == v<<40>>40:
		return 5
	case v == int64(int32(v)):
		return 6
	}
	return 10
}

// ListpackStr does the work of ListpackInt for the string or integer of a cell.
func ListpackStr(s Str) int {
	if s.IsInt() {
		return ListpackInt(s.N)
	}
	n := 5 + len(s.B)
	switch {
	case len(s.B) < 64:
		n = 1 + len(s.B)
	case len(s.B) < 4096:
		n = 2 + len(s.B)
	}
	switch { // and the length again, for walks from the end
	case n <= 127:
		return n + 1
	case n < 16383:
		return n + 2
	case n < 2097151:
		return n + 3
	case n < 268435455:
		return n + 4
	}
	return n + 5
}
