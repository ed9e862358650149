package directory

import (
	"fmt"
	"slices"
)

// Kind is the kind of a command.
type Kind uint8

// The commands. Each comment names the fields of Command that it reads. Expand, Shrink, Promote, SetK and Recover also name the
// Shard, and the Epoch and the Version that the proposer has seen: they are refused (Stale) if those are not the present ones.
const (
	// AddNode adds a node, before its first Register: Node, Address, Voter, Data. Adding it again changes nothing.
	AddNode Kind = iota + 1
	// Create makes a shard in epoch 1: Shard, Node (the master), Members (in sync, with data that is the same), K.
	Create
	// Register is a node's at each start, before it does anything else: Node, Incarnation, Process, Level, Kept. A greater
	// incarnation leaves all in-sync sets. The same one is for the process that has registered it, and for a later process
	// of level Disk that proves that it has lost nothing (Kept).
	Register
	// Expand is a master's: Node and Incarnation join the in-sync set. The incarnation must be the registered one.
	Expand
	// Shrink is a master's: Node and Incarnation leave the in-sync set, if k+1 others remain.
	Shrink
	// Promote makes Node, which is in sync, the master of the next epoch. With Drop the old master leaves the in-sync set in
	// the same step, if k+1 members remain.
	Promote
	// SetK changes K, at most to the number of members in sync minus one.
	SetK
	// RemoveNode removes Node from the group and from all in-sync sets. It is refused for a master, and for one of the last k+1.
	RemoveNode
	// Recover makes Node the master of the next epoch though it is not in sync, and alone in sync. With AcceptLoss only.
	Recover
)

// Command is an entry of the group's log. Kind says which fields count.
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

// Refusal is why a command changed nothing, or 0.
type Refusal uint8

// The refusals.
const (
	_             Refusal = iota
	Stale                 // the epoch or the version is not the present one
	Unknown               // there is no such node or shard, or the command itself is none
	Exists                // the node's ID is or was another node's; the shard exists
	OldMember             // the incarnation is not the registered one; of a Register: it is older, or another process has it
	NotInSync             // the node is not in sync
	AlreadyInSync         // it is in sync
	TooFew                // fewer than k+1 members would remain
	IsMaster              // the node is the master of a shard
	NoData                // the node is a witness
	LossRefused           // Recover without AcceptLoss
)

// Error returns the refusal as a sentence for an operator.
func (r Refusal) Error() string {
	texts := [...]string{Stale: "the shard has changed since: its epoch or version is another", Unknown: "no such node, shard or command",
		Exists: "it exists, or a node that was removed had this id", OldMember: "the node has registered another incarnation",
		NotInSync: "the node is not in sync", AlreadyInSync: "the node is in sync already",
		TooFew: "fewer than k+1 members would remain in sync", IsMaster: "the node is the master: promote another one before",
		NoData: "the node is a witness, without data", LossRefused: "it may lose acknowledged writes: accept the loss to do it"}
	if r == 0 || int(r) >= len(texts) {
		return fmt.Sprintf("refusal %d", uint8(r))
	}
	return texts[r]
}

// Answer is the outcome of a command.
type Answer struct {
	Refused Refusal // 0: it was applied
	Node    Node    // as it is after the command, if there is one that the command names
	Shards  []Shard // as they are after the command: the one that it names, or all for AddNode, Register and RemoveNode
}

// Apply applies a command and returns its answer. It costs O(shards * members). A command that was refused leaves everything as it
// is, with one exception: if it named the present epoch and version of its shard, the version is raised. Thus a proposer that
// sees a greater version than it named knows that its command is over, and can never be applied later.
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

// change applies a rule to the shard that a command names: compare and set.
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

// register is the rule of restarts. A node that has lost its files, and with them the number of its incarnation, registers any
// number: it is refused, and the answer's Node has the number to exceed. Process keeps two processes of one node from taking the
// same number: the later one would count as what the earlier one had acknowledged.
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

// leave takes a node out of all in-sync sets.
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
