package shard

import "github.com/ebbdb/ebb/internal/group/directory"

// This file has the rules that Faults can switch off, one method for each. A server has no faults.

// Faults switch rules off. Only the simulator uses them (internal/testing/groupsim). It must find each fault: a rule
// whose absence it does not notice is not tested.
type Faults struct {
	AddLate              bool // a new member counts only once it is in sync, not from before its Expand is proposed
	RemoveEarly          bool // a member no longer counts once its Shrink is proposed
	ShrinkBelow          bool // a Shrink may leave fewer than k+1 fresh members
	OldAck               bool // an acknowledgement of another epoch counts
	AnyIncarnation       bool // acknowledgements of one incarnation count for the next one
	AnyEpoch             bool // epochs of peers are not compared with the node's
	CommitBelow          bool // the master commits with fewer than k+1 members in sync
	LeaseFromArrival     bool // the lease counts from the arrival of the acknowledgement
	LeaseWithoutAddition bool // the lease does not need a member whose Expand is in flight
	LeaseKept            bool // a hand-over does not give up the lease
	IgnorePromise        bool // a promoted node serves at once
	NoFloor              bool // a promoted node treats its whole log as committed
	TwoProposals         bool // a proposal is made while another is in flight
	GiveUpByTime         bool // a proposal is over after some time
	OldEpoch             bool // a restarted master continues in its epoch
	ForgetPromise        bool // a restarted node counts no promise
	AckEarly             bool // a replica acknowledges before a full resynchronisation is complete
}

// Plant sets the faults. It must be called before the first Step.
func (n *Node) Plant(f Faults) {
	n.faults = f
	if f.ForgetPromise {
		n.promise = never
	}
}

// mayLead reports whether the node may be the master of an epoch, which must be above the one in the answer to its
// Register.
func (n *Node) mayLead(epoch uint64) bool { return epoch > n.since || n.faults.OldEpoch }

// isFree reports whether the node's promises to other masters are over.
func (n *Node) isFree(now Time) bool { return now >= n.promise || n.faults.IgnorePromise }

// committedAtFirst returns the committed offset of a master that begins to serve: the one that it has, 0.
func (n *Node) committedAtFirst() uint64 {
	if n.faults.NoFloor {
		return n.master.floor
	}
	return n.master.committed
}

// isLater reports whether an epoch is above the newest that the node knows.
func (n *Node) isLater(epoch uint64) bool { return epoch > n.epoch && !n.faults.AnyEpoch }

// isNewest reports whether an epoch is the newest that the node knows.
func (n *Node) isNewest(epoch uint64) bool { return epoch == n.epoch || n.faults.AnyEpoch }

// acksWhileLoading reports whether a replica acknowledges before a full resynchronisation is complete. The rule: it
// does not.
func (n *Node) acksWhileLoading() bool { return n.faults.AckEarly }

// counts reports whether an acknowledgement is of this master's epoch.
func (n *Node) counts(a Ack) bool { return a.Epoch == n.master.epoch || n.faults.OldAck }

// inheritsAcks reports whether acknowledgements of one incarnation count for the next one. The rule: they do not.
func (n *Node) inheritsAcks() bool { return n.faults.AnyIncarnation }

// leaseStart returns the instant from which an acknowledgement gives a lease: when this master sent the acknowledged
// stamp.
func (n *Node) leaseStart(now Time, a Ack) Time {
	if n.faults.LeaseFromArrival {
		return now
	}
	return a.Sent
}

// countsAddition reports whether a member counts while its Expand is in flight.
func (n *Node) countsAddition() bool { return !n.faults.AddLate }

// countsRemoval reports whether a member counts while its Shrink is in flight.
func (n *Node) countsRemoval() bool { return !n.faults.RemoveEarly }

// mayCommit reports whether k+1 members are in sync.
func (n *Node) mayCommit() bool { return n.shard.Enough(len(n.shard.InSync)) || n.faults.CommitBelow }

// gaveUpLease reports whether the lease was given up for a hand-over.
func (n *Node) gaveUpLease() bool { return n.master.released && !n.faults.LeaseKept }

// promisers returns the members whose promises a lease needs: the same that a commit needs.
func (n *Node) promisers() []directory.Member {
	if n.faults.LeaseWithoutAddition {
		return n.shard.InSync
	}
	return n.counted()
}

// suffice reports whether a number of fresh members is at least k+1.
func (n *Node) suffice(members int) bool { return n.shard.Enough(members) || n.faults.ShrinkBelow }

// inFlight reports whether a proposal is in flight, which excludes another one.
func (n *Node) inFlight() bool { return n.master.proposal != nil && !n.faults.TwoProposals }

// givesUp reports whether the proposal in flight is over although no state says so. The rule: it never is.
func (n *Node) givesUp(now Time) bool {
	return n.faults.GiveUpByTime && n.master.proposal != nil && now-n.master.proposed > n.conf.Lag/2
}
