package groupsim

import (
	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
)

// Fault switches off rules of the product's code, or of the simulator's own code that stands for the product's
// callers. A test checks that the simulator finds it.
type Fault struct {
	Directory directory.Faults
	Shard     shard.Faults

	SameIncarnation bool // a node that lost its data registers its old incarnation
	BelieveClean    bool // a node without appendfsync always keeps its incarnation by group.state
	ActUnregistered bool // a node starts from an old state, before its Register is answered
	DropFirst       bool // a full resynchronisation drops the old data before the new data is complete
	ByOffset        bool // a resynchronisation is partial if the offset exists, whatever the history
}

// believes reports whether a node without level disk claims to be at level disk.
func (f Fault) believes() bool { return f.SameIncarnation || f.BelieveClean }

// Planted is a fault that the simulator must find.
type Planted struct {
	Name  string
	Fault Fault
}

// Faults returns a fault for each rule in docs/design/group.md.
func Faults() []Planted {
	of := func(f shard.Faults) Fault { return Fault{Shard: f} }
	in := func(f directory.Faults) Fault { return Fault{Directory: f} }
	return []Planted{
		{"an addition that is not counted before its proposal", of(shard.Faults{AddLate: true})},
		{"a removed member that is not waited for until the Shrink commits", of(shard.Faults{RemoveEarly: true})},
		{"a Shrink below k+1", Fault{Shard: shard.Faults{ShrinkBelow: true}, Directory: directory.Faults{ShrinkBelow: true}}},
		{"a promotion from outside of the in-sync set", in(directory.Faults{PromoteOutside: true})},
		{"an acknowledgement of an old epoch", of(shard.Faults{OldAck: true})},
		{"a new incarnation that counts as the old", Fault{SameIncarnation: true}},
		{"compare-and-set left out", in(directory.Faults{NoCompare: true})},
		{"a commit with fewer than k+1 in sync", of(shard.Faults{CommitBelow: true})},
		{"a lease from the arrival of the acknowledgement", of(shard.Faults{LeaseFromArrival: true})},
		{"a promotion that does not wait for the promise", of(shard.Faults{IgnorePromise: true})},
		{"no floor", of(shard.Faults{NoFloor: true})},
		{"a clean group.state that is believed without appendfsync always", Fault{BelieveClean: true}},
		{"two proposals in flight", of(shard.Faults{TwoProposals: true})},
		{"a lease without the pending addition", of(shard.Faults{LeaseWithoutAddition: true})},
		{"a promise that is forgotten at a restart", of(shard.Faults{ForgetPromise: true})},
		{"a disk master that goes on in its epoch", of(shard.Faults{OldEpoch: true})},
		{"a node that acts before its Register is answered", Fault{ActUnregistered: true}},
		{"an Expand without the incarnation", in(directory.Faults{ExpandAny: true})},
		{"an acknowledgement before the resynchronisation is finished", of(shard.Faults{AckEarly: true})},
		{"a proposal that is given up by time", of(shard.Faults{GiveUpByTime: true})},
		{"a full resynchronisation that drops the old data first", Fault{DropFirst: true}},
		{"an older Register that counts", in(directory.Faults{LateRegister: true})},
		{"a refusal that does not raise the version", in(directory.Faults{SilentRefusal: true})},
		{"an acknowledgement that counts for the next incarnation", of(shard.Faults{AnyIncarnation: true})},
		{"a link to a master of an older epoch", of(shard.Faults{AnyEpoch: true})},
		{"a partial resynchronisation by the offset alone", Fault{ByOffset: true}},
		{"a hand-over that keeps the lease", of(shard.Faults{LeaseKept: true})},
	}
}
