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

// An envelope contains an RDB file that Valkey has compressed as a whole (from its version 9.2 on,
// with rdbcompression lz4, and in a full synchronisation that both sides agreed to compress):
//
//	"VCS" │ 1 │ algorithm 1 │ 0 │ kind 1 │ one frame of that algorithm
//	algorithm: 1 LZ4, 2 Zstandard      kind: 1 an RDB file, 2 a replication stream
//
// The file in it begins with its own magic and ends with its own checksum. Bytes after the frame do
// not belong to the envelope: the mark of a diskless transfer, or none.
const (
	magicEnvelope   = "VCS"
	envelopeSize    = 7
	envelopeVersion = 1

	kindFile   = 1
	kindStream = 2
)

// Compression is the algorithm that compresses a file as a whole.
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
// or not. Six of them are enough.
func IsFile(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magicRedis)) || bytes.HasPrefix(head, []byte(magicValkey)) ||
		bytes.HasPrefix(head, []byte(magicEnvelope))
}

// maxEntry is the number of bytes of memory that one key of a compressed file may take, if LZ4
// could not have compressed it so well: the longest string of a server, or what Reader.Bound says.
// Without this bound, a few bytes of Zstandard could stand for any number of zeros. All texts and
// functions together have the same bound, because the receiver keeps them.
const (
	maxEntry   = 512 << 20
	maxDensity = 255
)

// envelope reads the file in an envelope. It reads no byte after the frame.
type envelope struct {
	with  Compression
	frame frame
	from  io.Reader // the decompressor
}

// openEnvelope opens the envelope with the header head; the bytes of rest and then of r follow it.
// at is the offset of an error in the file.
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
	// The buffer is large enough for all of rest, so that the bytes after the frame are in it.
	src := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), r), max(64<<10, len(rest)))
	e = &envelope{with: with, frame: frame{src: src, at: envelopeSize}}
	if with == LZ4 {
		e.frame.step = e.frame.beginLZ4
		e.from = lz4.NewReader(&e.frame) // the reader has no goroutines
		return e, 0, nil
	}
	e.frame.step = e.frame.beginZstd
	// With concurrency 1 the decoder has no goroutines either, and needs no Close.
	e.from, err = zstd.NewReader(&e.frame, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	return e, envelopeSize, err
}

// Read reads bytes of the file in the envelope. It returns io.EOF after the end of the frame, if
// its checksums match. Errors: the errors of the underlying reader, io.ErrUnexpectedEOF,
// ErrFormat.
func (e *envelope) Read(b []byte) (int, error) {
	n, err := e.from.Read(b)
	switch {
	case err == nil:
	case e.frame.err != nil && !errors.Is(e.frame.err, io.EOF):
		err = e.frame.err // the decompressor's error says less
	case !errors.Is(err, io.EOF):
		err = bad("the %s frame is damaged: %v", e.with, err)
	case !e.frame.over:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// rest returns the bytes that were read after the frame.
func (e *envelope) rest() []byte {
	b, _ := e.frame.src.Peek(e.frame.src.Buffered())
	return b
}

// limit returns how many bytes one key may take, given the compressed bytes read so far.
func (e *envelope) limit(base int64) int64 { return max(base, maxDensity*e.frame.at) }
