package hll

// These are the opcodes of a sparse sketch.
const (
	opXZero = 0x40
	opVal   = 0x80

	zeroMax   = 64 // the greatest number of registers of a ZERO
	valMax    = 4  // of a VAL
	sparseMax = 32 // the highest value of a VAL
)

// Op is one opcode: Len registers, from First on, are Value.
type Op struct {
	First, Len int
	Value      uint8
	XZero      bool
}

// decode returns the opcode at the start of ops, which is not empty, and its
// size in bytes; 0 if it is cut off.
func decode(ops []byte) (value uint8, length, size int) {
	switch b := ops[0]; {
	case b&opVal != 0:
		return b>>2&(sparseMax-1) + 1, int(b&(valMax-1)) + 1, 1
	case b&opXZero == 0:
		return 0, int(b) + 1, 1
	case len(ops) < 2:
		return 0, 0, 0
	default:
		return 0, (int(b&(zeroMax-1))<<8 | int(ops[1])) + 1, 2
	}
}

// appendZeros appends the opcode for n registers that are 0.
func appendZeros(b []byte, n int) []byte {
	if n > zeroMax {
		return append(b, opXZero|byte((n-1)>>8), byte(n-1))
	}
	return append(b, byte(n-1))
}

func valOp(value uint8, n int) byte { return opVal | (value-1)<<2 | byte(n-1) }

// Walk calls visit for the opcodes of a valid sparse image, in order. It returns ErrCorrupt if they
// do not make up 16384 registers, and never calls visit for registers beyond these. O(opcodes).
func Walk(img []byte, visit func(Op)) error {
	at := 0
	for ops := img[HeaderSize:]; len(ops) > 0; {
		value, n, size := decode(ops)
		if size == 0 || at+n > Registers {
			return ErrCorrupt
		}
		visit(Op{at, n, value, size == 2})
		at, ops = at+n, ops[size:]
	}
	if at != Registers {
		return ErrCorrupt
	}
	return nil
}

// lengths has the number of registers of each one-byte opcode, and more than there are for XZERO. A
// table lookup has no branch that the processor could mispredict.
var lengths = func() (t [256]uint16) {
	for b := range t {
		if _, n, size := decode([]byte{byte(b)}); size == 1 {
			t[b] = uint16(n)
		} else {
			t[b] = 2 * Registers
		}
	}
	return t
}()

// cursor is a position among the opcodes: those before off make up first registers. The zero cursor
// is the beginning.
type cursor struct{ off, first int }

// run describes the opcode that contains a register.
type run struct {
	at    cursor
	prev  int    // offset of the opcode before; -1: seek did not pass it
	back  cursor // the opcode before that one; the beginning if seek did not pass it
	value uint8
	n     int // registers
	size  int // bytes
}

// seek finds the opcode of a register, beginning at the cursor.
func (c cursor) seek(ops []byte, register int) (r run, ok bool) {
	at, prev := c, cursor{off: -1}
	for at.off < len(ops) {
		if next, last, before := at.leap(ops, register); next != at {
			at, prev, r.back = next, last, before
			continue
		}
		value, n, size := decode(ops[at.off:])
		if size == 0 {
			return r, false
		}
		if register < at.first+n {
			r.at, r.prev, r.value, r.n, r.size = at, prev.off, value, n, size
			return r, true
		}
		if prev.off >= 0 {
			r.back = prev
		}
		at, prev = cursor{at.off + size, at.first + n}, at
	}
	return r, false
}

// leap passes opcodes four at a time while they are of one byte and end before a
// register, and returns the last two that it passed as well.
func (c cursor) leap(ops []byte, register int) (next, last, before cursor) {
	off, first := c.off, c.first
	for off+4 <= len(ops) {
		q := (*[4]byte)(ops[off:])
		n := first + int(lengths[q[0]]) + int(lengths[q[1]]) + int(lengths[q[2]]) + int(lengths[q[3]])
		if n > register {
			break
		}
		off, first = off+4, n
	}
	if off != c.off {
		last = cursor{off - 1, first - int(lengths[ops[off-1]])}
		before = cursor{off - 2, last.first - int(lengths[ops[off-2]])}
	}
	return cursor{off, first}, last, before
}

// raise is Raise for a sparse image. It searches from the cursor on, and moves
// it to where the search for the next register, if that is a higher one, may
// begin: two opcodes back, because the one before may have been joined with it.
func (c *cursor) raise(img []byte, register int, value uint8, limit int) (_ []byte, raised bool, err error) {
	r, ok := c.seek(img[HeaderSize:], register)
	*c = r.back
	switch {
	case !ok:
		return img, false, ErrCorrupt
	case r.value >= value:
		return img, false, nil
	case value > sparseMax:
		return promote(img, register, value)
	}
	var seq [5]byte
	with := r.split(seq[:0], register, value)
	if grow := len(with) - r.size; grow > 0 && len(img)+grow > limit {
		return promote(img, register, value)
	}
	img = splice(img, HeaderSize+r.at.off, r.size, with)
	img = join(img, HeaderSize+max(r.prev, 0))
	Invalidate(img)
	return img, true, nil
}

// split appends the opcodes that take the run's place when one of its registers
// is raised.
func (r *run) split(b []byte, register int, value uint8) []byte {
	before, after := register-r.at.first, r.at.first+r.n-1-register
	if before > 0 {
		b = r.appendPart(b, before)
	}
	b = append(b, valOp(value, 1))
	if after > 0 {
		b = r.appendPart(b, after)
	}
	return b
}

func (r *run) appendPart(b []byte, n int) []byte {
	if r.value == 0 {
		return appendZeros(b, n)
	}
	return append(b, valOp(r.value, n))
}

// splitGrow is the greatest number of bytes by which a split lengthens a sketch: an XZERO becomes
// XZERO VAL XZERO.
const splitGrow = 3

// splice replaces n bytes with the bytes of with, which is at most splitGrow longer.
func splice(b []byte, off, n int, with []byte) []byte {
	if grow := len(with) - n; grow > 0 {
		var room [splitGrow]byte
		b = append(b, room[:grow]...)
		copy(b[off+len(with):], b[off+n:])
	} else if grow < 0 {
		copy(b[off+len(with):], b[off+n:])
		b = b[:len(b)+grow]
	}
	copy(b[off:], with)
	return b
}

// joinSpan is the number of steps of join: from the opcode before a split one over at most five new
// ones.
const joinSpan = 5

// join merges neighbouring VALs of the same value into one, where that fits, among the opcodes from
// off on.
func join(img []byte, off int) []byte {
	for step := 0; step < joinSpan && off < len(img); step++ {
		b := img[off]
		if b&opVal == 0 {
			off++
			if b&opXZero != 0 {
				off++
			}
			continue
		}
		if off+1 < len(img) && img[off+1]&^(valMax-1) == b&^(valMax-1) {
			if n := int(b&(valMax-1)) + int(img[off+1]&(valMax-1)) + 2; n <= valMax {
				img[off+1] = b&^(valMax-1) | byte(n-1)
				copy(img[off:], img[off+1:])
				img = img[:len(img)-1]
				continue // the merged opcode may merge again
			}
		}
		off++
	}
	return img
}

// promote makes a sparse image dense and raises a register.
func promote(img []byte, register int, value uint8) ([]byte, bool, error) {
	var buf [DenseSize]byte
	dense, err := ToDense(buf[:], img)
	if err != nil {
		return img, false, err
	}
	raise(dense[HeaderSize:], register, value)
	Invalidate(dense)
	return append(img[:0], dense...), true, nil
}
