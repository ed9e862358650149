package shard

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// master is the state of a node while it is the master of an epoch. It begins empty with each epoch: what was acknowledged in
// another one does not count.
type master struct {
	epoch     uint64
	began     Time
	floor     uint64 // the end of its log when it became master: reads wait until this is committed
	serving   bool
	committed uint64
	peers     []peer             // by node
	proposal  *directory.Command // in flight
	proposed  Time               // when it was first sent
	sent      Time               // when it was last sent
	// A hand-over to a node: 0 if there is none. The lease is given up when the node has all. After a hand-over
	// that failed it counts what was sent after leaseFrom: at that very instant a stamp may have freed the replicas.
	handOver  directory.NodeID
	released  bool
	leaseFrom Time
}

// peer is a master's knowledge of the newest incarnation of another node, from messages of its epoch.
type peer struct {
	member directory.Member
	link   Link
	acked  uint64
	sent   Time   // the newest of this node's stamps that it has acknowledged
	heard  Time   // when its newest acknowledgement arrived
	ended  uint64 // the end of the log then
	caught Time   // the newest instant whose end of the log it has acknowledged
	leaves Time   // when it said that it is about to stop
}

// take makes the node the master of the epoch of the state that it has. The caller begins a history with each epoch.
func (n *Node) take(now Time) {
	n.drop()
	n.master = &master{epoch: n.shard.Epoch, began: now, floor: n.log.End, leaseFrom: never}
}

// lead does what a master does at each step.
func (n *Node) lead(now Time) {
	m := n.master
	if m == nil {
		return
	}
	if !m.serving && n.isFree(now) {
		m.serving, m.began, m.committed = true, now, n.committedAtFirst()
	}
	if !m.serving {
		return
	}
	n.commit()
	n.propose(now)
}

// greeted takes a replica's greeting. It refuses one that knows a higher epoch, which a state of the directory will bring here too,
// and an older incarnation.
func (n *Node) greeted(g Greeted) {
	m := n.master
	if m == nil || n.isLater(g.Epoch) || g.From.Node == n.self.Node || !n.note(g.From) {
		n.out.Close = append(n.out.Close, g.Link)
		return
	}
	if p := m.peer(g.From.Node); p.link != g.Link {
		if p.link != 0 {
			n.out.Close = append(n.out.Close, p.link)
		}
		p.link, p.leaves = g.Link, never
	}
}

// note makes a member a peer, and reports whether it is of the newest incarnation of its node that has sent something.
func (n *Node) note(from directory.Member) bool {
	m := n.master
	at, ok := slices.BinarySearchFunc(m.peers, from.Node, func(p peer, id directory.NodeID) int { return cmp.Compare(p.member.Node, id) })
	switch {
	case !ok:
		m.peers = slices.Insert(m.peers, at, peer{})
	case n.inheritsAcks():
		m.peers[at].member = from
		return true
	case m.peers[at].member.Incarnation > from.Incarnation:
		return false
	case m.peers[at].member == from:
		return true
	}
	m.peers[at] = peer{member: from, link: m.peers[at].link, sent: never, heard: never, caught: never, leaves: never}
	return true
}

// peer returns what is known of a node, or nil.
func (m *master) peer(id directory.NodeID) *peer {
	for i := range m.peers {
		if m.peers[i].member.Node == id {
			return &m.peers[i]
		}
	}
	return nil
}

// leaving notes that a member is about to stop.
func (m *master) leaving(now Time, member directory.Member) {
	if p := m.peer(member.Node); p != nil && p.member == member {
		p.leaves = now
	}
}

// stays reports whether a member has not said within Lag that it is about to stop.
func (n *Node) stays(now Time, member directory.Member) bool {
	p := n.peerOf(member)
	return p == nil || now-p.leaves > n.conf.Lag
}

// peerOf returns what is known of a member, or nil.
func (n *Node) peerOf(m directory.Member) *peer {
	p := n.master.peer(m.Node)
	if p == nil || p.member != m {
		return nil
	}
	return p
}

// links returns all links to replicas.
func (m *master) links() (all []Link) {
	for _, p := range m.peers {
		if p.link != 0 {
			all = append(all, p.link)
		}
	}
	return all
}

func (m *master) closed(id Link) {
	for i := range m.peers {
		if m.peers[i].link == id {
			m.peers[i].link = 0
		}
	}
}

// acknowledged takes an acknowledgement, of this epoch and of the newest incarnation of its node only. One of what was not sent yet
// is none, and its link ends.
func (n *Node) acknowledged(now Time, a Acked) {
	m := n.master
	if m == nil || !n.counts(a.Ack) {
		return
	}
	if a.Epoch == m.epoch && (a.Offset > n.log.End || a.Sent > now) {
		n.out.Close = append(n.out.Close, a.Link)
		return
	}
	if !n.note(a.From) {
		return
	}
	p := m.peer(a.From.Node)
	if a.Offset >= n.log.End {
		p.caught = now
	} else if a.Offset >= p.ended && p.heard != never {
		p.caught = max(p.caught, p.heard)
	}
	p.heard, p.ended = now, n.log.End
	p.acked = max(p.acked, a.Offset)
	if a.Sent != 0 {
		p.sent = max(p.sent, n.leaseStart(now, a.Ack))
	}
}

// counted returns the members whose acknowledgements a commit needs: the in-sync set, and a member that this node has proposed to
// add until that proposal is over. A member that it has proposed to remove is in the set until the state says otherwise.
func (n *Node) counted() []directory.Member {
	all, c := n.shard.InSync, n.master.proposal
	switch {
	case c == nil:
	case c.Kind == directory.Expand && !n.shard.In(c.Member()) && n.countsAddition():
		all = append(slices.Clone(all), c.Member())
	case c.Kind == directory.Shrink && !n.countsRemoval():
		all = slices.DeleteFunc(slices.Clone(all), func(m directory.Member) bool { return m == c.Member() })
	}
	return all
}

// commit raises what is committed: to the smallest offset that all counted members have acknowledged in this epoch. It stays where
// it is while fewer than k+1 members are in sync, and while this node itself is not.
func (n *Node) commit() {
	m := n.master
	if n.shard.Epoch != m.epoch || !n.shard.In(n.self) || !n.mayCommit() {
		return
	}
	least := n.durable()
	for _, other := range n.counted() {
		if other.Node == n.self.Node {
			continue
		}
		p := n.peerOf(other)
		if p == nil {
			return
		}
		least = min(least, p.acked)
	}
	m.committed = max(m.committed, least)
}

// lease reports whether no other node can serve as master now: each counted member has promised not to, from when this node sent
// what the member has acknowledged. The clocks of two nodes differ in rate, so this node counts 2 % less.
func (n *Node) lease(now Time) bool {
	m := n.master
	if n.shard.Epoch != m.epoch || n.gaveUpLease() || !n.shard.In(n.self) {
		return false
	}
	for _, other := range n.promisers() {
		if other.Node == n.self.Node {
			continue
		}
		p := n.peerOf(other)
		if p == nil || p.sent == never || p.sent <= m.leaseFrom || now >= p.sent+n.conf.Lease*leaseShare/100 {
			return false
		}
	}
	return true
}

// Stamp returns what a master sends with each part of its stream, and with each heartbeat.
func (n *Node) Stamp(now Time) Stamp {
	return Stamp{Sent: now, Lease: n.conf.Lease, Released: n.master != nil && n.master.released}
}

// isFresh reports whether a member has within Lag acknowledged all that the log held. Each member has Lag from when this node served.
func (n *Node) isFresh(now Time, member directory.Member) bool {
	if member.Node == n.self.Node {
		return member == n.self
	}
	caught := n.master.began
	if p := n.peerOf(member); p != nil {
		caught = max(caught, p.caught)
	}
	return now-caught <= n.conf.Lag
}

// fresh returns the number of fresh members in sync.
func (n *Node) fresh(now Time) (count int) {
	for _, member := range n.shard.InSync {
		if n.isFresh(now, member) {
			count++
		}
	}
	return count
}
