package bloom

import "errors"

var (
	// ErrFull says that a Fixed filter holds as many values as its Capacity. The value was not
	// added.
	ErrFull = errors.New("it is full")
	// ErrConfig says that a Redisson filter is not initialised.
	ErrConfig = errors.New("it is not initialised: call TryInit")
)
