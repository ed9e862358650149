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
func (l *waitLock) Unlock()       { l.mu.Unlock() }

// Contended reports whether somebody waits for the lock.
func (l *waitLock) Contended() bool { return l.waiters.Load() != 0 }

// LockLater locks when nobody else wants to: for work that can wait.
func (l *waitLock) LockLater() {
	for l.Contended() {
		runtime.Gosched()
	}
	l.Lock()
}
