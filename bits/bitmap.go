package bits

import (
	"context"
	"errors"
	"fmt"
	"iter"
	mathbits "math/bits"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Max is the highest number of a bit.
const Max = 1<<32 - 1

const (
	// maxSet is the number of bits that a command of SetMany sets.
	maxSet = 512
	// readBytes is the number of bytes that All reads at a time.
	readBytes = 16 << 10
)

// Field.Add returns ErrOverflow if the sum does not fit the field and Overflow is Fail. It
// changed nothing.
var ErrOverflow = errors.New("the sum does not fit the field")

// Bitmap is a string of bits. Bits that were never set are 0. The methods are safe for
// concurrent use.
type Bitmap struct {
	c    *conn.Conn
	name string
}

// New returns the bitmap of that name, which is its key. It sends nothing to the backend.
// Errors: ebb.ErrArgument.
func New(c *conn.Conn, name string) (*Bitmap, error) {
	name, err := kit.Name(c, "bits", name)
	if err != nil {
		return nil, err
	}
	return &Bitmap{c, name}, nil
}

// Set sets a bit, and returns its old value. O(1), unless the bitmap becomes longer. Errors:
// ebb.ErrArgument.
func (b *Bitmap) Set(ctx context.Context, i int64, to bool) (was bool, err error) {
	if err := b.check("set", i); err != nil {
		return false, err
	}
	return b.truth(b.c.Do(ctx, "SETBIT", b.name, i, to))("set")
}

// SetMany sets bits to 1, and returns how many of them were 0. It sends commands of some
// hundred bits, each of which is atomic. Errors: ebb.ErrArgument.
func (b *Bitmap) SetMany(ctx context.Context, all ...int64) (changed int64, err error) {
	if err := b.check("set", all...); err != nil {
		return 0, err
	}
	for len(all) > 0 {
		n := min(len(all), maxSet)
		args := []any{"BITFIELD", b.name}
		for _, i := range all[:n] {
			args = append(args, "SET", "u1", i, 1)
		}
		all = all[n:]
		r, err := b.c.Do(ctx, args...)
		if err != nil {
			return changed, b.failed("set", err)
		}
		for _, was := range r.Elems {
			changed += 1 - was.Int
		}
	}
	return changed, nil
}

// Get reports whether bit i is 1. O(1). Errors: ebb.ErrArgument.
func (b *Bitmap) Get(ctx context.Context, i int64) (bool, error) {
	if err := b.check("get", i); err != nil {
		return false, err
	}
	return b.truth(b.c.Do(ctx, "GETBIT", b.name, i))("get")
}

// Count returns the number of bits that are 1. O(length), at memory speed.
func (b *Bitmap) Count(ctx context.Context) (int64, error) {
	return b.number(b.c.Do(ctx, "BITCOUNT", b.name))("count")
}

// CountRange returns the number of bits that are 1 from one bit to another, both included.
// Negative numbers count from the end: -1 is the last bit of the last byte.
func (b *Bitmap) CountRange(ctx context.Context, from, to int64) (int64, error) {
	return b.number(b.c.Do(ctx, "BITCOUNT", b.name, from, to, "BIT"))("count")
}

// Pos returns the number of the first bit, from a number on, with the given value; -1 if there
// is none. It always finds a 0, because all bits beyond the end are 0. Errors: ebb.ErrArgument.
func (b *Bitmap) Pos(ctx context.Context, bit bool, from int64) (int64, error) {
	if err := b.check("pos", from); err != nil {
		return -1, err
	}
	var both conn.Batch // the length is that of the same instant
	both.Do("BITPOS", b.name, bit, from, -1, "BIT")
	both.Do("STRLEN", b.name)
	r, err := b.c.Tx(ctx, &both)
	if err == nil {
		err = errors.Join(r[0].Err(), r[1].Err())
	}
	switch {
	case err != nil:
		return -1, b.failed("pos", err)
	case bit:
		return r[0].Int, nil
	case r[0].Int >= 0:
		return max(r[0].Int, from), nil // of a bitmap that is not there it is 0
	}
	return max(8*r[1].Int, from), nil
}

// Len returns the length of the bitmap in bits, a multiple of 8.
func (b *Bitmap) Len(ctx context.Context) (int64, error) {
	n, err := b.number(b.c.Do(ctx, "STRLEN", b.name))("len")
	return 8 * n, err
}

// All yields the numbers of the bits that are 1, in order, beginning at from. It reads 16 KiB
// at a time, and may or may not see bits that change meanwhile. An error ends it.
func (b *Bitmap) All(ctx context.Context, from int64) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		if err := b.check("all", from); err != nil {
			yield(0, err)
			return
		}
		for at := from / 8; ; at += readBytes {
			v, err := b.c.Do(ctx, "GETRANGE", b.name, at, at+readBytes-1)
			if err != nil {
				yield(0, b.failed("all", err))
				return
			}
			for i := range len(v.Str) {
				for x := v.Str[i]; x != 0; {
					bit := mathbits.LeadingZeros8(x)
					x &^= 0x80 >> bit
					n := 8*(at+int64(i)) + int64(bit)
					if n >= from && !yield(n, nil) {
						return
					}
				}
			}
			if len(v.Str) < readBytes {
				return
			}
		}
	}
}

// Op is the operation by which Bitmap.Op combines bitmaps.
type Op string

// The operations. Not takes one bitmap, the others one or more; shorter bitmaps count as padded
// with zeros.
const (
	And Op = "AND"
	Or  Op = "OR"
	Xor Op = "XOR"
	Not Op = "NOT"
)

// Op stores the combination of other bitmaps in this bitmap, which may be one of them, and
// returns its length in bits. O(length). In a cluster all must be in one slot: give their
// names a common {part}.
func (b *Bitmap) Op(ctx context.Context, op Op, of ...*Bitmap) (length int64, err error) {
	if len(of) == 0 || op == Not && len(of) != 1 {
		return 0, b.failed("op", fmt.Errorf("%w: %s of %d bitmaps: NOT takes one, the others at least one", conn.ErrArgument, op, len(of)))
	}
	args := []any{"BITOP", string(op), b.name}
	for _, o := range of {
		if o == nil {
			return 0, b.failed("op", fmt.Errorf("%w: one of the bitmaps is nil; each must be a bitmap", conn.ErrArgument))
		}
		args = append(args, o.name)
	}
	n, err := b.number(b.c.Do(ctx, args...))("op")
	if r, ok := errors.AsType[conn.ReplyError](err); ok && r.Code() == "CROSSSLOT" {
		err = fmt.Errorf("%w (give the names a common part in braces, as in {active}:monday)", err)
	}
	return 8 * n, err
}

// Delete deletes the bitmap.
func (b *Bitmap) Delete(ctx context.Context) error {
	if _, err := b.c.Del(ctx, b.name); err != nil {
		return b.failed("delete", err)
	}
	return nil
}

// String returns a description for logs, with the name.
func (b *Bitmap) String() string { return fmt.Sprintf("bitmap %q", b.name) }

// check refuses numbers that no bit has.
func (b *Bitmap) check(doing string, all ...int64) error {
	for _, i := range all {
		if i < 0 || i > Max {
			return b.failed(doing, fmt.Errorf("%w: bit offset %d out of range [0, %d]", conn.ErrArgument, i, int64(Max)))
		}
	}
	return nil
}

func (b *Bitmap) number(v conn.Value, err error) func(doing string) (int64, error) {
	return func(doing string) (int64, error) {
		if err != nil {
			return 0, b.failed(doing, err)
		}
		return v.AsInt()
	}
}

func (b *Bitmap) truth(v conn.Value, err error) func(doing string) (bool, error) {
	n := b.number(v, err)
	return func(doing string) (bool, error) {
		x, err := n(doing)
		return x != 0, err
	}
}

func (b *Bitmap) failed(doing string, err error) error {
	return fmt.Errorf("bits %q: %s: %w", b.name, doing, err)
}
