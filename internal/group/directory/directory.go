// Package directory is what the voters of a group agree on: which nodes there are, and for each shard the master of which
// epoch it has and which members are in sync.
//
//	Register, Expand, Shrink, Promote ... ── raft's log ──▶ Apply ──▶ Answer      the same on each voter
//	                                                          │
//	                                          nodes   id, incarnation, address, level
//	                                          shards  epoch, version, master, in-sync set, k
//
// The package is a state machine: it has no clock, no socket and no randomness, so that each voter that applies the same
// commands has the same state. Raft decides their order; internal/group/shard decides which commands a master proposes. No
// data of clients passes through it. docs/design/group.md says why the rules are as they are.
//
// Invariants, which Check verifies:
//
//   - A member of an in-sync set is of the incarnation that its node has registered.
//   - The epoch and the version of a shard only grow; each change of a shard raises its version.
//   - The id of a node that was removed is not used again.
//
// Start reading at Directory.Apply.
package directory

import (
	"cmp"
	"fmt"
	"slices"
)

// NodeID names a node of the group. It is never 0, and a removed node's is not used again.
type NodeID uint32

// ShardID names a shard.
type ShardID uint32

// SyncLevel says where a member has what it acknowledges.
type SyncLevel uint8

// The levels. Memory: a restart loses the data, as far as the group is concerned. Disk: all is synced before it is acknowledged.
const (
	Memory SyncLevel = iota
	Disk
)

// Member is a node in one of its incarnations. A node that lost data, or cannot prove that it did not, comes back as another member.
type Member struct {
	Node        NodeID
	Incarnation uint64
}

// String returns the member as messages show it: node.incarnation.
func (m Member) String() string { return fmt.Sprintf("%d.%d", m.Node, m.Incarnation) }

// Node is a member of the group.
type Node struct {
	ID          NodeID
	Incarnation uint64 // the newest that has registered; 0 before the first Register
	Process     uint64 // a random number of the process that registered it, see Register
	Address     string // of the group's port
	Voter       bool   // takes part in raft
	Data        bool   // can be a member of a shard; a witness cannot
	Level       SyncLevel
}

// Shard says who is in charge of a part of the data.
type Shard struct {
	ID      ShardID
	Epoch   uint64   // raised by each Promote; one master an epoch
	Version uint64   // raised by each change, and by each command that was refused at it
	Master  Member   // of this epoch
	InSync  []Member // hold all that was acknowledged; sorted by node, one for each node; not to be written to
	K       int      // how many members besides the master must hold what is acknowledged
	Losses  uint64   // how many times Recover accepted a loss of data
}

// In reports whether a member is in sync. O(members).
func (s Shard) In(m Member) bool { return slices.Contains(s.InSync, m) }

// Member returns the member of the in-sync set that is an incarnation of a node. O(members).
func (s Shard) Member(id NodeID) (m Member, ok bool) {
	i := slices.IndexFunc(s.InSync, func(m Member) bool { return m.Node == id })
	if i < 0 {
		return Member{}, false
	}
	return s.InSync[i], true
}

// Enough reports whether n members can hold what is acknowledged: the master and K others.
func (s Shard) Enough(n int) bool { return n >= s.K+1 }

// without returns the in-sync set without a node, in memory of its own.
func (s Shard) without(id NodeID) []Member {
	return slices.DeleteFunc(slices.Clone(s.InSync), func(m Member) bool { return m.Node == id })
}

// with returns the in-sync set with a member in the place of other incarnations of its node, in memory of its own.
func (s Shard) with(m Member) []Member {
	all := append(s.without(m.Node), m)
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// Directory is the state. It is not safe for concurrent use. What it hands out stays as it is: Apply changes copies.
type Directory struct {
	nodes  []Node  // by ID
	shards []Shard // by ID
	last   NodeID  // the highest ID that a node ever had
	faults Faults
}

// New returns an empty directory.
func New() *Directory { return &Directory{} }

// Node returns a node. O(log nodes).
func (d *Directory) Node(id NodeID) (n Node, ok bool) {
	i, ok := d.node(id)
	if !ok {
		return Node{}, false
	}
	return d.nodes[i], true
}

// Removed reports whether a node was removed: its ID is one that nodes have had, and nodes are added in the order of their IDs.
func (d *Directory) Removed(id NodeID) bool {
	_, ok := d.node(id)
	return !ok && id != 0 && id <= d.last
}

// Shard returns a shard. O(log shards).
func (d *Directory) Shard(id ShardID) (s Shard, ok bool) {
	i, ok := d.shard(id)
	if !ok {
		return Shard{}, false
	}
	return d.shards[i], true
}

// Nodes returns all nodes by ID, in memory of the caller's.
func (d *Directory) Nodes() []Node { return slices.Clone(d.nodes) }

// Shards returns all shards by ID. The slice is the caller's, the in-sync sets in it are not to be written to.
func (d *Directory) Shards() []Shard { return slices.Clone(d.shards) }

// node returns the index of a node, or where it would be.
func (d *Directory) node(id NodeID) (at int, ok bool) {
	return slices.BinarySearchFunc(d.nodes, id, func(n Node, id NodeID) int { return cmp.Compare(n.ID, id) })
}

// shard returns the index of a shard, or where it would be.
func (d *Directory) shard(id ShardID) (at int, ok bool) {
	return slices.BinarySearchFunc(d.shards, id, func(s Shard, id ShardID) int { return cmp.Compare(s.ID, id) })
}

// present reports whether a member is of the incarnation that its node has registered.
func (d *Directory) present(m Member) bool {
	n, ok := d.Node(m.Node)
	return ok && m.Incarnation != 0 && n.Incarnation == m.Incarnation
}

// Check verifies the invariants, and returns what is wrong.
func (d *Directory) Check() error {
	for i, n := range d.nodes {
		switch {
		case n.ID == 0 || n.ID > d.last:
			return fmt.Errorf("directory: node %d is not from 1 to %d, the highest ID so far", n.ID, d.last)
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
		return fmt.Errorf("epoch %d and version %d, want an epoch from 1 to the version", s.Epoch, s.Version)
	case !ok || !master.Data || s.Master.Incarnation > master.Incarnation:
		return fmt.Errorf("its master %v is not a node with data, or has not registered", s.Master)
	case s.K < 0:
		return fmt.Errorf("k is %d, want at least 0", s.K)
	}
	for i, m := range s.InSync {
		n, _ := d.Node(m.Node)
		switch {
		case i > 0 && s.InSync[i-1].Node >= m.Node:
			return fmt.Errorf("member %v comes after %v", m, s.InSync[i-1])
		case !d.present(m) || !n.Data:
			return fmt.Errorf("member %v is in sync, and node %d has registered incarnation %d, data %v", m, m.Node, n.Incarnation, n.Data)
		}
	}
	return nil
}
