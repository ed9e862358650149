package engine

import (
	"sync"
	"sync/atomic"
)

// waitLock is a mutex that counts its waiters, so that a holder with a long job (reclaiming,
// compaction, a snapshot) can release it at once when another goroutine waits for it. A bare
// sync.Mutex does not hand over: a goroutine that loops over lock, work, unlock makes others wait
// for a millisecond.
type waitLock struct {
	mu      sync.Mutex
	waiters atomic.Int32
	turns   *turnstile // shared by all locks of an engine
}

func (l *waitLock) Lock() {
	if l.mu.TryLock() {
		return
	}
	l.waiters.Add(1)
	l.mu.Lock()
	l.waiters.Add(-1)
}

func (l *waitLock) TryLock() bool { return l.mu.TryLock() }

func (l *waitLock) Unlock() {
	l.mu.Unlock()
	if l.waiters.Load() != 0 {
		l.turns.turn()
	}
}

// Await counts a goroutine that begins (1) or stops (-1) to poll the lock: a holder that works in slices
// releases the lock for it too.
func (l *waitLock) Await(n int32) { l.waiters.Add(n) }

// Contended reports whether another goroutine waits for the lock.
func (l *waitLock) Contended() bool { return l.waiters.Load() != 0 }

// turnstile wakes goroutines that poll locks.
type turnstile struct{ next atomic.Pointer[chan struct{}] }

// wait returns a channel that the next turn closes. The caller first takes the channel, then checks
// whether the lock is free, and then waits.
func (t *turnstile) wait() <-chan struct{} {
	for {
		if ch := t.next.Load(); ch != nil {
			return *ch
		}
		ch := make(chan struct{})
		if t.next.CompareAndSwap(nil, &ch) {
			return ch
		}
	}
}

// turn wakes all goroutines that wait.
func (t *turnstile) turn() {
	if t.next.Load() == nil {
		return
	}
	if ch := t.next.Swap(nil); ch != nil {
		close(*ch)
	}
}
