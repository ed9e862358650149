package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrCorrupt is wrapped by the errors of Validate.
var ErrCorrupt = errors.New("corrupt packed container")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// Validate verifies that b is an image that this package could have written. Every method of Packed
// (or of IntSet, if its kind is KindIntSet) is then safe on it, and the invariants of the package
// comment hold. It reads each byte a constant number of times and allocates a set of the members.
// Errors wrap ErrCorrupt and name the position.
func Validate(b []byte) error {
	if len(b) < headPlain {
		return corrupt("%d bytes are less than a header", len(b))
	}
	switch p := Packed(b); p.Kind() {
	case KindList, KindSet, KindHash, KindZSet:
		return p.validate()
	case KindIntSet:
		return IntSet(b).validate()
	}
	return corrupt("no kind %#x", b[0])
}

func (p Packed) validate() error {
	if p[0]&^(kindMask|flagTimed) != 0 || len(p) < p.head()+1 {
		return corrupt("header %#x of %d bytes", p[0], len(p))
	}
	v := validator{r: p.run(), kind: p.Kind()}
	if v.kind != KindList {
		v.seen = make(map[string]struct{}, min(p.Count(), len(p)/2))
	}
	if err := v.walk(); err != nil {
		return err
	}
	if p[0]&flagTimed != 0 && p.Timed() == 0 {
		return corrupt("a deadline header without deadlines")
	}
	if v.count != p.Count() || v.timed != p.Timed() || v.earliest != p.Earliest() {
		return corrupt("header says %d items, %d deadlines from %d; found %d, %d, %d",
			p.Count(), p.Timed(), p.Earliest(), v.count, v.timed, v.earliest)
	}
	return nil
}

// Validate verifies a bare run of one-cell list items, as the function Validate does for an image.
// It returns the number of items, of deadlines, and the earliest one.
func (r Run) Validate() (count, timed int, earliest int64, err error) {
	v := validator{r: r, kind: KindList}
	if len(r) == 0 {
		return 0, 0, 0, corrupt("an empty run")
	}
	err = v.walk()
	return v.count, v.timed, v.earliest, err
}

// validator walks a run and trusts nothing in it.
type validator struct {
	r               Run
	kind            Kind
	off             int
	prev            uint8
	count, timed    int
	earliest        int64
	seen            map[string]struct{}
	lastScore       float64
	lastMember, key []byte
}

func (v *validator) walk() error {
	for v.off < len(v.r)-1 {
		if err := v.item(); err != nil {
			return err
		}
		v.count++
	}
	if v.r[v.off] != v.prev {
		return corrupt("last separator %#x after tag %#x", v.r[v.off], v.prev)
	}
	return nil
}

func (v *validator) item() error {
	at := v.off
	tag, key, err := v.cell()
	if err != nil {
		return err
	}
	if tag&tagTimed != 0 {
		d := getDeadline(v.r[at+1:])
		if d == 0 || d > MaxDeadline {
			return corrupt("deadline %d at %d", d, at)
		}
		if v.timed++; v.earliest == 0 || d < v.earliest {
			v.earliest = d
		}
	}
	code := tag &^ tagTimed
	if code == codeFlt32 || code == codeFlt64 {
		return corrupt("a score for a string at %d", at)
	}
	str, err := canonical(key, code, at)
	if err != nil {
		return err
	}
	v.key = str.Append(v.key[:0])
	if v.seen != nil {
		if _, dup := v.seen[string(v.key)]; dup {
			return corrupt("%q twice", v.key)
		}
		v.seen[string(v.key)] = struct{}{}
	}
	switch v.kind {
	case KindHash:
		return v.value()
	case KindZSet:
		return v.score()
	}
	return nil
}

// cell steps over one cell and returns its tag and its payload without the
// deadline.
func (v *validator) cell() (tag uint8, payload []byte, err error) {
	r, at := v.r, v.off
	if at >= len(r)-1 {
		return 0, nil, corrupt("half an item at %d", at)
	}
	tag = r[at] ^ v.prev
	code, skip, ends := tag&^tagTimed, 0, 0
	if tag&tagTimed != 0 {
		skip = deadlineSize
	}
	if code == 76 || code == 77 {
		return 0, nil, corrupt("no code %d, at %d", code, at)
	}
	if sizes[tag] == sizeLong {
		ends = 1 << (code - codeStr8)
	}
	rest := len(r) - 1 - (at + 1) // the bytes left for the payload
	if rest < skip+2*ends {
		return 0, nil, corrupt("cell at %d leaves the run", at)
	}
	n := r.size(at, tag)
	if n > rest || n < 0 {
		return 0, nil, corrupt("cell of %d bytes at %d leaves the run", n, at)
	}
	end := at + 1 + n
	if r.sizeBack(end, tag) != n {
		return 0, nil, corrupt("cell at %d has another length at its end", at)
	}
	v.off, v.prev = end, tag
	return tag, r[at+1+skip : end], nil
}

func (v *validator) value() error {
	at := v.off
	tag, payload, err := v.cell()
	if err != nil {
		return err
	}
	if tag&tagTimed != 0 || tag == codeFlt32 || tag == codeFlt64 {
		return corrupt("value with tag %#x at %d", tag, at)
	}
	_, err = canonical(payload, tag, at)
	return err
}

func (v *validator) score() error {
	at := v.off
	tag, payload, err := v.cell()
	if err != nil {
		return err
	}
	if tag < codeInt8 || tag&tagTimed != 0 {
		return corrupt("score with tag %#x at %d", tag, at)
	}
	s := loadScore(payload, tag)
	var c Cell
	c.setScore(s)
	var buf [8]byte
	c.put(buf[:], 0)
	if math.IsNaN(s) || c.code != tag || string(buf[:c.n]) != string(payload) {
		return corrupt("score %v with tag %#x at %d", s, tag, at)
	}
	if v.count > 0 && (s < v.lastScore || s == v.lastScore && string(v.key) <= string(v.lastMember)) {
		return corrupt("member %q out of order", v.key)
	}
	v.lastScore = s
	v.lastMember, v.key = v.key, v.lastMember
	return nil
}

// canonical returns the string of a payload, and an error if Encode would write it in another way.
func canonical(payload []byte, code uint8, at int) (Str, error) {
	s := loadStr(payload, code)
	var c Cell
	if s.IsInt() {
		c.setInt(s.N)
	} else {
		c = Encode(s.B)
	}
	if c.code != code {
		return s, corrupt("string with code %d for %d at %d", code, c.code, at)
	}
	return s, nil
}

func (s IntSet) validate() error {
	if w := s.Width(); w != 2 && w != 4 && w != 8 {
		return corrupt("integers of %d bytes", w)
	}
	if s[0]&flagTimed != 0 || len(s) != headPlain+s.Width()*s.Len() {
		return corrupt("%d integers of %d bytes in %d", s.Len(), s.Width(), len(s))
	}
	for i := 1; i < s.Len(); i++ {
		if s.At(i-1) >= s.At(i) {
			return corrupt("integer %d out of order", s.At(i))
		}
	}
	return nil
}

// Check does the work of Validate for an image that should be valid. It is for tests.
func (p Packed) Check() error {
	if binary.LittleEndian.Uint32(p) == 0 {
		return corrupt("a zero header")
	}
	return Validate(p)
}
