package lua

import (
	"math"
	"unsafe"
)

// Value is a value of Lua: nil, a boolean, a number, a string, a table, a
// function, a thread or a light userdata. It is two words, and making one from
// a number allocates nothing. The zero Value is nil.
//
// The word w tells the kind. A number is stored as the complement of its IEEE 754 bits,
// which is at least minNumber. Smaller words would be negative NaNs, which no arithmetic
// yields; the other kinds use those 2^51 words:
//
//	bits 50..48  kind
//	bits 47..32  of a string: its hash, 0 if it was not computed (see hashOf)
//	bits 31..0   of a string: its length; of a light value: which
//
// p is the reference of the value: the first byte of a string, a *Table, a *Closure, a
// *Builtin or a *Thread.
type Value struct {
	p unsafe.Pointer
	w uint64
}

// Kind is a type of Lua, as the function type names it.
type Kind uint8

const (
	KindNil Kind = iota
	KindBoolean
	KindLightUserdata
	KindNumber
	KindString
	KindTable
	KindFunction
	KindThread
)

// String returns the name that Lua gives the type.
func (k Kind) String() string {
	return [...]string{"nil", "boolean", "userdata", "number", "string", "table", "function", "thread"}[k]
}

const (
	// minNumber is the word of the NaN that the processor makes, the least of
	// all numbers' words.
	minNumber = 1<<51 - 1

	tagShift   = 48
	tagLight   = 0
	tagString  = 1
	tagTable   = 2
	tagClosure = 3
	tagBuiltin = 4
	tagThread  = 5

	wNil   = 0
	wFalse = 1
	wTrue  = 2
	wNull  = 3

	hashShift = 32
	hashMask  = 0xffff << hashShift
)

// MaxString is the length of the longest string, in bytes.
const MaxString = 1<<31 - 1

var (
	Nil   = Value{}
	False = Value{w: wFalse}
	True  = Value{w: wTrue}
	// Null is the light userdata of the null pointer, which is cjson.null.
	Null = Value{w: wNull}
)

// Number returns the number f.
func Number(f float64) Value {
	w := ^math.Float64bits(f)
	if w < minNumber {
		w = minNumber
	}
	return Value{w: w}
}

// Int returns the number i.
func Int(i int) Value { return Value{w: ^math.Float64bits(float64(i))} }

// Bool returns True or False.
func Bool(b bool) Value {
	if b {
		return True
	}
	return False
}

// String returns the string s as a Value that shares its bytes: they must not change as
// long as a Value refers to them. String truncates a string that is longer than MaxString;
// a caller that can make such a string must check the length before.
func String(s string) Value {
	if len(s) > MaxString {
		s = s[:MaxString]
	}
	return Value{p: unsafe.Pointer(unsafe.StringData(s)), w: tagString<<tagShift | uint64(len(s))}
}

// Bytes does the work of String for a byte slice. It shares b, which must not change.
func Bytes(b []byte) Value { return String(unsafe.String(unsafe.SliceData(b), len(b))) }

// TableValue, ClosureValue, BuiltinValue and ThreadValue return a Value that refers to
// their argument, which must not be nil.
func TableValue(t *Table) Value {
	return Value{p: unsafe.Pointer(t), w: tagTable << tagShift}
}

func ClosureValue(f *Closure) Value {
	return Value{p: unsafe.Pointer(f), w: tagClosure << tagShift}
}

func BuiltinValue(f *Builtin) Value {
	return Value{p: unsafe.Pointer(f), w: tagBuiltin << tagShift}
}

func ThreadValue(t *Thread) Value {
	return Value{p: unsafe.Pointer(t), w: tagThread << tagShift}
}

// Kind returns the value's type.
func (v Value) Kind() Kind {
	if v.w >= minNumber {
		return KindNumber
	}
	switch v.w >> tagShift {
	case tagString:
		return KindString
	case tagTable:
		return KindTable
	case tagClosure, tagBuiltin:
		return KindFunction
	case tagThread:
		return KindThread
	}
	switch v.w {
	case wNil:
		return KindNil
	case wFalse, wTrue:
		return KindBoolean
	}
	return KindLightUserdata
}

func (v Value) IsNil() bool    { return v.w == wNil }
func (v Value) IsNumber() bool { return v.w >= minNumber }
func (v Value) IsString() bool { return v.w>>tagShift == tagString }
func (v Value) IsTable() bool  { return v.w>>tagShift == tagTable }

// IsFunction reports whether the value is a function, of Lua or of Go.
func (v Value) IsFunction() bool {
	tag := v.w >> tagShift
	return tag == tagClosure || tag == tagBuiltin
}

// Truth reports whether a condition treats the value as true: false and nil are false, all
// others are true.
func (v Value) Truth() bool { return v.w > wFalse }

// The following methods return the content of a value; the caller must check the kind
// before.

func (v Value) number() float64 { return math.Float64frombits(^v.w) }
func (v Value) length() int     { return int(uint32(v.w)) }
func (v Value) str() string     { return unsafe.String((*byte)(v.p), int(uint32(v.w))) }
func (v Value) table() *Table   { return (*Table)(v.p) }
func (v Value) closure() *Closure {
	return (*Closure)(v.p)
}
func (v Value) builtin() *Builtin { return (*Builtin)(v.p) }
func (v Value) thread() *Thread   { return (*Thread)(v.p) }

// AsNumber, AsString, AsTable and AsThread return the content of a value of their kind,
// without conversion. ok is false for a value of another kind.
func (v Value) AsNumber() (float64, bool) {
	if v.w < minNumber {
		return 0, false
	}
	return v.number(), true
}

func (v Value) AsString() (string, bool) {
	if !v.IsString() {
		return "", false
	}
	return v.str(), true
}

func (v Value) AsTable() (*Table, bool) {
	if !v.IsTable() {
		return nil, false
	}
	return v.table(), true
}

func (v Value) AsThread() (*Thread, bool) {
	if v.w>>tagShift != tagThread {
		return nil, false
	}
	return v.thread(), true
}

// Equal reports whether two values are equal by rawequal: Lua's == without metamethods.
func Equal(a, b Value) bool {
	if a.w >= minNumber && b.w >= minNumber {
		return a.number() == b.number()
	}
	if a.IsString() {
		return (a.w^b.w)&^hashMask == 0 && (a.p == b.p || a.str() == b.str())
	}
	return a.w == b.w && a.p == b.p
}

// hash32 returns the hash of a string, on which the order of pairs depends. It is the hash
// of Redis's Lua, which reads every byte; Lua 5.1 skips some bytes of long strings.
func hash32(s string) uint32 {
	h := uint32(len(s))
	for i := len(s) - 1; i >= 0; i-- {
		h ^= h<<5 + h>>2 + uint32(s[i])
	}
	return h
}

// hashed returns the string v with the low bits of its hash stored in it. It is for keys
// that the machine looks up often: the constants of a program, and the keys of tables.
func (v Value) hashed() Value {
	return Value{p: v.p, w: v.w&^hashMask | uint64(hash32(v.str())&0xffff)<<hashShift}
}

// hashOf returns the hash of the string v, of which at least the bits of mask are correct.
func (v Value) hashOf(mask uint32) uint32 {
	if h := uint32(v.w>>hashShift) & 0xffff; h != 0 && mask <= 0xffff {
		return h
	}
	return hash32(v.str())
}

// Key returns the string s with its hash stored in it, for a caller that sets the same key
// in many tables.
func Key(s string) Value { return String(s).hashed() }
