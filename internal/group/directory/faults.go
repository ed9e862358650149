package directory

// Faults switch rules off. They are for the simulator alone (internal/group/sim), which must find each of them: a rule whose
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
