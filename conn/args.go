package conn

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/routing"
)

// AppendArg appends the text of an argument, as Drivers send it, to dst: strings and bytes as they are,
// integers in decimal, floats in the shortest form that reads back the same,
// booleans as 1 and 0, and otherwise what MarshalBinary or MarshalText says. It returns ErrArgument for a type without a
// text, and for durations and times: their unit depends on the command. It allocates for types that marshal themselves, and
// to grow dst.
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

// appendKind is appendArg for the types that are strings, bytes and numbers by
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

// commandName returns the first argument, for messages.
func commandName(args []any) string {
	if len(args) == 0 {
		return "an empty command"
	}
	s, err := ArgText(args[0])
	if err != nil || len(s) > 32 {
		return "a command"
	}
	return s
}

// checkCommand refuses what must not run on a borrowed connection.
func checkCommand(args []any) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: there is no command", ErrArgument)
	}
	name, err := ArgText(args[0])
	if err != nil {
		return err
	}
	c, sub := routing.Find(name, ""), ""
	if c.Has(routing.Container) && len(args) > 1 {
		if sub, err = ArgText(args[1]); err != nil {
			return err
		}
		c = routing.Find(name, sub)
	}
	return checkState(c, name, sub)
}

// checkState refuses a command that changes its connection, and says what to use instead.
func checkState(c *routing.Command, name, sub string) error {
	if !c.Has(routing.Stateful) {
		return nil
	}
	switch c.Name {
	case "multi", "exec", "discard":
		return fmt.Errorf("%w: %s: use Conn.Tx", ErrStateful, name)
	case "watch", "unwatch":
		return fmt.Errorf("%w: %s: use Conn.Watch", ErrStateful, name)
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe", "monitor":
		return fmt.Errorf("%w: %s: use Conn.Subscribe", ErrStateful, name)
	}
	if strings.Contains(c.Name, "|") {
		return fmt.Errorf("%w: %s %s", ErrStateful, strings.ToUpper(name), sub)
	}
	return fmt.Errorf("%w: %s: the URL of Open says which database, which user and which protocol", ErrStateful, name)
}
