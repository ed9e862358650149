package session

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/wheel"
)

// timeouts holds the times of a service's waiters in one wheel, with one timer:
// setting and cancelling one costs O(1). On a manual clock Advance does the
// timer's work.
type timeouts struct {
	svc     *Service
	waiting atomic.Int64 // sessions whose commands wait
	timed   atomic.Int64 // those with a timeout
	detach  func()       // detaches it from the manual clock

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
	w     *waiter
}

// Entry implements wheel.Resolver.
func (t *timeouts) Entry(ref uint32) *wheel.Entry { return &t.slots[ref].entry }

func (t *timeouts) init(s *Service) {
	t.svc, t.at, t.slots = s, math.MaxInt64, make([]timeSlot, 1)
	if m, ok := s.DB.Clock().(*clock.Manual); ok {
		t.detach = m.Attend(t.next, t.tick)
	}
}

// close cancels all timeouts.
func (t *timeouts) close() {
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

// schedule sets the timeout of a waiter.
func (t *timeouts) schedule(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	if t.due == nil {
		t.due = wheel.New(t.svc.DB.Clock().Micros()/1000, t)
	}
	w.slot = t.take(w)
	t.timed.Add(1)
	t.due.Add(w.slot, w.state.Until-1) // the wheel fires a millisecond after its deadlines
	t.arm()
}

func (t *timeouts) take(w *waiter) (ref uint32) {
	if n := len(t.free); n > 0 {
		ref, t.free = t.free[n-1], t.free[:n-1]
	} else {
		ref = uint32(len(t.slots))
		t.slots = append(t.slots, timeSlot{})
	}
	t.slots[ref].w = w
	return ref
}

// release removes a waiter that is no longer in the wheel.
func (t *timeouts) release(w *waiter) {
	t.slots[w.slot].w = nil
	t.free = append(t.free, w.slot)
	w.slot = 0
	t.timed.Add(-1)
}

// cancel cancels a waiter's timeout.
func (t *timeouts) cancel(w *waiter) {
	if w.state.Until == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.slot != 0 {
		t.due.Remove(w.slot)
		t.release(w)
	}
}

// arm sets the timer to the next time in the wheel.
func (t *timeouts) arm() {
	if t.detach != nil || t.over {
		return
	}
	next, ok := t.due.Next()
	if !ok || next >= t.at {
		return
	}
	t.at = next
	wait := time.Duration(max(0, next*1000-t.svc.DB.Clock().Micros())) * time.Microsecond
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
func (t *timeouts) next() (ms int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.due == nil {
		return 0, false
	}
	return t.due.Next()
}

// tick ends the waiters whose time is up.
func (t *timeouts) tick() {
	t.ticking.Lock()
	defer t.ticking.Unlock()
	var ripe []*waiter
	t.mu.Lock()
	if t.over || t.due == nil {
		t.mu.Unlock()
		return
	}
	now := t.svc.DB.Clock().Micros() / 1000
	t.due.Advance(now, math.MaxInt, func(ref uint32) {
		w := t.slots[ref].w
		t.release(w)
		ripe = append(ripe, w)
	})
	t.at = math.MaxInt64
	t.arm()
	t.mu.Unlock()
	for _, w := range ripe {
		w.timeOut(nil)
	}
}
