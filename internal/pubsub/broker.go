package pubsub

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/internal/prefixes"
	"github.com/ebbdb/ebb/internal/wire"
)

// Broker routes messages to subscribers. Init prepares one. Its methods are safe for
// concurrent use. In the order of locks a shard's lock is before the broker's: keyspace
// events arrive while the engine holds their shard.
type Broker struct {
	mem    Memory
	active atomic.Int64 // subscriptions of all kinds

	mu     sync.Mutex // guards what follows
	topics [3]topics  // by kind
	next   uint64     // the next pattern's seq
	// patterns indexes the patterns by their text before the first special character.
	patterns prefixes.Index[*topic]

	bare    bool           // the messages tell of no data
	key     []byte         // scratch of KeyspaceEvent, for channel names
	matched []*topic       // scratch of route
	scratch [2]wire.Writer // scratch of send: the message in RESP2 and in RESP3
}

// topics are the topics of one kind that have subscribers.
type topics struct {
	byName map[string]*topic
	list   []*topic
}

// topic is a channel, a pattern or a shard channel that has subscribers.
type topic struct {
	name string
	at   int // in topics.list
	subs []*subscription

	// Only patterns use the fields below.
	seq   uint64 // patterns are numbered in the order of their creation
	match *glob.Pattern
	index *prefixes.Entry[*topic]
}

// Subscriber is a client as the broker sees it.
type Subscriber interface {
	// Push queues a message, encoded for the client's protocol, without waiting. The
	// broker calls it with its lock held; msg is valid during the call only.
	Push(msg []byte)
	// PushBare does the same for a message that tells of no data: a PUBLISH that belongs to no transaction.
	PushBare(msg []byte)
	// RESP3 reports whether the client's protocol is RESP3. Any goroutine may call it.
	RESP3() bool
	// Subscriptions returns the client's record, always the same.
	Subscriptions() *Subscriptions
}

// Memory counts the bytes that subscriptions take up as used memory. engine.DB
// implements it.
type Memory interface{ ChargeApart(n int64) }

// subscription is the subscription of one client to one topic.
type subscription struct {
	c  Subscriber
	t  *topic
	at int // in topic.subs
	i  int // in subscriptionSet.list
}

// subscriptionBytes estimates the memory of a subscription without its name: the
// subscription, its entries in two maps and two lists, and the topic.
const subscriptionBytes = 320

// patternBytes estimates the additional memory of a subscription to a pattern.
const patternBytes = 160

// sliceSize is the number of subscriptions for which a method holds the lock at once.
const sliceSize = 256

// Kind is one of the three kinds of subscription.
type Kind uint8

const (
	Channel Kind = iota // SUBSCRIBE
	Pattern             // PSUBSCRIBE
	Shard               // SSUBSCRIBE
)

// Subscriptions is a client's record of what it has subscribed to. The broker writes it
// under its lock: for the client's own goroutine, or for one that takes channels away from
// the client's user. The zero value is an empty record.
type Subscriptions struct {
	sets  [3]subscriptionSet
	n     atomic.Int32 // of all kinds
	bytes atomic.Int64 // estimated memory
}

// subscriptionSet holds a client's subscriptions of one kind.
type subscriptionSet struct {
	byName map[string]*subscription
	list   []*subscription
}

// Init prepares an empty broker. It charges the memory of subscriptions to mem.
func (b *Broker) Init(mem Memory) {
	b.mem = mem
	for k := range b.topics {
		b.topics[k].byName = map[string]*topic{}
	}
}

// Active reports whether there is a subscription of any kind. While there is none, events
// and messages cost one atomic load.
func (b *Broker) Active() bool { return b.active.Load() > 0 }

// cost estimates the memory of a subscription, in bytes.
func (k Kind) cost(name string) int64 {
	n := subscriptionBytes + int64(len(name))
	if k == Pattern {
		n += patternBytes
	}
	return n
}

// add adds a subscription, unless the client has it, and returns the number for the reply:
// see Subscriptions.count. The caller holds the lock.
func (b *Broker) add(c Subscriber, k Kind, name []byte) int {
	all := c.Subscriptions()
	own := &all.sets[k]
	if own.byName[string(name)] == nil {
		t := b.topic(k, name)
		s := &subscription{c: c, t: t, at: len(t.subs), i: len(own.list)}
		t.subs = append(t.subs, s)
		if own.byName == nil {
			own.byName = map[string]*subscription{}
		}
		own.byName[t.name] = s
		own.list = append(own.list, s)
		all.n.Add(1)
		all.bytes.Add(k.cost(t.name))
		b.mem.ChargeApart(k.cost(t.name))
		b.active.Add(1)
	}
	return all.count(k)
}

// topic returns the topic of a name, which it creates if there is none.
func (b *Broker) topic(k Kind, name []byte) *topic {
	all := &b.topics[k]
	if t := all.byName[string(name)]; t != nil {
		return t
	}
	t := &topic{name: string(name), at: len(all.list)}
	all.byName[t.name] = t
	all.list = append(all.list, t)
	if k == Pattern {
		b.next++
		t.seq = b.next
		match := glob.New(t.name)
		t.match = &match
		t.index = b.patterns.Add(literalPrefix(t.name), t)
	}
	return t
}

// literalPrefix returns the text with which every channel that matches a pattern begins.
func literalPrefix(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// drop removes a subscription. The caller holds the lock.
func (b *Broker) drop(k Kind, s *subscription) {
	t, its := s.t, s.c.Subscriptions()
	own := &its.sets[k]
	own.list = prefixes.SwapRemove(own.list, s.i, func(moved *subscription, i int) { moved.i = i })
	delete(own.byName, t.name)
	if len(own.list) == 0 {
		own.byName = nil // which frees the memory of a large map
	}
	its.n.Add(-1)
	its.bytes.Add(-k.cost(t.name))
	b.mem.ChargeApart(-k.cost(t.name))
	b.active.Add(-1)

	t.subs = prefixes.SwapRemove(t.subs, s.at, func(moved *subscription, i int) { moved.at = i })
	if len(t.subs) > 0 {
		return
	}
	all := &b.topics[k]
	delete(all.byName, t.name)
	all.list = prefixes.SwapRemove(all.list, t.at, func(moved *topic, i int) { moved.at = i })
	if k == Pattern {
		b.patterns.Remove(t.index)
	}
}

// inSlices calls f for 0 to n-1 with the lock held. It releases the lock after each
// sliceSize calls.
func (b *Broker) inSlices(n int, f func(i int)) {
	for i := 0; i < n; {
		b.mu.Lock()
		for end := min(n, i+sliceSize); i < end; i++ {
			f(i)
		}
		b.mu.Unlock()
	}
}

// Subscribe adds subscriptions to names. After each it calls confirm, with the lock held,
// with the number that the command replies. It costs O(1) for each name. The client's own
// goroutine calls it.
func (b *Broker) Subscribe(c Subscriber, k Kind, names [][]byte, confirm func(name []byte, count int)) {
	b.inSlices(len(names), func(i int) { confirm(names[i], b.add(c, k, names[i])) })
}

// Unsubscribe removes the subscriptions to names, and returns for each name the number that
// the command replies. It costs O(1) for each name. The client's own goroutine calls it.
func (b *Broker) Unsubscribe(c Subscriber, k Kind, names [][]byte) []int {
	counts, own := make([]int, len(names)), c.Subscriptions()
	b.inSlices(len(names), func(i int) {
		if s := own.sets[k].byName[string(names[i])]; s != nil {
			b.drop(k, s)
		}
		counts[i] = own.count(k)
	})
	return counts
}

// Leave removes all subscriptions of a client. It costs O(1) for each.
func (b *Broker) Leave(c Subscriber) {
	for more := c.Subscriptions().Len() > 0; more; {
		b.mu.Lock()
		more = b.dropSome(c, sliceSize)
		b.mu.Unlock()
	}
}

// dropSome removes up to n subscriptions of a client and reports whether the client has
// more. The caller holds the lock.
func (b *Broker) dropSome(c Subscriber, n int) (more bool) {
	all := c.Subscriptions()
	for k := range all.sets {
		own := &all.sets[k]
		for ; len(own.list) > 0; n-- {
			if n == 0 {
				return true
			}
			b.drop(Kind(k), own.list[len(own.list)-1])
		}
	}
	return false
}

// Counts returns how many subscriptions of each kind a client has, by Kind.
func (b *Broker) Counts(c Subscriber) (n [3]int) {
	own := c.Subscriptions()
	if own.Len() == 0 {
		return n
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range n {
		n[k] = len(own.sets[k].list)
	}
	return n
}

// Names returns the names of a client's subscriptions of a kind in order. The client's own
// goroutine calls it.
func (b *Broker) Names(c Subscriber, k Kind) []string {
	own := &c.Subscriptions().sets[k]
	return b.collect(func() int { return len(own.list) }, func(i int) string { return own.list[i].t.name })
}

// Channels returns the names of a kind that have subscribers and match a pattern, in
// order. A nil pattern matches all.
func (b *Broker) Channels(k Kind, pattern []byte) []string {
	all := &b.topics[k]
	names := b.collect(func() int { return len(all.list) }, func(i int) string { return all.list[i].name })
	if pattern == nil {
		return names
	}
	match := glob.New(pattern)
	return slices.DeleteFunc(names, func(name string) bool { return !match.Match([]byte(name)) })
}

// collect returns the names of a list in order, each once. It walks the list from its end
// and releases the lock after each sliceSize names. Meanwhile other goroutines may remove
// elements: the last element, which collect has seen, then takes the place of the removed
// one. So collect misses no name that stays.
func (b *Broker) collect(size func() int, name func(i int) string) []string {
	b.mu.Lock()
	at := size()
	names := make([]string, 0, at)
	for at > 0 {
		for end := max(0, at-sliceSize); at > end; at-- {
			names = append(names, name(at-1))
		}
		b.mu.Unlock()
		b.mu.Lock()
		at = min(at, size())
	}
	b.mu.Unlock()
	slices.Sort(names)
	return slices.Compact(names)
}

// Any reports whether f returns true for one of a client's subscriptions. It walks them as
// collect does. It calls f with the lock held.
func (b *Broker) Any(c Subscriber, f func(k Kind, name string) bool) bool {
	all := c.Subscriptions()
	for k := range all.sets {
		own := &all.sets[k]
		b.mu.Lock()
		for at := len(own.list); at > 0; at = min(at, len(own.list)) {
			for end := max(0, at-sliceSize); at > end; at-- {
				if f(Kind(k), own.list[at-1].t.name) {
					b.mu.Unlock()
					return true
				}
			}
			b.mu.Unlock()
			b.mu.Lock()
		}
		b.mu.Unlock()
	}
	return false
}

// Count returns the number that an unsubscription of kind k replies.
func (b *Broker) Count(c Subscriber, k Kind) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.Subscriptions().count(k)
}

// Sizes returns how many channels, patterns and shard channels have subscribers, by Kind.
func (b *Broker) Sizes() (n [3]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range n {
		n[k] = len(b.topics[k].list)
	}
	return n
}

// Subscribers returns how many clients have subscribed to a name.
func (b *Broker) Subscribers(k Kind, name []byte) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.topics[k].byName[string(name)]; t != nil {
		return len(t.subs)
	}
	return 0
}

// Len returns how many subscriptions of all kinds the client has. Any goroutine may call it.
func (s *Subscriptions) Len() int { return int(s.n.Load()) }

// Bytes estimates the memory of the subscriptions. Any goroutine may call it.
func (s *Subscriptions) Bytes() int64 { return s.bytes.Load() }

// count returns the number that SUBSCRIBE and its like reply: shard channels count by
// themselves, channels and patterns together. The caller holds the broker's lock.
func (s *Subscriptions) count(k Kind) int {
	if k == Shard {
		return len(s.sets[Shard].list)
	}
	return len(s.sets[Channel].list) + len(s.sets[Pattern].list)
}

// Publish queues a message for the subscribers of a channel and of the patterns that match
// it, or for those of a shard channel, and returns how many messages it queued. forward may
// be nil; Publish calls it with the lock held, so that replicas get messages in the same
// order. While nothing is subscribed and forward is nil, Publish costs one atomic load. bare means that the message tells
// of no data: subscribers get it by PushBare.
func (b *Broker) Publish(kind Kind, channel, msg []byte, bare bool, forward func()) int {
	if forward == nil && !b.Active() {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bare = bare
	defer func() { b.bare = false }()
	if forward != nil {
		forward()
	}
	if kind == Shard {
		return b.send(b.topics[Shard].byName[string(channel)], "smessage", nil, channel, msg)
	}
	return b.route(channel, msg)
}

// send encodes a message once for each protocol and queues it for the subscribers of a
// topic, which may be nil. The caller holds the lock.
func (b *Broker) send(t *topic, kind string, pattern, channel, msg []byte) int {
	if t == nil {
		return 0
	}
	for i := range b.scratch {
		b.scratch[i].Buf = b.scratch[i].Buf[:0]
	}
	for _, s := range t.subs {
		c, i := s.c, 0
		if c.RESP3() {
			i = 1
		}
		w := &b.scratch[i]
		if len(w.Buf) == 0 {
			w.Proto = 2 + i
			if pattern == nil {
				w.Push(3)
				w.BulkString(kind)
			} else {
				w.Push(4)
				w.BulkString(kind)
				w.Bulk(pattern)
			}
			w.Bulk(channel)
			w.Bulk(msg)
		}
		if b.bare {
			c.PushBare(w.Buf)
		} else {
			c.Push(w.Buf)
		}
	}
	for i := range b.scratch {
		if cap(b.scratch[i].Buf) > 1<<16 {
			b.scratch[i].Buf = nil
		}
	}
	return len(t.subs)
}

// KeyspaceEvent publishes an event of a key: to the key's channel if keyspace is set,
// and to the event's channel if keyevent is. The engine's hook calls it, with the key's
// shard locked.
func (b *Broker) KeyspaceEvent(keyspace, keyevent bool, db int, event string, key []byte) {
	if !b.Active() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if keyspace {
		b.key = strconv.AppendInt(append(b.key[:0], "__keyspace@"...), int64(db), 10)
		b.key = append(append(b.key, "__:"...), key...)
		b.route(b.key, []byte(event))
	}
	if keyevent {
		b.key = strconv.AppendInt(append(b.key[:0], "__keyevent@"...), int64(db), 10)
		b.key = append(append(b.key, "__:"...), event...)
		b.route(b.key, key)
	}
}

// route sends a message to the subscribers of a channel, and then to those of the patterns
// that match it, in the order in which the patterns were created. It returns how many
// messages it queued. The caller holds the lock.
func (b *Broker) route(channel, msg []byte) int {
	n := b.send(b.topics[Channel].byName[string(channel)], "message", nil, channel, msg)
	if len(b.topics[Pattern].list) == 0 {
		return n
	}
	found := b.matched[:0]
	b.patterns.Each(channel, func(t *topic) {
		if t.match.Match(channel) {
			found = append(found, t)
		}
	})
	slices.SortFunc(found, func(a, b *topic) int { return cmp.Compare(a.seq, b.seq) })
	for _, t := range found {
		n += b.send(t, "pmessage", []byte(t.name), channel, msg)
	}
	clear(found)
	if b.matched = found; cap(found) > sliceSize {
		b.matched = nil
	}
	return n
}
