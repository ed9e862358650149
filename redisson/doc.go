// Package redisson has the objects of the Java library Redisson in Redisson's own layouts: the
// same keys, bytes and channels, so that Go and Java programs share them.
//
//	l, err := redisson.NewRateLimiter(c, "api") // getRateLimiter("api")
//	set, err := l.TrySetRate(ctx, redisson.Rate{Rate: 5, Interval: time.Second})
//	ok, err := l.TryAcquire(ctx, 1, 500*time.Millisecond)
//
// Each object has the name that Redisson gives it, without the R:
//
//	NewRateLimiter     getRateLimiter
//	NewDelayedQueue    getDelayedQueue(getBlockingQueue(name))
//	NewMapCache        getMapCache: a map of package expmap
//	NewSetCache        getSetCache: a set of package expset
//	NewBloomFilter     getBloomFilter
//
// On every backend an operation is one Lua script, by the server's clock. The scripts read and
// write what Redisson's do, and any key of an object can be shared with programs of both
// languages. The layouts cannot do all that the other packages of the toolkit can: a program
// that shares nothing with Java uses those.
//
// Start reading at RateLimiter: its comment describes its keys, as that of every object does.
package redisson
