// Package directory is the state that the voters of a group agree on: the nodes of the group, and for each shard its
// epoch, its master and its in-sync set.
//
//	Register, Expand, Shrink, Promote ... ── raft's log ──▶ Apply ──▶ Answer      the same on each voter
//	                                                          │
//	                                          nodes   id, incarnation, address, level
//	                                          shards  epoch, version, master, in-sync set, k
//
// The package is a state machine without clock, socket or randomness, so each voter that applies the same commands
// has the same state. Raft decides their order; internal/group/shard decides which commands a master proposes. No
// client data passes through it. docs/design/group.md gives the reasons for the rules.
//
// Invariants, which Check verifies:
//
//   - A member of an in-sync set has the incarnation that its node has registered.
//   - The epoch and the version of a shard only grow; each change of a shard raises its version.
//   - The ID of a removed node is not used again.
//
// Start reading at Directory.Apply.
package directory

import (
	"cmp"
	"fmt"
	"slices"
)

// NodeID identifies a node of the group. It is never 0, and the ID of a removed node is not used again.
type NodeID uint32

// ShardID identifies a shard.
type ShardID uint32

// SyncLevel is the place where a member holds the writes that it acknowledges.
type SyncLevel uint8

// The levels. Memory: the group treats a restart as a loss of the data. Disk: a member syncs writes before it
// acknowledges them.
const (
	Memory SyncLevel = iota
	Disk
)

// Member is one incarnation of a node. A node that lost data, or cannot prove that it did not, comes back as a new
// member.
type Member struct {
	Node        NodeID
	Incarnation uint64
}

// String returns the member as messages show it: node.incarnation.
func (m Member) String() string { return fmt.Sprintf("%d.%d", m.Node, m.Incarnation) }

// Node is a node of the group, as the directory knows it.
type Node struct {
	ID          NodeID
	Incarnation uint64 // the newest registered one; 0 before the first Register
	Process     uint64 // the random number of the process that registered Incarnation
	Address     string // host:port of the group's port
	Voter       bool   // it takes part in raft
	Data        bool   // it can be a member of a shard; false for a witness
	Level       SyncLevel
}

// Shard is the state of a part of the data: its master and its in-sync set.
type Shard struct {
	ID      ShardID
	Epoch   uint64   // raised by each Promote; one master per epoch
	Version uint64   // raised by each change, and by each refusal of a command that named it
	Master  Member   // of this epoch
	InSync  []Member // the members that hold all acknowledged writes, sorted by node, one per node; read-only
	K       int      // the number of members besides the master that must hold a write before it is acknowledged
	Losses  uint64   // the number of times that Recover accepted a loss of data
}

// In reports whether a member is in sync. O(members).
func (s Shard) In(m Member) bool { return slices.Contains(s.InSync, m) }

// Member returns the incarnation of a node that is in sync. O(members).
func (s Shard) Member(id NodeID) (m Member, ok bool) {
	i := slices.IndexFunc(s.InSync, func(m Member) bool { return m.Node == id })
	if i < 0 {
		return Member{}, false
	}
	return s.InSync[i], true
}

// Enough reports whether n members in sync suffice to acknowledge writes: the master and K others.
func (s Shard) Enough(n int) bool { return n >= s.K+1 }

// without returns a copy of the in-sync set without a node.
func (s Shard) without(id NodeID) []Member {
	return slices.DeleteFunc(slices.Clone(s.InSync), func(m Member) bool { return m.Node == id })
}

// with returns a copy of the in-sync set with m, which replaces other incarnations of its node.
func (s Shard) with(m Member) []Member {
	all := append(s.without(m.Node), m)
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// Directory is the state of the group. It is not safe for concurrent use. Values that it has returned never change:
// Apply works on copies.
type Directory struct {
	nodes  []Node  // by ID
	shards []Shard // by ID
	last   NodeID  // the highest ID ever used
	faults Faults
}

// New returns an empty directory.
func New() *Directory { return &Directory{} }

// Node returns the node with an ID. O(log nodes).
func (d *Directory) Node(id NodeID) (n Node, ok bool) {
	i, ok := d.node(id)
	if !ok {
		return Node{}, false
	}
	return d.nodes[i], true
}

// Removed reports whether a node was removed. Nodes are added in the order of their IDs, so an ID up to the highest
// one that has no node belonged to a removed node.
func (d *Directory) Removed(id NodeID) bool {
	_, ok := d.node(id)
	return !ok && id != 0 && id <= d.last
}

// Shard returns the shard with an ID. O(log shards).
func (d *Directory) Shard(id ShardID) (s Shard, ok bool) {
	i, ok := d.shard(id)
	if !ok {
		return Shard{}, false
	}
	return d.shards[i], true
}

// Nodes returns a copy of all nodes, by ID.
func (d *Directory) Nodes() []Node { return slices.Clone(d.nodes) }

// Shards returns a copy of all shards, by ID. The in-sync sets in it are read-only.
func (d *Directory) Shards() []Shard { return slices.Clone(d.shards) }

// node returns the index of a node, or the index at which to insert it.
func (d *Directory) node(id NodeID) (at int, ok bool) {
	return slices.BinarySearchFunc(d.nodes, id, func(n Node, id NodeID) int { return cmp.Compare(n.ID, id) })
}

// shard returns the index of a shard, or the index at which to insert it.
func (d *Directory) shard(id ShardID) (at int, ok bool) {
	return slices.BinarySearchFunc(d.shards, id, func(s Shard, id ShardID) int { return cmp.Compare(s.ID, id) })
}

// present reports whether m has the incarnation that its node has registered.
func (d *Directory) present(m Member) bool {
	n, ok := d.Node(m.Node)
	return ok && m.Incarnation != 0 && n.Incarnation == m.Incarnation
}

// Check verifies the invariants, and returns the first violation.
func (d *Directory) Check() error {
	for i, n := range d.nodes {
		switch {
		case n.ID == 0 || n.ID > d.last:
			return fmt.Errorf("directory: node %d has an ID outside of 1 to %d, the highest ID so far", n.ID, d.last)
		case i > 0 && d.nodes[i-1].ID >= n.ID:
			return fmt.Errorf("directory: node %d comes after node %d", n.ID, d.nodes[i-1].ID)
		case n.Level > Disk:
			return fmt.Errorf("directory: node %d has level %d, want 0 or 1", n.ID, n.Level)
		}
	}
	for i, s := range d.shards {
		if i > 0 && d.shards[i-1].ID >= s.ID {
			return fmt.Errorf("directory: shard %d comes after shard %d", s.ID, d.shards[i-1].ID)
		}
		if err := d.checkShard(s); err != nil {
			return fmt.Errorf("directory: shard %d: %w", s.ID, err)
		}
	}
	return nil
}

func (d *Directory) checkShard(s Shard) error {
	master, ok := d.Node(s.Master.Node)
	switch {
	case s.Epoch == 0 || s.Version < s.Epoch:
		return fmt.Errorf("the shard has epoch %d and version %d, want an epoch from 1 to the version", s.Epoch, s.Version)
	case !ok || !master.Data || s.Master.Incarnation > master.Incarnation:
		return fmt.Errorf("master %v is not a node with data, or has not registered", s.Master)
	case s.K < 0:
		return fmt.Errorf("k is %d, want at least 0", s.K)
	}
	for i, m := range s.InSync {
		n, _ := d.Node(m.Node)
		switch {
		case i > 0 && s.InSync[i-1].Node >= m.Node:
			return fmt.Errorf("member %v comes after %v", m, s.InSync[i-1])
		case !d.present(m) || !n.Data:
			return fmt.Errorf("member %v is in sync, but node %d has registered incarnation %d with data %v", m, m.Node, n.Incarnation, n.Data)
		}
	}
	return nil
}
