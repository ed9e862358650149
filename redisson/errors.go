package redisson

import "errors"

var (
	// ErrNoRate says that a RateLimiter has no rate yet.
	ErrNoRate = errors.New("the rate limiter has no rate yet: TrySetRate sets it")
	// ErrConfig says that a BloomFilter is not initialised.
	ErrConfig = errors.New("the filter is not initialised: call TryInit")
)
