package rdb

import "strings"

// A module's value, as ebb writes those of its own types:
//
//	type 7 │ id: name of nine letters, 6 bits each, and version 10 bits │ 5 │ string │ 0
//
// This is the format of Redis's RM_SaveStringBuffer, so a loader that does not know the name can
// skip the value. A large value has several strings, each after a 5. So no string has to fit in
// memory, or to be longer than a string may be.

// letters are the letters of a name, in the order of their numbers.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

const (
	moduleEnd    = 0
	moduleInt    = 1 // and the other kinds that modules write
	moduleUint   = 2
	moduleFloat  = 3
	moduleDouble = 4
	moduleString = 5
	// moduleVersion is the encoding version in the id. The bytes of a value have a version of their
	// own.
	moduleVersion = 1
	nameLetters   = 9
)

func moduleID(name string) (id uint64) {
	for i := range nameLetters {
		id = id<<6 | uint64(strings.IndexByte(letters, name[i]))
	}
	return id<<10 | moduleVersion
}

func moduleName(id uint64) string {
	var b [nameLetters]byte
	id >>= 10
	for i := nameLetters - 1; i >= 0; i-- {
		b[i] = letters[id&63]
		id >>= 6
	}
	return string(b[:])
}

// Module appends a value under a module's name of nine letters.
func (e *Encoder) Module(name string, data []byte) {
	e.BeginModule(name)
	e.EndModule(data)
}

// BeginModule begins a value under a module's name of nine letters: the caller calls Spill whenever
// many bytes have accumulated, and then EndModule.
func (e *Encoder) BeginModule(name string) {
	e.begin(TypeModule)
	e.length(moduleID(name))
	e.parts = 0
}

// Spill appends b, the bytes of the value after the last Spill, and returns it emptied, if b is
// large and Drain is set. Otherwise it returns b unchanged.
func (e *Encoder) Spill(b []byte) []byte {
	if e.Drain == nil || len(b) < drainAt {
		return b
	}
	e.part(b)
	return b[:0]
}

// EndModule appends the rest of the value, and ends it.
func (e *Encoder) EndModule(rest []byte) {
	if len(rest) > 0 || e.parts == 0 {
		e.part(rest)
	}
	e.length(moduleEnd)
}

func (e *Encoder) part(b []byte) {
	e.parts++
	e.length(moduleString)
	e.string(b)
	e.drain()
}

func (d *Decoder) module(b Builder) error {
	id, err := d.number()
	if err != nil {
		return err
	}
	var data []byte
	for n := 0; ; n++ {
		what, err := d.number()
		switch {
		case err != nil:
			return err
		case what == moduleEnd && n > 0:
			return b.Module(moduleName(id), data)
		case what != moduleString:
			return bad("a value of a module that is not known")
		}
		if n == 1 { // the buffer is needed again
			data = append(make([]byte, 0, 2*len(data)), data...)
		}
		part, err := d.string(first)
		switch {
		case err != nil:
			return err
		case n == 0:
			data = part
		default:
			data = append(data, part...)
		}
	}
}
