package remote

import (
	"sync"
	"sync/atomic"
)

// Gate lets calls in until it is shut, and Wait waits until the last has left. Enter and
// Leave cost an addition each. NewGate makes one.
type Gate struct {
	in   atomic.Int64 // calls, and shutOff once it is shut
	once sync.Once
	last chan struct{} // closed when the last has left
}

// shutOff is more than there ever are calls.
const shutOff = 1 << 40

// NewGate returns an open gate.
func NewGate() *Gate { return &Gate{last: make(chan struct{})} }

// Enter reports whether a call may come in, which then leaves. A call within another, of
// Watch's function, is refused rather than waited for.
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

// Shut refuses the calls that come later, and reports whether it is the first to do so.
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

// Wait waits, after Shut, until the last call has left.
func (g *Gate) Wait() { <-g.last }

// Go runs f in a goroutine that counts as a call. A call calls it.
func (g *Gate) Go(f func()) {
	g.in.Add(1)
	go func() {
		defer g.Leave()
		f()
	}()
}
