package conn

import (
	"encoding"
	"encoding/json"
	"fmt"
)

// Codec encodes the values of an object for the backend, and decodes them. Its methods are
// called concurrently. Encode's result belongs to the caller; Decode must not keep its
// argument.
type Codec[T any] interface {
	Encode(v T) ([]byte, error)
	Decode(data []byte) (T, error)
}

// CodecOf returns the default codec of a type: strings and byte slices are stored unchanged,
// types that marshal themselves to text or bytes use that, and other types use JSON.
func CodecOf[T any]() Codec[T] {
	var v T
	switch any(v).(type) {
	case string, []byte:
		return plainCodec[T]{}
	case json.Marshaler:
		return JSON[T]()
	}
	_, in := any(&v).(encoding.TextUnmarshaler)
	_, out := any(&v).(encoding.TextMarshaler)
	if in && out {
		return textCodec[T]{}
	}
	return JSON[T]()
}

// JSON returns the codec of encoding/json.
func JSON[T any]() Codec[T] { return jsonCodec[T]{} }

type jsonCodec[T any] struct{}

func (jsonCodec[T]) Encode(v T) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArgument, err)
	}
	return data, nil
}

func (jsonCodec[T]) Decode(data []byte) (v T, err error) {
	if err = json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("%w: %q is not the JSON of a %T: %w", ErrValue, cut(data), v, err)
	}
	return v, nil
}

type textCodec[T any] struct{}

func (textCodec[T]) Encode(v T) ([]byte, error) {
	data, err := any(&v).(encoding.TextMarshaler).MarshalText()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArgument, err)
	}
	return data, nil
}

func (textCodec[T]) Decode(data []byte) (v T, err error) {
	if err = any(&v).(encoding.TextUnmarshaler).UnmarshalText(data); err != nil {
		return v, fmt.Errorf("%w: %q is not a %T: %w", ErrValue, cut(data), v, err)
	}
	return v, nil
}

// plainCodec is the codec for strings and byte slices.
type plainCodec[T any] struct{}

func (plainCodec[T]) Encode(v T) ([]byte, error) {
	switch v := any(v).(type) {
	case string:
		return []byte(v), nil
	case []byte:
		return append([]byte(nil), v...), nil
	}
	return nil, fmt.Errorf("%w: a %T is neither a string nor bytes", ErrArgument, v)
}

func (plainCodec[T]) Decode(data []byte) (v T, err error) {
	switch p := any(&v).(type) {
	case *string:
		*p = string(data)
	case *[]byte:
		*p = append([]byte(nil), data...)
	}
	return v, nil
}

// cut returns the beginning of data, for messages.
func cut(data []byte) []byte {
	const limit = 64
	return data[:min(len(data), limit)]
}
