// Package shard has the rules of a node as master or replica of a shard: which offset is committed, when reads may be
// answered, whose stream to acknowledge, and what to propose to the directory.
//
//	answers and states of the directory ─┐          ┌─▶ an acknowledgement, links to close
//	greetings, acknowledgements, stamps ─┼─▶ Step ──┼─▶ a proposal   Expand, Shrink, Promote
//	the log grew or was synced, Tick ────┘          └─▶ gates        what may be answered, whether it writes
//
// A Node is a state machine: it reads no clock and moves no byte of the log. The caller (internal/group) owns the
// links, the log and the timer, and passes each event to Step. The simulator (internal/testing/groupsim) is a second
// caller.
//
// The life of a node:
//
//	started ── Registered ──▶ replica ── a state names it master of a later epoch ──▶ master, waits for its promise ──▶ serves
//	                             ▲                                                                                      │
//	                             └────────────────────────── a state of a later epoch ──────────────────────────────────┘
//
// Invariants:
//
//   - A node that is not registered does nothing.
//   - A node is master only in an epoch above the one in the answer to its Register, and only in the newest epoch that it knows.
//   - A committed offset is acknowledged by each member of the in-sync set, and by a member whose Expand is in flight.
//   - One proposal is in flight at a time. It is over when a state has a version above the one that the proposal named.
//
// Start reading at Node.Step, then Node.commit and Node.lease.
package shard

import (
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Time is an instant of one node's monotonic clock, from any origin. Instants of two nodes are never compared; the
// rates of two clocks differ by less than 2 %.
type Time = time.Duration

// never is earlier than all instants.
const never Time = -1 << 62

// Log is the position of a node's log. Offsets count from the beginning of the replication stream. The node does not
// know the history of the log: the two ends of a link compare histories (PSYNC), and Answered carries the result.
type Log struct {
	End    uint64 // everything before it is applied
	Synced uint64 // everything before it is on disk; at most End
}

// Config configures a node. It does not change.
type Config struct {
	Level directory.SyncLevel // Memory: it acknowledges applied writes; Disk: synced ones
	Lease time.Duration       // sync-lease: the time for which a member that acknowledges promises not to serve as master
	Lag   time.Duration       // sync-lag: the time for which a member may be behind before it leaves the in-sync set
}

// leaseShare is the percentage of Lease for which a master relies on a promise: the rates of two clocks differ by
// less than 2 %.
const leaseShare = 98

// retry is the number of times per lease that a master sends its proposal.
const retry = 4

// Node is a node's part in one shard. It is not safe for concurrent use.
type Node struct {
	conf       Config
	self       directory.Member // 0 until it is registered
	registered bool
	since      uint64          // the epoch in the answer to its Register; it can be master only in later ones
	shard      directory.Shard // the newest state that it has applied
	epoch      uint64          // the epoch of the newest state; messages of peers do not raise it
	promise    Time            // until then it does not serve as master
	log        Log
	master     *master // its state as master; nil for a replica
	link       link    // to its master; zero without one
	out        Output
	faults     Faults
}

// New returns a node that has just started with a log. It counts a promise of one Lease from now on, for the promises
// that its previous process may have made.
func New(now Time, c Config, l Log) *Node {
	return &Node{conf: c, log: l, promise: now + c.Lease}
}

// Output is the caller's work after a Step, in the order of the fields. The caller owns the slices.
type Output struct {
	Close   []Link             // links to close
	Ack     *Ack               // the acknowledgement to send on the link to the master
	Propose *directory.Command // a proposal to send to the directory; it may be a repetition
}

// Gates are the permissions of a node at an instant.
type Gates struct {
	Epoch     uint64 // the epoch of which it is the master; 0: a replica
	Serving   bool   // it is the master, and its promise to earlier masters is over
	Floor     uint64 // the end of its log at the promotion; reads wait until it is committed
	Committed uint64 // replies and messages up to this offset may leave
	// Lease: a reply that wrote nothing may leave too, once the end of the log at its time is committed.
	Lease bool
	// Writable: writes may run. Otherwise clients get -NOREPLICAS at once, and nothing is appended to the log.
	Writable bool
}

// Step handles an event, and returns the work for the caller. It costs O(members). now must never decrease. The
// caller passes a Tick each Lease/4 or more often.
func (n *Node) Step(now Time, e Event) Output {
	n.out = Output{}
	if !n.registered {
		n.start(now, e)
		return n.out
	}
	switch e := e.(type) {
	case Registered:
		n.begin(now, e)
	case Applied:
		n.apply(now, e.Shard)
	case Appended:
		n.log.End, n.log.Synced = e.End, e.Synced
		n.acknowledge()
	case Connected:
		n.connect(e.Link)
	case Closed:
		n.closed(e.Link)
	case Greeted:
		n.greeted(e)
	case Acked:
		n.acknowledged(now, e)
	case Answered:
		n.answered(now, e)
	case Streamed:
		n.streamed(now, e)
	case Loaded:
		n.loaded(e)
	case Leaving:
		if n.master != nil {
			n.master.leaving(now, e.Member)
		}
	case HandOver:
		n.handOver(e)
	case Tick:
	}
	n.lead(now)
	return n.out
}

// start handles an event before the node is registered.
func (n *Node) start(now Time, e Event) {
	switch e := e.(type) {
	case Registered:
		n.begin(now, e)
	case Appended: // the files are being loaded
		n.log.End, n.log.Synced = e.End, e.Synced
	case Connected:
		n.out.Close = append(n.out.Close, e.Link)
	case Greeted:
		n.out.Close = append(n.out.Close, e.Link)
	}
}

// begin handles the answer to Register: the node starts from the state in it.
func (n *Node) begin(now Time, e Registered) {
	if n.registered {
		return
	}
	n.registered, n.self = true, e.Self
	n.since = e.Shard.Epoch
	n.apply(now, e.Shard)
}

// apply takes over a state of the directory, if it is newer than the present one.
func (n *Node) apply(now Time, s directory.Shard) {
	if s.Version <= n.shard.Version {
		return
	}
	n.shard = s
	n.learn(s.Epoch)
	if m := n.master; m != nil && m.proposal != nil && s.Version > m.proposal.Version {
		n.over(now)
	}
	if s.Master == n.self && s.Epoch == n.epoch && n.master == nil && n.mayLead(s.Epoch) {
		n.take(now)
	}
}

// learn raises the epoch to that of a new state. It ends a link or a mastership of an older epoch.
func (n *Node) learn(epoch uint64) {
	if epoch <= n.epoch {
		return
	}
	n.epoch = epoch
	if n.link.epoch != 0 && !n.isNewest(n.link.epoch) {
		n.drop()
	}
	if n.master != nil {
		n.out.Close = append(n.out.Close, n.master.links()...)
		n.master = nil
	}
}

// durable returns the offset up to which the node may acknowledge.
func (n *Node) durable() uint64 {
	if n.conf.Level == directory.Disk {
		return n.log.Synced
	}
	return n.log.End
}

// Gates returns the node's permissions at an instant. O(members).
func (n *Node) Gates(now Time) Gates {
	m := n.master
	if m == nil {
		return Gates{}
	}
	g := Gates{Epoch: m.epoch, Serving: m.serving, Floor: m.floor, Committed: m.committed}
	if m.serving {
		g.Lease = n.lease(now)
		g.Writable = m.handOver == 0 && n.shard.Enough(n.fresh(now))
	}
	return g
}

// Self returns the node's member, which is zero before the node is registered.
func (n *Node) Self() directory.Member { return n.self }

// Shard returns the newest state that the node has applied.
func (n *Node) Shard() directory.Shard { return n.shard }

// Epoch returns the highest epoch that the node knows.
func (n *Node) Epoch() uint64 { return n.epoch }

// Proposal returns the proposal in flight, or nil.
func (n *Node) Proposal() *directory.Command {
	if n.master == nil {
		return nil
	}
	return n.master.proposal
}

// Master returns the node that this node should follow: the master in its newest state. It returns 0 before the node
// is registered and while the node is, or should become, the master itself.
func (n *Node) Master() directory.NodeID {
	if !n.registered || n.master != nil || n.shard.Master.Node == n.self.Node {
		return 0
	}
	return n.shard.Master.Node
}
