package rdb

import (
	"encoding/binary"
	"math"
	"strconv"
)

// A Decoder reads values from bytes. It reuses its buffers for the next value. It is not safe for
// concurrent use.
type Decoder struct {
	in      []byte
	pos     int
	version int
	// MaxString is the greatest length, in bytes, of a string that was compressed; 0: 512 MiB.
	MaxString int
	// Meter is asked before a string is decompressed. The decoding ends with its error. It may be nil.
	Meter Meter

	// bufs has a buffer for each of a layout, a field and its value, which are in use at the same
	// time.
	bufs [3][]byte
	nums [3][20]byte

	// held says that the next layout was read already: it is pack, which the Builder did not take as a whole.
	held bool
	pack []byte

	// These fields hold a stream's entry: its fields and values, and the digits of those that are
	// integers, each up to its end.
	pairs  [][]byte
	digits []byte
	ends   []int
}

// A Meter bounds what compressed strings may take.
type Meter interface {
	// Unpacks is called before n bytes are decompressed.
	Unpacks(n int) error
}

// These are the buffers of a Decoder.
const (
	first  = iota // a string, a member, a field
	second        // a value
	whole         // a packed layout
)

const defaultMaxString = 512 << 20

// Reset makes the Decoder read b, which was written in a version of the format.
func (d *Decoder) Reset(b []byte, version int) {
	d.in, d.pos, d.version = b, 0, version
	d.held, d.pack = false, nil
}

// Restore decodes the complete value of a DUMP payload, with its type. Errors: ErrFormat, and the
// errors of b.
func (d *Decoder) Restore(value []byte, version int, b Builder) error {
	d.Reset(value, version)
	t, err := d.byte()
	if err != nil {
		return err
	}
	if err := d.Value(Type(t), b); err != nil {
		return err
	}
	if d.pos != len(d.in) {
		return bad("%d bytes follow the value", len(d.in)-d.pos)
	}
	return nil
}

// Value decodes one value of type t and passes its parts to b. O(bytes of the value). Errors:
// ErrFormat, also for an empty container; the errors of b.
func (d *Decoder) Value(t Type, b Builder) error {
	if t.since() > d.version {
		return bad("type %d in version %d", t, d.version)
	}
	if t == TypeSetListpack || t == TypeHashListpack || t == TypeZSetListpack {
		if done, err := d.listpack(t, b); done || err != nil {
			return err
		}
	}
	switch t {
	case TypeString:
		s, err := d.string(first)
		if err != nil {
			return err
		}
		return b.String(s)
	case TypeList, TypeListZiplist, TypeQuicklist, TypeQuicklist2:
		return d.list(t, b)
	case TypeSet, TypeSetIntset, TypeSetListpack:
		return d.set(t, b)
	case TypeZSet, TypeZSet2, TypeZSetZiplist, TypeZSetListpack:
		return d.zset(t, b)
	case TypeHash, TypeHashZipmap, TypeHashZiplist, TypeHashListpack:
		return d.hash(t, b)
	}
	if t >= TypeHashValkey && dialectOf(d.version) == Valkey {
		return d.valkeyHash(t, b)
	}
	switch t {
	case TypeHashTimed, TypeHashTimedOld:
		return d.timedHash(t, b)
	case TypeHashTimedPack, TypeHashTimedPackOld:
		return d.timedPack(t, b)
	case TypeStream, TypeStream2, TypeStream3:
		return d.stream(t, b)
	case TypeModule:
		return d.module(b)
	}
	return d.unknown(t)
}

// unknown returns the error for an unknown type.
func (d *Decoder) unknown(t Type) error { return &UnknownType{t, dialectOf(d.version), d.version} }

// take returns the next n bytes.
func (d *Decoder) take(n int) ([]byte, error) {
	if n < 0 || n > len(d.in)-d.pos {
		return nil, bad("the value is cut off")
	}
	b := d.in[d.pos : d.pos+n : d.pos+n]
	d.pos += n
	return b, nil
}

func (d *Decoder) byte() (byte, error) {
	b, err := d.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

func (d *Decoder) uint64() (uint64, error) {
	b, err := d.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// length reads a length; special is true for the special forms of strings, and n is then the form.
func (d *Decoder) length() (n uint64, special bool, err error) {
	c, err := d.byte()
	if err != nil {
		return 0, false, err
	}
	n, rest, special, err := lengthHead(c)
	if rest == 0 || err != nil {
		return n, special, err
	}
	b, err := d.take(rest)
	return lengthTail(n, b), false, err
}

// lengthHead reads a length's first byte. It returns the first bits of the number, and how many
// bytes follow; special is true for a special form of strings, which is n then.
func lengthHead(c byte) (n uint64, rest int, special bool, err error) {
	switch {
	case c < 0x40:
		return uint64(c), 0, false, nil
	case c < 0x80:
		return uint64(c & 0x3f), 1, false, nil
	case c == 0x80:
		return 0, 4, false, nil
	case c == 0x81:
		return 0, 8, false, nil
	case c >= 0xc0:
		return uint64(c & 0x3f), 0, true, nil
	}
	return 0, 0, false, bad("no length begins with 0x%02x", c)
}

// lengthTail adds the bytes that follow.
func lengthTail(n uint64, b []byte) uint64 {
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n
}

// number reads a length that is not that of a string.
func (d *Decoder) number() (uint64, error) {
	n, special, err := d.length()
	if err == nil && special {
		err = bad("a string stands where a number should")
	}
	return n, err
}

// count reads the number of elements that follow, each of at least size bytes.
func (d *Decoder) count(size int) (int, error) {
	n, err := d.number()
	if err == nil && n > uint64(len(d.in)-d.pos)/uint64(size) {
		err = bad("the value is cut off")
	}
	return int(n), err
}

// some is count for a container that must not be empty.
func (d *Decoder) some(size int) (int, error) {
	n, err := d.count(size)
	if err == nil && n == 0 {
		err = errEmpty
	}
	return n, err
}

var errEmpty = bad("an empty container")

// These are the special forms of strings.
const (
	formInt8 = iota
	formInt16
	formInt32
	formLZF
)

// string reads a string. The result lies in the input, or in the buffer buf.
func (d *Decoder) string(buf int) ([]byte, error) {
	n, special, err := d.length()
	if err != nil {
		return nil, err
	}
	if !special {
		if n > uint64(len(d.in)) {
			return nil, bad("the value is cut off")
		}
		return d.take(int(n))
	}
	if n <= formInt32 {
		b, err := d.take(1 << n)
		if err != nil {
			return nil, err
		}
		return strconv.AppendInt(d.nums[buf][:0], littleInt(b), 10), nil
	}
	if n != formLZF {
		return nil, bad("no string has the form %d", n)
	}
	return d.compressed(buf)
}

func (d *Decoder) compressed(buf int) ([]byte, error) {
	packed, err := d.count(1)
	if err != nil {
		return nil, err
	}
	n, err := d.number()
	if err != nil {
		return nil, err
	}
	src, err := d.take(packed)
	if err != nil {
		return nil, err
	}
	limit := d.MaxString
	if limit == 0 {
		limit = defaultMaxString
	}
	if n > uint64(limit) {
		return nil, bad("a compressed string of %d bytes is too long", n)
	}
	if d.Meter != nil {
		if err := d.Meter.Unpacks(int(n)); err != nil {
			return nil, err
		}
	}
	out, err := unpackLZF(d.bufs[buf][:0], src, int(n))
	if cap(out) <= keepBuffer {
		d.bufs[buf] = out
	}
	return out, err
}

// keepBuffer is the size of the largest buffer, in bytes, that a Decoder keeps. Most layouts and
// elements are smaller.
const keepBuffer = 1 << 20

// layout reads a string with a packed layout, and validates it.
func (d *Decoder) layout(check func([]byte) (int, error)) (b []byte, n int, err error) {
	if b = d.pack; !d.held {
		b, err = d.string(whole)
	}
	if d.held = false; err != nil {
		return nil, 0, err
	}
	if n, err = check(b); err == nil && n == 0 {
		err = errEmpty
	}
	return b, n, err
}

// listpack offers a listpack to a ListpackBuilder, and holds it for cursorOf if that does not take it.
func (d *Decoder) listpack(t Type, b Builder) (done bool, err error) {
	packs, ok := b.(ListpackBuilder)
	if !ok {
		return false, nil
	}
	if d.pack, err = d.string(whole); err != nil {
		return false, err
	}
	done, err = packs.Listpack(t, d.pack)
	d.held = !done && err == nil
	return done, err
}

// cursorOf reads the packed layout of type t and returns a cursor over its n elements.
func (d *Decoder) cursorOf(t Type) (c cursor, n int, err error) {
	var b []byte
	switch t {
	case TypeListZiplist, TypeZSetZiplist, TypeHashZiplist:
		b, n, err = d.layout(checkZiplist)
		c = newZiplist(b)
	case TypeHashZipmap:
		b, n, err = d.layout(checkZipmap)
		c, n = newZipmap(b), 2*n
	case TypeSetIntset:
		if b, n, err = d.layout(checkIntset); err == nil {
			c = newIntset(b)
		}
	default:
		b, n, err = d.layout(checkListpack)
		c = newListpack(b)
	}
	return c, n, err
}

// pairsOf is cursorOf for a layout of n pairs of elements.
func (d *Decoder) pairsOf(t Type) (c cursor, n int, err error) {
	c, n, err = d.cursorOf(t)
	if err == nil && n%2 != 0 {
		err = bad("an element has no other half")
	}
	return c, n / 2, err
}

func (d *Decoder) set(t Type, b Builder) error {
	if t != TypeSet {
		c, n, err := d.cursorOf(t)
		if err == nil {
			err = b.BeginSet(n)
		}
		if ints, ok := b.(IntBuilder); ok && err == nil && t == TypeSetIntset {
			s := c.(*intset)
			return ints.Integers(s.width, s.b)
		}
		for ; err == nil && n > 0; n-- {
			err = b.Member(c.next().bytes(&d.nums[first]))
		}
		return err
	}
	n, err := d.some(1)
	if err == nil {
		err = b.BeginSet(n)
	}
	for ; err == nil && n > 0; n-- {
		var m []byte
		if m, err = d.string(first); err == nil {
			err = b.Member(m)
		}
	}
	return err
}

func (d *Decoder) zset(t Type, b Builder) error {
	if t == TypeZSetZiplist || t == TypeZSetListpack {
		return d.packedZSet(t, b)
	}
	n, err := d.some(2)
	if err == nil {
		err = b.BeginZSet(n)
	}
	for ; err == nil && n > 0; n-- {
		var m []byte
		var score float64
		if m, err = d.string(first); err != nil {
			return err
		}
		if t == TypeZSet {
			score, err = d.textScore()
		} else {
			var u uint64
			u, err = d.uint64()
			score = math.Float64frombits(u)
		}
		if err == nil && math.IsNaN(score) {
			err = errNaN
		}
		if err == nil {
			err = b.Scored(m, score)
		}
	}
	return err
}

var errNaN = bad("a score is not a number")

// textScore reads a score of the oldest form: a length and decimal digits, or one of three special
// lengths, which stand for NaN and the infinities.
func (d *Decoder) textScore() (float64, error) {
	n, err := d.byte()
	if err != nil {
		return 0, err
	}
	switch n {
	case 253:
		return 0, errNaN
	case 254:
		return math.Inf(1), nil
	case 255:
		return math.Inf(-1), nil
	}
	s, err := d.take(int(n))
	if err != nil {
		return 0, err
	}
	return parseScore(s)
}

func parseScore(s []byte) (float64, error) {
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil || math.IsNaN(f) {
		return 0, errNaN
	}
	return f, nil
}

func (d *Decoder) packedZSet(t Type, b Builder) error {
	c, n, err := d.pairsOf(t)
	if err == nil {
		err = b.BeginZSet(n)
	}
	for ; err == nil && n > 0; n-- {
		m := c.next().bytes(&d.nums[first])
		s := c.next()
		score := float64(s.n)
		if s.b != nil {
			score, err = parseScore(s.b)
		}
		if err == nil {
			err = b.Scored(m, score)
		}
	}
	return err
}

func (d *Decoder) hash(t Type, b Builder) error {
	if t != TypeHash {
		c, n, err := d.pairsOf(t)
		if err == nil {
			err = b.BeginHash(n)
		}
		for ; err == nil && n > 0; n-- {
			f := c.next().bytes(&d.nums[first])
			err = b.Field(f, c.next().bytes(&d.nums[second]), 0)
		}
		return err
	}
	n, err := d.some(2)
	if err == nil {
		err = b.BeginHash(n)
	}
	for ; err == nil && n > 0; n-- {
		err = d.field(b, 0)
	}
	return err
}

// field reads a field and its value.
func (d *Decoder) field(b Builder, deadline int64) error {
	f, err := d.string(first)
	if err != nil {
		return err
	}
	v, err := d.string(second)
	if err != nil {
		return err
	}
	return b.Field(f, v, deadline)
}
