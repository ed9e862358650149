// Package nearcache keeps copies of a backend's values in the process, for package cache and
// package expmap.
//
//	Get ── a copy ──▶ the caller
//	    └─ none ────▶ Begin, a read of the backend, End ──▶ a copy
//	Conn.Track ── key ─────▶ the copies of the key go, and reads that are under way keep none
//	           └─ an error ▶ all copies go; none is kept until the keys are tracked again
//
// A copy lives as long as the value in the backend at most, measured from before the read. If
// the backend cannot track keys, a copy also lives no longer than the bound of its read.
//
// Invariants: a copy is in entries, in the list of uses, and in the chain of its key; there are at
// most max. While covered is false and the backend can track, there is none. Start reading at
// Cache.Begin.
package nearcache

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Cache holds copies. Its methods are safe for concurrent use. The owner must Close it, or the Conn.
type Cache struct {
	c        *conn.Conn
	prefixes []string
	of       func(key string) string
	max      int

	once   sync.Once
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	runner sync.WaitGroup

	mu      sync.Mutex // guards what follows
	state   state
	entries map[id]*entry
	chains  map[string]*entry // by key, the first of its chain
	uses    entry             // the list's ends: next is the last use, prev the one to go
	flights map[string]*Flight
	seq     uint64 // of reads that have begun and copies that were kept
	changes int64  // calls of Changed
	evicted int64  // copies that were removed while they could be returned, for others
}

// state says whether a copy may be kept.
type state int

const (
	uncovered state = iota // keys are not tracked now: keep nothing
	covered                // keys are tracked
	bounded                // the backend cannot track: keep copies for a short time
	closed
)

// id names a value: a key, and a field in it or "".
type id struct{ key, field string }

type entry struct {
	id
	body         string
	until        time.Time // zero: no end
	kept         uint64    // when, in the order of Cache.seq
	prev, next   *entry    // in the list of uses
	before, then *entry    // in the chain of the key
}

// Flight is a read that is under way.
type Flight struct {
	key     string
	n       int // reads that share it
	dirty   bool
	bounded bool
}

// Read is a read of the backend between Begin and End.
type Read struct {
	f     *Flight
	began time.Time
	seq   uint64
}

// New returns a cache of at most max copies of values whose keys begin with one of the prefixes. of
// returns, for a key that has changed, the key of the copies; nil: the same. New starts nothing; the first
// Begin does.
func New(c *conn.Conn, max int, of func(key string) string, prefixes ...string) *Cache {
	n := &Cache{c: c, prefixes: prefixes, of: of, max: max}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.clear()
	return n
}

// clear forgets all copies, and keeps no result of a read that is under way.
func (n *Cache) clear() {
	for _, f := range n.flights {
		f.dirty = true
	}
	n.entries, n.chains, n.flights = map[id]*entry{}, map[string]*entry{}, map[string]*Flight{}
	n.uses.prev, n.uses.next = &n.uses, &n.uses
}

// Get returns a copy. It allocates nothing.
func (n *Cache) Get(key, field string) (body string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.entries[id{key, field}]
	if e == nil {
		return "", false
	}
	if !e.until.IsZero() && !now().Before(e.until) {
		n.remove(e)
		return "", false
	}
	e.unlink()
	n.used(e)
	return e.body, true
}

// now is a reading of the process's clock, which only spans are measured with.
func now() time.Time { return time.Now() }

// Begin is called before a value of the key is read from the backend, and End after it.
func (n *Cache) Begin(key string) Read {
	n.once.Do(func() { n.runner.Go(n.run) })
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.flights[key]
	if f == nil {
		f = &Flight{key: key, dirty: n.state == uncovered || n.state == closed, bounded: n.state == bounded}
		if !f.dirty {
			n.flights[key] = f
		}
	}
	f.n++
	n.seq++
	return Read{f, now(), n.seq}
}

// End keeps a copy of a value that was read, unless its key has changed since Begin. The value lives
// for ttl, conn.Forever without an end. If the backend cannot track keys, the copy lives for bound at
// most. keep is false if there is no value. Of two reads at a time with different values none is kept,
// because which of them is the later one is not known.
func (n *Cache) End(r Read, keep bool, field, body string, ttl, bound time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := r.f
	if f.n--; f.n == 0 && n.flights[f.key] == f {
		delete(n.flights, f.key)
	}
	if f.bounded && (ttl < 0 || ttl > bound) {
		ttl = bound
	}
	if !keep || f.dirty || ttl == 0 {
		return
	}
	if e := n.entries[id{f.key, field}]; e != nil {
		n.remove(e)
		if e.kept > r.seq && e.body != body { // two reads at a time, and which value is the later one is not known
			return
		}
	}
	n.seq++
	e := &entry{id: id{f.key, field}, body: body, kept: n.seq, then: n.chains[f.key]}
	if ttl > 0 {
		e.until = r.began.Add(ttl)
	}
	if e.then != nil {
		e.then.before = e
	}
	n.chains[f.key], n.entries[e.id] = e, e
	n.used(e)
	if len(n.entries) > n.max {
		last := n.uses.prev
		if last.until.IsZero() || now().Before(last.until) {
			n.evicted++
		}
		n.remove(last)
	}
}

// Changed forgets the copies of a key, and keeps no result of a read that is under way.
func (n *Cache) Changed(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes++
	if f := n.flights[key]; f != nil {
		f.dirty = true
		delete(n.flights, key)
	}
	for e := n.chains[key]; e != nil; e = n.chains[key] {
		n.remove(e)
	}
}

// Len returns the number of copies, and whether keys are tracked.
func (n *Cache) Len() (copies int, tracked bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.entries), n.state == covered
}

// Evicted returns the number of copies that were removed so far because there were max others, without
// those whose time was over.
func (n *Cache) Evicted() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.evicted
}

// Close forgets all copies, and waits for the goroutine. Later reads keep none.
func (n *Cache) Close() {
	n.cancel()
	n.once.Do(func() {})
	n.runner.Wait()
	n.become(closed)
}

func (n *Cache) become(s state) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clear()
	n.state = s
}

func (n *Cache) remove(e *entry) {
	e.unlink()
	delete(n.entries, e.id)
	if e.then != nil {
		e.then.before = e.before
	}
	switch {
	case e.before != nil:
		e.before.then = e.then
	case e.then != nil:
		n.chains[e.key] = e.then
	default:
		delete(n.chains, e.key)
	}
}

func (e *entry) unlink() { e.prev.next, e.next.prev = e.next, e.prev }

// used puts an entry at the head of the list.
func (n *Cache) used(e *entry) {
	e.prev, e.next = &n.uses, n.uses.next
	e.prev.next, e.next.prev = e, e
}

const (
	// The pauses between attempts to track the keys again.
	firstPause, lastPause = 20 * time.Millisecond, time.Second
)

// run tracks the keys until Close, or until the backend turns out to be unable to.
func (n *Cache) run() {
	for attempt := 0; ; attempt++ {
		s, err := n.c.Track(n.ctx, n.prefixes...)
		switch {
		case err == nil:
			attempt = 0
			n.become(covered)
			err = n.follow(s)
			n.become(uncovered)
			_ = s.Close()
		case n.ctx.Err() == nil && !errors.Is(err, conn.ErrClosed) && !conn.Temporary(err):
			n.become(bounded)
			return
		}
		if n.ctx.Err() != nil || errors.Is(err, conn.ErrClosed) {
			n.become(closed)
			return
		}
		if kit.Sleep(n.ctx, kit.Backoff(firstPause, lastPause, attempt)) != nil {
			return
		}
	}
}

// follow forgets the copies of the keys that change, until changes may have been missed.
func (n *Cache) follow(s *conn.Subscription) error {
	for {
		m, err := s.Next(n.ctx)
		switch {
		case err != nil:
			return err
		case m.Pattern == "*":
			n.become(covered)
		case n.of != nil:
			n.Changed(n.of(m.Payload))
		default:
			n.Changed(m.Payload)
		}
	}
}
