package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// ReaderOptions receive the data of a file beside its keys. Next calls the functions, which may
// keep their arguments. If a function returns an error, Next ends the reading and returns it.
type ReaderOptions struct {
	Aux      func(name, text []byte) error
	Function func(code []byte) error
	// Resize is called before a database's keys, with about how many keys it has, and how many of
	// them have a deadline. The file may give wrong numbers.
	Resize func(db int, keys, expires uint64) error
	// UnknownModule is called with each value of a module that is not ebb's. If it returns nil, Next
	// skips the value. Without UnknownModule, Next returns an error that names the module.
	UnknownModule func(module string, db int, key []byte) error
	// NoChecksum skips the verification of the checksum, which saves a tenth of the time.
	NoChecksum bool
}

// A Reader splits a file into its entries. It finds the end of a value, and leaves the decoding to
// the receiver of the entry, on any goroutine. Its memory is at most twice the bytes of the largest
// entry that the file really contains, whatever lengths the file gives. One goroutine at a time may
// use it.
type Reader struct {
	window
	o       ReaderOptions
	db      int
	version int
	dialect Dialect
	entry   Entry
	begun   bool
	inKey   bool  // Next has read the entry's key
	beside  int64 // bytes of texts and functions
	last    error
}

// NewReader returns a Reader of the file in r. It reads ahead; Rest returns the bytes that it has
// read and not used.
func NewReader(r io.Reader, o ReaderOptions) *Reader {
	return &Reader{window: window{r: r, mark: none, noSum: o.NoChecksum, limit: maxEntry}, o: o}
}

// Bound sets how many bytes of memory one key of a compressed file may take, if 255 times the bytes
// of the file read so far are less; 512 MiB without it. The caller calls it before the first Next.
func (r *Reader) Bound(bytes int64) { r.limit = min(r.limit, max(bytes, block)) }

// Version returns the version of the file. It is valid after the first Next.
func (r *Reader) Version() int { return r.version }

// Dialect returns the dialect of the file. It is valid after the first Next.
func (r *Reader) Dialect() Dialect { return r.dialect }

// Compression returns the compression of the whole file. It is valid after the first Next.
func (r *Reader) Compression() Compression {
	if r.packed == nil {
		return Uncompressed
	}
	return r.packed.with
}

// Offset returns how many bytes of the file have been used; of a compressed file, how many
// of its compressed bytes.
func (r *Reader) Offset() int64 {
	if r.packed != nil {
		return r.packed.frame.at
	}
	return r.offset()
}

// offset returns how many bytes have been used; in a compressed file, how many decompressed bytes.
func (r *Reader) offset() int64 { return r.base + int64(r.pos) }

// Rest returns the bytes that were read and not used: after io.EOF, those after the file's end.
// They are valid until the next use of the Reader.
func (r *Reader) Rest() []byte {
	if r.packed != nil {
		return r.packed.rest()
	}
	return r.buf[r.pos:r.end]
}

// Next returns the next key. The Entry is valid until the next call; Key and Value stay valid. At
// the file's end, Next verifies the checksum and returns io.EOF. Other errors have type *FileError,
// or are those of the options' functions. After an error, every call returns it again.
func (r *Reader) Next() (*Entry, error) {
	if r.last != nil {
		return nil, r.last
	}
	if err := r.next(); err != nil {
		r.last = err
		return nil, err
	}
	return &r.entry, nil
}

func (r *Reader) next() error {
	if !r.begun {
		r.begun = true
		if err := r.where(r.header()); err != nil {
			return err
		}
	}
	for {
		e := &r.entry
		e.Deadline, e.Idle, e.Freq, r.inKey = 0, -1, -1, false
		op, err := r.properties()
		if err != nil {
			return r.where(err)
		}
		switch {
		case op == opEOF:
			if err := r.finish(); err != nil {
				return r.where(err)
			}
			return io.EOF
		case op > opFirst:
			if err := r.part(op); err != nil {
				return err
			}
		default:
			if skip, err := r.record(Type(op)); err != nil || !skip {
				return err
			}
		}
	}
}

// opFirst is less than all opcodes and greater than all types.
const opFirst = 200

// where adds the position to an error of the file.
func (r *Reader) where(err error) error {
	if err == nil {
		return nil
	}
	at := r.offset()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		at = r.base + int64(r.end)
	}
	e := &FileError{Offset: at, DB: r.db, Key: r.entry.Key, HasKey: r.inKey, Err: err}
	if r.packed != nil {
		e.With, e.Compressed = r.packed.with, r.packed.frame.at
	}
	return e
}

// header reads magic and version.
func (r *Reader) header() error {
	b, err := r.bytes(headerSize)
	switch {
	case err != nil && r.packed != nil:
		return err
	case err != nil:
		return fmt.Errorf("not an RDB file: %w", err)
	}
	if string(b[:len(magicEnvelope)]) == magicEnvelope {
		return r.unpack()
	}
	s, valkey := strings.CutPrefix(string(b), magicValkey)
	if !valkey {
		var redis bool
		if s, redis = strings.CutPrefix(s, magicRedis); !redis {
			return bad("not an RDB file: it begins with %q", b)
		}
	}
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return bad("not an RDB file: it begins with %q", b)
	}
	r.version = int(v)
	if valkey {
		r.dialect = Valkey
	}
	if valkey && (v < valkeyVersion || v > valkeyNewest) || !valkey && (v < 1 || v >= valkeyVersion) {
		return bad("a file of %s in version %d, of which we read %s", r.dialect, v, readable(valkey))
	}
	return nil
}

// unpack opens the envelope if the file is one, and reads the header of the file in it.
func (r *Reader) unpack() error {
	if r.packed != nil {
		return bad("an envelope stands in an envelope")
	}
	start := r.pos - headerSize
	e, wrong, err := openEnvelope(r.buf[start:start+envelopeSize], r.buf[start+envelopeSize:r.end], &faulty{r.r, r.fault})
	if err != nil {
		r.pos = start + wrong
		return err
	}
	r.window = window{r: e, packed: e, mark: none, noSum: r.noSum, limit: r.limit}
	return r.header()
}

// readable returns a text with the versions that a Reader accepts. It reads a file of Redis above
// Version as far as it knows its types and opcodes; see UnknownType.
func readable(valkey bool) string {
	if valkey {
		return fmt.Sprintf("%d and %d", valkeyVersion, valkeyNewest)
	}
	return fmt.Sprintf("1 to %d, and up to %d what those have", Version, valkeyVersion-1)
}

// unknownType returns the error for a type that the Decoder does not know.
func (r *Reader) unknownType(t Type) error {
	return &UnknownType{Type: t, Dialect: r.dialect, Version: r.version}
}

// properties reads the properties of a key, and returns the type or opcode that follows them.
func (r *Reader) properties() (op byte, err error) {
	for {
		if op, err = r.byte(); err != nil {
			return 0, err
		}
		switch op {
		case opDeadline:
			var b []byte
			if b, err = r.bytes(8); err == nil {
				r.entry.Deadline = max(int64(binary.LittleEndian.Uint64(b)), 1)
			}
		case opSeconds:
			var b []byte
			if b, err = r.bytes(4); err == nil {
				r.entry.Deadline = max(int64(int32(binary.LittleEndian.Uint32(b)))*1000, 1)
			}
		case opIdle:
			var n uint64
			if n, err = r.number(); err == nil {
				r.entry.Idle = int64(min(n, math.MaxInt64))
			}
		case opFreq:
			var c byte
			if c, err = r.byte(); err == nil {
				r.entry.Freq = int64(c)
			}
		default:
			return op, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// part reads a part that is not a record. It returns errors of the options' functions unchanged.
func (r *Reader) part(op byte) error {
	switch op {
	case opAux:
		return r.aux()
	case opFunction:
		code, err := r.string()
		if err == nil {
			err = r.kept(code)
		}
		if err != nil || r.o.Function == nil {
			return r.where(err)
		}
		return r.o.Function(code)
	case opResize:
		return r.resize()
	}
	return r.where(r.silent(op))
}

// silent reads a part that the Reader does not report.
func (r *Reader) silent(op byte) error {
	switch {
	case op == opSelect:
		n, err := r.number()
		if err == nil && n > math.MaxInt32 {
			err = bad("database %d", n)
		}
		r.db = int(n)
		return err
	case op == opSlotInfo:
		return r.numbers(3)
	case op == opModuleAux:
		return r.moduleAux()
	case op == opSlotImport && r.version >= valkeyVersion:
		return r.slotImport()
	case op == opOldFunction:
		return bad("functions in the form of Redis 7.0's release candidates")
	}
	if what := newOpcodes[r.dialect][op]; what != "" && r.version > Version {
		return bad("opcode %d (%s) of a %s file in version %d is not known", op, what, r.dialect, r.version)
	}
	return bad("no opcode of a %s file in version %d is %d", r.dialect, r.version, op)
}

// kept counts bytes beside the keys. It returns an error if those of a compressed file exceed the bound.
func (r *Reader) kept(b []byte) error {
	r.beside += int64(len(b))
	if r.packed == nil || r.beside <= r.packed.limit(r.limit) {
		return nil
	}
	return bad("texts and functions of %d bytes or more, of which %d are allowed: the %s file gave %d bytes so far",
		r.beside, r.packed.limit(r.limit), r.packed.with, r.packed.frame.at)
}

func (r *Reader) aux() error {
	name, err := r.string()
	if err != nil {
		return r.where(err)
	}
	text, err := r.string()
	if err != nil {
		return r.where(err)
	}
	if err := r.kept(text); err != nil {
		return r.where(err)
	}
	if string(name) == "valkey-ver" {
		r.dialect = Valkey
	}
	if r.o.Aux == nil {
		return nil
	}
	return r.o.Aux(name, text)
}

func (r *Reader) resize() error {
	keys, err := r.number()
	if err != nil {
		return r.where(err)
	}
	expires, err := r.number()
	if err != nil || r.o.Resize == nil {
		return r.where(err)
	}
	return r.o.Resize(r.db, keys, expires)
}

// moduleAux skips the auxiliary data of a module: id, when, number, values.
func (r *Reader) moduleAux() error {
	if err := r.numbers(3); err != nil {
		return err
	}
	return r.moduleParts()
}

// slotImport skips the name of a migration and the ranges of its slots.
func (r *Reader) slotImport() error {
	if err := r.skipString(); err != nil {
		return err
	}
	n, err := r.number()
	for ; err == nil && n > 0; n-- {
		err = r.numbers(2)
	}
	return err
}

// record reads a key and finds the end of its value; skip is true for a key to leave out.
func (r *Reader) record(t Type) (skip bool, err error) {
	e := &r.entry
	if t.since() > r.version {
		return false, r.where(bad("type %d in version %d", t, r.version))
	}
	if e.Key, err = r.string(); err != nil {
		return false, r.where(err)
	}
	// Write the type directly before the value: move the key back by one byte, over the last byte
	// of its length.
	if n := len(e.Key); n > 0 && n <= r.pos && &e.Key[0] == &r.buf[r.pos-n] {
		copy(r.buf[r.pos-n-1:], e.Key)
		e.Key = r.buf[r.pos-n-1 : r.pos-1 : r.pos-1]
	}
	r.buf[r.pos-1] = byte(t)
	e.DB, e.Version, e.Dialect, e.With = r.db, r.version, r.dialect, r.Compression()
	r.inKey, e.Offset = true, r.offset()
	r.mark = r.pos - 1
	module, err := r.skipValue(t)
	e.Value = r.buf[r.mark:r.pos:r.pos]
	r.mark = none
	if err != nil || module == "" || strings.HasPrefix(module, "ebb-") {
		return false, r.where(err)
	}
	if r.o.UnknownModule == nil {
		return false, r.where(bad("a value of the module %q, which only Redis with that module reads", module))
	}
	return true, r.o.UnknownModule(module, r.db, e.Key)
}

// finish verifies the checksum, and that an envelope has no further bytes.
func (r *Reader) finish() error {
	if err := r.verify(); err != nil || r.packed == nil {
		return err
	}
	return r.endEnvelope()
}

func (r *Reader) verify() error {
	if r.version < crcSince {
		return nil
	}
	crc := r.used()
	b, err := r.bytes(crcSize)
	if err != nil {
		return err
	}
	if want := binary.LittleEndian.Uint64(b); !r.noSum && want != 0 && want != crc {
		return fmt.Errorf("%w: the file says %016x, its bytes give %016x", ErrSum, want, crc)
	}
	return nil
}
