package directory

import (
	"fmt"
	"slices"
)

// Kind is the kind of a command.
type Kind uint8

// The commands. Each comment names the fields of Command that the command reads. Expand, Shrink, Promote, SetK and
// Recover also read Shard, Epoch and Version, the state that the proposer has seen; they are refused (Stale) if the
// epoch or the version has changed.
const (
	// AddNode adds a node before its first Register: Node, Address, Voter, Data. Adding the same node again changes
	// nothing.
	AddNode Kind = iota + 1
	// Create creates a shard in epoch 1: Shard, Node (the master), Members (the in-sync set, which has equal data),
	// K.
	Create
	// Register is proposed by each node when it starts, before it does anything else: Node, Incarnation, Process,
	// Level, Kept. A greater incarnation takes the node out of all in-sync sets. The node stays in them if it
	// registers its present incarnation again: the same process may do so, and a later process of level Disk that
	// proves that it has lost nothing (Kept).
	Register
	// Expand is proposed by the master: Node and Incarnation join the in-sync set. The incarnation must be the
	// registered one.
	Expand
	// Shrink is proposed by the master: Node and Incarnation leave the in-sync set, if k+1 members remain.
	Shrink
	// Promote makes Node, which must be in sync, the master of the next epoch. With Drop the old master leaves the
	// in-sync set in the same step, if k+1 members remain.
	Promote
	// SetK changes K. A greater K must be at most the number of members in sync minus one.
	SetK
	// RemoveNode removes Node from the group and from all in-sync sets. It is refused for a master, and if fewer than
	// k+1 members would remain.
	RemoveNode
	// Recover makes Node, although it is not in sync, the master of the next epoch and the only member in sync. It
	// needs AcceptLoss.
	Recover
)

// Command is an entry of the group's log. Kind determines which fields it uses.
type Command struct {
	Kind           Kind
	Shard          ShardID
	Epoch, Version uint64
	Node           NodeID
	Incarnation    uint64
	Process        uint64
	K              int
	Level          SyncLevel
	Kept           bool
	Drop           bool
	AcceptLoss     bool
	Voter, Data    bool
	Address        string
	Members        []Member
}

// Member returns the member that the command names.
func (c Command) Member() Member { return Member{c.Node, c.Incarnation} }

// Refusal is the reason for which a command changed nothing; 0 means that it was applied.
type Refusal uint8

// The refusals.
const (
	_             Refusal = iota
	Stale                 // the epoch or the version has changed
	Unknown               // the node, the shard or the kind of command does not exist
	Exists                // the shard exists, or the node's ID is or was in use
	OldMember             // the incarnation is not the registered one; for a Register: it is older, or another process has registered it
	NotInSync             // the node is not in sync
	AlreadyInSync         // the node is in sync
	TooFew                // fewer than k+1 members would remain
	IsMaster              // the node is the master of a shard
	NoData                // the node is a witness
	LossRefused           // Recover without AcceptLoss
)

// Error returns the refusal as a sentence for an operator.
func (r Refusal) Error() string {
	texts := [...]string{Stale: "the shard has changed: the command names an older version", Unknown: "no such node, shard or command",
		Exists: "it exists, or a node that was removed had this id", OldMember: "the node has registered another incarnation",
		NotInSync: "the node is not in sync", AlreadyInSync: "the node is in sync already",
		TooFew: "fewer than k+1 members would remain in sync", IsMaster: "the node is the master: promote another one before",
		NoData: "the node is a witness, without data", LossRefused: "the command may lose acknowledged writes: accept the loss to run it"}
	if r == 0 || int(r) >= len(texts) {
		return fmt.Sprintf("refusal %d", uint8(r))
	}
	return texts[r]
}

// Answer is the outcome of a command.
type Answer struct {
	Refused Refusal // 0: it was applied
	Node    Node    // the node that the command names, as it is after the command; zero if there is none
	Shards  []Shard // the states after the command: of the shard that it names, or of all shards for AddNode, Register and RemoveNode
}

// Apply applies a command and returns its answer. It costs O(shards * members). A refused command changes nothing but
// one thing: if it named the present epoch and version of its shard, the version rises. So a proposer that sees a
// greater version than it named knows that its command is over and can never be applied later.
func (d *Directory) Apply(c Command) Answer {
	var a Answer
	switch c.Kind {
	case AddNode:
		a.Refused, a.Shards = d.addNode(c), d.Shards()
	case Register:
		a.Refused, a.Shards = d.register(c), d.Shards()
	case RemoveNode:
		a.Refused, a.Shards = d.removeNode(c), d.Shards()
	case Create:
		a.Refused = d.create(c)
		a.Shards = d.named(c)
	case Expand:
		a = d.change(c, d.expand)
	case Shrink:
		a = d.change(c, d.shrink)
	case Promote:
		a = d.change(c, d.promote)
	case SetK:
		a = d.change(c, d.setK)
	case Recover:
		a = d.change(c, d.recover)
	default:
		a.Refused = Unknown
	}
	a.Node, _ = d.Node(c.Node)
	return a
}

// named returns the shard that a command names, if there is one.
func (d *Directory) named(c Command) []Shard {
	s, ok := d.Shard(c.Shard)
	if !ok {
		return nil
	}
	return []Shard{s}
}

// change applies a rule to the shard that a command names, if the shard still has the epoch and version of the
// command.
func (d *Directory) change(c Command, rule func(*Shard, Command) Refusal) Answer {
	at, ok := d.shard(c.Shard)
	if !ok {
		return Answer{Refused: Unknown}
	}
	s := d.shards[at]
	if !d.agrees(s, c) {
		return Answer{Refused: Stale, Shards: d.named(c)}
	}
	refused := rule(&s, c)
	if refused != 0 {
		s = d.shards[at]
	}
	if refused == 0 || d.refusalsCount() {
		s.Version++
	}
	d.shards[at] = s
	return Answer{Refused: refused, Shards: d.named(c)}
}

func (d *Directory) expand(s *Shard, c Command) Refusal {
	n, ok := d.Node(c.Node)
	m := d.added(n, c)
	switch {
	case !ok:
		return Unknown
	case !n.Data:
		return NoData
	case !d.present(m):
		return OldMember
	case s.In(m):
		return AlreadyInSync
	}
	s.InSync = s.with(m)
	return 0
}

func (d *Directory) shrink(s *Shard, c Command) Refusal {
	switch {
	case !s.In(c.Member()):
		return NotInSync
	case c.Node == s.Master.Node:
		return IsMaster
	case !d.suffice(s, len(s.InSync)-1):
		return TooFew
	}
	s.InSync = s.without(c.Node)
	return 0
}

func (d *Directory) promote(s *Shard, c Command) Refusal {
	m, ok := d.candidate(s, c.Node)
	if !ok {
		return NotInSync
	}
	if c.Drop && s.Master.Node != m.Node {
		if rest := s.without(s.Master.Node); s.Enough(len(rest)) {
			s.InSync = rest
		}
	}
	s.Epoch++
	s.Master = m
	return 0
}

func (d *Directory) setK(s *Shard, c Command) Refusal {
	if c.K < 0 || c.K > s.K && c.K > len(s.InSync)-1 {
		return TooFew
	}
	s.K = c.K
	return 0
}

func (d *Directory) recover(s *Shard, c Command) Refusal {
	n, ok := d.Node(c.Node)
	switch {
	case !c.AcceptLoss:
		return LossRefused
	case !ok:
		return Unknown
	case !n.Data:
		return NoData
	case n.Incarnation == 0:
		return OldMember
	}
	s.Epoch++
	s.Master = Member{n.ID, n.Incarnation}
	s.InSync = []Member{s.Master}
	s.Losses++
	return 0
}

func (d *Directory) addNode(c Command) Refusal {
	at, ok := d.node(c.Node)
	switch {
	case ok && d.nodes[at].Address == c.Address && d.nodes[at].Voter == c.Voter && d.nodes[at].Data == c.Data:
		return 0
	case c.Node == 0 || c.Node <= d.last:
		return Exists
	}
	d.nodes = slices.Insert(d.nodes, at, Node{ID: c.Node, Address: c.Address, Voter: c.Voter, Data: c.Data})
	d.last = c.Node
	return 0
}

func (d *Directory) create(c Command) Refusal {
	at, exists := d.shard(c.Shard)
	s := Shard{ID: c.Shard, Epoch: 1, Version: 1, K: c.K}
	for _, m := range c.Members {
		switch n, ok := d.Node(m.Node); {
		case !ok:
			return Unknown
		case !n.Data:
			return NoData
		case !d.present(m):
			return OldMember
		}
		s.InSync = s.with(m)
	}
	master, ok := s.Member(c.Node)
	switch {
	case exists:
		return Exists
	case !ok:
		return NotInSync
	case c.K < 0:
		return TooFew
	}
	s.Master = master
	d.shards = slices.Insert(d.shards, at, s)
	return 0
}

// register applies a Register. A node that has lost its files no longer knows its incarnation, and registers any
// number; it is refused, and learns from the answer's Node which number to exceed. Process keeps two processes of one
// node from registering the same incarnation: acknowledgements of the earlier one would then count for the later one.
func (d *Directory) register(c Command) Refusal {
	at, ok := d.node(c.Node)
	if !ok || c.Incarnation == 0 {
		return Unknown
	}
	n := &d.nodes[at]
	switch kept := c.Kept && c.Level == Disk; {
	case d.isLate(*n, c):
		return OldMember
	case c.Incarnation == n.Incarnation && c.Process != n.Process && !kept:
		return OldMember
	case c.Incarnation != n.Incarnation:
		d.leave(c.Node)
	}
	n.Incarnation, n.Process, n.Level = c.Incarnation, c.Process, c.Level
	return 0
}

// leave removes a node from all in-sync sets.
func (d *Directory) leave(id NodeID) {
	for i := range d.shards {
		if s := &d.shards[i]; len(s.without(id)) < len(s.InSync) {
			s.InSync = s.without(id)
			s.Version++
		}
	}
}

func (d *Directory) removeNode(c Command) Refusal {
	at, ok := d.node(c.Node)
	if !ok {
		return Unknown
	}
	for _, s := range d.shards {
		_, in := s.Member(c.Node)
		switch {
		case s.Master.Node == c.Node:
			return IsMaster
		case in && !s.Enough(len(s.InSync)-1):
			return TooFew
		}
	}
	d.leave(c.Node)
	d.nodes = slices.Delete(d.nodes, at, at+1)
	return 0
}
