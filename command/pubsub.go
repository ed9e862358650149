package command

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/resp"
)

// pubsub routes messages to subscribers. Messages are queued under its lock,
// so all clients see one order; keyspace events come while their shards are
// locked, which stand before this lock.
type pubsub struct {
	active atomic.Int64 // subscriptions of all kinds: none, and events cost nothing

	mu       sync.Mutex // guards what follows
	channels map[string]map[*Session]bool
	patterns map[string]map[*Session]bool
	order    []string                     // of the patterns: as they came
	shards   map[string]map[*Session]bool // SSUBSCRIBE's channels

	key     []byte         // scratch for channel names
	scratch [2]resp.Writer // messages, in RESP2 and RESP3
}

// subKind is one of the three kinds of subscription.
type subKind uint8

const (
	subChannel subKind = iota
	subPattern
	subShard
)

// subscriptions is what a session has subscribed to. All of it is written under
// the pubsub's lock: by its own goroutine, or by one that takes channels away
// from its user.
type subscriptions struct {
	sets [3]map[string]bool
	n    atomic.Int32 // of all kinds; others read it
}

func (p *pubsub) init() {
	p.channels = map[string]map[*Session]bool{}
	p.patterns = map[string]map[*Session]bool{}
	p.shards = map[string]map[*Session]bool{}
}

func (p *pubsub) set(k subKind) map[string]map[*Session]bool {
	switch k {
	case subPattern:
		return p.patterns
	case subShard:
		return p.shards
	}
	return p.channels
}

// subscribe adds a subscription and returns how many of the kinds that count
// together the session has then.
func (p *pubsub) subscribe(c *Session, k subKind, name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := p.set(k)
	if c.subs.sets[k] == nil {
		c.subs.sets[k] = map[string]bool{}
	}
	if !c.subs.sets[k][name] {
		c.subs.sets[k][name] = true
		c.subs.n.Add(1)
		if set[name] == nil {
			set[name] = map[*Session]bool{}
			if k == subPattern {
				p.order = append(p.order, name)
			}
		}
		set[name][c] = true
		p.active.Add(1)
	}
	return c.subs.count(k)
}

// unsubscribe removes a subscription.
func (p *pubsub) unsubscribe(c *Session, k subKind, name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.subs.sets[k][name] {
		p.drop(c, k, name)
	}
	return c.subs.count(k)
}

func (p *pubsub) drop(c *Session, k subKind, name string) {
	set := p.set(k)
	delete(c.subs.sets[k], name)
	c.subs.n.Add(-1)
	delete(set[name], c)
	if len(set[name]) == 0 {
		delete(set, name)
		if k == subPattern {
			i := slices.Index(p.order, name)
			p.order = slices.Delete(p.order, i, i+1)
		}
	}
	p.active.Add(-1)
}

// leave removes all subscriptions of a session.
func (p *pubsub) leave(c *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropAll(c)
}

func (p *pubsub) dropAll(c *Session) {
	for k := range c.subs.sets {
		for name := range c.subs.sets[k] {
			p.drop(c, subKind(k), name)
		}
	}
}

// counts returns how many subscriptions of each kind a session has.
func (p *pubsub) counts(c *Session) (n [3]int) {
	if c.subs.n.Load() == 0 {
		return n
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range n {
		n[k] = len(c.subs.sets[k])
	}
	return n
}

// of lists a session's subscriptions of a kind, in order.
func (p *pubsub) of(c *Session, k subKind) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sortedNames(c.subs.sets[k])
}

// total is the number that a (un)subscription of kind k replies.
func (p *pubsub) total(c *Session, k subKind) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.subs.count(k)
}

// sizes returns how many channels, patterns and shard channels there are.
func (p *pubsub) sizes() (n [3]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return [3]int{len(p.channels), len(p.patterns), len(p.shards)}
}

// names lists the channels of a kind that match a pattern, in order; all of
// them if the pattern is nil.
func (p *pubsub) names(k subKind, pattern []byte) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, name := range sortedNames(p.set(k)) {
		if pattern == nil || glob.Match(pattern, []byte(name)) {
			names = append(names, name)
		}
	}
	return names
}

// subscribers returns how many sessions have subscribed to a channel.
func (p *pubsub) subscribers(k subKind, name []byte) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.set(k)[string(name)])
}

// count is the number that a (un)subscription of kind k replies.
func (s *subscriptions) count(k subKind) int {
	if k == subShard {
		return len(s.sets[subShard])
	}
	return len(s.sets[subChannel]) + len(s.sets[subPattern])
}

// publish sends a message to a channel's subscribers, and to those of matching
// patterns, or to a shard channel's, and returns how many that were. on, if not nil,
// passes it on to others in the same order.
func (p *pubsub) publish(kind subKind, channel, msg []byte, on func()) int {
	if on == nil && p.active.Load() == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if on != nil {
		on()
	}
	if kind == subShard {
		return p.send(p.shards[string(channel)], "smessage", nil, channel, msg)
	}
	return p.route(channel, msg)
}

// send encodes a message once for each protocol and queues it. The caller holds
// the lock.
func (p *pubsub) send(subs map[*Session]bool, kind string, pattern, channel, msg []byte) int {
	for i := range p.scratch {
		p.scratch[i].Buf = p.scratch[i].Buf[:0]
	}
	for c := range subs {
		i := 0
		if c.proto.Load() == 3 {
			i = 1
		}
		w := &p.scratch[i]
		if len(w.Buf) == 0 {
			w.Proto = 2 + i
			w.Push(3 + int(b2i(pattern != nil)))
			w.BulkString(kind)
			if pattern != nil {
				w.Bulk(pattern)
			}
			w.Bulk(channel)
			w.Bulk(msg)
		}
		c.push(w.Buf)
	}
	for i := range p.scratch {
		if cap(p.scratch[i].Buf) > 1<<16 {
			p.scratch[i].Buf = nil
		}
	}
	return len(subs)
}

// keyspaceEvent publishes an event on its __keyspace and __keyevent channels.
func (p *pubsub) keyspaceEvent(s *Service, db int, event string, key []byte) {
	if p.active.Load() == 0 {
		return
	}
	on := s.events.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	if on&eventKeyspace != 0 {
		p.key = strconv.AppendInt(append(p.key[:0], "__keyspace@"...), int64(db), 10)
		p.key = append(append(p.key, "__:"...), key...)
		p.route(p.key, []byte(event))
	}
	if on&eventKeyevent != 0 {
		p.key = strconv.AppendInt(append(p.key[:0], "__keyevent@"...), int64(db), 10)
		p.key = append(append(p.key, "__:"...), event...)
		p.route(p.key, key)
	}
}

// route sends a message to the channel's subscribers, and then to those of the
// patterns that match, in the order in which the patterns came. The caller holds
// the lock.
func (p *pubsub) route(channel, msg []byte) int {
	n := 0
	if subs := p.channels[string(channel)]; subs != nil {
		n = p.send(subs, "message", nil, channel, msg)
	}
	for _, pattern := range p.order {
		if matches(pattern, channel) {
			n += p.send(p.patterns[pattern], "pmessage", []byte(pattern), channel, msg)
		}
	}
	return n
}

// matches copies nothing: a pattern is looked at for every message.
func matches(pattern string, channel []byte) bool {
	return glob.Match(unsafe.Slice(unsafe.StringData(pattern), len(pattern)), channel)
}
