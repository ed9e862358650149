package directory

// This file has the rules that a Fault can switch off, one method each. A server has no faults.

// Faults switch rules off. They are for the simulator alone (internal/testing/groupsim), which must find each of them: a rule whose
// absence it does not notice is not tested.
type Faults struct {
	NoCompare      bool // a command is applied whatever epoch and version it names
	ShrinkBelow    bool // Shrink leaves fewer than k+1 members
	PromoteOutside bool // Promote takes a node that is not in sync
	ExpandAny      bool // Expand adds the incarnation that is registered, not the one that it names
	LateRegister   bool // a Register of an older incarnation counts
	SilentRefusal  bool // a refusal does not raise the version
}

// Plant sets the faults.
func (d *Directory) Plant(f Faults) { d.faults = f }

// agrees reports whether a command names the present epoch and version of its shard: compare and set.
func (d *Directory) agrees(s Shard, c Command) bool {
	return s.Epoch == c.Epoch && s.Version == c.Version || d.faults.NoCompare
}

// refusalsCount reports whether a refusal raises the version, so that its proposer learns that the command is over.
func (d *Directory) refusalsCount() bool { return !d.faults.SilentRefusal }

// added returns the member that an Expand adds: the incarnation that it names.
func (d *Directory) added(n Node, c Command) Member {
	if d.faults.ExpandAny {
		return Member{c.Node, n.Incarnation}
	}
	return c.Member()
}

// suffice reports whether a number of members is at least k+1.
func (d *Directory) suffice(s *Shard, members int) bool {
	return s.Enough(members) || d.faults.ShrinkBelow
}

// candidate returns the member that a Promote names: one in sync.
func (d *Directory) candidate(s *Shard, id NodeID) (Member, bool) {
	m, ok := s.Member(id)
	if !ok && d.faults.PromoteOutside {
		n, known := d.Node(id)
		return Member{n.ID, n.Incarnation}, known && n.Data
	}
	return m, ok
}

// isLate reports whether a Register comes after one of a later incarnation of its node.
func (d *Directory) isLate(n Node, c Command) bool {
	return c.Incarnation < n.Incarnation && !d.faults.LateRegister
}
