// Package redisson has the objects of the Java library Redisson in Redisson's own layouts: the
// same keys, bytes and channels, so that Go and Java programs share them.
//
//	l, err := redisson.NewRateLimiter(c, "api") // getRateLimiter("api")
//	set, err := l.TrySetRate(ctx, redisson.Rate{Rate: 5, Interval: time.Second})
//	ok, err := l.TryAcquire(ctx, 1, 500*time.Millisecond)
//
// Each object has the name that Redisson gives it, or a part of that:
//
//	NewLock            getLock
//	NewFencedLock      getFencedLock
//	NewReadWriteLock   getReadWriteLock
//	NewSemaphore       getSemaphore
//	NewPermits         getPermitExpirableSemaphore
//	NewLatch           getCountDownLatch
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
// The holder of a lock is a thread of a Client; leases are those of package lock, whose errors
// ErrTaken and ErrLost the locks return. Expiration, waiting and releasing follow the rules of the
// toolkit.
//
// Start reading at Lock or RateLimiter: its comment describes its keys, as that of every object does.
package redisson
