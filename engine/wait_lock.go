package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// waitLock is a mutex that counts its waiters, so that a holder with a long
// job (reclaiming, compaction, a snapshot) can let go at once when somebody
// else wants in. A bare sync.Mutex does not hand over: a goroutine that loops
// lock, work, unlock makes others wait for a millisecond.
type waitLock struct {
	mu      sync.Mutex
	waiters atomic.Int32
	turns   *turnstile // of all locks of an engine
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

// Await counts somebody who looks again and again whether the lock is free, 1, or
// looks no more, -1: whoever holds it in slices lets go for him as well.
func (l *waitLock) Await(n int32) { l.waiters.Add(n) }

// Contended reports whether somebody waits for the lock.
func (l *waitLock) Contended() bool { return l.waiters.Load() != 0 }

// LockLater locks when nobody else wants to: for work that can wait.
func (l *waitLock) LockLater() {
	for l.Contended() {
		runtime.Gosched()
	}
	l.Lock()
}

// turnstile wakes those who look again and again whether locks are free.
type turnstile struct{ next atomic.Pointer[chan struct{}] }

// wait returns what is closed by the next turn. Take it first, then look whether the
// lock is free, then wait.
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

// turn wakes all who wait.
func (t *turnstile) turn() {
	if t.next.Load() == nil {
		return
	}
	if ch := t.next.Swap(nil); ch != nil {
		close(*ch)
	}
}
