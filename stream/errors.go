package stream

import "errors"

// The methods of a Delivery return ErrLost if the caller no longer has the entry: ClaimAfter
// passed without Ack, Nack or Extend, and another consumer has claimed it; or, for Nack and
// Extend, no consumer has it, because it was deleted, acknowledged or returned.
var ErrLost = errors.New("the entry is no longer this consumer's")
