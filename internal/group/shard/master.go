package shard

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// master is the state of a node while it is the master of an epoch. It starts empty in each epoch: acknowledgements
// of other epochs do not count.
type master struct {
	epoch     uint64
	began     Time   // when it was promoted, began to serve, or went on after a pause: each member then has Lag to be fresh
	floor     uint64 // the end of the log at the promotion; reads wait until it is committed
	serving   bool
	stepped   Time // when lead last ran
	committed uint64
	moved     Time               // when committed last grew, or was all that the log held
	own       peer               // this node itself: up to which instant it could acknowledge the log
	peers     []peer             // by node
	proposal  *directory.Command // in flight; nil: none
	proposed  Time               // when proposal was first sent
	sent      Time               // when proposal was last sent
	// handOver is the node that receives the group in a hand-over, 0 without one. The lease is released when that
	// node has the whole log. After a failed hand-over only acknowledgements of stamps sent after leaseFrom count for
	// the lease: a stamp of that very instant may have freed the replicas.
	handOver  directory.NodeID
	released  bool
	leaseFrom Time
}

// peer is the master's knowledge of the newest incarnation of another node, from messages of this epoch.
type peer struct {
	member directory.Member
	link   Link
	acked  uint64
	sent   Time   // the newest of this master's stamps that it has acknowledged
	marked Time   // an instant after caught whose end of the log it has not acknowledged
	ended  uint64 // the end of the log at marked
	caught Time   // the newest instant whose end of the log it has acknowledged in full
	leaves Time   // when it announced that it is about to stop
}

// take makes the node the master of the epoch of its newest state. The caller begins a new history for each epoch.
func (n *Node) take(now Time) {
	n.drop()
	n.master = &master{epoch: n.shard.Epoch, began: now, floor: n.log.End, leaseFrom: never}
}

// lead runs the master's part of a step: it starts to serve, commits and proposes.
func (n *Node) lead(now Time) {
	m := n.master
	if m == nil {
		return
	}
	if !m.serving && n.isFree(now) {
		m.serving, m.began, m.moved, m.committed = true, now, now, n.committedAtFirst()
		m.own = peer{marked: never, caught: now}
	}
	if !m.serving {
		return
	}
	if now-m.stepped > n.conf.Lag/2 {
		m.began = now // the process was paused, and has not read what the members have sent meanwhile
	}
	m.stepped = now
	m.own.catchUp(now, n.durable(), n.log.End)
	before := m.committed
	n.commit()
	if m.committed > before || n.hasCommittedAll() {
		m.moved = now
	}
	n.propose(now)
}

// greeted handles a replica's greeting. It refuses a replica that knows a higher epoch, because a state of the
// directory will bring that epoch here too, and an incarnation older than one seen before.
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

// note records a member as a peer. It reports false if a newer incarnation of its node is known.
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
	m.peers[at] = peer{member: from, link: m.peers[at].link, sent: never, marked: never, caught: never, leaves: never}
	return true
}

// peer returns the peer with a node's ID, or nil.
func (m *master) peer(id directory.NodeID) *peer {
	for i := range m.peers {
		if m.peers[i].member.Node == id {
			return &m.peers[i]
		}
	}
	return nil
}

// leaving records that a member is about to stop.
func (m *master) leaving(now Time, member directory.Member) {
	if p := m.peer(member.Node); p != nil && p.member == member {
		p.leaves = now
	}
}

// stays reports whether a member has not announced within Lag that it is about to stop.
func (n *Node) stays(now Time, member directory.Member) bool {
	p := n.peerOf(member)
	return p == nil || now-p.leaves > n.conf.Lag
}

// peerOf returns the peer for a member, or nil if the newest incarnation of its node is another one.
func (n *Node) peerOf(m directory.Member) *peer {
	p := n.master.peer(m.Node)
	if p == nil || p.member != m {
		return nil
	}
	return p
}

// links returns the links to all replicas.
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

// acknowledged handles an acknowledgement. It counts only in this epoch and for the newest incarnation of its node.
// An acknowledgement of bytes that were not sent yet is invalid, and its link is closed.
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
	p.catchUp(now, a.Offset, n.log.End)
	p.acked = max(p.acked, a.Offset)
	if a.Sent != 0 {
		p.sent = max(p.sent, n.leaseStart(now, a.Ack))
	}
}

// catchUp records up to which instant a member has the log. Under load a member never has the whole log, because acknowledgements arrive
// more often than the acknowledgement of one entry takes. So an instant stays marked until the member has what the log held then.
func (p *peer) catchUp(now Time, offset, end uint64) {
	switch {
	case offset >= end:
		p.caught = now
	case p.marked != never && offset < p.ended:
		return
	default:
		p.caught = max(p.caught, p.marked)
	}
	p.marked, p.ended = now, end
}

// counted returns the members whose acknowledgements a commit needs: the in-sync set, and a member whose Expand is in
// flight. A member whose Shrink is in flight stays in the set until a new state says otherwise.
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

// commit raises committed to the smallest offset that all counted members have acknowledged in this epoch. It changes
// nothing while fewer than k+1 members are in sync or this node is not in sync.
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

// hasCommittedAll reports whether there is nothing left to commit.
func (n *Node) hasCommittedAll() bool { return n.master.committed >= max(n.log.End, n.master.floor) }

// lease reports whether no other node can serve as master now. Each counted member has promised not to for the lease,
// counted from when this node sent the stamp that the member acknowledged. Because the rates of two clocks differ,
// the master counts 2 % less.
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

// Stamp returns the stamp that a master sends with each part of its stream and each heartbeat.
func (n *Node) Stamp(now Time) Stamp {
	return Stamp{Sent: now, Lease: n.conf.Lease, Released: n.master != nil && n.master.released}
}

// isFresh reports whether a member has acknowledged within Lag the whole log of some instant. When the node begins to
// serve, and after a pause of the process, each member has Lag to do so.
func (n *Node) isFresh(now Time, member directory.Member) bool {
	if member.Node == n.self.Node {
		return member == n.self
	}
	return now-n.caught(member) <= n.conf.Lag
}

// caught returns the newest instant whose end of the log another member has acknowledged, and at first that at which this node began.
func (n *Node) caught(member directory.Member) Time {
	if p := n.peerOf(member); p != nil {
		return max(n.master.began, p.caught)
	}
	return n.master.began
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
