package directory

// This file has the rules that Faults can switch off, one method for each. A server has no faults.

// Faults switch rules off. Only the simulator uses them (internal/testing/groupsim). It must find each fault: a rule
// whose absence it does not notice is not tested.
type Faults struct {
	NoCompare      bool // commands are applied whatever epoch and version they name
	ShrinkBelow    bool // Shrink may leave fewer than k+1 members
	PromoteOutside bool // Promote accepts a node that is not in sync
	ExpandAny      bool // Expand adds the registered incarnation, not the one that the command names
	LateRegister   bool // a Register of an older incarnation is applied
	SilentRefusal  bool // a refusal does not raise the version
}

// Plant sets the faults.
func (d *Directory) Plant(f Faults) { d.faults = f }

// agrees reports whether a command names the present epoch and version of its shard.
func (d *Directory) agrees(s Shard, c Command) bool {
	return s.Epoch == c.Epoch && s.Version == c.Version || d.faults.NoCompare
}

// refusalsCount reports whether a refusal raises the version, by which the proposer learns that its command is over.
func (d *Directory) refusalsCount() bool { return !d.faults.SilentRefusal }

// added returns the member that an Expand adds: the incarnation that the command names.
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

// candidate returns the member that a Promote names, which must be in sync.
func (d *Directory) candidate(s *Shard, id NodeID) (Member, bool) {
	m, ok := s.Member(id)
	if !ok && d.faults.PromoteOutside {
		n, known := d.Node(id)
		return Member{n.ID, n.Incarnation}, known && n.Data
	}
	return m, ok
}

// isLate reports whether a Register names an older incarnation than the registered one.
func (d *Directory) isLate(n Node, c Command) bool {
	return c.Incarnation < n.Incarnation && !d.faults.LateRegister
}
