package script

import (
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/rdb"
)

// The format of FUNCTION DUMP and FUNCTION RESTORE, which is Redis's:
//
//	245 │ code of a library, an RDB string │ 245 │ code │ ... │ version 2 │ CRC64 8
const (
	opFunction    = 245
	opFunctionOld = 246 // of release candidates of Redis 7.0: an engine's name, and more
)

// Policy decides what RestoreLibraries does with the existing libraries.
type Policy uint8

// The policies of FUNCTION RESTORE.
const (
	Append  Policy = iota // a name that exists is an error
	Replace               // libraries of the same name are replaced
	Flush                 // all libraries are removed first
)

// DumpLibraries implements FUNCTION DUMP: it returns all libraries in the order of their
// names.
func (e *Engine) DumpLibraries() []byte {
	enc := rdb.Encoder{Compress: true}
	for _, l := range e.Libraries() {
		at := len(enc.Buf)
		enc.String(bytesOf(l.Code))
		enc.Buf[at] = opFunction // in place of the type
	}
	return rdb.Seal(enc.Buf, rdb.PlainVersion)
}

// RestoreLibraries implements FUNCTION RESTORE: it loads the libraries of a payload. h is
// as in LoadLibrary. The error is an Error, or one of h.Tick; nothing has changed then.
func (e *Engine) RestoreLibraries(payload []byte, policy Policy, h Host) error {
	value, version, err := rdb.Open(payload)
	if err != nil {
		return errPayload
	}
	m := e.functions
	m.begin(h)
	defer e.finish(m)
	libraries, err := m.loadAll(value, version)
	if err == nil {
		err = e.adopt(libraries, policy == Replace, policy == Flush)
	}
	if err != nil {
		for _, l := range libraries {
			m.forget(l)
		}
	}
	return err
}

// loadAll loads the libraries of a payload; with an error, those up to it.
func (m *machine) loadAll(value []byte, version int) ([]*Library, error) {
	var libraries []*Library
	known := newCatalogue()
	for len(value) > 0 {
		switch value[0] {
		case opFunction:
		case opFunctionOld:
			return libraries, errOldFunctions
		default:
			return libraries, errNoFunction
		}
		code, rest, err := readCode(value[1:], version, m.limit)
		if err != nil {
			return libraries, errBadPayload
		}
		l, err := m.load(code, func(name string) bool { return known.libraries[name] != nil })
		if err != nil {
			return libraries, err
		}
		libraries = append(libraries, l)
		if f := known.clash(l); f != nil {
			return libraries, errExists(f)
		}
		known.add(l)
		value = rest
	}
	return libraries, nil
}

// readCode reads an RDB string of at most limit bytes, 0 for 512 MiB, and returns what follows it.
func readCode(b []byte, version, limit int) (code string, rest []byte, err error) {
	n, ok := stringSize(b)
	if !ok {
		return "", nil, rdb.ErrFormat
	}
	d := rdb.Decoder{MaxString: limit}
	text := codeBuilder{}
	err = d.Restore(append([]byte{byte(rdb.TypeString)}, b[:n]...), version, &text)
	return text.code, b[n:], err
}

// codeBuilder takes a string from a Decoder, which calls no other method here.
type codeBuilder struct {
	rdb.Builder
	code string
}

func (c *codeBuilder) String(val []byte) error {
	c.code = string(val)
	return nil
}

// stringSize returns how many bytes the RDB string takes with which b begins.
func stringSize(b []byte) (n int, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	switch b[0] {
	case 0xc0, 0xc1, 0xc2: // integers of 1, 2, 4 bytes
		n = 1 + 1<<(b[0]&3)
	case 0xc3: // compressed: two lengths
		size, head, ok := rdbLength(b[1:])
		if !ok {
			return 0, false
		}
		_, second, ok := rdbLength(b[1+head:])
		if !ok {
			return 0, false
		}
		n = 1 + head + second + size
	default:
		size, head, ok := rdbLength(b)
		if !ok {
			return 0, false
		}
		n = head + size
	}
	return n, n <= len(b)
}

// rdbLength reads a length of at most 2^32-1, and returns the bytes that it takes.
func rdbLength(b []byte) (n, head int, ok bool) {
	switch {
	case len(b) >= 1 && b[0]>>6 == 0:
		return int(b[0]), 1, true
	case len(b) >= 2 && b[0]>>6 == 1:
		return int(b[0]&0x3f)<<8 | int(b[1]), 2, true
	case len(b) >= 5 && b[0] == 0x80:
		return int(binary.BigEndian.Uint32(b[1:])), 5, true
	}
	return 0, 0, false
}
