package rdb

import "math"

// This file decodes hashes whose fields have deadlines. As pairs:
//
//	earliest deadline 8 │ count │ deadline - earliest + 1, or 0 for none │ field │ value ...
//
// As a listpack they have field, value, deadline or 0. The types of the release candidates lack the
// first number, and their deadlines are absolute. Valkey's form is
//
//	count │ field │ value │ deadline 8, -1 for none ...

// maxDeadline is the latest deadline of a field, in ms since 1970.
const maxDeadline = 1<<46 - 1

func checkDeadline(ms uint64) (int64, error) {
	if ms > maxDeadline {
		return 0, bad("a field's deadline is out of range")
	}
	return int64(ms), nil
}

func (d *Decoder) timedHash(t Type, b Builder) error {
	var earliest uint64
	var err error
	if t == TypeHashTimed {
		if earliest, err = d.uint64(); err == nil {
			_, err = checkDeadline(earliest)
		}
	}
	if err != nil {
		return err
	}
	n, err := d.some(3)
	if err == nil {
		err = b.BeginHash(n)
	}
	for ; err == nil && n > 0; n-- {
		var ms uint64
		if ms, err = d.number(); err != nil {
			return err
		}
		if ms != 0 && t == TypeHashTimed {
			if ms > maxDeadline+1 {
				return bad("a field's deadline is out of range")
			}
			ms += earliest - 1
		}
		var deadline int64
		if deadline, err = checkDeadline(ms); err == nil {
			err = d.field(b, deadline)
		}
	}
	return err
}

func (d *Decoder) timedPack(t Type, b Builder) error {
	if t == TypeHashTimedPack {
		if _, err := d.uint64(); err != nil {
			return err
		}
	}
	c, n, err := d.cursorOf(t)
	if err == nil && n%3 != 0 {
		err = bad("a field has no value, or no deadline")
	}
	n /= 3
	if err == nil {
		err = b.BeginHash(n)
	}
	for ; err == nil && n > 0; n-- {
		f := c.next().bytes(&d.nums[first])
		v := c.next().bytes(&d.nums[second])
		ms := c.next()
		if ms.b != nil || ms.n < 0 {
			return bad("a field's deadline is not a number")
		}
		var deadline int64
		if deadline, err = checkDeadline(uint64(ms.n)); err == nil {
			err = b.Field(f, v, deadline)
		}
	}
	return err
}

func (d *Decoder) valkeyHash(t Type, b Builder) error {
	if t != TypeHashValkey {
		return d.unknown(t)
	}
	n, err := d.some(1 + 1 + 8)
	if err == nil {
		err = b.BeginHash(n)
	}
	for ; err == nil && n > 0; n-- {
		var f, v []byte
		if f, err = d.string(first); err != nil {
			return err
		}
		if v, err = d.string(second); err != nil {
			return err
		}
		var ms uint64
		if ms, err = d.uint64(); err != nil {
			return err
		}
		var deadline int64
		if ms != math.MaxUint64 {
			deadline, err = checkDeadline(ms)
		}
		if err == nil {
			err = b.Field(f, v, deadline)
		}
	}
	return err
}
