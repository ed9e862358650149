package engine

import "errors"

// The errors of transactions. Nothing was changed where one is returned.
var (
	// ErrWrongType: the key holds another kind of value.
	ErrWrongType = errors.New("the key holds another kind of value")
	// ErrNotInteger: the value, or an argument, is no 64-bit integer.
	ErrNotInteger = errors.New("the value is not an integer or out of range")
	// ErrNotFloat: the value is no number.
	ErrNotFloat = errors.New("the value is not a valid float")
	// ErrOverflow: the result of an integer operation does not fit 64 bits.
	ErrOverflow = errors.New("increment or decrement would overflow")
	// ErrNaN: the result of a float operation is infinite or no number.
	ErrNaN = errors.New("increment would produce NaN or Infinity")
	// ErrInfinite: what is to be added is infinite.
	ErrInfinite = errors.New("the increment is infinite")
	// ErrFieldNotInteger: the value of the hash field is no 64-bit integer.
	ErrFieldNotInteger = errors.New("the hash value is not an integer")
	// ErrFieldNotFloat: the value of the hash field is no number.
	ErrFieldNotFloat = errors.New("the hash value is not a float")
	// ErrScoreNaN: the sum of infinities of both signs is no score.
	ErrScoreNaN = errors.New("resulting score is not a number (NaN)")
	// ErrTooLarge: the string would be longer than Tx.MaxString.
	ErrTooLarge = errors.New("string exceeds maximum allowed size (proto-max-bulk-len)")
	// ErrFull: a shard's 32 GiB of records are used up.
	ErrFull = errors.New("the shard's memory is used up")
	// ErrNotHLL: the string is no HyperLogLog.
	ErrNotHLL = errors.New("the string is no HyperLogLog")
	// ErrCorruptHLL: the string begins as a HyperLogLog does, but is none.
	ErrCorruptHLL = errors.New("the HyperLogLog is corrupt")
	// ErrIndex: the list has no element at this position.
	ErrIndex = errors.New("index out of range")
	// ErrNoKey: there is no such key.
	ErrNoKey = errors.New("no such key")
)
