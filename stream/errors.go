package stream

import "errors"

// ErrLost is returned by the methods of a Delivery that is not the caller's any
// more: ClaimAfter passed without Ack, Nack or Extend and another consumer has
// claimed the entry; or, of Nack and Extend, no consumer has it, because it was deleted,
// acknowledged or handed back.
var ErrLost = errors.New("the entry is not this consumer's any more")
