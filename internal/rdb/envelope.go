package rdb

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// An envelope holds a whole RDB file that Valkey has compressed (from its version 9.2 on, with
// rdbcompression lz4, and in a full synchronisation that both sides agreed to compress):
//
//	"VCS" │ 1 │ algorithm 1 │ 0 │ kind 1 │ one frame of that algorithm
//	algorithm: 1 LZ4, 2 Zstandard      kind: 1 an RDB file, 2 a replication stream
//
// The file in it begins with its own magic and ends with its own checksum. What stands
// behind the frame does not belong to the envelope: the mark of a diskless transfer, or
// nothing.
const (
	magicEnvelope   = "VCS"
	envelopeSize    = 7
	envelopeVersion = 1

	kindFile   = 1
	kindStream = 2
)

// Compression is how a file is compressed as a whole.
type Compression uint8

// The compressions, by their numbers in an envelope.
const (
	Uncompressed Compression = 0 // no envelope
	LZ4          Compression = 1
	Zstandard    Compression = 2
)

// String implements fmt.Stringer.
func (c Compression) String() string {
	switch c {
	case Uncompressed:
		return "none"
	case LZ4:
		return "LZ4"
	case Zstandard:
		return "Zstandard"
	}
	return fmt.Sprintf("compression %d", uint8(c))
}

// IsFile reports whether the first bytes of a file are those of an RDB file, compressed
// or not. Five of them are enough.
func IsFile(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magicRedis)) || bytes.HasPrefix(head, []byte(magicValkey)) || bytes.HasPrefix(head, []byte(magicEnvelope))
}

// maxEntry is how many bytes of memory one key of a compressed file may take, beyond what
// LZ4 could have made of the file's bytes: the longest string of a server. Without it some
// bytes of Zstandard would stand for any number of zeros.
const (
	maxEntry   = 512 << 20
	maxDensity = 255
)

// envelope gives the file that is in one. It reads no byte behind its frame.
type envelope struct {
	with  Compression
	frame frame
	from  io.Reader // decompresses
}

// openEnvelope opens the envelope of which head is the header; rest is behind it, and then
// what r gives. at is the offset in the file of what was wrong.
func openEnvelope(head, rest []byte, r io.Reader) (e *envelope, at int, err error) {
	at, with := 3, Compression(head[4])
	switch {
	case head[at] != envelopeVersion:
		return nil, at, bad("a compressed file in version %d of the envelope, of which we read %d", head[at], envelopeVersion)
	case with != LZ4 && with != Zstandard:
		return nil, 4, bad("a file compressed by algorithm %d, of which we know 1 (LZ4) and 2 (Zstandard)", head[4])
	case head[5] != 0:
		return nil, 5, bad("byte %d of an envelope is 0x%02x, and should be 0", 5, head[5])
	case head[6] == kindStream:
		return nil, 6, bad("a compressed replication stream stands where an RDB file should")
	case head[6] != kindFile:
		return nil, 6, bad("an envelope holds something of kind %d, of which we know %d (an RDB file)", head[6], kindFile)
	}
	// The buffer takes all of rest at once, so that what is behind the frame is in it.
	src := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), r), max(64<<10, len(rest)))
	e = &envelope{with: with, frame: frame{src: src, at: envelopeSize}}
	if with == LZ4 {
		e.frame.step = e.frame.beginLZ4
		e.from = lz4.NewReader(&e.frame) // it has no goroutines
		return e, 0, nil
	}
	e.frame.step = e.frame.beginZstd
	// With concurrency 1 it has none either, and nothing to close.
	e.from, err = zstd.NewReader(&e.frame, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	return e, envelopeSize, err
}

// Read gives bytes of the file within. io.EOF comes once the frame has ended, and its
// checksums were right. Errors: those of the reader below, io.ErrUnexpectedEOF, ErrFormat.
func (e *envelope) Read(b []byte) (int, error) {
	n, err := e.from.Read(b)
	switch {
	case err == nil:
	case e.frame.err != nil && !errors.Is(e.frame.err, io.EOF):
		err = e.frame.err // a decompressor says less of it
	case !errors.Is(err, io.EOF):
		err = bad("the %s frame is damaged: %v", e.with, err)
	case !e.frame.over:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// rest is what was read behind the frame.
func (e *envelope) rest() []byte {
	b, _ := e.frame.src.Peek(e.frame.src.Buffered())
	return b
}

// most is how many bytes one key may take so far.
func (e *envelope) most(base int64) int64 { return max(base, maxDensity*e.frame.at) }
