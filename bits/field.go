package bits

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/conn"
)

// Type is the type of a field: a number of some bits.
type Type struct {
	signed bool
	width  int
}

// Int returns the type of a signed number of width bits, 1 to 64, in two's complement.
func Int(width int) Type { return Type{true, width} }

// Uint returns the type of an unsigned number of width bits, 1 to 63.
func Uint(width int) Type { return Type{false, width} }

// String is the type as BITFIELD has it: "i16", "u5".
func (t Type) String() string {
	if t.signed {
		return fmt.Sprintf("i%d", t.width)
	}
	return fmt.Sprintf("u%d", t.width)
}

// Overflow is what Field.Add does with a sum that does not fit.
type Overflow string

// Wrap goes on at the other end, Saturate stays at the end, Fail changes nothing.
const (
	Wrap     Overflow = "WRAP"
	Saturate Overflow = "SAT"
	Fail     Overflow = "FAIL"
)

// Field is some neighbouring bits of a bitmap, read as a number, the highest bit
// first. It may be used by any number of goroutines.
type Field struct {
	b  *Bitmap
	t  Type
	at int64
}

// Field returns the bits from a number on as a field. Errors: ebb.ErrArgument.
func (b *Bitmap) Field(t Type, at int64) (*Field, error) {
	most := 63
	if t.signed {
		most = 64
	}
	if t.width < 1 || t.width > most || at < 0 || at+int64(t.width)-1 > Max {
		return nil, b.failed("field", fmt.Errorf("%w: %s at bit %d: a width of 1 to 64 with a sign, to 63 without, within %d bits", conn.ErrArgument, t, at, int64(Max)+1))
	}
	return &Field{b, t, at}, nil
}

// Get returns the number.
func (f *Field) Get(ctx context.Context) (int64, error) {
	return f.first("get")(f.b.c.Do(ctx, "BITFIELD_RO", f.b.name, "GET", f.t.String(), f.at))
}

// Set sets the number, of which what does not fit is cut off, and returns what it
// was.
func (f *Field) Set(ctx context.Context, n int64) (was int64, err error) {
	return f.first("set")(f.b.c.Do(ctx, "BITFIELD", f.b.name, "SET", f.t.String(), f.at, n))
}

// Add adds to the number, and returns the sum. Errors: ErrOverflow.
func (f *Field) Add(ctx context.Context, n int64, o Overflow) (int64, error) {
	return f.first("add")(f.b.c.Do(ctx, "BITFIELD", f.b.name, "OVERFLOW", string(o), "INCRBY", f.t.String(), f.at, n))
}

func (f *Field) first(doing string) func(conn.Value, error) (int64, error) {
	return func(v conn.Value, err error) (int64, error) {
		switch {
		case err != nil:
			return 0, f.b.failed(doing, err)
		case len(v.Elems) != 1:
			return 0, f.b.failed(doing, fmt.Errorf("%w: a reply of %d parts", conn.ErrValue, len(v.Elems)))
		case v.Elems[0].IsNull():
			return 0, f.b.failed(doing, fmt.Errorf("%w: %s at bit %d", ErrOverflow, f.t, f.at))
		}
		return v.Elems[0].AsInt()
	}
}
