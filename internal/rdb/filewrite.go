package rdb

import (
	"encoding/binary"
	"fmt"
	"io"
)

// WriterOptions configure a Writer.
type WriterOptions struct {
	Checksum bool // write a checksum; otherwise the file says that it has none
	Compress bool // compress functions and texts; the Writer does not change records
	// Patch lets the Writer correct the version in the file's header at the end, at the offset
	// PatchAt. If the Writer writes to a file, it is that file. nil: the Writer cannot correct the
	// header.
	Patch   io.WriterAt
	PatchAt int64
}

// A Writer writes a file: Header, then Aux for each text, Function for each library, Select and
// Records in any number and order, and End. After the first error, calls do nothing, and End and
// Err return it. A Writer is not safe for concurrent use.
type Writer struct {
	w       io.Writer
	o       WriterOptions
	e       Encoder // Buf collects small writes
	flushed int64
	crc     uint64
	db      int
	version int // the version in the header
	needed  int // the version that the data needs
	err     error
}

// smallWrites is the number of bytes that a Writer collects before it writes.
const smallWrites = 16 << 10

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer, o WriterOptions) *Writer {
	return &Writer{w: w, o: o, db: -1, e: Encoder{Compress: o.Compress, Buf: make([]byte, 0, smallWrites)}}
}

// Header begins the file. version is the version in the header; the Writer refuses data of a higher
// version. If it is 0, the header gets the lowest version that can contain the data, which End
// corrects through Patch; without Patch it gets the newest version.
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

// Raise notes the version of records: the Encoder.Version of the Encoder that wrote them. The
// caller may call it before or after Records. It returns an error if the header has a lower version
// and cannot be corrected.
func (w *Writer) Raise(version int) error {
	w.needed = max(w.needed, version)
	if w.err == nil && w.needed > w.version && w.o.Patch == nil {
		w.err = fmt.Errorf("rdb: the file was begun in version %d, which does not hold hash fields with deadlines: they "+
			"need version %d", w.version, w.needed)
	}
	return w.err
}

// Aux writes an auxiliary text.
func (w *Writer) Aux(name, text string) {
	w.e.Buf = append(w.e.Buf, opAux)
	w.e.string([]byte(name))
	w.e.string([]byte(text))
	w.small()
}

// Select writes how many keys a database has and how many of them have deadlines, so that a loader
// can reserve memory. The call is optional.
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

// Function writes the code of a library, including its first line.
func (w *Writer) Function(code []byte) {
	w.e.Buf = append(w.e.Buf, opFunction)
	w.e.string(code)
	w.small()
}

// Records writes complete records of an Encoder, which belong to a database. If they need a version
// above 10, the caller calls Raise. The caller may reuse b afterwards. It returns the first error
// of any call.
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

// small writes the collected bytes if they are many, and drops a buffer that is too large to keep.
func (w *Writer) small() {
	if len(w.e.Buf) < smallWrites/2 {
		return
	}
	w.flush()
	if cap(w.e.Buf) > keepBuffer {
		w.e.Buf = make([]byte, 0, smallWrites)
	}
}

// Flush writes the collected bytes. It returns the first error of any call.
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

// Written returns the size of the file so far, including bytes that are not flushed.
func (w *Writer) Written() int64 { return w.flushed + int64(len(w.e.Buf)) }

// Err returns the first error.
func (w *Writer) Err() error { return w.err }

// End completes the file and corrects its header. It neither syncs nor closes the file. It returns
// the first error of any call.
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

// headerChange returns the change of the CRC of size bytes when the version in their header
// changes.
func headerChange(from, to int, size int64) uint64 {
	diff := appendHeader(nil, from)
	for i, c := range appendHeader(nil, to) {
		diff[i] ^= c
	}
	return crcZeros(Checksum(0, diff), size-headerSize)
}
