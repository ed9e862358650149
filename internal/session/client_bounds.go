package session

import (
	"errors"
	"sort"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/reactor"
)

// clientBounds are the bounds of what clients may use. maxclients is the listeners' (internal/listen), and sync-held-max is
// that of heldBytes.
type clientBounds struct {
	idle     atomic.Int64   // timeout: seconds that a client may be idle; 0: no limit
	maxInput atomic.Int64   // client-query-buffer-limit
	output   [3]outputLimit // client-output-buffer-limit, by config.Class
	turn     atomic.Int64   // bytes; see setTurn
	memory   atomic.Int64   // maxmemory-clients in bytes; 0: no limit
	used     atomic.Int64   // the memory of the clients, each as last counted, while there is a limit
	evicting atomic.Bool    // boundClients is about to run in the background
}

// outputLimit is one line of client-output-buffer-limit.
type outputLimit struct {
	hard, soft atomic.Int64 // bytes; 0: no limit
	seconds    atomic.Int64 // the time for which soft may be exceeded
}

// setOutput applies client-output-buffer-limit.
func (b *clientBounds) setOutput(c *config.Set) error {
	for class := range b.output {
		l, o := &b.output[class], c.OutputLimit(config.Class(class))
		l.hard.Store(o.Hard)
		l.soft.Store(o.Soft)
		l.seconds.Store(int64(o.Seconds))
	}
	b.setTurn()
	return nil
}

// replyFloor is the size above which a reply counts for client-output-buffer-limit before the transport has
// offered it to the socket. Redis has a buffer of that size for each client, which its limit does not count.
const replyFloor = 16 << 10

// setTurn computes the output of one call of Serve: no more than a limit allows, so that the output for a
// client that reads in time stays below the limit.
func (b *clientBounds) setTurn() {
	turn := int64(yieldBytes)
	for _, class := range []config.Class{config.Normal, config.PubSub} {
		if hard := b.output[class].hard.Load(); hard > 0 {
			turn = min(turn, hard)
		}
	}
	b.turn.Store(max(turn, replyFloor))
}

// outLimit returns the output limit of the client.
func (c *Session) outLimit() *outputLimit {
	if c.subs.Len() > 0 {
		return &c.svc.bounds.output[config.PubSub]
	}
	return &c.svc.bounds.output[config.Normal]
}

// replyTooLong ends the connection if one reply of n bytes, with the unsent output, exceeds the
// hard limit, and reports whether it did.
func (c *Session) replyTooLong(n int) bool {
	hard := c.outLimit().hard.Load()
	if c.conn == nil || hard <= 0 || n < replyFloor {
		return false
	}
	if _, unsent := c.conn.Buffered(); int64(n+unsent) < hard {
		return false
	}
	c.cut(reactor.ErrOutputLimit)
	return true
}

// overLimit reports whether n bytes of waiting output are too many for a client. If n is below the soft limit
// and settled is set, the time for which that limit may be exceeded ends. The transport sets settled, because
// it knows all waiting output. While messages move from the queue to the transport, the producer of the next
// one sees neither.
func (c *Session) overLimit(n int, settled bool) bool {
	l := c.outLimit()
	if hard := l.hard.Load(); hard > 0 && int64(n) >= hard {
		return true
	}
	soft := l.soft.Load()
	if soft <= 0 || int64(n) < soft {
		if settled {
			c.softSince.Store(0)
		}
		return false
	}
	now := c.svc.steady()
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
	c.bulky = max(c.bulky, pending)
	return c.overLimit(pending+n, true)
}

// IdleCheck implements reactor.IdleChecker. The transport calls it once a second. So sessions also update the
// service's rates here, and detect that their waiting output has been too large for too long even if no more
// is added.
func (c *Session) IdleCheck(int64) bool {
	c.svc.sample(c.svc.steady())
	in, out := c.conn.Buffered()
	if c.OutputExceeded(out) {
		c.closeUnsent(errSlowReader)
	}
	if c.bulky > 0 && in+out == 0 {
		c.releaseMemory()
	}
	limit := c.svc.bounds.idle.Load()
	if limit == 0 || c.parked != nil || c.subs.Len() > 0 {
		return false
	}
	last := max(c.view.active.Load(), c.created)
	return c.svc.steady()-last > limit*1e6
}

// largeRequest is the least client-query-buffer-limit: a request up to this size does not exceed it.
const largeRequest = 1 << 20

// boundInput closes a client whose input exceeds client-query-buffer-limit: a request, or a part of one, and
// the commands that wait for EXEC. It reports whether it did so.
func (c *Session) boundInput(pending int) bool {
	if limit := c.svc.bounds.maxInput.Load(); limit > 0 && int64(pending)+c.multiBytes > limit {
		c.svc.Log.Warn("client closed: client-query-buffer-limit exceeded", "id", c.id, "bytes", int64(pending)+c.multiBytes)
		c.svc.admin.Totals.InputLimit.Add(1)
		c.closing = true
	}
	return c.closing
}

// overMemory records the memory of the client, and reports whether its connection has to close because all
// clients together take up too much. in is the number of bytes of an incomplete request, out the number of
// bytes of replies that the connection does not know of yet.
func (c *Session) overMemory(in, out int) bool {
	s := c.svc
	c.showTransaction()
	m := c.memory()
	m.in = int64(in)
	now := m.total() + int64(out)
	if total := s.bounds.used.Add(now - c.counted.Swap(now)); total > s.bounds.memory.Load() {
		s.boundClients(c)
	}
	return c.evicted.Load()
}

// noteGrowth implements connectionHost.
func (s *Service) noteGrowth(n int64) {
	if s.bounds.used.Add(n) > s.bounds.memory.Load() && s.ctx.Err() == nil && !s.bounds.evicting.Swap(true) {
		s.background.Go(func() {
			s.bounds.evicting.Store(false)
			s.boundClients(nil)
		})
	}
}

// boundClients keeps the memory of all connections below maxmemory-clients: it closes the largest ones first,
// but never one that has set CLIENT NO-EVICT. A client that is about to be closed runs no further command.
// The caller has just recorded the memory of by, and must keep the record; by is nil if the caller serves no
// client.
func (s *Service) boundClients(by *Session) {
	limit := s.bounds.memory.Load()
	if limit <= 0 {
		return
	}
	type load struct {
		c     *Session
		bytes int64
	}
	var all []load
	var total int64
	for _, c := range s.clients.list() {
		l := load{c, c.counted.Load()}
		if c != by {
			l.bytes = c.memory().total()
			s.bounds.used.Add(l.bytes - c.counted.Swap(l.bytes))
		}
		total += l.bytes
		if c.view.flags.Load()&(viewNoEvict|viewReplica) == 0 {
			all = append(all, l)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].bytes > all[j].bytes })
	for _, l := range all {
		if total <= limit {
			return
		}
		total -= l.bytes
		if !l.c.evicted.Swap(true) {
			l.c.closeUnsent(errClientMemory)
		}
	}
}

var errClientMemory = errors.New("closed because all clients together use more than maxmemory-clients")
