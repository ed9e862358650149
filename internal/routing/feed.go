package routing

import "time"

// These constants are the pauses and timeouts of a subscription.
const (
	// FeedRetry is the pause before another attempt to connect; it doubles up to
	// FeedRetryMax.
	FeedRetry    = 50 * time.Millisecond
	FeedRetryMax = 2 * time.Second
	// FeedTimeout limits one attempt to subscribe, so that a server that hangs does not
	// block it.
	FeedTimeout = 15 * time.Second
	// FeedRefresh is the time after which a subscription to the events of all nodes reads again which nodes
	// are masters: a node that takes over, or gets its first slots, cuts no connection. It costs a reading of the map of slots.
	FeedRefresh = 2 * time.Second
)
