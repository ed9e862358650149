package rueidisebb

import (
	"sync"
	"sync/atomic"
)

// gate lets calls in until it is shut, and shut waits until the last is out. Coming and
// going costs an addition each.
type gate struct {
	in     atomic.Int64 // calls, and shutOff once it is shut
	once   sync.Once
	closed chan struct{} // the last has left
}

// shutOff is more than there ever are calls.
const shutOff = 1 << 40

func newGate() gate { return gate{closed: make(chan struct{})} }

// enter reports whether a call may come in, which then leaves.
func (g *gate) enter() bool {
	if g.in.Add(1) > shutOff {
		g.Done()
		return false
	}
	return true
}

// Done is called by who leaves.
func (g *gate) Done() {
	if g.in.Add(-1) == shutOff {
		g.once.Do(func() { close(g.closed) })
	}
}

// shut lets nobody in any more, and reports whether anybody could before.
func (g *gate) shut() (first bool) {
	for {
		n := g.in.Load()
		if n >= shutOff {
			return false
		}
		if g.in.CompareAndSwap(n, n+shutOff) {
			if n == 0 {
				g.once.Do(func() { close(g.closed) })
			}
			return true
		}
	}
}

// wait waits, after shut, until the last call has left.
func (g *gate) wait() { <-g.closed }

// Go runs f in a goroutine that counts as a call. It is called by one.
func (g *gate) Go(f func()) {
	g.in.Add(1)
	go func() {
		defer g.Done()
		f()
	}()
}
