package shard

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// State is the phase of a node's life.
type State uint8

// The states, in the order of a node's life.
const (
	Starting    State = iota // its Register is not answered; it does nothing
	Searching                // a replica; no master of the newest epoch has answered it
	Loading                  // a replica; its full resynchronisation is under way
	Following                // a replica; it applies and acknowledges the stream
	Promoted                 // the master; it answers nothing until its promise to the previous master is over
	Recovering               // the master; it writes, and reads wait until its floor is committed
	Leading                  // the master; it writes and reads
	HandingOver              // the master; it refuses writes until the next master takes over
)

var stateNames = [...]string{"starting", "searching", "loading", "following", "promoted", "recovering", "leading", "handing-over"}

// String returns the state as INFO shows it.
func (s State) String() string { return stateNames[s] }

// Status is a snapshot of a node, for INFO and operators.
type Status struct {
	State   State
	Self    directory.Member // zero before the node is registered
	Shard   directory.Shard  // the newest state that the node has applied
	Gates   Gates
	Members []Progress // the other nodes that are in sync or, on the master, known to it; by node
	// Stuck means that the node is a master that serves and has committed nothing for Lag although it should have, or takes no writes.
	Stuck bool
}

// Progress is the position of another node in the log. Only a master knows more than InSync.
type Progress struct {
	directory.Member
	InSync bool           // it is in sync in the newest state
	Linked bool           // it has a link to this master
	Acked  uint64         // the offset that it has acknowledged in this epoch
	Behind uint64         // the bytes of the log that it has not acknowledged
	Since  Time           // the time for which it has been behind; 0 if it is not
	Change directory.Kind // the Expand or Shrink of it that is in flight; 0: none
}

// Status returns the node's state at an instant. O(members).
func (n *Node) Status(now Time) Status {
	return Status{State: n.state(), Self: n.self, Shard: n.shard, Gates: n.Gates(now), Members: n.progress(now), Stuck: n.isStuck(now)}
}

// Proven reports whether the node is a master that its members have acknowledged.
func (s Status) Proven() bool { return s.State == Leading && s.Gates.Lease && !s.Stuck }

// isStuck reports whether the node is a master that should acknowledge writes and does not. A master whose members are behind and
// catch up is not stuck: another master would have no faster members, and its promotion would end the writes that wait.
func (n *Node) isStuck(now Time) bool {
	m := n.master
	switch {
	case m == nil || !m.serving || m.handOver != 0:
		return false
	case n.hasCommittedAll():
		return !n.shard.Enough(n.fresh(now))
	}
	return now-m.moved > n.conf.Lag
}

func (n *Node) state() State {
	switch m := n.master; {
	case !n.registered:
		return Starting
	case m == nil && n.link.epoch != 0 && n.link.loading:
		return Loading
	case m == nil && n.link.ready && n.isNewest(n.link.epoch):
		return Following
	case m == nil:
		return Searching
	case !m.serving:
		return Promoted
	case m.handOver != 0:
		return HandingOver
	case m.committed < m.floor:
		return Recovering
	}
	return Leading
}

// progress returns the other members of the in-sync set and, on a master, its other peers.
func (n *Node) progress(now Time) (all []Progress) {
	for _, m := range n.shard.InSync {
		if m.Node != n.self.Node {
			all = append(all, Progress{Member: m, InSync: true})
		}
	}
	if n.master == nil {
		return all
	}
	for _, p := range n.master.peers {
		if !n.shard.In(p.member) {
			all = append(all, Progress{Member: p.member})
		}
	}
	slices.SortStableFunc(all, func(a, b Progress) int { return cmp.Compare(a.Node, b.Node) })
	for i := range all {
		n.measure(now, &all[i])
	}
	return all
}

// measure fills in the fields that only a master knows.
func (n *Node) measure(now Time, x *Progress) {
	m, caught := n.master, n.master.began
	if p := n.peerOf(x.Member); p != nil {
		x.Linked, x.Acked, caught = p.link != 0, p.acked, max(caught, p.caught)
	}
	if x.Acked < n.log.End {
		x.Behind, x.Since = n.log.End-x.Acked, now-caught
	}
	if c := m.proposal; c != nil && c.Kind != directory.Promote && c.Member() == x.Member {
		x.Change = c.Kind
	}
}

// Info calls put for each line of INFO replication that is about the group.
func (s Status) Info(put func(name string, value any)) {
	put("group_state", s.State.String())
	put("group_node", int(s.Self.Node))
	put("group_incarnation", int64(s.Self.Incarnation))
	put("group_epoch", int64(s.Shard.Epoch))
	put("group_version", int64(s.Shard.Version))
	put("group_master", int(s.Shard.Master.Node))
	put("group_min_sync_replicas", s.Shard.K)
	put("group_in_sync", len(s.Shard.InSync))
	put("group_self_in_sync", s.Shard.In(s.Self))
	put("group_accepted_losses", int64(s.Shard.Losses))
	if s.Gates.Epoch != 0 {
		put("group_writable", s.Gates.Writable)
		put("group_lease", s.Gates.Lease)
		put("group_committed_offset", int64(s.Gates.Committed))
		put("group_floor_offset", int64(s.Gates.Floor))
	}
	for i, m := range s.Members {
		put("group_member"+strconv.Itoa(i), m.info(s.Gates.Epoch != 0))
	}
}

// info returns the value of a member's line. measured reports that this node is the master, and so knows the member's
// position.
func (p Progress) info(measured bool) string {
	line := fmt.Sprintf("node=%d,incarnation=%d,in_sync=%d", p.Node, p.Incarnation, bit(p.InSync))
	if measured {
		line += fmt.Sprintf(",linked=%d,offset=%d,behind_bytes=%d,behind_ms=%d", bit(p.Linked), p.Acked, p.Behind, p.Since.Milliseconds())
	}
	return line
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}
