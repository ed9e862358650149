package lock

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/conn"
)

// channel is the channel to which waiters of an object subscribe, and what its messages mean.
type channel struct {
	c    *conn.Conn
	name string
	does wakes
}

// wakes selects the waiters that a message wakes.
type wakes int

const (
	wakesNamed wakes = iota // the owner that the message names, or one waiter if it is empty
	wakesOne                // one waiter
	wakesAll
)

// hubs are the dispatchers of this process that have waiters. The waiters for a lock share one
// subscription, also across objects.
var hubs struct {
	mu sync.Mutex // taken before a hub's
	m  map[channel]*hub
}

// hub is the wake-up dispatcher of the waiters of one channel in this process. It is open while
// there are any.
type hub struct {
	channel channel

	gate chan struct{} // full while a goroutine opens or closes feed

	mu      sync.Mutex // guards what follows
	users   int        // waiters, and callers about to wait; guarded by hubs.mu
	waiters []*seat    // in FIFO order of wake-ups
	missed  bool       // a wake-up for any waiter came while one was awake, whose request may have been earlier
	feed    *hubFeed
}

// seat is one waiter; its bell has space for one wake-up.
type seat struct {
	owner string
	bell  chan struct{}
	awake bool // it got a wake-up for any waiter, and has not settled since
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

// ring wakes a waiter of this process: a release in the same process needs no message.
func (ch channel) ring() {
	hubs.mu.Lock()
	h := hubs.m[ch]
	hubs.mu.Unlock()
	if h != nil {
		h.call("")
	}
}

// join adds a waiter; the caller calls leave in the end.
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

// leave removes a waiter. pass: another waiter should try in its place.
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

// read wakes the waiters that messages name, until the subscription ends.
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

// settle ends the turn of a waiter whose request was denied, and reports whether the waiter
// should send it again.
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

// ring wakes the waiter, and reports whether it had no wake-up yet.
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
