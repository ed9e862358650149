package kit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Bound is a context with a timeout, which also ends with its parent. A timer and an entry
// among the parent's children cost more than some requests, so a Bound has neither until
// the first call of Done. A caller that can wait for an instant itself uses Parent and
// Deadline instead.
//
// Its methods are safe for concurrent use; Stop ends its use.
type Bound struct {
	parent context.Context
	at     time.Time
	cause  error

	mu   sync.Mutex // held while Done makes the real context
	real atomic.Pointer[timed]
}

// timed is a context with a timer.
type timed struct {
	context.Context
	stop context.CancelFunc
}

// NewBound returns a context that ends after within, and then has cause.
func NewBound(parent context.Context, within time.Duration, cause error) *Bound {
	return &Bound{parent: parent, at: time.Now().Add(within), cause: cause}
}

// Parent returns the context from which NewBound made it.
func (b *Bound) Parent() context.Context { return b.parent }

// Stop releases the timer of the context. A nil Bound has none.
func (b *Bound) Stop() {
	if b == nil {
		return
	}
	if t := b.real.Load(); t != nil {
		t.stop()
	}
}

// Deadline implements context.Context.
func (b *Bound) Deadline() (time.Time, bool) {
	if at, ok := b.parent.Deadline(); ok && at.Before(b.at) {
		return at, true
	}
	return b.at, true
}

// Done implements context.Context. It makes the timer.
func (b *Bound) Done() <-chan struct{} { return b.made().Done() }

func (b *Bound) made() *timed {
	if t := b.real.Load(); t != nil {
		return t
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.real.Load()
	if t == nil {
		t = &timed{}
		t.Context, t.stop = context.WithDeadlineCause(b.parent, b.at, b.cause)
		b.real.Store(t)
	}
	return t
}

// Err implements context.Context.
func (b *Bound) Err() error {
	if t := b.real.Load(); t != nil {
		return t.Err()
	}
	if err := b.parent.Err(); err != nil {
		return err
	}
	if time.Until(b.at) <= 0 {
		return b.made().Err()
	}
	return nil
}

// Value implements context.Context. Package context uses it to find causes and parents, so
// Value asks the context with the timer.
func (b *Bound) Value(key any) any {
	t := b.real.Load()
	if t == nil && b.Err() != nil {
		t = b.made()
	}
	if t != nil {
		return t.Value(key)
	}
	return b.parent.Value(key)
}
