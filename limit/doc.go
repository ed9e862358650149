// Package limit implements rate limiters that all processes with the same backend share.
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.25))
//	...
//	r, err := l.Allow(ctx, user)
//	if !r.Allowed {
//		return tooMany(r.RetryAfter)
//	}
//
// The backend decides, by its own clock, in one round trip:
//
//	ebb                      the commands RL.TAKE, RL.WAIT, RL.RESERVE, RL.TAKEALL
//	Redis, Valkey            one Lua script for each operation, with the same results
//	backend does not reply   the argument Down of New: FailOpen, FailClosed or Local
//
// A limiter has one bucket for each key that it is called with. The bucket's name is the
// limiter's name, a colon, and the key. A bucket takes some dozens of bytes and expires when it
// is full again. The backend does not store the rate: each call carries it, so that a
// deployment or SetRate changes it.
//
// Concurrency limits how many operations run at the same time. Package httplimit has middleware
// for net/http. redisson.RateLimiter, in the module redisson, shares the keys of Redisson's
// RRateLimiter with Java programs.
//
// Start reading at Limiter.Allow. The scripts are in lua.go; down.go has what happens without a
// backend.
package limit
