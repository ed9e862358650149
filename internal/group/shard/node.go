// Package shard has the rules of a node as the master or as a replica of a shard: which offset is committed, when reads may be
// answered, whom to acknowledge to, and what to propose to the directory.
//
//	answers and states of the directory ─┐          ┌─▶ an acknowledgement, links to close
//	greetings, acknowledgements, stamps ─┼─▶ Step ──┼─▶ a proposal   Expand, Shrink, Promote
//	the log grew or was synced, Tick ────┘          └─▶ gates        what may be answered, whether it writes
//
// A Node is a state machine: it reads no clock and moves no byte of the log. The caller (internal/group) has the links,
// the log and the timer, and passes what happens as events; the simulator (internal/testing/groupsim) does the same.
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
//   - A node is master only in an epoch above the one in its Register's answer, and only in the newest that it knows.
//   - What is committed is acknowledged by each member of the in-sync set, and by a member whose Expand is not over.
//   - One proposal is in flight. It is over when a state has a version above the one that it named.
//
// Start reading at Node.Step, then Node.commit and Node.lease.
package shard

import (
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Time is an instant of the monotonic clock of one node, from an origin of its own. Instants of two nodes are not compared; the
// rates of two clocks differ by less than 2 %.
type Time = time.Duration

// never is before all instants.
const never Time = -1 << 62

// Log says how far a node's log goes. Offsets count from the beginning of the replication stream. Which history the log is of is not known
// here: the two ends of a link compare histories (PSYNC), and Answered says what came of it.
type Log struct {
	End    uint64 // all before it is applied
	Synced uint64 // all before it is on disk; at most End
}

// Config are a node's constants.
type Config struct {
	Level directory.SyncLevel // what it acknowledges: what it has applied, or what it has synced
	Lease time.Duration       // how long a replica that acknowledged does not serve as master (sync-lease)
	Lag   time.Duration       // how long a member may be behind before it leaves the in-sync set (sync-lag)
}

// leaseShare is the part of Lease for which a master counts on a promise, in percent: the rates of two clocks differ by less than 2 %.
const leaseShare = 98

// retry is the number of times in a lease that a master sends a proposal.
const retry = 4

// Node is a node's part in one shard. It is not safe for concurrent use.
type Node struct {
	conf       Config
	self       directory.Member // 0 until it is registered
	registered bool
	since      uint64          // the epoch in the answer of its Register: it is master in later ones only
	shard      directory.Shard // the newest state that it has applied
	epoch      uint64          // of the newest state: what peers say does not raise it
	promise    Time            // it does not serve as master before
	log        Log
	master     *master // what it does as master; nil as a replica
	link       link    // to its master; zero if there is none
	out        Output
	faults     Faults
}

// New returns a node that has just started with a log. Whatever its process before has promised to a master holds for another
// Lease from now on.
func New(now Time, c Config, l Log) *Node {
	return &Node{conf: c, log: l, promise: now + c.Lease}
}

// Output is the work for the caller after a Step, in the order of the fields. The slices are the caller's.
type Output struct {
	Close   []Link             // links that the caller closes
	Ack     *Ack               // the acknowledgement to send on the link to the master
	Propose *directory.Command // a proposal to send to the directory, perhaps again
}

// Gates say what a node may do now.
type Gates struct {
	Epoch     uint64 // in which it is the master; 0 if it is not
	Serving   bool   // it is the master, and answers
	Floor     uint64 // the end of its log when it became master: it answers reads when this is committed
	Committed uint64 // replies and messages about offsets up to here may leave
	// Lease: a reply that wrote nothing may leave as well, when all that the log held at its time is committed.
	Lease bool
	// Writable: writes may be executed. Otherwise a client gets -NOREPLICAS at once, and nothing is appended to the log.
	Writable bool
}

// Step passes an event, and returns what is to be done. It costs O(members). Instants never decrease. A Tick is due each Lease/4 or
// more often.
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

// start is Step before the node is registered.
func (n *Node) start(now Time, e Event) {
	switch e := e.(type) {
	case Registered:
		n.begin(now, e)
	case Appended: // its own files are being loaded
		n.log.End, n.log.Synced = e.End, e.Synced
	case Connected:
		n.out.Close = append(n.out.Close, e.Link)
	case Greeted:
		n.out.Close = append(n.out.Close, e.Link)
	}
}

// begin takes the answer of the Register: the node begins from the state in it.
func (n *Node) begin(now Time, e Registered) {
	if n.registered {
		return
	}
	n.registered, n.self = true, e.Self
	n.since = e.Shard.Epoch
	n.apply(now, e.Shard)
}

// apply takes a state of the directory, if it is newer than the one that the node has.
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

// learn raises the epoch that the node knows, when a state has. A link and a mastership of an older one end.
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

// Gates returns what the node may do at an instant. O(members).
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

// Self returns the node's member; 0 before it is registered.
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

// Master returns the node to which this one connects: the master of the state that it has. It returns 0 if that is this node, if
// this node is master itself, and before it is registered.
func (n *Node) Master() directory.NodeID {
	if !n.registered || n.master != nil || n.shard.Master.Node == n.self.Node {
		return 0
	}
	return n.shard.Master.Node
}
