package lock

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/conn"
)

// channel is what waiters of an object listen to, and what its messages mean.
type channel struct {
	c    *conn.Conn
	name string
	does wakes
}

// wakes says who is woken by a message.
type wakes int

const (
	wakesNamed wakes = iota // the owner whose name it is, or any one if it is empty
	wakesOne                // any one
	wakesAll
)

// hubs are those of this process that have waiters, so that these share one
// subscription for a lock, also across objects.
var hubs struct {
	mu sync.Mutex // taken before a hub's
	m  map[channel]*hub
}

// hub wakes the waiters of one channel in this process. It is open while there are
// any.
type hub struct {
	channel channel

	gate chan struct{} // held, by filling it, by who opens or closes feed

	mu      sync.Mutex // guards what follows
	users   int        // waiters, and callers about to wait; guarded by hubs.mu
	waiters []*seat    // in FIFO order of wake-ups
	missed  bool       // any one was called while one was awake, who may have asked before
	feed    *hubFeed
}

// seat is one waiter, whose bell has room for one ring.
type seat struct {
	owner string
	bell  chan struct{}
	awake bool // it was called as any one, and has not settled since
}

// hubFeed is an open subscription with the goroutine that reads it.
type hubFeed struct {
	sub  *conn.Subscription
	done chan struct{} // closed when the goroutine has ended
}

// busy reports whether a call waits here.
func (ch channel) busy() bool {
	hubs.mu.Lock()
	defer hubs.mu.Unlock()
	return hubs.m[ch] != nil
}

// ring wakes one who waits here: what was released here needs no message to be heard.
func (ch channel) ring() {
	hubs.mu.Lock()
	h := hubs.m[ch]
	hubs.mu.Unlock()
	if h != nil {
		h.call("")
	}
}

// join adds a waiter, who leaves in the end.
func (ch channel) join(ctx context.Context, owner string) (*hub, <-chan struct{}, error) {
	hubs.mu.Lock()
	h := hubs.m[ch]
	if h == nil {
		h = &hub{channel: ch, gate: make(chan struct{}, 1)}
		if hubs.m == nil {
			hubs.m = map[channel]*hub{}
		}
		hubs.m[ch] = h
	}
	h.users++
	hubs.mu.Unlock()
	bell, err := h.sit(ctx, owner)
	if err != nil {
		h.part()
		return nil, nil, err
	}
	return h, bell, nil
}

// sit adds a waiter to an open feed.
func (h *hub) sit(ctx context.Context, owner string) (<-chan struct{}, error) {
	select {
	case h.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h.gate }()
	if h.feed != nil && h.feed.ended() {
		h.feed.close()
		h.feed = nil
	}
	if h.feed == nil {
		sub, err := h.channel.c.Subscribe(ctx, h.channel.name)
		if err != nil {
			return nil, err
		}
		h.feed = &hubFeed{sub: sub, done: make(chan struct{})}
		go h.read(h.feed)
	}
	bell := make(chan struct{}, 1)
	h.mu.Lock()
	h.waiters = append(h.waiters, &seat{owner: owner, bell: bell})
	h.mu.Unlock()
	return bell, nil
}

// leave removes a waiter; pass says that another should try in its place.
func (h *hub) leave(owner string, pass bool) {
	h.mu.Lock()
	h.waiters = slices.DeleteFunc(h.waiters, func(s *seat) bool { return s.owner == owner })
	h.missed = h.missed && pass
	h.mu.Unlock()
	if pass {
		h.call("")
	}
	h.part()
}

// part forgets a user; the last one closes the feed.
func (h *hub) part() {
	hubs.mu.Lock()
	h.users--
	last := h.users == 0
	if last {
		delete(hubs.m, h.channel)
	}
	hubs.mu.Unlock()
	if last && h.feed != nil { // no other waiter can come any more
		h.feed.close()
	}
}

// read wakes who is called until the subscription ends.
func (h *hub) read(f *hubFeed) {
	defer close(f.done)
	for {
		m, err := f.sub.Next(context.Background())
		switch {
		case err == nil && h.channel.does == wakesNamed:
			h.call(m.Payload)
		case err == nil && h.channel.does == wakesOne:
			h.call("")
		case err == nil, errors.Is(err, conn.ErrInterrupted):
			h.callAll()
		default:
			h.callAll()
			return
		}
	}
}

// call wakes the waiter of that name; "": the first, if none is awake.
func (h *hub) call(owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if owner != "" {
		for _, s := range h.waiters {
			if s.owner == owner {
				s.ring()
			}
		}
		return
	}
	if slices.ContainsFunc(h.waiters, func(s *seat) bool { return s.awake }) {
		h.missed = true
		return
	}
	for _, s := range h.waiters {
		if s.ring() {
			s.awake = true
			return
		}
	}
}

// settle is told by a waiter that has asked in vain; it is to ask again if it reports
// true.
func (h *hub) settle(owner string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := h.missed
	h.missed = false
	for _, s := range h.waiters {
		if s.owner == owner {
			s.awake = again
		}
	}
	return again
}

func (h *hub) callAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.waiters {
		s.ring()
	}
}

// ring reports whether the waiter did not know yet.
func (s *seat) ring() bool {
	select {
	case s.bell <- struct{}{}:
		return true
	default:
		return false
	}
}

func (f *hubFeed) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

func (f *hubFeed) close() {
	_ = f.sub.Close()
	<-f.done
}
