package remote

import (
	"sync"
	"sync/atomic"
)

// Gate counts the calls of a driver until it is shut, and Wait waits until the last call
// has ended. Enter and Leave cost one atomic addition each. NewGate makes one.
type Gate struct {
	in   atomic.Int64 // calls under way, plus shutOff after Shut
	once sync.Once
	last chan struct{} // closed when the last call has ended
}

// shutOff is greater than any number of calls.
const shutOff = 1 << 40

// NewGate returns an open gate.
func NewGate() *Gate { return &Gate{last: make(chan struct{})} }

// Enter counts a call and reports true, or reports false after Shut. After true the caller
// must call Leave. After Shut it also refuses a call inside another one, such as a call of
// Watch's function.
func (g *Gate) Enter() bool {
	if g.in.Add(1) > shutOff {
		g.Leave()
		return false
	}
	return true
}

// Leave ends a call.
func (g *Gate) Leave() {
	if g.in.Add(-1) == shutOff {
		g.once.Do(func() { close(g.last) })
	}
}

// Shut makes Enter refuse calls from now on, and reports whether it was the first Shut.
func (g *Gate) Shut() (first bool) {
	for {
		n := g.in.Load()
		if n >= shutOff {
			return false
		}
		if g.in.CompareAndSwap(n, n+shutOff) {
			if n == 0 {
				g.once.Do(func() { close(g.last) })
			}
			return true
		}
	}
}

// Wait waits, after Shut, until the last call has ended.
func (g *Gate) Wait() { <-g.last }

// Go runs f in a goroutine that counts as a call. Only a call that has entered may use it.
func (g *Gate) Go(f func()) {
	g.in.Add(1)
	go func() {
		defer g.Leave()
		f()
	}()
}
