package engine

import "errors"

// These are the errors of transactions. A method that returns one of them has changed nothing.
var (
	// ErrWrongType: the key holds another kind of value.
	ErrWrongType = errors.New("the key holds another kind of value")
	// ErrNotInteger: the value or an argument is not a 64-bit integer.
	ErrNotInteger = errors.New("the value is not an integer or out of range")
	// ErrNotFloat: the value is not a number.
	ErrNotFloat = errors.New("the value is not a valid float")
	// ErrOverflow: the result of an integer operation does not fit 64 bits.
	ErrOverflow = errors.New("increment or decrement would overflow")
	// ErrNaN: the result of a float operation is infinite or not a number.
	ErrNaN = errors.New("increment would produce NaN or Infinity")
	// ErrInfinite: the increment is infinite.
	ErrInfinite = errors.New("the increment is infinite")
	// ErrFieldNotInteger: the value of the hash field is not a 64-bit integer.
	ErrFieldNotInteger = errors.New("the hash value is not an integer")
	// ErrFieldNotFloat: the value of the hash field is not a number.
	ErrFieldNotFloat = errors.New("the hash value is not a float")
	// ErrScoreNaN: the new score is not a number: the sum of infinities of both signs.
	ErrScoreNaN = errors.New("resulting score is not a number (NaN)")
	// ErrTooLarge: the string would be longer than Tx.MaxString.
	ErrTooLarge = errors.New("string exceeds maximum allowed size (proto-max-bulk-len)")
	// ErrFull: a shard's 32 GiB of records are used up.
	ErrFull = errors.New("the shard's memory is used up")
	// ErrNotHLL: the string is not a HyperLogLog.
	ErrNotHLL = errors.New("the string is not a HyperLogLog")
	// ErrCorruptHLL: the string begins like a HyperLogLog, but the rest is invalid.
	ErrCorruptHLL = errors.New("the HyperLogLog is corrupt")
	// ErrIndex: the list has no element at this position.
	ErrIndex = errors.New("index out of range")
	// ErrNoKey: there is no such key.
	ErrNoKey = errors.New("no such key")
)
