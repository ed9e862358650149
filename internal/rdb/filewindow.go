package rdb

import (
	"errors"
	"io"
)

// A window is the part of a file that its Reader has in memory. It does not write again to bytes
// that it has returned: when the block is full, it begins a new one, with a copy of the unused
// bytes.
//
//	            mark: must stay in one piece
//	             │        pos: used up to here
//	buf  ────────┼─────────┼───────────┤end     len(buf)
//	base: the offset of buf[0] in the file
type window struct {
	r        io.Reader
	buf      []byte
	pos, end int
	mark     int // none, or at most pos: the bytes from here on stay in one piece
	base     int64

	crc   uint64 // the checksum of all bytes read, in large pieces; it includes bytes after pos
	noSum bool
	fault error // the error of r, for when the bytes before it are used

	packed *envelope // the envelope that is r, if the file is in one
	ended  bool      // packed has no more bytes
	limit  int64     // how many bytes of memory a key may take if the file is compressed; see maxEntry
}

// none is the mark if no bytes must stay in one piece.
const none = -1

// The sizes of blocks: a block is as large as a read should be. The first one is small, because
// some files are.
const (
	firstBlock = 16 << 10
	block      = 512 << 10
)

// used returns the checksum of the used bytes, up to pos.
func (w *window) used() uint64 {
	if w.noSum {
		return 0
	}
	return crcBefore(w.crc, w.buf[w.pos:w.end])
}

// need makes n bytes available at pos. Errors: io.ErrUnexpectedEOF, the errors of r.
func (w *window) need(n int) error {
	for empty := 0; w.end-w.pos < n; {
		if w.fault != nil {
			return w.fault
		}
		if w.end == len(w.buf) {
			if err := w.dense(); err != nil {
				return err
			}
			w.move(n)
		}
		got, err := w.r.Read(w.buf[w.end:])
		if !w.noSum {
			w.crc = Checksum(w.crc, w.buf[w.end:w.end+got])
		}
		w.end += got
		switch {
		case errors.Is(err, io.EOF) && w.packed != nil:
			w.ended, w.fault = true, bad("the %s frame ends before the RDB file in it does", w.packed.with)
		case errors.Is(err, io.EOF):
			w.fault = io.ErrUnexpectedEOF
		case err != nil:
			w.fault = err
		case got == 0:
			if empty++; empty == 100 {
				return io.ErrNoProgress
			}
		}
	}
	return nil
}

// move begins a new block with space for n bytes after pos, but at most twice as large as the bytes
// that are there. So an entry of many elements doubles the block as it grows, and a wrong length
// does not reserve memory.
func (w *window) move(n int) {
	from := w.pos
	if w.mark != none {
		from = w.mark
	}
	size := block
	if w.base == 0 && w.end == 0 {
		size = firstBlock
	}
	there := w.end - from
	room := 2 * there
	if n > there/2 {
		room = min(room, w.pos-from+n)
	}
	buf := make([]byte, max(size, room))
	copy(buf, w.buf[from:w.end])
	w.buf = buf
	w.base += int64(from)
	w.pos -= from
	w.end -= from
	if w.mark != none {
		w.mark = 0
	}
}

// dense returns an error for a key whose decompressed bytes exceed the bound.
func (w *window) dense() error {
	if w.packed == nil {
		return nil
	}
	from := w.pos
	if w.mark != none {
		from = w.mark
	}
	if there, limit := int64(w.end-from), w.packed.limit(w.limit); there > limit {
		return bad("a key of %d bytes or more, of which %d are allowed: the %s file gave %d bytes so far", there, limit,
			w.packed.with, w.packed.frame.at)
	}
	return nil
}

// faulty is a reader that returns an earlier error, or the bytes of r.
type faulty struct {
	r   io.Reader
	err error
}

func (f *faulty) Read(b []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.r.Read(b)
}

// endEnvelope reads the end of a frame after the end of the file in it.
func (w *window) endEnvelope() error {
	var more [512]byte
	n := w.end - w.pos
	for empty := 0; n == 0 && !w.ended; {
		if w.fault != nil {
			return w.fault
		}
		n, w.fault = w.r.Read(more[:])
		switch {
		case errors.Is(w.fault, io.EOF):
			w.ended = true
		case n == 0 && w.fault == nil:
			if empty++; empty == 100 {
				return io.ErrNoProgress
			}
		}
	}
	if n > 0 {
		return bad("%d bytes or more follow the end of the RDB file in its envelope", n)
	}
	return nil
}

// byte reads a byte.
func (w *window) byte() (byte, error) {
	if w.pos == w.end {
		if err := w.need(1); err != nil {
			return 0, err
		}
	}
	w.pos++
	return w.buf[w.pos-1], nil
}

// bytes reads a small number of bytes.
func (w *window) bytes(n int) ([]byte, error) {
	if err := w.skip(uint64(n)); err != nil {
		return nil, err
	}
	return w.buf[w.pos-n : w.pos : w.pos], nil
}

// skip reads over n bytes.
func (w *window) skip(n uint64) error {
	if n <= uint64(w.end-w.pos) {
		w.pos += int(n)
		return nil
	}
	if n > 1<<62 {
		return bad("a length of %d bytes", n)
	}
	if err := w.need(int(n)); err != nil {
		return err
	}
	w.pos += int(n)
	return nil
}

// length reads a length, as Decoder.length does.
func (w *window) length() (n uint64, special bool, err error) {
	c, err := w.byte()
	if err != nil {
		return 0, false, err
	}
	n, rest, special, err := lengthHead(c)
	if rest == 0 || err != nil {
		return n, special, err
	}
	b, err := w.bytes(rest)
	return lengthTail(n, b), false, err
}

// number reads a length that is not that of a string.
func (w *window) number() (uint64, error) {
	n, special, err := w.length()
	if err == nil && special {
		err = bad("a string stands where a number should")
	}
	return n, err
}

// string reads a string. The result lies in the block, or in new memory.
func (w *window) string() ([]byte, error) {
	n, special, err := w.length()
	if err != nil {
		return nil, err
	}
	if special {
		return w.specialString(n)
	}
	w.mark = w.pos - 1 // also keep the length's last byte; see Reader.record
	err = w.skip(n)
	s := w.buf[w.mark+1 : w.pos : w.pos]
	w.mark = none
	return s, err
}

// specialString reads an integer or compressed bytes with the Decoder.
func (w *window) specialString(form uint64) ([]byte, error) {
	w.mark = w.pos - 1
	err := w.skipForm(form)
	raw := w.buf[w.mark:w.pos]
	w.mark = none
	if err != nil {
		return nil, err
	}
	d := Decoder{in: raw}
	return d.string(first)
}
