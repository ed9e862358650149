package stream

import (
	"unsafe"

	"github.com/ebbdb/ebb/internal/chunk"
	"github.com/ebbdb/ebb/internal/ordered/btree"
)

// Pending is an entry that was delivered to a consumer and not acknowledged.
type Pending struct {
	ID       ID
	Time     int64  // the instant of the last delivery, ms
	Count    uint32 // deliveries
	Consumer *Consumer
}

// nack is a stored pending entry. A free one has the owner noOwner, and its links in count and id.
type nack struct {
	id    ID
	time  int64
	count uint32
	owner uint32 // number of the consumer
}

const (
	nackShift = 5
	noOwner   = ^uint32(0)
	none      = ^uint32(0)

	// maxConsumers is the number of consumers that the keys of a pending list can distinguish.
	maxConsumers = 1 << 24
)

var _ [1<<nackShift - unsafe.Sizeof(nack{})]struct{}

// pel is the pending list of a group: cells, and two trees of them.
//
//	byID     key: ms of the id                           the whole group
//	byOwner  key: consumer<<40 | ms/4, at most 2^40-1    one consumer after another
//
// The cells decide the order of equal keys. An entry costs 32 bytes for the cell and 12 per tree.
type pel struct {
	cells   chunk.Array
	byID    *btree.Tree
	byOwner *btree.Tree
	free    int    // cells that are free
	unused  uint32 // the first free cell
	probe   nack   // the entry to look for
}

func (l *pel) init(m chunk.Memory) {
	l.cells.Init(m, nackShift)
	l.unused = none
	l.byID = btree.New(m, (*idOrder)(l), true)
	l.byOwner = btree.New(m, (*ownerOrder)(l), true)
}

func (l *pel) cell(ref uint32) *nack { return (*nack)(l.cells.At(ref)) }

// edit is cell for writing.
func (l *pel) edit(ref uint32) *nack { return (*nack)(l.cells.Edit(ref)) }

// size returns the bytes that the list holds.
func (l *pel) size() int { return l.cells.Size() + l.byID.Size() + l.byOwner.Size() }

// idOrder orders by id. The reference none stands for pel.probe.
type idOrder pel

func (o *idOrder) Key(ref uint32) uint64 { return (*pel)(o).cell(ref).id.Ms }

func (o *idOrder) Tie(ref uint32, p btree.Probe) int {
	l := (*pel)(o)
	return l.cell(ref).id.Compare(l.meant(p.Ref).id)
}

func (o *idOrder) Probe(ref uint32) btree.Probe {
	return btree.Probe{Key: (*pel)(o).cell(ref).id.Ms, Ref: ref}
}

// meant returns the nack that a reference stands for.
func (l *pel) meant(ref uint32) *nack {
	if ref == none {
		return &l.probe
	}
	return l.cell(ref)
}

// ownerOrder orders by consumer, then by id.
type ownerOrder pel

func (o *ownerOrder) Key(ref uint32) uint64 { return (*pel)(o).cell(ref).ownerKey() }

func (o *ownerOrder) Tie(ref uint32, p btree.Probe) int {
	l := (*pel)(o)
	a, b := l.cell(ref), l.meant(p.Ref)
	if a.owner != b.owner {
		return int(a.owner) - int(b.owner)
	}
	return a.id.Compare(b.id)
}

func (o *ownerOrder) Probe(ref uint32) btree.Probe {
	return btree.Probe{Key: (*pel)(o).cell(ref).ownerKey(), Ref: ref}
}

func (n *nack) ownerKey() uint64 { return uint64(n.owner)<<40 | min(n.id.Ms>>2, 1<<40-1) }

// idProbe and ownerProbe return a probe for an entry that need not be in the trees.
func (l *pel) idProbe(id ID) btree.Probe {
	l.probe.id = id
	return btree.Probe{Key: id.Ms, Ref: none}
}

func (l *pel) ownerProbe(owner uint32, id ID) btree.Probe {
	l.probe.id, l.probe.owner = id, owner
	return btree.Probe{Key: l.probe.ownerKey(), Ref: none}
}

// find returns the cell of an id, or none. O(log n).
func (l *pel) find(id ID) uint32 {
	rank := l.byID.Rank(l.idProbe(id))
	if rank == l.byID.Len() {
		return none
	}
	if _, ref := l.byID.At(rank); l.cell(ref).id == id {
		return ref
	}
	return none
}

// add adds an id that the list does not have. O(log n).
func (l *pel) add(n nack) error {
	if !l.byID.Reserve() || !l.byOwner.Reserve() {
		return ErrNoMemory
	}
	ref := l.unused
	if ref != none {
		l.unlink(ref)
	} else {
		var ok bool
		if ref, ok = l.cells.Push(); !ok {
			return ErrNoMemory
		}
	}
	*l.edit(ref) = n
	// This cannot fail: the memory was reserved.
	_ = l.byID.Insert((*idOrder)(l).Probe(ref), ref)
	_ = l.byOwner.Insert((*ownerOrder)(l).Probe(ref), ref)
	return nil
}

// give makes another consumer the owner of a cell. O(log n).
func (l *pel) give(ref, owner uint32) error {
	if !l.byOwner.Reserve() {
		return ErrNoMemory
	}
	l.byOwner.Delete((*ownerOrder)(l).Probe(ref), ref)
	l.edit(ref).owner = owner
	return l.byOwner.Insert((*ownerOrder)(l).Probe(ref), ref)
}

// remove removes a cell. O(log n).
func (l *pel) remove(ref uint32) {
	l.byID.Delete((*idOrder)(l).Probe(ref), ref)
	l.byOwner.Delete((*ownerOrder)(l).Probe(ref), ref)
	l.link(ref)
	l.tidy()
}

// tidy keeps at most about half of the cells free, a few steps at a time.
func (l *pel) tidy() {
	if l.byID.Len() == 0 {
		for l.cells.Len() > 0 {
			l.cells.Pop()
		}
		l.cells.Trim(1)
		l.free, l.unused = 0, none
		return
	}
	for range 4 {
		if l.free*2 <= l.cells.Len()+64 {
			return
		}
		last := uint32(l.cells.Len() - 1)
		if l.cell(last).owner == noOwner {
			l.unlink(last)
		} else {
			l.move(last)
		}
		l.cells.Pop()
		l.cells.Trim(1)
	}
}

// move moves the last cell, which is in use, to a free one.
func (l *pel) move(last uint32) {
	to := l.unused
	l.unlink(to)
	*l.edit(to) = *l.cell(last)
	l.byID.Replace((*idOrder)(l).Probe(last), to)
	l.byOwner.Replace((*ownerOrder)(l).Probe(last), to)
}

// link adds a cell to the list of free cells; unlink removes it.
func (l *pel) link(ref uint32) {
	*l.edit(ref) = nack{id: ID{uint64(none), uint64(l.unused)}, owner: noOwner}
	if l.unused != none {
		l.edit(l.unused).id.Ms = uint64(ref)
	}
	l.unused = ref
	l.free++
}

func (l *pel) unlink(ref uint32) {
	prev, next := uint32(l.cell(ref).id.Ms), uint32(l.cell(ref).id.Seq)
	if prev != none {
		l.edit(prev).id.Seq = uint64(next)
	} else {
		l.unused = next
	}
	if next != none {
		l.edit(next).id.Ms = uint64(prev)
	}
	l.free--
}

// freeAll frees up to budget chunks and returns their number.
func (l *pel) freeAll(budget int) (freed int) {
	freed = l.byID.FreeAll(budget)
	if freed < budget {
		freed += l.byOwner.FreeAll(budget - freed)
	}
	if freed < budget {
		freed += l.cells.FreeAll(budget - freed)
	}
	return freed
}
