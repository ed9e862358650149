package command

// ArgBytes is the size of an argument of a request besides its own bytes: a slice.
const ArgBytes = 24

// ArgsBytes returns the number of bytes of a request's arguments.
func ArgsBytes(args [][]byte) (n int64) {
	for _, a := range args {
		n += int64(len(a))
	}
	return n
}

// CopyArgs copies a request out of the input buffer, into one allocation.
func CopyArgs(args [][]byte) [][]byte {
	var m ArgMemory
	return m.Copy(args)
}

// ArgMemory is memory for the arguments of requests; each request replaces the one before. Its zero
// value is empty.
type ArgMemory struct {
	flat []byte
	args [][]byte
}

// Copy copies a request over the one before. The copy is valid until the next call.
func (m *ArgMemory) Copy(args [][]byte) [][]byte {
	n := int(ArgsBytes(args))
	if cap(m.flat) < n {
		m.flat = make([]byte, 0, n)
	}
	if cap(m.args) < len(args) {
		m.args = make([][]byte, len(args))
	}
	flat, own := m.flat[:0], m.args[:len(args)]
	for i, a := range args {
		flat = append(flat, a...)
		own[i] = flat[len(flat)-len(a) : len(flat) : len(flat)]
	}
	return own
}

// Size returns the number of bytes that the memory takes up.
func (m *ArgMemory) Size() int { return cap(m.flat) + cap(m.args)*ArgBytes }
