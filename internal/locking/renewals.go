package locking

import (
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
)

// renewals are the leases of an embedded engine's Conn that are not renewed yet. Leases of one length fall due in the order in which
// they began, so that one list and one timer are enough for each length. A lease that is released before costs no timer.
type renewals struct {
	mu    sync.Mutex // guards lists
	lists map[time.Duration]*renewalList
}

// maxLists bounds the lists of a Conn: a program may compute the lengths of its leases.
const maxLists = 64

// renewalsOf returns the list of a Conn with direct calls for leases of a length; nil if the Conn has lists for many other lengths.
func renewalsOf(c *conn.Conn, ttl time.Duration) *renewalList {
	r, _ := direct.Keep(c, func() any { return &renewals{lists: map[time.Duration]*renewalList{}} }).(*renewals)
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lists[ttl]
	if l == nil && len(r.lists) < maxLists {
		l = &renewalList{after: ttl / 3}
		r.lists[ttl] = l
	}
	return l
}

// Idle implements direct.Idler: the leases that are left are renewed, in vain, until they are over.
func (r *renewals) Idle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lists {
		l.mu.Lock()
		if l.armed && l.first == nil && l.timer.Stop() {
			l.armed = false
		}
		l.mu.Unlock()
	}
}

// renewalList has the leases of one length.
type renewalList struct {
	after time.Duration // from the request to the first renewal

	mu          sync.Mutex // guards what follows, and the links of the leases
	first, last *Lease
	timer       *time.Timer // nil before the first lease
	armed       bool        // the timer runs; it may be early
}

// add adds a lease that was requested less than a quarter of its length ago. A lease may so stand behind one that is due a
// little later, and is renewed with it.
func (r *renewalList) add(l *Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.list, l.prev = r, r.last
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

// remove removes a lease, and reports whether it was in the list: its renewals have not begun.
func (r *renewalList) remove(l *Lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unlink(l)
}

func (r *renewalList) unlink(l *Lease) bool {
	if l.list != r {
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
	l.list, l.prev, l.next = nil, nil, nil
	return true
}

// fire begins the renewals of the leases that are due. Release waits for their goroutines.
func (r *renewalList) fire() {
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
