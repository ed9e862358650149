package shard

// Faults switch rules off. They are for the simulator alone (internal/group/sim), which must find each of them: a rule whose
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
	ByOffset             bool // a resynchronisation is partial if the offset is there, of whatever history
}

// Plant sets the faults, before the first Step.
func (n *Node) Plant(f Faults) {
	n.faults = f
	if f.ForgetPromise {
		n.promise = never
	}
}
