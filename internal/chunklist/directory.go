package chunklist

import (
	"math/bits"
	"slices"
	"unsafe"
)

// groupMax is the greatest number of blocks in a group. A lookup walks one group, and an insert
// moves half of one: 4 KiB, 0.1 us. Smaller groups would only make the list of groups, which both
// walk too, longer.
const groupMax = 256

const (
	entrySize = int(unsafe.Sizeof(entry{}))
	groupSize = int(unsafe.Sizeof(group{}))
)

// entry describes a block.
type entry struct {
	earliest int64  // at most the earliest deadline; none if timed is 0
	ref      uint32 // the chunk, or the index in bigs
	off, end uint32 // the position of the run in the chunk
	count    uint32
	timed    uint32
	class    uint8 // log2 of the chunk's size; 0: a big element
	lent     bool  // a frozen copy shares the chunk, if the list has a loan
	outside  bool  // the block is in bigs, because there was no chunk
}

func (ent *entry) big() bool { return ent.class == 0 }
func (ent *entry) size() int { return 1 << ent.class }
func (ent *entry) used() int { return int(ent.end - ent.off) }

// totals sum up a group, or the list.
type totals struct {
	count, timed int
	earliest     int64 // as in entry
}

// change adds to the counts of elements and of deadlines, and notes a new deadline.
func (t *totals) change(count, timed int, deadline int64) {
	t.count += count
	t.timed += timed
	if deadline != 0 {
		t.earliest = min(t.earliest, deadline)
	}
	if t.timed == 0 {
		t.earliest = none
	}
}

type group struct {
	ents []entry
	totals
}

func (l *List) at(g, e int) *entry { return &l.groups[g].ents[e] }

// end returns the first or the last block.
func (l *List) end(front bool) (g, e int) {
	if front {
		return 0, 0
	}
	g = len(l.groups) - 1
	return g, len(l.groups[g].ents) - 1
}

// edge returns the position before the first block, or after the last one.
func (l *List) edge(front bool) (g, e int) {
	if front || l.blocks == 0 {
		return 0, 0
	}
	g, e = l.end(false)
	return g, e + 1
}

// account adds to the sums over block e of group g. A deadline lowers the
// bounds.
func (l *List) account(g, e, count, timed int, deadline int64) {
	ent := l.at(g, e)
	t := totals{count: int(ent.count), timed: int(ent.timed), earliest: ent.earliest}
	t.change(count, timed, deadline)
	ent.count, ent.timed, ent.earliest = uint32(t.count), uint32(t.timed), t.earliest
	l.groups[g].change(count, timed, deadline)
	l.totals.change(count, timed, deadline)
}

// add changes the counts of a block by n elements (1 or -1) that have this deadline.
func (l *List) add(g, e, n int, deadline int64) {
	switch {
	case deadline == 0:
		l.account(g, e, n, 0, 0)
	case n < 0:
		l.account(g, e, n, n, 0)
	default:
		l.account(g, e, n, n, deadline)
	}
}

// restamp accounts for an element that changed its deadline.
func (l *List) restamp(g, e int, old, deadline int64) {
	timed := 0
	if old != 0 {
		timed--
	}
	if deadline != 0 {
		timed++
	}
	l.account(g, e, 0, timed, deadline)
}

// insertEntry inserts a block at index e of group g, and adds its sums.
func (l *List) insertEntry(g, e int, ent entry) {
	switch {
	case len(l.groups) == 0:
		l.groups = append(l.groups, group{totals: totals{earliest: none}})
	case len(l.groups[g].ents) < groupMax:
	case g == len(l.groups)-1 && e == groupMax: // growing at an end: leave full groups
		l.groups = append(l.groups, group{totals: totals{earliest: none}})
		g, e = g+1, 0
	case g == 0 && e == 0:
		l.groups = slices.Insert(l.groups, 0, group{totals: totals{earliest: none}})
	default:
		l.splitGroup(g)
		if e > groupMax/2 {
			g, e = g+1, e-groupMax/2
		}
	}
	gr := &l.groups[g]
	gr.ents = slices.Insert(gr.ents, e, ent)
	deadline := ent.earliest
	if ent.timed == 0 {
		deadline = 0
	}
	gr.change(int(ent.count), int(ent.timed), deadline)
	l.totals.change(int(ent.count), int(ent.timed), deadline)
	l.blocks++
}

func (l *List) splitGroup(g int) {
	ents := l.groups[g].ents
	right := append(make([]entry, 0, groupMax), ents[groupMax/2:]...)
	l.groups = slices.Insert(l.groups, g+1, group{ents: right})
	l.groups[g].ents = ents[:groupMax/2]
	l.groups[g].resum()
	l.groups[g+1].resum()
}

// resum computes a group's sums from its blocks.
func (gr *group) resum() {
	gr.totals = totals{earliest: none}
	for i := range gr.ents {
		ent := &gr.ents[i]
		gr.count += int(ent.count)
		gr.timed += int(ent.timed)
		gr.earliest = min(gr.earliest, ent.earliest)
	}
}

// removeEntry frees a block, removes it, and subtracts its sums. It reports whether it removed the
// group too.
func (l *List) removeEntry(g, e int) (groupGone bool) {
	ent := *l.at(g, e)
	l.account(g, e, -int(ent.count), -int(ent.timed), 0)
	l.free(&ent)
	l.blocks--
	gr := &l.groups[g]
	if gr.ents = slices.Delete(gr.ents, e, e+1); len(gr.ents) > 0 {
		return false
	}
	if l.groups = slices.Delete(l.groups, g, g+1); len(l.groups) == 0 {
		l.groups = nil
	}
	return true
}

// repack rebuilds a directory whose groups have become small: under 16 blocks of 256 on average, so
// that the removals before it pay for the work.
func (l *List) repack() {
	if len(l.groups) < 8 || l.blocks > len(l.groups)*16 {
		return
	}
	var all []group
	ents := make([]entry, 0, groupMax)
	for g := range l.groups {
		for _, ent := range l.groups[g].ents {
			if ents = append(ents, ent); len(ents) == groupMax {
				all = append(all, group{ents: ents})
				ents = make([]entry, 0, groupMax)
			}
		}
	}
	if len(ents) > 0 {
		all = append(all, group{ents: ents})
	}
	for g := range all {
		all[g].resum()
	}
	l.groups = all
}

// before returns the number of elements stored before a block.
func (l *List) before(g, e int) int {
	n := 0
	for i := range l.groups[:g] {
		n += l.groups[i].count
	}
	for i := range l.groups[g].ents[:e] {
		n += int(l.groups[g].ents[i].count)
	}
	return n
}

// locate returns the block of living element i, and how many living ones of
// that block are before it.
func (l *List) locate(i int, now int64) (g, e, k int, ok bool) {
	for g = range l.groups {
		gr := &l.groups[g]
		if live := gr.count - l.deadInGroup(gr, now); i >= live {
			i -= live
			continue
		}
		for e = range gr.ents {
			live := int(gr.ents[e].count) - l.dead(&gr.ents[e], now)
			if i < live {
				return g, e, i, true
			}
			i -= live
		}
	}
	return 0, 0, 0, false
}

// dead returns the number of dead elements of a block. O(1) if none is due.
func (l *List) dead(ent *entry, now int64) int {
	switch {
	case ent.earliest >= now:
		return 0
	case ent.big():
		return 1
	}
	return l.run(ent).Dead(false, now)
}

func (l *List) deadInGroup(gr *group, now int64) int {
	n := 0
	if gr.earliest < now {
		for e := range gr.ents {
			n += l.dead(&gr.ents[e], now)
		}
	}
	return n
}

// fitting returns the smallest chunk that holds n bytes.
func fitting(n int) int { return max(MinChunk, 1<<bits.Len(uint(n-1))) }
