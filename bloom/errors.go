package bloom

import "errors"

// ErrFull says that a Fixed filter holds as many values as its Capacity. The value was not
// added.
var ErrFull = errors.New("the filter is full")
