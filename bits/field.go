package bits

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/conn"
)

// Type is the type of a field: signed or unsigned, with a number of bits.
type Type struct {
	signed bool
	width  int
}

// Int returns the type of a signed number of width bits, 1 to 64, in two's complement.
func Int(width int) Type { return Type{true, width} }

// Uint returns the type of an unsigned number of width bits, 1 to 63.
func Uint(width int) Type { return Type{false, width} }

// String returns the type in the syntax of BITFIELD: "i16", "u5".
func (t Type) String() string {
	if t.signed {
		return fmt.Sprintf("i%d", t.width)
	}
	return fmt.Sprintf("u%d", t.width)
}

// Overflow selects what Field.Add does if the sum does not fit.
type Overflow string

// Wrap keeps the low bits of the sum, Saturate stores the nearest number that fits, and Fail
// changes nothing.
const (
	Wrap     Overflow = "WRAP"
	Saturate Overflow = "SAT"
	Fail     Overflow = "FAIL"
)

// Field is a number that consists of neighbouring bits of a bitmap, the highest bit first. The
// methods are safe for concurrent use.
type Field struct {
	b  *Bitmap
	t  Type
	at int64
}

// Field returns the bits that begin at bit at as a field. Errors: ebb.ErrArgument.
func (b *Bitmap) Field(t Type, at int64) (*Field, error) {
	limit := 63
	if t.signed {
		limit = 64
	}
	if t.width < 1 || t.width > limit || at < 0 || at+int64(t.width)-1 > Max {
		return nil, b.failed("field", fmt.Errorf("%w: %s at bit %d: a width of 1 to 64 with a sign, to 63 without, "+
			"within %d bits", conn.ErrArgument, t, at, int64(Max)+1))
	}
	return &Field{b, t, at}, nil
}

// Get returns the number.
func (f *Field) Get(ctx context.Context) (int64, error) {
	return f.first("get")(f.b.c.Do(ctx, "BITFIELD_RO", f.b.name, "GET", f.t.String(), f.at))
}

// Set sets the number, and returns the old one. It drops the high bits that do not fit.
func (f *Field) Set(ctx context.Context, n int64) (was int64, err error) {
	return f.first("set")(f.b.c.Do(ctx, "BITFIELD", f.b.name, "SET", f.t.String(), f.at, n))
}

// Add adds n to the number, and returns the sum. Errors: ErrOverflow.
func (f *Field) Add(ctx context.Context, n int64, o Overflow) (int64, error) {
	return f.first("add")(f.b.c.Do(ctx, "BITFIELD", f.b.name, "OVERFLOW", string(o), "INCRBY", f.t.String(), f.at, n))
}

func (f *Field) first(doing string) func(conn.Value, error) (int64, error) {
	return func(v conn.Value, err error) (int64, error) {
		switch {
		case err != nil:
			return 0, f.b.failed(doing, err)
		case len(v.Elems) != 1:
			return 0, f.b.failed(doing, fmt.Errorf("%w: the reply has %d parts, want 1", conn.ErrValue, len(v.Elems)))
		case v.Elems[0].IsNull():
			return 0, f.b.failed(doing, fmt.Errorf("%w: %s at bit %d", ErrOverflow, f.t, f.at))
		}
		return v.Elems[0].AsInt()
	}
}
