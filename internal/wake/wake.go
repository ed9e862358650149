// Package wake wakes calls that wait for a message. Locks, limits and queues use it on backends without commands that wait.
//
//	PUBLISH channel -> one subscription -> Dispatcher -> one waiter, the named one, or all
//
// All waiters of a channel in this process share one subscription, also across objects. It is open from the first Open to the
// last Close, which waits for its goroutine. Invariants:
//
//   - No message is missed: all waiters wake when a subscription begins, is interrupted or ends. A waiter looks after it has
//     joined, and polls as well, because backends lose messages.
//   - No waiter sleeps while there is something to get: a wake-up for one waiter goes to the first in FIFO order that has none
//     pending. A waiter that leaves without having taken what it was woken for passes the wake-up on.
//   - Where waiters settle (Waiter.Settle), one at a time sends a request. A wake-up that comes while one is awake counts as
//     missed, because its request may have been earlier.
//
// Start reading at Channel.Open and Dispatcher.read.
package wake

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// The pauses between attempts to subscribe. Where a user may not subscribe, two a second cost the server little.
const firstPause, maxPause = 10 * time.Millisecond, 500 * time.Millisecond

// Wakes says which waiters a message wakes.
type Wakes int

const (
	Named Wakes = iota // the waiter whose owner the message names, or one waiter if it is empty
	One                // one waiter; so does each attempt to subscribe that fails: it polls for all
	All
)

// Channel is a channel of messages, and what they mean. Equal Channels share a Dispatcher.
type Channel struct {
	Conn    *conn.Conn
	Name    string
	Wakes   Wakes
	Settles bool // the waiters call Settle
}

// dispatchers are those of this process that are open.
var dispatchers struct {
	mu sync.Mutex // no other lock is taken under it
	m  map[Channel]*Dispatcher
}

// Dispatcher wakes the waiters of one channel. Its methods are safe for concurrent use.
type Dispatcher struct {
	channel Channel
	users   int                // calls of Open without their Close; guarded by dispatchers.mu
	stop    context.CancelFunc // ends the goroutine
	reader  sync.WaitGroup     // the goroutine
	tried   chan struct{}      // closed, once, after the first attempt to subscribe
	once    sync.Once

	mu      sync.Mutex // guards what follows
	err     error      // why there is no subscription; nil: there is one
	waiters list.List  // of *Waiter, in FIFO order
	named   map[string]*Waiter
	awake   int  // how many waiters are
	missed  bool // a wake-up for one waiter came while one was awake
}

// Find returns the Dispatcher of the channel if it is open in this process, else nil.
func (ch Channel) Find() *Dispatcher {
	dispatchers.mu.Lock()
	defer dispatchers.mu.Unlock()
	return dispatchers.m[ch]
}

// Open returns the Dispatcher of the channel. A new one begins to subscribe; Open does not wait for it. The caller calls Close.
func (ch Channel) Open() *Dispatcher {
	dispatchers.mu.Lock()
	defer dispatchers.mu.Unlock()
	d := dispatchers.m[ch]
	if d == nil {
		ctx, cancel := context.WithCancel(context.Background())
		d = &Dispatcher{channel: ch, stop: cancel, tried: make(chan struct{}), named: map[string]*Waiter{}}
		if dispatchers.m == nil {
			dispatchers.m = map[Channel]*Dispatcher{}
		}
		dispatchers.m[ch] = d
		d.reader.Go(func() { d.read(ctx) })
	}
	d.users++
	return d
}

// Close ends a use of the Dispatcher. The last one waits until the subscription is closed.
func (d *Dispatcher) Close() {
	dispatchers.mu.Lock()
	d.users--
	last := d.users == 0
	if last {
		delete(dispatchers.m, d.channel)
	}
	dispatchers.mu.Unlock()
	if last {
		d.stop()
		d.reader.Wait()
	}
}

// Ready waits for the first attempt to subscribe, and returns why there is no subscription, or nil. It ends with ctx.
func (d *Dispatcher) Ready(ctx context.Context) error {
	select {
	case <-d.tried:
	case <-ctx.Done():
		return ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// read keeps a subscription, and wakes waiters by its messages, until ctx ends.
func (d *Dispatcher) read(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		sub, err := d.channel.Conn.Subscribe(ctx, d.channel.Name)
		if err == nil {
			d.WakeAll() // a message may have come before
			d.note(nil)
			n, err = 0, d.listen(ctx, sub)
			d.WakeAll()
		}
		d.note(err)
		if d.channel.Wakes == One {
			d.Wake("")
		}
		_ = kit.Sleep(ctx, kit.Backoff(firstPause, maxPause, n))
	}
}

// note stores why there is no subscription; nil: there is one.
func (d *Dispatcher) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
	d.once.Do(func() { close(d.tried) })
}

// listen wakes waiters by the messages of a subscription until it ends, and returns why it did.
func (d *Dispatcher) listen(ctx context.Context, sub *conn.Subscription) error {
	defer func() { _ = sub.Close() }()
	for {
		m, err := sub.Next(ctx)
		switch {
		case errors.Is(err, conn.ErrInterrupted) || err == nil && d.channel.Wakes == All:
			d.WakeAll()
		case err != nil:
			return err
		case d.channel.Wakes == Named:
			d.Wake(m.Payload)
		default:
			d.Wake("")
		}
	}
}

// Wake wakes the waiter of that owner. "" wakes the first waiter without a pending wake-up, or none if one that settles is awake.
func (d *Dispatcher) Wake(owner string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch w := d.named[owner]; {
	case w != nil:
		w.wake()
	case owner == "" && d.awake > 0:
		d.missed = true
	case owner == "":
		for e := d.waiters.Front(); e != nil; e = e.Next() {
			if w := e.Value.(*Waiter); w.wake() {
				w.mark(d.channel.Settles)
				return
			}
		}
	}
}

// WakeAll wakes all waiters.
func (d *Dispatcher) WakeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := d.waiters.Front(); e != nil; e = e.Next() {
		e.Value.(*Waiter).wake()
	}
}

// Waiter is a call that waits. One goroutine uses it.
type Waiter struct {
	C     chan struct{} // gets a value when the waiter is to look again; it has space for one
	d     *Dispatcher
	owner string
	place *list.Element // in d.waiters
	awake bool          // it got a wake-up for one waiter, and has not settled since
}

// Join adds a waiter behind the others. owner is its name in messages, "" for none. The caller calls Leave.
func (d *Dispatcher) Join(owner string) *Waiter {
	w := &Waiter{C: make(chan struct{}, 1), d: d, owner: owner}
	d.mu.Lock()
	defer d.mu.Unlock()
	w.place = d.waiters.PushBack(w)
	if owner != "" {
		d.named[owner] = w
	}
	return w
}

// Settle ends the turn of a waiter whose request was denied. again: a wake-up was missed, so the waiter is to send it again.
func (w *Waiter) Settle() (again bool) {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	again, w.d.missed = w.d.missed, false
	w.mark(again)
	return again
}

// Leave removes the waiter. pass: it has not taken what it may have been woken for, so another one is to look.
func (w *Waiter) Leave(pass bool) {
	w.d.mu.Lock()
	w.mark(false)
	w.d.waiters.Remove(w.place)
	if w.d.named[w.owner] == w { // a call of the same owner may have joined later
		delete(w.d.named, w.owner)
	}
	w.d.missed = w.d.missed && pass
	w.d.mu.Unlock()
	if pass {
		w.d.Wake("")
	}
}

// mark notes whether the waiter is awake. The caller holds d.mu.
func (w *Waiter) mark(awake bool) {
	if w.awake {
		w.d.awake--
	}
	if w.awake = awake; awake {
		w.d.awake++
	}
}

// wake gives the waiter a wake-up, and reports whether it had none pending.
func (w *Waiter) wake() bool {
	select {
	case w.C <- struct{}{}:
		return true
	default:
		return false
	}
}
