package locking

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
)

// renewals are the leases of an embedded engine's Conn that are not renewed yet.
//
//	renewals ── lists ── length of the lease ─▶ list ── random ─▶ lane:  lease ─▶ lease ─▶ lease     the first is due first
//	                                                                └─ timer
//
// Leases of one length fall due in the order in which they began, so that one list and one timer are enough for each lane. A lease
// that is released before costs no timer. Goroutines that lock and release at the same time mostly use different lanes.
type renewals struct {
	epoch time.Time                     // when it was made
	lists atomic.Pointer[[]renewalList] // the array is never written to: an addition replaces it
	mu    sync.Mutex                    // serialises additions
}

// renewalList has the leases of one length.
type renewalList struct {
	ttl   time.Duration
	lanes *[lanes]lane
}

const (
	// maxLists bounds the lists of a Conn: a program may compute the lengths of its leases.
	maxLists = 64
	// lanes is a multiple of the processors that small machines have. On 2 processors 16 goroutines add and remove a lease in
	// 76 ns with 1 lane, 54 ns with 4, 48 ns with 16 and 46 ns with 64 (BenchmarkLanes, least of 20 windows of 50 ms). More
	// lanes would mean more timers.
	lanes = 16
)

// keptRenewals returns the renewals of a Conn; nil if it has no direct calls.
func keptRenewals(c *conn.Conn) *renewals {
	r, _ := direct.Keep(c, func() any { return &renewals{epoch: time.Time(Now())} }).(*renewals)
	return r
}

// now returns the same as Now. It reads only the monotonic clock, which costs less.
func (r *renewals) now() Instant {
	if r == nil {
		return Now()
	}
	return Instant(r.epoch.Add(time.Since(r.epoch)))
}

// of returns the lanes for leases of a length; nil if there are lists for many other lengths, or no renewals.
func (r *renewals) of(ttl time.Duration) *[lanes]lane {
	if r == nil {
		return nil
	}
	if l := r.find(ttl); l != nil {
		return l
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.find(ttl)
	if all := r.all(); l == nil && len(all) < maxLists {
		l = new([lanes]lane)
		for i := range l {
			l[i].after = ttl / 3
		}
		all = append(slices.Clip(all), renewalList{ttl, l})
		r.lists.Store(&all)
	}
	return l
}

// all returns the lists, in the order of their first use.
func (r *renewals) all() []renewalList {
	if l := r.lists.Load(); l != nil {
		return *l
	}
	return nil
}

func (r *renewals) find(ttl time.Duration) *[lanes]lane {
	for _, l := range r.all() {
		if l.ttl == ttl {
			return l.lanes
		}
	}
	return nil
}

// Idle implements direct.Idler: the leases that are left are renewed, in vain, until they are over.
func (r *renewals) Idle() {
	for _, l := range r.all() {
		for i := range l.lanes {
			l.lanes[i].idle()
		}
	}
}

// lane has leases of one length.
type lane struct {
	after time.Duration // from the request to the first renewal

	mu          sync.Mutex // guards what follows, and the links of the leases
	first, last *Lease
	timer       *time.Timer // nil before the first lease
	armed       bool        // the timer runs; it may be early

	_ [80]byte // keeps lanes in separate cache lines
}

// idle stops the timer of an empty lane.
func (r *lane) idle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.armed && r.first == nil && r.timer.Stop() {
		r.armed = false
	}
}

// add adds a lease that was requested less than a quarter of its length ago. A lease may so stand behind one that is due a
// little later, and is renewed with it.
func (r *lane) add(l *Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.listed, l.prev = true, r.last
	if r.last == nil {
		r.first = l
	} else {
		r.last.next = l
	}
	r.last = l
	if !r.armed { // a new timer: the one before may be that of a bubble of testing/synctest that has ended
		r.timer = time.AfterFunc(max(r.after-l.requested.Elapsed(), 0), r.fire)
		r.armed = true
	}
}

// remove removes a lease of the lane, and reports whether it was still there: its renewals have not begun.
func (r *lane) remove(l *Lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unlink(l)
}

func (r *lane) unlink(l *Lease) bool {
	if !l.listed {
		return false
	}
	if l.prev == nil {
		r.first = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		r.last = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.listed, l.prev, l.next = false, nil, nil
	return true
}

// fire begins the renewals of the leases that are due. Release waits for their goroutines.
func (r *lane) fire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.first != nil {
		l := r.first
		if rest := r.after - l.requested.Elapsed(); rest > 0 {
			r.timer.Reset(rest)
			return
		}
		r.unlink(l)
		go l.renewLoop()
	}
	r.armed = false
}
