package topic

import "errors"

// ErrSlow ends a subscription whose messages were not taken in time: more than
// Options.Backlog of them were waiting, or more bytes than an embedded engine
// allows; the text says which, and names the client if one killed it.
// What came before is delivered, what came after is not. Subscribe again, and
// look up what may have changed meanwhile.
var ErrSlow = errors.New("the subscriber is too slow and was cut off")
