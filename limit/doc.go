// Package limit limits how often something happens, over all processes that share a
// backend.
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.25))
//	...
//	r, err := l.Allow(ctx, user)
//	if !r.Allowed {
//		return tooMany(r.RetryAfter)
//	}
//
// What decides is the backend, on its own clock, in one round trip:
//
//	ebb                 its commands: RL.TAKE, RL.WAIT, RL.RESERVE, RL.TAKEALL
//	Redis, Valkey       one Lua script for each operation, with the same answers
//	nothing answers     Down, which New demands: FailOpen, FailClosed or Local
//
// A limiter has one bucket for each key that it is asked about: the key's name is
// the limiter's name, a colon, and the key. It holds some dozens of bytes, and goes by
// itself when it is full. The rate is not stored: it comes with each call, so a deploy,
// or SetRate, changes it.
//
// Beside Limiter there are Concurrency, which hands out slots under a lease, and
// Redisson, the rate limiter of that Java library with the same keys and bytes.
// Package httplimit has middleware for net/http.
//
// Start reading at Limiter.Allow; the scripts are in lua.go, and what happens without
// a backend in down.go.
package limit
