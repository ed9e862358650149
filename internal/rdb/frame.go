package rdb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// A frame passes the bytes of one compressed frame to a decompressor, and ends at the end of the
// frame, so that the bytes after it stay unread. It reads the lengths of blocks, which it does not
// trust, and returns an error for a frame that would take much memory before a decompressor sees
// it.
//
//	LZ4        magic 4 │ flags 1 │ block size 1 │ [size 8] │ sum 1 │ block ... │ 0 4 │ [sum 4]
//	           block: length 4, its top bit set if stored │ bytes │ [sum 4]
//	Zstandard  magic 4 │ flags 1 │ [window 1] │ [dictionary 1, 2, 4] │ [size 1, 2, 4, 8] │ block ... │ [sum 4]
//	           block: last 1 bit, form 2 bits, length 21 bits │ bytes
type frame struct {
	src  *bufio.Reader
	at   int64 // the offset in the file of the next byte of src
	head []byte
	buf  [24]byte
	body int          // bytes to pass on after head
	step func() error // reads the next part into head, and sets body
	over bool         // the frame has ended
	err  error

	block          int  // the largest block
	sums, finalSum bool // there is a checksum after each block; after the last block
}

// Read implements io.Reader. io.EOF is the end of the frame.
func (f *frame) Read(b []byte) (int, error) {
	for len(b) > 0 {
		switch {
		case len(f.head) > 0:
			n := copy(b, f.head)
			f.head = f.head[n:]
			return n, nil
		case f.body > 0:
			n, err := f.src.Read(b[:min(len(b), f.body)])
			f.body -= n
			f.at += int64(n)
			return n, f.fail(err)
		case f.over:
			return 0, io.EOF
		}
		f.head = f.buf[:0]
		if err := f.fail(f.step()); err != nil {
			f.head = nil
			return 0, err
		}
	}
	return 0, nil
}

// fail stores an error. The end of the file within a frame becomes io.ErrUnexpectedEOF.
func (f *frame) fail(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if f.err == nil {
		f.err = err
	}
	return f.err
}

// take reads n bytes to pass on, and returns them.
func (f *frame) take(n int) ([]byte, error) {
	from := len(f.head)
	b := f.head[from : from+n]
	got, err := io.ReadFull(f.src, b)
	f.at += int64(got)
	f.head = f.head[:from+got]
	return b, err
}

func (f *frame) beginLZ4() error {
	b, err := f.take(6)
	if err != nil {
		return err
	}
	if magic := binary.LittleEndian.Uint32(b); magic != 0x184d2204 {
		return bad("no LZ4 frame begins with 0x%08x", magic)
	}
	flags, size := b[4], b[5]>>4&7
	switch {
	case flags>>6 != 1:
		return bad("an LZ4 frame in version %d, of which we read 1", flags>>6)
	case flags&1 != 0:
		return bad("the LZ4 frame needs a dictionary")
	case size < 4:
		return bad("no LZ4 frame has blocks of size %d", size)
	}
	f.block = 64 << 10 << (2 * (size - 4))
	f.sums, f.finalSum = flags&16 != 0, flags&4 != 0
	f.step = f.blockLZ4
	n := 1
	if flags&8 != 0 {
		n += 8
	}
	_, err = f.take(n)
	return err
}

func (f *frame) blockLZ4() error {
	b, err := f.take(4)
	if err != nil {
		return err
	}
	n := int(binary.LittleEndian.Uint32(b) &^ (1 << 31))
	if binary.LittleEndian.Uint32(b) == 0 {
		return f.end()
	}
	if n > f.block {
		return bad("an LZ4 block of %d bytes in a frame whose blocks have %d", n, f.block)
	}
	if f.body = n; f.sums {
		f.body += 4
	}
	return nil
}

// end passes on the checksum of the whole frame.
func (f *frame) end() (err error) {
	f.over = true
	if f.finalSum {
		_, err = f.take(4)
	}
	return err
}

// maxWindow is the greatest window of Zstandard, which the decompressor keeps in memory. RFC 8878
// recommends to support as much, and levels up to 19 need no more.
const maxWindow = 8 << 20

func (f *frame) beginZstd() error {
	b, err := f.take(5)
	if err != nil {
		return err
	}
	if magic := binary.LittleEndian.Uint32(b); magic != 0xfd2fb528 {
		return bad("no Zstandard frame begins with 0x%08x", magic)
	}
	flags := b[4]
	single := flags&32 != 0 // the window is as large as the content
	window := uint64(0)
	if !single {
		if b, err = f.take(1); err != nil {
			return err
		}
		window = 1 << (10 + b[0]>>3)
		window += window / 8 * uint64(b[0]&7)
	}
	if b, err = f.take([]int{0, 1, 2, 4}[flags&3]); err != nil {
		return err
	}
	for _, x := range b {
		if x != 0 {
			return bad("the Zstandard frame needs a dictionary")
		}
	}
	n := []int{0, 2, 4, 8}[flags>>6]
	if n == 0 && single {
		n = 1
	}
	if b, err = f.take(n); err != nil {
		return err
	}
	if single {
		var size [8]byte
		copy(size[:], b)
		window = binary.LittleEndian.Uint64(size[:])
	}
	if window > maxWindow {
		return bad("the Zstandard frame needs a window of %d bytes, of which we give %d", window, maxWindow)
	}
	f.block = 128 << 10
	f.finalSum = flags&4 != 0
	f.step = f.blockZstd
	return nil
}

func (f *frame) blockZstd() error {
	b, err := f.take(3)
	if err != nil {
		return err
	}
	head := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
	form, n := head>>1&3, head>>3
	switch {
	case form == 3:
		return bad("no Zstandard block has the form 3")
	case n > f.block:
		return bad("a Zstandard block of %d bytes, of which %d are allowed", n, f.block)
	case form == 1: // one byte, repeated
		n = 1
	}
	f.body = n
	if head&1 != 0 {
		f.step = f.end
	}
	return nil
}
