package engine

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/table"
)

// Indexes of the keys of some kinds: streams, limiters, locks, semaphores and delay queues. They are few
// among the keys of a cache, and operators list all keys of one kind.
//
// Each kind has a hash table of its own in each space, with records that are in the space's table too: about
// ten bytes a key. A record is in both tables for the same time, and both update their references together
// when it moves. So a walk over a kind has the guarantees of a walk over all keys. DB.Check compares the
// tables.

// firstIndexed and lastIndexed are the kinds that have an index: streams, and those that
// keeps tells apart too.
const (
	firstIndexed = Stream
	lastIndexed  = DelayQueue
)

// Indexed reports whether ScanKind finds the keys of a kind without visiting others.
func (k Kind) Indexed() bool { return k >= firstIndexed && k <= lastIndexed }

// keyIndex has a table for each indexed kind; nil before its first key.
type keyIndex [lastIndexed - firstIndexed + 1]*table.Table

// of returns a kind's table, nil if there is none. The index may be nil.
func (x *keyIndex) of(k Kind) *table.Table {
	if x == nil {
		return nil
	}
	return x[k-firstIndexed]
}

// count returns the number of keys of a kind. The index may be nil.
func (x *keyIndex) count(k Kind) int {
	if t := x.of(k); t != nil {
		return t.Len()
	}
	return 0
}

// bytes returns the memory of the tables' buckets.
func (x *keyIndex) bytes() (n int) {
	if x != nil {
		for _, t := range x {
			if t != nil {
				n += t.Bytes()
			}
		}
	}
	return n
}

func (x *keyIndex) release() {
	if x != nil {
		for _, t := range x {
			if t != nil {
				t.Release()
			}
		}
	}
}

// entered records that a record with hash h has entered the space's table.
func (sp *space) entered(h uint64, ref arena.Ref, k Kind) {
	if !k.Indexed() {
		return
	}
	if sp.index == nil {
		sp.index = new(keyIndex)
	}
	t := &sp.index[k-firstIndexed]
	if *t == nil {
		*t = table.New(sp.sh.db.pool, sp)
	}
	(*t).Insert(h, ref)
}

// left records that a record with hash h has left the space's table, or is about to.
func (sp *space) left(h uint64, ref arena.Ref, k Kind) {
	if !k.Indexed() {
		return
	}
	t := sp.index.of(k)
	if pos, ok := t.FindRef(h, ref); ok {
		t.Delete(h, pos)
	}
}

// shifted records that a record has moved to another place in memory, where it is complete.
func (sp *space) shifted(old, new arena.Ref, k Kind) {
	if !k.Indexed() {
		return
	}
	if pos, ok := sp.index.of(k).FindRef(sp.Hash(new), old); ok {
		pos.Set(new)
	}
}

// tables returns the bytes of the space's tables.
func (sp *space) tables() int { return sp.tab.Bytes() + sp.index.bytes() }

// scanned returns the table that a walk over the keys of a kind uses (None: all kinds); nil if it has no
// keys.
func (sp *space) scanned(k Kind) *table.Table {
	if k.Indexed() {
		return sp.index.of(k)
	}
	return sp.tab
}

// check verifies that the index has n records of each kind, and that its tables are sound.
// The caller has found each of them.
func (x *keyIndex) check(n [maxKinds]int) error {
	for k := firstIndexed; k <= lastIndexed; k++ {
		have := 0
		if t := x.of(k); t != nil {
			if err := t.Check(); err != nil {
				return fmt.Errorf("the index of kind %v: %w", k, err)
			}
			have = t.Len()
		}
		if have != n[k] {
			return fmt.Errorf("the index of kind %v has %d keys, want %d", k, have, n[k])
		}
	}
	return nil
}

// has reports whether the index has a record with hash h.
func (x *keyIndex) has(h uint64, ref arena.Ref, k Kind) bool {
	t := x.of(k)
	if t == nil {
		return false
	}
	_, ok := t.FindRef(h, ref)
	return ok
}
