package kit

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/conn"
)

// Codec returns the codec of an object's values: given, or the default if the options have
// none. The error is ebb.ErrArgument if the default cannot encode values of T, such as
// channels, so that the constructor reports it and not each call. field is the name of the
// option.
func Codec[T any](given conn.Codec[T], field string) (conn.Codec[T], error) {
	if given != nil {
		return given, nil
	}
	t := reflect.TypeFor[T]()
	if part := unencodable(t); part != "" {
		return nil, fmt.Errorf("%w: JSON cannot encode %v: %s; use another type, or set %s", conn.ErrArgument, t, part, field)
	}
	return conn.CodecOf[T](), nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// marshals reports whether a type, or a pointer to it, encodes itself.
func marshals(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) || p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}

// unencodable names the part of a type that encoding/json refuses in every value, or
// returns "". A slice, a map or a pointer around such a part is refused as well, but not as
// a field of a struct: there it may be empty always.
func unencodable(t reflect.Type) string {
	for !marshals(t) {
		switch t.Kind() {
		case reflect.Map:
			if part := refused(t); part != "" {
				return part
			}
			t = t.Elem()
		case reflect.Slice, reflect.Array, reflect.Pointer:
			if t.Name() != "" { // it may contain itself
				return ""
			}
			t = t.Elem()
		default:
			return refused(t)
		}
	}
	return ""
}

// refused names the part of a type that encoding/json refuses in the zero value as well, or
// returns "".
func refused(t reflect.Type) string {
	if marshals(t) {
		return ""
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return "a " + t.Kind().String() + " has no JSON"
	case reflect.Map:
		k := t.Key()
		if kind := k.Kind(); kind != reflect.String && (kind < reflect.Int || kind > reflect.Uintptr) && !k.Implements(textMarshaler) {
			return fmt.Sprintf("a key of type %v has no JSON", k)
		}
	case reflect.Array:
		if t.Len() > 0 {
			return refused(t.Elem())
		}
	case reflect.Struct:
		for f := range t.Fields() {
			tag := f.Tag.Get("json")
			options := strings.Split(tag, ",")
			if tag == "-" || slices.Contains(options[1:], "omitzero") || !f.IsExported() && !f.Anonymous {
				continue
			}
			if !f.IsExported() && f.Type.Kind() != reflect.Struct {
				continue // JSON omits embedded types that are not exported and no structs
			}
			if part := refused(f.Type); part != "" {
				return fmt.Sprintf("field %s: %s", f.Name, part)
			}
		}
	}
	return ""
}
