package topic

import "errors"

// ErrSlow ends a subscription whose messages were not read in time: more than Options.Backlog
// messages were waiting, or more bytes than an embedded engine allows. The text says which, and
// names the client if another client killed the subscriber. Earlier messages are delivered,
// later ones are not. Subscribe again, and read what may have changed meanwhile.
var ErrSlow = errors.New("the subscriber is too slow and was cut off")
