package rdb

import "strings"

// A module's value, as ebb writes those of its own types:
//
//	type 7 │ id: name of nine letters, 6 bits each, and version 10 bits │ 5 │ string │ 0
//
// which is what Redis's RM_SaveStringBuffer writes: a loader that does not know
// the name can read past it.

// letters are those of a name, in the order of their numbers.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

const (
	moduleEnd    = 0
	moduleString = 5
	// moduleVersion is the encoding version in the id; the bytes have their own.
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
	e.begin(TypeModule)
	e.length(moduleID(name))
	e.length(moduleString)
	e.string(data)
	e.length(moduleEnd)
}

func (d *Decoder) module(b Builder) error {
	id, err := d.number()
	if err != nil {
		return err
	}
	what, err := d.number()
	if err != nil {
		return err
	}
	if what != moduleString {
		return bad("a value of a module that is not known")
	}
	data, err := d.string(first)
	if err != nil {
		return err
	}
	if what, err = d.number(); err != nil {
		return err
	}
	if what != moduleEnd {
		return bad("a value of a module that is not known")
	}
	return b.Module(moduleName(id), data)
}
