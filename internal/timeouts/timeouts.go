// Package timeouts ends waits at their times: those of all commands of a service that wait. A wheel holds the times, and one timer
// the next of them; on a manual clock Advance does the timer's work.
//
//	Schedule ─▶ wheel ─▶ timer ─▶ tick ─▶ Waiter.TimeOut
//	Cancel   ─▶
//
// Invariant: an Entry is in the wheel from Schedule to Cancel or to its time, whichever is first. Start reading at Timeouts.Schedule.
package timeouts

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/wheel"
)

// Waiter is a client with a timeout.
type Waiter interface {
	// TimeOut ends the wait. No lock of Timeouts is held.
	TimeOut()
}

// Entry is a waiter's place among the timeouts. The zero value has none.
type Entry struct {
	slot uint32 // guarded by Timeouts.mu
}

// Timeouts holds the times of waiters: setting and cancelling one costs O(1). Its methods are safe for concurrent use.
type Timeouts struct {
	clock  clock.Clock
	timed  atomic.Int64 // waiters in the wheel
	detach func()       // detaches it from the manual clock

	ticking sync.Mutex // held by tick, before mu

	mu    sync.Mutex // guards the fields below
	over  bool
	due   *wheel.Wheel // nil before the first timeout
	slots []timeSlot   // the entries that the wheel refers to; 0 is not used
	free  []uint32
	timer *time.Timer
	at    int64 // ms that the timer is set to
}

type timeSlot struct {
	entry wheel.Entry
	w     Waiter
	of    *Entry
}

// Entry implements wheel.Resolver.
func (t *Timeouts) Entry(ref uint32) *wheel.Entry { return &t.slots[ref].entry }

// Init makes the zero value ready for use, with the times of a clock.
func (t *Timeouts) Init(c clock.Clock) {
	t.clock, t.at, t.slots = c, math.MaxInt64, make([]timeSlot, 1)
	if m, ok := c.(*clock.Manual); ok {
		t.detach = m.Attend(t.next, t.tick)
	}
}

// Timed returns how many waiters have a timeout.
func (t *Timeouts) Timed() int64 { return t.timed.Load() }

// Close cancels all timeouts, and waits for a call of TimeOut that is under way.
func (t *Timeouts) Close() {
	if t.detach != nil {
		t.detach()
	}
	t.mu.Lock()
	t.over = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.ticking.Lock() // the last tick is over
	defer t.ticking.Unlock()
}

// Schedule sets the timeout of a waiter, in ms since 1970. e is its place, which Cancel needs. After Close it does nothing.
func (t *Timeouts) Schedule(w Waiter, e *Entry, until int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	if t.due == nil {
		t.due = wheel.New(t.clock.Micros()/1000, t)
	}
	e.slot = t.take(w, e)
	t.timed.Add(1)
	t.due.Add(e.slot, until-1) // the wheel fires a millisecond after its deadlines
	t.arm()
}

func (t *Timeouts) take(w Waiter, e *Entry) (ref uint32) {
	if n := len(t.free); n > 0 {
		ref, t.free = t.free[n-1], t.free[:n-1]
	} else {
		ref = uint32(len(t.slots))
		t.slots = append(t.slots, timeSlot{})
	}
	t.slots[ref].w, t.slots[ref].of = w, e
	return ref
}

// release removes a waiter that is no longer in the wheel.
func (t *Timeouts) release(e *Entry) {
	t.slots[e.slot].w, t.slots[e.slot].of = nil, nil
	t.free = append(t.free, e.slot)
	e.slot = 0
	t.timed.Add(-1)
}

// Cancel cancels a timeout, if it has not passed.
func (t *Timeouts) Cancel(e *Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.slot != 0 {
		t.due.Remove(e.slot)
		t.release(e)
	}
}

// arm sets the timer to the next time in the wheel.
func (t *Timeouts) arm() {
	if t.detach != nil || t.over {
		return
	}
	next, ok := t.due.Next()
	if !ok || next >= t.at {
		return
	}
	t.at = next
	wait := time.Duration(max(0, next*1000-t.clock.Micros())) * time.Microsecond
	if next > math.MaxInt64/int64(time.Millisecond) {
		wait = math.MaxInt64
	}
	if t.timer == nil {
		t.timer = time.AfterFunc(wait, t.tick)
	} else {
		t.timer.Reset(wait)
	}
}

// next returns the instant at which tick has work, for a manual clock.
func (t *Timeouts) next() (ms int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.due == nil {
		return 0, false
	}
	return t.due.Next()
}

// tick ends the waiters whose time is up.
func (t *Timeouts) tick() {
	t.ticking.Lock()
	defer t.ticking.Unlock()
	var ripe []Waiter
	t.mu.Lock()
	if t.over || t.due == nil {
		t.mu.Unlock()
		return
	}
	now := t.clock.Micros() / 1000
	t.due.Advance(now, math.MaxInt, func(ref uint32) {
		ripe = append(ripe, t.slots[ref].w)
		t.release(t.slots[ref].of)
	})
	t.at = math.MaxInt64
	t.arm()
	t.mu.Unlock()
	for _, w := range ripe {
		w.TimeOut()
	}
}
