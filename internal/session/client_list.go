package session

import (
	"errors"
	"sort"
	"sync"
)

// clients is the set of sessions, in the order in which they connected.
type clients struct {
	mu   sync.Mutex // guards the fields below
	next int64
	all  map[int64]*Session
}

func (r *clients) init() { r.all = map[int64]*Session{} }

// add gives a session its id.
func (r *clients) add(c *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	c.id = r.next
	r.all[c.id] = c
}

func (r *clients) remove(c *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, c.id)
}

// waiter returns the waiter of a session's command; nil if no command waits or there is no such
// session.
func (r *clients) waiter(id int64) *waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.all[id]; c != nil {
		return c.view.waiting.Load()
	}
	return nil
}

// find returns the session with an id, nil if there is none.
func (r *clients) find(id int64) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[id]
}

// snapshot returns all sessions, in no particular order.
func (r *clients) snapshot() []*Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := make([]*Session, 0, len(r.all))
	for _, c := range r.all {
		l = append(l, c)
	}
	return l
}

// list returns the sessions that have connections, by id.
func (r *clients) list() []*Session { return r.filter(func(c *Session) bool { return c.conn != nil }) }

// shown returns the sessions that CLIENT LIST shows, by id: those that have connections or an origin.
func (r *clients) shown() []*Session {
	return r.filter(func(c *Session) bool { return c.conn != nil || c.origin != nil })
}

// filter returns the sessions that keep selects, by id.
func (r *clients) filter(keep func(*Session) bool) []*Session {
	r.mu.Lock()
	var l []*Session
	for _, c := range r.all {
		if keep(c) {
			l = append(l, c)
		}
	}
	r.mu.Unlock()
	sort.Slice(l, func(i, j int) bool { return l[i].id < l[j].id })
	return l
}

// count returns the number of sessions that have connections, the number of these that have subscriptions,
// and the number that watch keys.
func (r *clients) count() (n, subscribed, watching int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		if c.conn == nil {
			continue
		}
		n++
		if c.subs.Len() > 0 {
			subscribed++
		}
		if c.view.watch.Load() > 0 {
			watching++
		}
	}
	return n, subscribed, watching
}

// Clients returns the sessions that CLIENT LIST shows, by id: those that have connections or an origin.
func (s *Service) Clients() []*Session { return s.clients.shown() }

// Client returns the session with an id, nil if there is none.
func (s *Service) Client(id int64) *Session { return s.clients.find(id) }

// Kill closes the connection of a client. That may be this client, which then first gets the reply to its
// command.
func (c *Session) Kill(target *Session) {
	switch {
	case target == c:
		c.closing = true
	case target.conn != nil:
		if w := target.view.waiting.Load(); w != nil {
			w.abandon(c.tx) // the client gets no further replies
		}
		target.conn.Kill(errKilled)
	}
}

var errKilled = errors.New("killed by another client")

// sessionBytes is the approximate memory of a connection without buffers.
const sessionBytes = 2 << 10

// clientMemory is the memory of a client's connection, in bytes.
type clientMemory struct {
	in    int64 // an incomplete request
	out   int64 // replies and messages that are not sent yet
	argv  int64 // the arguments of a waiting command
	multi int64 // the commands that wait for EXEC, and the watched keys
	lists int64 // subscriptions, prefixes of tracking, places in lines, names
}

func (m clientMemory) total() int64 { return sessionBytes + m.in + m.out + m.argv + m.multi + m.lists }

// memory returns the approximate memory of a client's connection. It does not count buffers that
// connections share. Any goroutine may call it.
func (c *Session) memory() (m clientMemory) {
	if c.conn != nil {
		in, out := c.conn.Buffered()
		m.in, m.out = int64(in), int64(out)
	}
	c.mu.Lock()
	m.out += int64(len(c.queue))
	c.mu.Unlock()
	if w := c.view.waiting.Load(); w != nil {
		m.argv = w.argv
		m.lists = w.ticket.Bytes()
	}
	m.multi = c.view.multiBytes.Load() + c.view.watchBytes.Load()
	m.lists += c.subs.Bytes() + c.track.Mode().Bytes() + c.view.nameBytes.Load()
	return m
}

// modest is the number of bytes that a connection may use even if all connections together use too much: so
// one connection cannot exclude the subscriptions, watches and transactions of others.
const modest = 64 << 10

// Full reports whether the connection may keep no more data, because the memory that the server keeps for
// clients, users and scripts exceeds its bound. own is the memory of one kind that the connection would then
// use.
func (c *Session) Full(own int64) bool { return own > modest && !c.replay && c.svc.DB.ApartFull() }
