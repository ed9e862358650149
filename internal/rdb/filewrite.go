package rdb

import (
	"encoding/binary"
	"fmt"
	"io"
)

// WriterOptions say how a Writer writes.
type WriterOptions struct {
	Checksum bool // else the file says that it has none
	Compress bool // functions and texts; records come as they are
	// Patch is where the version in the file's header can be corrected at the end,
	// at PatchAt; nil: nowhere. For what the Writer writes to a file, the file.
	Patch   io.WriterAt
	PatchAt int64
}

// A Writer writes a file: Header, then Aux for each text, Function for each
// library, Select and Records in any number and order, and End. The first error
// stays: calls after it do nothing, and End and Err return it. It is used by one
// goroutine.
type Writer struct {
	w       io.Writer
	o       WriterOptions
	e       Encoder // Buf collects what is small
	flushed int64
	crc     uint64
	db      int
	version int // that the header says
	needed  int // that the data needs
	err     error
}

// smallWrites is how much a Writer collects before it writes.
const smallWrites = 16 << 10

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer, o WriterOptions) *Writer {
	return &Writer{w: w, o: o, db: -1, e: Encoder{Compress: o.Compress, Buf: make([]byte, 0, smallWrites)}}
}

// Header begins the file. version is what the header says, and data of a higher
// one is refused. With 0 it is the lowest that holds the data, which End knows:
// there must be a Patch for it, or the header says the newest.
func (w *Writer) Header(version int) {
	w.needed = PlainVersion
	switch {
	case version == 0 && w.o.Patch != nil:
		w.version = PlainVersion
	case version == 0:
		w.version = Version
	default:
		w.version, w.o.Patch = version, nil
	}
	w.e.Buf = appendHeader(w.e.Buf, w.version)
}

func appendHeader(b []byte, version int) []byte {
	if version >= valkeyVersion {
		return fmt.Appendf(b, magicValkey+"%03d", version)
	}
	return fmt.Appendf(b, magicRedis+"%04d", version)
}

// Raise says that records are of a version: Encoder.Version of what wrote them. It
// may come before or after them. Errors: the header says a lower one, and cannot
// be corrected.
func (w *Writer) Raise(version int) error {
	w.needed = max(w.needed, version)
	if w.err == nil && w.needed > w.version && w.o.Patch == nil {
		w.err = fmt.Errorf("rdb: the file was begun in version %d, which does not hold hash fields with deadlines: they need version %d", w.version, w.needed)
	}
	return w.err
}

// Aux writes a text that tells of the writer.
func (w *Writer) Aux(name, text string) {
	w.e.Buf = append(w.e.Buf, opAux)
	w.e.string([]byte(name))
	w.e.string([]byte(text))
	w.small()
}

// Select says how many keys a database has and how many of them have deadlines:
// a loader reserves memory for them. It may be left out.
func (w *Writer) Select(db, keys, expires int) {
	w.selects(db)
	w.e.Buf = append(w.e.Buf, opResize)
	w.e.length(uint64(keys))
	w.e.length(uint64(expires))
	w.small()
}

func (w *Writer) selects(db int) {
	if w.db != db {
		w.db = db
		w.e.Buf = append(w.e.Buf, opSelect)
		w.e.length(uint64(db))
	}
}

// Function writes the code of a library, its first line included.
func (w *Writer) Function(code []byte) {
	w.e.Buf = append(w.e.Buf, opFunction)
	w.e.string(code)
	w.small()
}

// Records writes whole records, as an Encoder wrote them, that belong to a
// database. Unless they are of version 10, Raise says so. b may be used again when
// it returns. Errors: the first of any call.
func (w *Writer) Records(db int, b []byte) error {
	if len(b) == 0 || w.err != nil {
		return w.err
	}
	w.selects(db)
	if len(w.e.Buf)+len(b) <= smallWrites {
		w.e.Buf = append(w.e.Buf, b...)
		return nil
	}
	w.flush()
	w.write(b)
	return w.err
}

// small writes what is collected if it is much, or too much to keep the buffer.
func (w *Writer) small() {
	if len(w.e.Buf) < smallWrites/2 {
		return
	}
	w.flush()
	if cap(w.e.Buf) > keepBuffer {
		w.e.Buf = make([]byte, 0, smallWrites)
	}
}

// Flush writes what is collected. Errors: the first of any call.
func (w *Writer) Flush() error {
	w.flush()
	return w.err
}

func (w *Writer) flush() {
	w.write(w.e.Buf)
	w.e.Buf = w.e.Buf[:0]
}

func (w *Writer) write(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	if w.o.Checksum {
		w.crc = Checksum(w.crc, b)
	}
	n, err := w.w.Write(b)
	w.flushed += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	w.err = err
}

// Written returns the size of the file so far, what is not flushed included.
func (w *Writer) Written() int64 { return w.flushed + int64(len(w.e.Buf)) }

// Err returns the first error.
func (w *Writer) Err() error { return w.err }

// End completes the file and corrects its header. It neither syncs nor closes.
// Errors: the first of any call.
func (w *Writer) End() error {
	w.e.Buf = append(w.e.Buf, opEOF)
	w.flush()
	patch := w.err == nil && w.needed > w.version
	if patch && w.o.Checksum {
		w.crc ^= headerChange(w.version, w.needed, w.flushed)
	}
	w.e.Buf = binary.LittleEndian.AppendUint64(w.e.Buf, w.crc)
	w.flush()
	if patch && w.err == nil {
		_, w.err = w.o.Patch.WriteAt(appendHeader(nil, w.needed), w.o.PatchAt)
	}
	return w.err
}

// headerChange returns what the CRC of size bytes changes by when the version in
// their header changes.
func headerChange(from, to int, size int64) uint64 {
	diff := appendHeader(nil, from)
	for i, c := range appendHeader(nil, to) {
		diff[i] ^= c
	}
	return crcZeros(Checksum(0, diff), size-headerSize)
}
