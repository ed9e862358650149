package expmap

import (
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/kit"
)

// texts encodes keys or values as strings. With the default codec it returns a string itself, without a copy.
type texts[T any] struct {
	codec conn.Codec[T]
	plain bool // T is string, and codec is the default
}

// newTexts returns the texts for a codec; nil is the default codec. field is the name of the option.
func newTexts[T any](given conn.Codec[T], field string) (t texts[T], err error) {
	var v T
	_, t.plain = any(v).(string)
	t.plain = t.plain && given == nil
	t.codec, err = kit.Codec(given, field)
	return t, err
}

func (t *texts[T]) encode(v T) (string, error) {
	if t.plain {
		s, _ := any(v).(string)
		return s, nil
	}
	b, err := t.codec.Encode(v)
	return direct.Text(b), err // the caller owns the bytes
}

func (t *texts[T]) decode(s string) (T, error) {
	if t.plain {
		v, _ := any(s).(T)
		return v, nil
	}
	return t.codec.Decode([]byte(s))
}
