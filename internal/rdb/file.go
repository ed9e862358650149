package rdb

import (
	"errors"
	"fmt"
)

// A file is
//
//	"REDIS" │ version, 4 digits │ part ... │ 255 │ CRC64 8 of all before, or 0 for none
//	part:   250 │ name │ text              what the writer tells of itself
//	        254 │ database                 of the records that follow
//	        251 │ keys │ with deadlines    how many there are of them, about
//	        245 │ code                     a library of functions
//	        record
//	record: [252 │ deadline in ms 8] [248 │ seconds idle] [249 │ counter 1] type 1 │ key │ value
//
// in which type and value are what a DUMP payload holds. Valkey writes files as
// Redis does up to version 11, and from its version 9 on its own: "VALKEY" and
// three digits, 80 and above, with numbers of its own for some types and opcodes.

// The opcodes. The Reader knows them all, the Writer writes those without a
// remark.
const (
	opSlotImport  = 243 // Valkey: a slot that is on its way here
	opSlotInfo    = 244 // how many keys a slot has; only reserves memory
	opFunction    = 245
	opOldFunction = 246 // of release candidates of Redis 7.0
	opModuleAux   = 247
	opIdle        = 248
	opFreq        = 249
	opAux         = 250
	opResize      = 251
	opDeadline    = 252
	opSeconds     = 253 // a deadline in seconds, 4 bytes
	opSelect      = 254
	opEOF         = 255
)

const (
	magicRedis  = "REDIS"
	magicValkey = "VALKEY"
	headerSize  = 9
	crcSize     = 8

	// valkeyVersion is the version of the files of Valkey 9.0 and 9.1, and valkeyNewest
	// of 9.2. Those below it are of Redis.
	valkeyVersion = 80
	valkeyNewest  = 81
	// crcSince is the first version with a checksum.
	crcSince = 5
)

// Dialect is whose files they are.
type Dialect uint8

// The dialects.
const (
	Redis Dialect = iota
	Valkey
)

func (d Dialect) String() string {
	if d == Valkey {
		return "Valkey"
	}
	return "Redis"
}

// An Entry is a key of a file and what belongs to it. Key and Value are never
// written to again: they may be kept when the Reader goes on, which holds the block
// they lie in.
type Entry struct {
	DB  int
	Key []byte
	// Deadline is in ms since 1970, 0: none. Idle is in seconds since the last
	// access, Freq a counter up to 255; -1: the file does not tell.
	Deadline, Idle, Freq int64
	// Value begins with its type, as Decoder.Restore takes it.
	Value   []byte
	Version int
	Dialect Dialect
	Offset  int64 // of the value, behind the key
	// With is how the file is compressed as a whole: Offset is within it.
	With Compression
}

// Wrong returns an error about the entry's value.
func (e *Entry) Wrong(err error) *FileError {
	return &FileError{Offset: e.Offset, DB: e.DB, Key: e.Key, HasKey: true, With: e.With, Err: err}
}

// Type returns the type of the entry's value.
func (e *Entry) Type() Type { return Type(e.Value[0]) }

// Entry decodes an entry's value, as Restore does. Errors are of type *FileError
// and name the key and the place, where they are of the value itself: errors of b
// come back as they are unless they are ErrFormat.
func (d *Decoder) Entry(e *Entry, b Builder) error {
	err := d.Restore(e.Value, e.Version, b)
	if errors.Is(err, ErrFormat) {
		wrong := e.Wrong(err)
		wrong.Offset += int64(max(d.pos-1, 0))
		return wrong
	}
	return err
}

// FileError says where a file is wrong. Err is an ErrFormat, io.ErrUnexpectedEOF
// where the file ends too early, ErrSum, or what the reader below returned.
type FileError struct {
	Offset int64
	DB     int
	Key    []byte // whose value it is, if HasKey
	HasKey bool
	// With is how the file is compressed as a whole. If it is, Offset is within it, and
	// Compressed how many bytes of the file itself were read, 0 if that is not known.
	With       Compression
	Compressed int64
	Err        error
}

// place is the offset in words.
func (e *FileError) place() string {
	switch {
	case e.With == Uncompressed:
		return fmt.Sprintf("at offset %d", e.Offset)
	case e.Compressed == 0:
		return fmt.Sprintf("at offset %d of what the %s file holds", e.Offset, e.With)
	}
	return fmt.Sprintf("at offset %d of what the %s file holds up to its offset %d", e.Offset, e.With, e.Compressed)
}

func (e *FileError) Error() string {
	if !e.HasKey {
		return fmt.Sprintf("%s: %v", e.place(), e.Err)
	}
	const most = 64 // bytes of a key tell which one it is
	key, more := e.Key, ""
	if len(key) > most {
		key, more = key[:most], "..."
	}
	return fmt.Sprintf("%s, in the value of key %q%s of database %d: %v", e.place(), key, more, e.DB, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// ErrSum: a file's checksum is another than that of its bytes.
var ErrSum = errors.New("rdb: the checksum is wrong")
