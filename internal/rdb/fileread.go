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

// ReaderOptions say what a Reader tells of beside the keys. All calls come from
// Next; what they are given is never written to again. An error ends the reading
// and is what Next returns.
type ReaderOptions struct {
	Aux      func(name, text []byte) error
	Function func(code []byte) error
	// Resize comes before a database's keys: about how many it has, and how many
	// of them with a deadline. Both may be lies.
	Resize func(db int, keys, expires uint64) error
	// Stranger decides on a value of a module that is not ebb's: nil leaves it out.
	// Without it, that is an error which names the module.
	Stranger func(module string, db int, key []byte) error
	// NoChecksum leaves the checksum unread, which saves a tenth of the time.
	NoChecksum bool
}

// A Reader splits a file into its entries. It finds where a value ends and leaves
// decoding to the receiver of the entry, on any goroutine. It holds at most twice the
// bytes of the largest entry that is really there, whatever lengths the file gives. One
// goroutine at a time may use it.
type Reader struct {
	window
	o       ReaderOptions
	db      int
	version int
	dialect Dialect
	entry   Entry
	begun   bool
	inKey   bool // the entry's key is known
	last    error
}

// NewReader returns a Reader of the file that r gives. It reads ahead: Rest gives
// what it has read and not used.
func NewReader(r io.Reader, o ReaderOptions) *Reader {
	return &Reader{window: window{r: r, mark: none, noSum: o.NoChecksum, most: maxEntry}, o: o}
}

// Version returns the version of the file, once Next was called.
func (r *Reader) Version() int { return r.version }

// Dialect returns whose file it is, once Next was called.
func (r *Reader) Dialect() Dialect { return r.dialect }

// Compression returns how the file is compressed as a whole, once Next was called.
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

// offset is how many bytes have been used, of what is compressed those within.
func (r *Reader) offset() int64 { return r.base + int64(r.pos) }

// Rest returns what was read behind the bytes that were used: behind the file's
// end after io.EOF. It is valid as long as the Reader is not used.
func (r *Reader) Rest() []byte {
	if r.packed != nil {
		return r.packed.rest()
	}
	return r.buf[r.pos:r.end]
}

// Next returns the next key. The Entry is valid until the next call, Key and Value
// for ever. io.EOF comes at the file's end, after its checksum was verified. The
// other errors are of type *FileError, or what the options' functions returned;
// after an error every call returns it again.
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

// opFirst is below all opcodes and above all types.
const opFirst = 200

// where adds to an error of the file where that is.
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

// unpack reads what is in the envelope that the file turns out to be, from its header on.
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
	r.window = window{r: e, packed: e, mark: none, noSum: r.noSum, most: r.most}
	return r.header()
}

// readable says which versions are read. Above Version a file of Redis is read as far as
// its types and opcodes are known: see UnknownType.
func readable(valkey bool) string {
	if valkey {
		return fmt.Sprintf("%d and %d", valkeyVersion, valkeyNewest)
	}
	return fmt.Sprintf("1 to %d, and up to %d what those have", Version, valkeyVersion-1)
}

// unknownType is the error about a type that no decoder knows.
func (r *Reader) unknownType(t Type) error {
	return &UnknownType{Type: t, Dialect: r.dialect, Version: r.version}
}

// properties reads what stands before a type, or another opcode, and returns
// that.
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

// part reads what is no record. Errors of the options' functions come back as
// they are.
func (r *Reader) part(op byte) error {
	switch op {
	case opAux:
		return r.aux()
	case opFunction:
		code, err := r.string()
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

func (r *Reader) aux() error {
	name, err := r.string()
	if err != nil {
		return r.where(err)
	}
	text, err := r.string()
	if err != nil {
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

// moduleAux skips what a module keeps beside keys: id, when, number, values.
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

// record reads a key and finds the end of its value; skip is true for one that
// is left out.
func (r *Reader) record(t Type) (skip bool, err error) {
	e := &r.entry
	if t.since() > r.version {
		return false, r.where(bad("type %d in version %d", t, r.version))
	}
	if e.Key, err = r.string(); err != nil {
		return false, r.where(err)
	}
	// The type goes to where the key ends: the key moves over the last byte of its
	// length.
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
	if r.o.Stranger == nil {
		return false, r.where(bad("a value of the module %q, which only Redis with that module reads", module))
	}
	return true, r.o.Stranger(module, r.db, e.Key)
}

// finish verifies the checksum, and that an envelope holds nothing else.
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
