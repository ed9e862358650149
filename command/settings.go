package command

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

// settings are the parts of the configuration that hot paths read.
type settings struct {
	password  atomic.Pointer[string] // requirepass; nil: none
	events    atomic.Uint32          // notify-keyspace-events
	slow      atomic.Int32           // commands that run beside the loops
	maxBulk   atomic.Int64           // proto-max-bulk-len
	timeout   atomic.Int64           // seconds a client may be idle; 0: for ever
	maxInput  atomic.Int64           // client-query-buffer-limit
	outLimits [3]outputLimit         // by class of client
}

// outputLimit is one line of client-output-buffer-limit.
type outputLimit struct {
	hard, soft atomic.Int64 // bytes; 0: none
	seconds    atomic.Int64 // how long soft may be exceeded
}

const (
	eventKeyspace = engine.EventKeyspace
	eventKeyevent = engine.EventKeyevent
)

func (s *settings) authRequired() bool { return s.password.Load() != nil }

// setEvents takes notify-keyspace-events: without K or E nothing is published.
func (s *Service) setEvents(classes uint32) {
	s.events.Store(classes)
	if classes&(eventKeyspace|eventKeyevent) == 0 {
		classes = 0
	}
	s.DB.SetEvents(classes)
}

// setLimits gives the parser the limits that hold for the client now.
func (c *Session) setLimits() {
	c.parser.Limits = resp.Limits{MaxBulk: int(c.svc.maxBulk.Load()), Unauthenticated: !c.authed}
}

// overLimit reports whether a client has too much output waiting: n bytes.
func (c *Session) overLimit(n int) bool {
	class := 0
	if c.subs.n.Load() > 0 {
		class = 2
	}
	l := &c.svc.outLimits[class]
	if hard := l.hard.Load(); hard > 0 && int64(n) > hard {
		return true
	}
	soft := l.soft.Load()
	if soft <= 0 || int64(n) <= soft {
		c.softSince.Store(0)
		return false
	}
	now := c.svc.DB.Clock().Micros()
	since := c.softSince.Load()
	if since == 0 {
		c.softSince.Store(now)
		return false
	}
	return now-since > l.seconds.Load()*1e6
}

// OutputExceeded implements reactor.OutputLimiter.
func (c *Session) OutputExceeded(pending int) bool {
	c.mu.Lock()
	n := len(c.queue)
	c.mu.Unlock()
	return c.overLimit(pending + n)
}

// IdleCheck implements reactor.IdleChecker.
func (c *Session) IdleCheck(int64) bool {
	limit := c.svc.timeout.Load()
	if limit == 0 || c.subs.n.Load() > 0 || c.parked != nil {
		return false
	}
	last := max(c.view.active.Load(), c.created)
	return c.svc.DB.Clock().Micros()-last > limit*1e6
}

// allowedInSubscription reports whether a RESP2 client may send the command
// while it is subscribed.
func allowedInSubscription(s *Spec) bool {
	switch s.Name {
	case "ping", "subscribe", "ssubscribe", "psubscribe", "unsubscribe", "sunsubscribe", "punsubscribe", "quit", "reset":
		return true
	}
	return false
}

func errInSubscription(s *Spec) error {
	return ReplyError("ERR Can't execute '" + s.Name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
}
