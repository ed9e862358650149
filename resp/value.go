package resp

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/ebbdb/ebb/internal/numeral"
)

// Kind is the RESP type of a Value.
type Kind uint8

// The kinds of Value. A command's reply is never KindNone.
const (
	KindNone      Kind = iota // the zero Value: no reply
	KindStatus                // Str
	KindError                 // Str: code and text
	KindInt                   // Int
	KindBulk                  // Str
	KindNull                  // nothing
	KindNullArray             // nothing; RESP2 only
	KindArray                 // Elems
	KindMap                   // Elems: key, value, key, value...
	KindSet                   // Elems
	KindPush                  // Elems
	KindDouble                // Float
	KindBool                  // Int: 0 or 1
	KindBigNumber             // Str: decimal
	KindVerbatim              // Str, and Format: txt or mkd
)

// kinds are the names of the kinds in messages.
var kinds = [...]string{
	KindNone:      "nothing",
	KindStatus:    "status",
	KindError:     "error",
	KindInt:       "integer",
	KindBulk:      "string",
	KindNull:      "null",
	KindNullArray: "null array",
	KindArray:     "array",
	KindMap:       "map",
	KindSet:       "set",
	KindPush:      "push",
	KindDouble:    "double",
	KindBool:      "boolean",
	KindBigNumber: "big number",
	KindVerbatim:  "verbatim string",
}

func (k Kind) aggregate() bool { return k >= KindArray && k <= KindPush }

// String returns the kind's name: "integer", "map".
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Value is a reply as a client sees it. Kind decides which fields have a meaning. A Value
// owns its memory and may be shared by readers.
type Value struct {
	Kind   Kind
	Format [3]byte // of a verbatim string
	Str    string  // status, error, bulk, big number, verbatim text
	Int    int64   // integer, boolean
	Float  float64 // double; Str has its text if the server has spelled it otherwise than String does
	Elems  []Value // elements; of a map, keys and values in turn
	Attrs  []Value // attributes, keys and values in turn; usually none
}

// ReplyError is an error reply: "ERR no such key", "WRONGTYPE ...".
type ReplyError string

// Error returns the code and the text.
func (e ReplyError) Error() string { return string(e) }

// Code returns the first word: "ERR", "WRONGTYPE", "MOVED".
func (e ReplyError) Code() string {
	for i := range len(e) {
		if e[i] == ' ' {
			return string(e[:i])
		}
	}
	return string(e)
}

// ErrType is in the chain of errors of the As methods when the reply is of
// another kind.
var ErrType = errors.New("unexpected reply type")

// Err returns a ReplyError if the reply is an error, otherwise nil. Err does not look at
// errors inside an aggregate.
func (v Value) Err() error {
	if v.Kind == KindError {
		return ReplyError(v.Str)
	}
	return nil
}

// IsNull reports whether the reply is a null of either form, or the zero Value.
func (v Value) IsNull() bool {
	return v.Kind == KindNull || v.Kind == KindNullArray || v.Kind == KindNone
}

// String returns the text of a scalar: the bytes of a string, the digits of a number, an
// empty string for a null. An aggregate becomes one line of text, for messages.
func (v Value) String() string {
	switch v.Kind {
	case KindStatus, KindError, KindBulk, KindBigNumber, KindVerbatim:
		return v.Str
	case KindInt:
		return strconv.FormatInt(v.Int, 10)
	case KindDouble:
		if v.Str != "" { // as the server spelled it
			return v.Str
		}
		return string(numeral.AppendDouble(nil, v.Float))
	case KindBool:
		return strconv.FormatBool(v.Int != 0)
	}
	if v.Kind.aggregate() {
		return string(v.AppendJSON(nil, nil))
	}
	return ""
}

// AsString returns the bytes of a status, bulk, verbatim string or number. The
// error is the reply's own, or wraps ErrType.
func (v Value) AsString() (string, error) {
	if err := v.Err(); err != nil {
		return "", err
	}
	if v.IsNull() || v.Kind.aggregate() {
		return "", v.typeError("string")
	}
	return v.String(), nil
}

// AsInt returns an integer or boolean, or a string of decimal digits.
func (v Value) AsInt() (int64, error) {
	switch v.Kind {
	case KindInt, KindBool:
		return v.Int, nil
	case KindStatus, KindBulk, KindVerbatim, KindBigNumber:
		if n, ok := numeral.ParseInt(v.Str); ok {
			return n, nil
		}
	case KindError:
		return 0, v.Err()
	}
	return 0, v.typeError("integer")
}

// AsFloat returns a double or integer, or a string that spells one.
func (v Value) AsFloat() (float64, error) {
	switch v.Kind {
	case KindDouble:
		return v.Float, nil
	case KindInt:
		return float64(v.Int), nil
	case KindStatus, KindBulk, KindVerbatim, KindBigNumber:
		if f, ok := numeral.ParseDouble(v.Str); ok {
			return f, nil
		}
	case KindError:
		return 0, v.Err()
	}
	return 0, v.typeError("double")
}

// AsBool returns a boolean, an integer other than 0, or a status OK.
func (v Value) AsBool() (bool, error) {
	switch {
	case v.Kind == KindBool || v.Kind == KindInt:
		return v.Int != 0, nil
	case v.Kind == KindStatus && v.Str == "OK":
		return true, nil
	case v.Kind == KindError:
		return false, v.Err()
	}
	return false, v.typeError("boolean")
}

// AsStrings returns the elements of an array, set or push as strings; nulls in
// it are empty strings.
func (v Value) AsStrings() ([]string, error) {
	if err := v.Err(); err != nil {
		return nil, err
	}
	if !v.Kind.aggregate() {
		return nil, v.typeError("array")
	}
	all := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		if e.IsNull() {
			continue
		}
		s, err := e.AsString()
		if err != nil {
			return nil, err
		}
		all[i] = s
	}
	return all, nil
}

// Pairs iterates over a map, or over a flat array as RESP2 sends one: key,
// value, key, value.
func (v Value) Pairs(yield func(key, value Value) bool) {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if !yield(v.Elems[i], v.Elems[i+1]) {
			return
		}
	}
}

// Get returns the value of a key in a map or flat array. It costs O(n).
func (v Value) Get(key string) (Value, bool) {
	for k, val := range v.Pairs {
		if !k.Kind.aggregate() && k.String() == key {
			return val, true
		}
	}
	return Value{}, false
}

func (v Value) typeError(want string) error {
	return fmt.Errorf("%w: %s, want %s", ErrType, v.Kind, want)
}
