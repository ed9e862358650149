package routing

import "time"

// How a subscription is kept.
const (
	// FeedAgain is the pause before another attempt to connect; it doubles up to
	// FeedAgainMax.
	FeedAgain    = 50 * time.Millisecond
	FeedAgainMax = 2 * time.Second
	// FeedPatience bounds an attempt: a server that hangs is not asked for ever.
	FeedPatience = 15 * time.Second
	// FeedLook is how often a subscription to the events of all nodes looks who the
	// masters are: one that takes over, or gets its first slots, takes no connection
	// away. It costs a reading of the map of slots.
	FeedLook = 2 * time.Second
)
