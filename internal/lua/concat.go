package lua

import "unsafe"

// concatBuffer holds the string of the last concatenation, and the spare capacity behind
// it. A string that is built piece by piece, as s = s .. x does, has its pieces appended
// there: no value refers to the bytes behind the end of the last string, and the earlier
// strings are its prefixes.
type concatBuffer struct{ b []byte }

func (c *concatBuffer) size() int { return cap(c.b) }

// joins reports whether .. takes the value without a metamethod.
func joins(v Value) bool { return v.IsString() || v.IsNumber() }

// allJoin reports whether .. takes all values without a metamethod.
func allJoin(vs []Value) bool {
	for i := range vs {
		if !joins(vs[i]) {
			return false
		}
	}
	return true
}

// join concatenates strings and numbers. It costs the length of the result, but
// if the first is the string that join has made last only that of the others.
func (s *State) join(vs []Value) (Value, error) {
	// Numbers are written to the scratch buffer first, one behind the other; a
	// piece of it is as good as a string until the next call.
	scratch := s.scratch[:0]
	n := 0
	for i, v := range vs {
		if v.IsNumber() {
			at := len(scratch)
			scratch = AppendNumber(scratch, v.number())
			vs[i] = Bytes(scratch[at:])
		}
		n += vs[i].length()
	}
	s.scratch = scratch[:0]
	if n > MaxString {
		return Nil, &Error{Value: String("string length overflow")}
	}
	if s.budget -= n >> 4; s.budget < 0 {
		if err := s.tick(); err != nil {
			return Nil, err
		}
	}

	left := vs[0]
	b := s.concat.b
	again := left.length() > 0 && left.length() == len(b) && left.p == unsafe.Pointer(unsafe.SliceData(b))
	if again && n <= cap(b) {
		for _, v := range vs[1:] {
			b = append(b, v.str()...)
		}
		s.concat.b = b
		return Bytes(b), nil
	}
	room := n
	if again {
		room = 2 * n
	}
	if err := s.heap.charge(room); err != nil {
		return Nil, err
	}
	b = make([]byte, 0, room)
	for _, v := range vs {
		b = append(b, v.str()...)
	}
	s.concat.b = b
	return Bytes(b), nil
}
