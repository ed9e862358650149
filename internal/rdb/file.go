package rdb

import (
	"errors"
	"fmt"
)

// A file is
//
//	"REDIS" │ version, 4 digits │ part ... │ 255 │ CRC64 8 of all before, or 0 for none
//	part:   250 │ name │ text              data about the writer
//	        254 │ database                 of the records that follow
//	        251 │ keys │ with deadlines    their approximate numbers
//	        245 │ code                     a library of functions
//	        record
//	record: [252 │ deadline in ms 8] [248 │ seconds idle] [249 │ counter 1] type 1 │ key │ value
//
// Type and value are those of a DUMP payload. Valkey writes files as Redis does up to version 11,
// and from its version 9 on its own: "VALKEY" and three digits, 80 and above, with numbers of its
// own for some types and opcodes.

// These are the opcodes. The Reader knows all of them; the Writer writes those without a comment.
const (
	opSlotImport  = 243 // Valkey: a slot that is being imported
	opSlotInfo    = 244 // the number of keys of a slot, for reserving memory
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

	// valkeyVersion is the version of the files of Valkey 9.0 and 9.1, and valkeyNewest that of
	// 9.2. Versions below valkeyVersion are those of Redis.
	valkeyVersion = 80
	valkeyNewest  = 81
	// crcSince is the first version with a checksum.
	crcSince = 5
)

// Dialect says which server defines the format of a file.
type Dialect uint8

// These are the dialects.
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

// An Entry is a key of a file with its value and properties. The Reader never writes to Key and
// Value again, so the caller may keep them; they keep the block in which they lie in memory.
type Entry struct {
	DB  int
	Key []byte
	// Deadline is in ms since 1970, 0: none. Idle is in seconds since the last access, Freq a
	// counter up to 255; -1: the file does not contain it.
	Deadline, Idle, Freq int64
	// Value begins with its type, as Decoder.Restore takes it.
	Value   []byte
	Version int
	Dialect Dialect
	Offset  int64 // the offset of the value, after the key
	// With is the compression of the whole file. Offset counts decompressed bytes.
	With Compression
}

// Wrong returns a FileError about the entry's value.
func (e *Entry) Wrong(err error) *FileError {
	return &FileError{Offset: e.Offset, DB: e.DB, Key: e.Key, HasKey: true, With: e.With, Err: err}
}

// Type returns the type of the entry's value.
func (e *Entry) Type() Type { return Type(e.Value[0]) }

// Entry decodes an entry's value, as Restore does. Errors about the value have type *FileError and
// name the key and the offset. Entry returns other errors of b unchanged.
func (d *Decoder) Entry(e *Entry, b Builder) error {
	err := d.Restore(e.Value, e.Version, b)
	if errors.Is(err, ErrFormat) {
		wrong := e.Wrong(err)
		wrong.Offset += int64(max(d.pos-1, 0))
		return wrong
	}
	return err
}

// FileError says where a file is invalid. Err is ErrFormat, io.ErrUnexpectedEOF if the file ends
// too early, ErrSum, or the error of the underlying reader.
type FileError struct {
	Offset int64
	DB     int
	Key    []byte // the key of the invalid value, if HasKey
	HasKey bool
	// With is the compression of the whole file. If it is compressed, Offset counts decompressed
	// bytes, and Compressed is the number of bytes read from the file itself, 0 if unknown.
	With       Compression
	Compressed int64
	Err        error
}

// place formats the offset.
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
	const limit = 64 // the number of bytes of a key that the error prints
	key, more := e.Key, ""
	if len(key) > limit {
		key, more = key[:limit], "..."
	}
	return fmt.Sprintf("%s, in the value of key %q%s of database %d: %v", e.place(), key, more, e.DB, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// ErrSum: the checksum in a file is not that of its bytes.
var ErrSum = errors.New("rdb: the checksum is wrong")
