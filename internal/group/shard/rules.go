package shard

import "github.com/ebbdb/ebb/internal/group/directory"

// This file has the rules that a Fault can switch off, one method each. A server has no faults.

// Faults switch rules off. They are for the simulator alone (internal/testing/groupsim), which must find each of them: a rule whose
// absence it does not notice is not tested.
type Faults struct {
	AddLate              bool // a member is counted when it is in sync, not from before its Expand is proposed
	RemoveEarly          bool // a member is not counted from when its Shrink is proposed
	ShrinkBelow          bool // a Shrink is proposed that leaves fewer than k+1 fresh members
	OldAck               bool // an acknowledgement of another epoch counts
	AnyIncarnation       bool // what an incarnation has acknowledged counts for the next one
	AnyEpoch             bool // a greeting of a higher epoch is answered
	CommitBelow          bool // it commits with fewer than k+1 members in sync
	LeaseFromArrival     bool // the lease counts from when an acknowledgement arrives
	LeaseWithoutAddition bool // the lease does not need the member whose Expand is not over
	LeaseKept            bool // a hand-over does not give the lease up
	IgnorePromise        bool // a promoted node serves at once
	NoFloor              bool // a promoted node takes its log for committed
	TwoProposals         bool // a proposal is made while another one is in flight
	GiveUpByTime         bool // a proposal is over after a time
	OldEpoch             bool // a restarted master goes on in its epoch
	ForgetPromise        bool // a node that restarts counts no promise
	AckEarly             bool // a replica acknowledges before a full resynchronisation is complete
}

// Plant sets the faults, before the first Step.
func (n *Node) Plant(f Faults) {
	n.faults = f
	if f.ForgetPromise {
		n.promise = never
	}
}

// mayLead reports whether the node may be the master of an epoch: a later one than that in its Register's answer.
func (n *Node) mayLead(epoch uint64) bool { return epoch > n.since || n.faults.OldEpoch }

// isFree reports whether the node's promises to other masters are over.
func (n *Node) isFree(now Time) bool { return now >= n.promise || n.faults.IgnorePromise }

// committedAtFirst returns what a master takes for committed when it begins to serve: nothing.
func (n *Node) committedAtFirst() uint64 {
	if n.faults.NoFloor {
		return n.master.floor
	}
	return n.master.committed
}

// isLater reports whether an epoch is later than the newest that the node knows.
func (n *Node) isLater(epoch uint64) bool { return epoch > n.epoch && !n.faults.AnyEpoch }

// isNewest reports whether an epoch is the newest that the node knows.
func (n *Node) isNewest(epoch uint64) bool { return epoch == n.epoch || n.faults.AnyEpoch }

// acksWhileLoading reports whether a replica acknowledges before a full resynchronisation is complete. It does not.
func (n *Node) acksWhileLoading() bool { return n.faults.AckEarly }

// counts reports whether an acknowledgement counts: one of this master's epoch.
func (n *Node) counts(a Ack) bool { return a.Epoch == n.master.epoch || n.faults.OldAck }

// inheritsAcks reports whether a new incarnation counts as what the one before has acknowledged. It does not.
func (n *Node) inheritsAcks() bool { return n.faults.AnyIncarnation }

// leaseStart returns the instant from which an acknowledgement gives a lease: when this master sent what is acknowledged.
func (n *Node) leaseStart(now Time, a Ack) Time {
	if n.faults.LeaseFromArrival {
		return now
	}
	return a.Sent
}

// countsAddition reports whether a member whose Expand is proposed is counted before it is in sync.
func (n *Node) countsAddition() bool { return !n.faults.AddLate }

// countsRemoval reports whether a member whose Shrink is proposed is counted until a state says otherwise.
func (n *Node) countsRemoval() bool { return !n.faults.RemoveEarly }

// mayCommit reports whether k+1 members are in sync.
func (n *Node) mayCommit() bool { return n.shard.Enough(len(n.shard.InSync)) || n.faults.CommitBelow }

// gaveUpLease reports whether a hand-over has given the lease up.
func (n *Node) gaveUpLease() bool { return n.master.released && !n.faults.LeaseKept }

// promisers returns the members whose promises a lease needs: those that a commit needs.
func (n *Node) promisers() []directory.Member {
	if n.faults.LeaseWithoutAddition {
		return n.shard.InSync
	}
	return n.counted()
}

// suffice reports whether a number of fresh members is at least k+1.
func (n *Node) suffice(members int) bool { return n.shard.Enough(members) || n.faults.ShrinkBelow }

// inFlight reports whether a proposal is in flight, so that there can be no other.
func (n *Node) inFlight() bool { return n.master.proposal != nil && !n.faults.TwoProposals }

// givesUp reports whether the proposal in flight is over though no state says so. It never is.
func (n *Node) givesUp(now Time) bool {
	return n.faults.GiveUpByTime && n.master.proposal != nil && now-n.master.proposed > n.conf.Lag/2
}
