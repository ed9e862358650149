package drivers

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/routing"
)

// AppendArg appends the text of an argument to dst: see driverutil.ArgText. It allocates for types that marshal themselves, and to
// grow dst.
func AppendArg(dst []byte, a any) ([]byte, error) {
	switch v := a.(type) {
	case string:
		return append(dst, v...), nil
	case []byte:
		return append(dst, v...), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case uint64:
		return strconv.AppendUint(dst, v, 10), nil
	case float64:
		return strconv.AppendFloat(dst, v, 'f', -1, 64), nil
	case bool:
		if v {
			return append(dst, '1'), nil
		}
		return append(dst, '0'), nil
	case time.Duration, time.Time:
		return dst, fmt.Errorf("%w: a %T has no unit here: pass %s", ErrArgument, a, "Milliseconds() or UnixMilli(), as the command wants")
	case encoding.BinaryMarshaler:
		if isNil(a) {
			break
		}
		b, err := v.MarshalBinary()
		if err != nil {
			return dst, fmt.Errorf("%w: %w", ErrArgument, err)
		}
		return append(dst, b...), nil
	case encoding.TextMarshaler:
		if isNil(a) {
			break
		}
		b, err := v.MarshalText()
		if err != nil {
			return dst, fmt.Errorf("%w: %w", ErrArgument, err)
		}
		return append(dst, b...), nil
	}
	return appendKind(dst, a)
}

// isNil reports whether a is a nil pointer, which most marshalers do not survive.
func isNil(a any) bool {
	v := reflect.ValueOf(a)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// appendKind is AppendArg for the types that are strings, bytes and numbers by
// another name.
func appendKind(dst []byte, a any) ([]byte, error) {
	switch v := reflect.ValueOf(a); v.Kind() {
	case reflect.String:
		return append(dst, v.String()...), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(dst, v.Uint(), 10), nil
	case reflect.Float32:
		return strconv.AppendFloat(dst, v.Float(), 'f', -1, 32), nil
	case reflect.Float64:
		return strconv.AppendFloat(dst, v.Float(), 'f', -1, 64), nil
	case reflect.Bool:
		return AppendArg(dst, v.Bool())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(dst, v.Bytes()...), nil
		}
	}
	return dst, fmt.Errorf("%w: a %T is neither text nor number, and has no MarshalBinary or MarshalText", ErrArgument, a)
}

// ArgText is AppendArg into a string of its own. It allocates for all types but strings.
func ArgText(a any) (string, error) {
	if s, ok := a.(string); ok {
		return s, nil
	}
	b, err := AppendArg(nil, a)
	return string(b), err
}

// MayWrite reports whether a command may change data. It returns true for unknown
// commands and for scripts.
func MayWrite(args []any) bool {
	if len(args) == 0 {
		return true
	}
	name, err := ArgText(args[0])
	if err != nil {
		return true
	}
	second := ""
	if len(args) > 1 {
		second, _ = ArgText(args[1]) // one without a text is not a subcommand
	}
	return routing.MayWrite(name, second)
}
