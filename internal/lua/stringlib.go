package lua

import (
	"encoding/binary"
	"unsafe"
)

// stringLib is the library string of one State. It keeps buffers between calls, so that a
// call allocates only its result.
type stringLib struct {
	state *State
	// scratch is the buffer in which a result of unknown length grows; nil while it is in
	// use.
	scratch []byte
	// chunk is the rest of a block from which result cuts short strings.
	chunk []byte
	// spare is a free matcher; nil while a call uses it.
	spare *matcher
	// patterns holds the patterns that programs used last, each in the slot that slotOf
	// returns.
	patterns [64]*pattern
}

const (
	// shareLimit is the length of the longest string whose parts share its bytes. A part
	// keeps the whole string alive, and the census does not count that. shareLimit is also
	// the length of a chunk.
	shareLimit = 256
	// pieceLimit is the length of the longest string that result cuts from a chunk.
	pieceLimit = 32
	// maxScratch is the length up to which finish copies a result out of the scratch buffer;
	// a longer result keeps the buffer.
	maxScratch = 4096
	// maxCachedPattern is the length of the longest pattern in the cache.
	maxCachedPattern = 256
	// itemBytes is the approximate memory of one byte of a pattern after compilation.
	itemBytes = int(unsafe.Sizeof(item{}))
	// iteratorBytes is the approximate memory of a gmatch.
	iteratorBytes = 192
)

// oneByte contains all byte values: strings of one byte are parts of it.
var oneByte = func() string {
	b := make([]byte, 256)
	for c := range b {
		b[c] = byte(c)
	}
	return string(b)
}()

// openString adds the library string, and the metatable of strings, which makes
// its functions methods.
func openString(s *State) {
	l := &stringLib{state: s}
	t := openLibrary(s, "string", []library{
		{"byte", l.byte},
		{"char", l.char},
		{"dump", l.dump},
		{"find", l.find},
		{"format", l.format},
		{"gfind", l.gmatch},
		{"gmatch", l.gmatch},
		{"gsub", l.gsub},
		{"len", l.len},
		{"lower", l.lower},
		{"match", l.match},
		{"rep", l.rep},
		{"reverse", l.reverse},
		{"sub", l.sub},
		{"upper", l.upper},
	})
	_ = t.SetString("gfind", t.GetString("gmatch")) // one function under two names
	meta := s.NewTable(0, 1)
	_ = meta.SetString("__index", TableValue(t))
	meta.SetReadonly(true) // all scripts share it; in Redis it is also read-only
	s.SetStringMeta(meta)
}

// position converts an index of a program into a position in a string of n bytes: a
// negative index counts from the end.
func position(i, n int) int {
	if i < 0 {
		i += n + 1
	}
	return max(i, 0)
}

func (l *stringLib) len(c Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	return c.Return(Int(len(s)))
}

func (l *stringLib) sub(c Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	from, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	to, err := c.OptInt(3, -1)
	if err != nil {
		return err
	}
	from, to = max(position(from, len(s)), 1), min(position(to, len(s)), len(s))
	if from > to {
		return c.Return(String(""))
	}
	v, err := l.part(s, from-1, to)
	if err != nil {
		return err
	}
	return c.Return(v)
}

func (l *stringLib) reverse(c Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	if len(s) < 2 {
		return c.Return(String(s))
	}
	b, err := l.result(len(s))
	if err != nil {
		return err
	}
	for i := 0; i < len(s); i++ {
		b[len(b)-1-i] = s[i]
	}
	return c.Return(Bytes(b))
}

func (l *stringLib) lower(c Call) error { return l.convert(c, 'A') }
func (l *stringLib) upper(c Call) error { return l.convert(c, 'a') }

// convert returns a string in which it has changed the case of the 26 letters from first
// on. It does not copy a string without such letters.
func (l *stringLib) convert(c Call, first byte) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	same := 0
	for same < len(s) && s[same]-first > 25 {
		same++
	}
	if same == len(s) {
		return c.Return(String(s))
	}
	b, err := l.result(len(s))
	if err != nil {
		return err
	}
	copy(b, s)
	flipCase(b, first)
	return c.Return(Bytes(b))
}

// flipCase changes the case of the 26 letters from first on in b, eight bytes at a time.
// It adds constants to the low 7 bits of each byte: one sum sets the eighth bit if the
// byte is at least first, the other one if it is after the last letter.
func flipCase(b []byte, first byte) {
	const ones = 0x0101010101010101
	from, beyond := (0x80-uint64(first))*ones, (0x80-uint64(first)-26)*ones
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		low := w &^ (0x80 * ones)
		letters := ((low + from) ^ (low + beyond)) &^ w & (0x80 * ones)
		binary.LittleEndian.PutUint64(b, w^letters>>2)
		b = b[8:]
	}
	for i, c := range b {
		if c-first <= 25 {
			b[i] = c ^ 0x20
		}
	}
}

func (l *stringLib) rep(c Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	count, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	n := int(int32(count)) // an int, in 5.1: 2^31 is negative
	if n <= 0 || s == "" {
		return c.Return(String(""))
	}
	if n == 1 {
		return c.Return(String(s))
	}
	b, err := l.result(len(s) * n)
	if err != nil {
		return err
	}
	for done := copy(b, s); done < len(b); {
		done += copy(b[done:], b[:done])
	}
	return c.Return(Bytes(b))
}

func (l *stringLib) byte(c Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	from, err := c.OptInt(2, 1)
	if err != nil {
		return err
	}
	from = position(from, len(s))
	to, err := c.OptInt(3, from)
	if err != nil {
		return err
	}
	from, to = max(from, 1), min(position(to, len(s)), len(s))
	if from > to {
		return c.Return()
	}
	if from == to {
		return c.Return(Int(int(s[from-1])))
	}
	if err := checkStack(c, to-from+1, "string slice too long"); err != nil {
		return err
	}
	vs, err := c.Results(to - from + 1)
	if err != nil {
		return err
	}
	for i := range vs {
		vs[i] = Int(int(s[from-1+i]))
	}
	return nil
}

// checkStack does the work of luaL_checkstack: a builtin has 8000 slots for its arguments
// and results.
func checkStack(c Call, n int, what string) error {
	const maxSlots = 8000
	if c.N()+n > maxSlots {
		return c.Errorf("stack overflow (%s)", what)
	}
	return nil
}

func (l *stringLib) char(c Call) error {
	n := c.N()
	b := l.takeScratch()
	b, err := l.reserve(b, n)
	if err != nil {
		return l.dropScratch(b, err)
	}
	for i := 1; i <= n; i++ {
		v, err := c.CheckInt(i)
		if err != nil {
			return l.dropScratch(b, err)
		}
		if int(uint8(v)) != int(int32(v)) {
			return l.dropScratch(b, c.ArgError(i, "invalid value"))
		}
		b = append(b, byte(v))
	}
	v, err := l.finish(b)
	if err != nil {
		return err
	}
	return c.Return(v)
}

// dump returns the header of a dumped function and the name of its chunk. It leaves out
// the code, because a Lua that refuses to load dumped functions, as Redis's does, cannot
// use it.
func (l *stringLib) dump(c Call) error {
	f, err := c.CheckFunction(1)
	if err != nil {
		return err
	}
	if f.w>>tagShift != tagClosure {
		return c.Errorf("unable to dump given function")
	}
	const header = "\x1bLuaQ\x00\x01\x04\x08\x04\x08\x00"
	v, err := l.copyOf(header + f.closure().proto.Source)
	if err != nil {
		return err
	}
	return c.Return(v)
}

// spend charges the steps of a scan of n bytes.
func (l *stringLib) spend(n int) error {
	if n < 512 {
		return nil
	}
	return l.state.Spend(n >> 6)
}

// part returns s[from:to] as a value. The value shares the bytes of s if s is short.
func (l *stringLib) part(s string, from, to int) (Value, error) {
	if len(s) <= shareLimit || to-from == len(s) {
		return String(s[from:to]), nil
	}
	return l.copyOf(s[from:to])
}

// copyOf returns a copy of s as a value.
func (l *stringLib) copyOf(s string) (Value, error) {
	switch len(s) {
	case 0:
		return String(""), nil
	case 1:
		return String(oneByte[s[0] : int(s[0])+1]), nil
	}
	b, err := l.result(len(s))
	if err != nil {
		return Nil, err
	}
	copy(b, s)
	return Bytes(b), nil
}

// result returns a buffer of n bytes, which becomes the result without a copy. A short
// buffer is a part of a chunk.
func (l *stringLib) result(n int) ([]byte, error) {
	if n <= pieceLimit {
		return l.piece(n)
	}
	if n > MaxString {
		return nil, errMemory
	}
	if err := l.spend(n); err != nil {
		return nil, err
	}
	if err := l.state.Charge(n); err != nil {
		return nil, err
	}
	return make([]byte, n), nil
}

func (l *stringLib) piece(n int) ([]byte, error) {
	if n > len(l.chunk) {
		if err := l.state.Charge(shareLimit); err != nil {
			return nil, err
		}
		l.chunk = make([]byte, shareLimit)
	}
	b := l.chunk[:n:n]
	l.chunk = l.chunk[n:]
	return b, nil
}

// A builtin takes the scratch buffer and extends it by append and reserve. finish turns it
// into a result, and dropScratch returns it after an error. If the builtin calls a
// function meanwhile, that function takes a new buffer.

func (l *stringLib) takeScratch() []byte {
	b := l.scratch
	l.scratch = nil
	return b
}

// keepScratch makes b the scratch buffer if b is not too long.
func (l *stringLib) keepScratch(b []byte) {
	if cap(b) <= maxScratch {
		l.scratch = b[:0]
	}
}

func (l *stringLib) dropScratch(b []byte, err error) error {
	l.keepScratch(b)
	return err
}

// finish returns the content of the scratch buffer as a value.
func (l *stringLib) finish(b []byte) (Value, error) {
	if cap(b) > maxScratch && len(b) > cap(b)/2 {
		return Bytes(b), nil
	}
	v, err := l.copyOf(unsafe.String(unsafe.SliceData(b), len(b)))
	l.keepScratch(b)
	return v, err
}

// append appends s to the scratch buffer.
func (l *stringLib) append(b []byte, s string) ([]byte, error) {
	if len(s) > cap(b)-len(b) {
		var err error
		if b, err = l.reserve(b, len(s)); err != nil {
			return b, err
		}
	}
	return append(b, s...), nil
}

// reserve makes space for n more bytes in the scratch buffer. It doubles the capacity, so
// that growing costs no more than appending.
func (l *stringLib) reserve(b []byte, n int) ([]byte, error) {
	if n <= cap(b)-len(b) {
		return b, nil
	}
	n += len(b)
	if n > MaxString {
		return b, errMemory
	}
	n = max(n, min(2*cap(b), MaxString), 1024)
	if err := l.spend(n); err != nil {
		return b, err
	}
	if err := l.state.Charge(n); err != nil {
		return b, err
	}
	grown := make([]byte, len(b), n)
	copy(grown, b)
	return grown, nil
}
