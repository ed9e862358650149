package shard

import "github.com/ebbdb/ebb/internal/group/directory"

// propose sends the proposal in flight again when that is due. Without one it makes a new proposal: to remove a
// member that is not fresh or is about to stop, or to add a node that holds all acknowledged writes.
func (n *Node) propose(now Time) {
	m := n.master
	if n.shard.Epoch != m.epoch {
		return
	}
	if n.givesUp(now) {
		n.over(now)
	}
	if n.inFlight() {
		if now-m.sent >= n.conf.Lease/retry {
			n.send(now)
		}
		return
	}
	switch {
	case m.handOver != 0:
		n.proposeHandOver(now)
	default:
		if c, ok := n.wanted(now); ok {
			n.offer(now, c)
		}
	}
}

// wanted returns the change of the in-sync set to propose, if there is one.
func (n *Node) wanted(now Time) (directory.Command, bool) {
	for _, member := range n.shard.InSync {
		if (n.lags(now, member) || !n.stays(now, member)) && n.mayShrink(now, member) {
			return command(directory.Shrink, member), true
		}
	}
	for _, p := range n.master.peers {
		if _, in := n.shard.Member(p.member.Node); !in && n.stays(now, p.member) && n.holdsAll(now, p) {
			return command(directory.Expand, p.member), true
		}
	}
	return directory.Command{}, false
}

// lags reports whether a member is not fresh and far behind what this node itself could acknowledge. Members get nothing new from a master
// whose own disk hangs or is full: it would remove them one after the other, and no other node would be left to promote.
func (n *Node) lags(now Time, member directory.Member) bool {
	return !n.isFresh(now, member) && n.master.own.caught-n.caught(member) > n.conf.Lag/2
}

// mayShrink reports whether k+1 fresh members would remain without a member. If fewer remained, nothing could be
// committed. As long as the set keeps k+1 members, each still has all acknowledged writes, and any can be promoted.
func (n *Node) mayShrink(now Time, without directory.Member) bool {
	rest := n.fresh(now)
	if n.isFresh(now, without) {
		rest--
	}
	return without.Node != n.self.Node && n.suffice(rest)
}

// holdsAll reports whether a node has acknowledged all that clients were told in any epoch, and keeps up.
func (n *Node) holdsAll(now Time, p peer) bool {
	return now-p.caught <= n.conf.Lag && p.acked >= max(n.master.floor, n.master.committed)
}

func command(kind directory.Kind, m directory.Member) directory.Command {
	return directory.Command{Kind: kind, Node: m.Node, Incarnation: m.Incarnation}
}

// offer makes a proposal. From now on counted includes the member of an Expand, for commit and lease.
func (n *Node) offer(now Time, c directory.Command) {
	c.Shard, c.Epoch, c.Version = n.shard.ID, n.shard.Epoch, n.shard.Version
	n.master.proposal, n.master.proposed = &c, now
	n.send(now)
}

// send sends the proposal in flight.
func (n *Node) send(now Time) {
	n.master.sent = now
	c := *n.master.proposal
	n.out.Propose = &c
}

// over ends the proposal in flight. If it was the Promote of a hand-over and this node is still the master, the
// hand-over has failed. The node has its lease again when the replicas have acknowledged stamps sent from now on.
func (n *Node) over(now Time) {
	m := n.master
	if m.proposal.Kind == directory.Promote {
		m.handOver, m.released, m.leaseFrom = 0, false, now
	}
	m.proposal = nil
}

// handOver begins a hand-over.
func (n *Node) handOver(e HandOver) {
	m := n.master
	if _, in := n.shard.Member(e.To); m == nil || !m.serving || m.handOver != 0 || !in || e.To == n.self.Node {
		return
	}
	m.handOver = e.To
}

// proposeHandOver proposes the Promote of a hand-over once the next master has the whole log. This master gives up
// its lease before: its stamps tell the next master that the promise is void.
func (n *Node) proposeHandOver(now Time) {
	m := n.master
	to, in := n.shard.Member(m.handOver)
	p := n.peerOf(to)
	if !in || p == nil || !n.isFresh(now, to) {
		m.handOver = 0
		return
	}
	if p.acked < n.log.End {
		return
	}
	m.released = true
	n.offer(now, command(directory.Promote, to))
}
