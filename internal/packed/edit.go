package packed

import (
	"encoding/binary"
	"slices"
)

// Keep, as a deadline, means that a living item keeps its deadline when it is overwritten. A new
// item, or one that replaces a dead item, gets no deadline.
const Keep = -1

// State is the state in which a write found its field or member.
type State uint8

// The states. A Dead item is one that Reap has not removed yet: the write replaces it, and for the
// caller's clients it was absent.
const (
	Absent State = iota
	Dead
	Living
)

// Edit is a planned write. The caller provides memory for Size bytes and calls Apply, once, before
// any other change of the container.
type Edit struct {
	src      Packed
	cut      At // removed from src before the change, if cuts
	cuts     bool
	ch       Change
	count    int
	timed    int
	earliest int64
	size     int
}

// Size returns the length of the image after the edit.
func (e *Edit) Size() int { return e.size }

// Apply writes the new image to dst[:Size()] and returns it. dst either begins where the old image
// does (in a record with spare space) or is other memory. In both cases the old image must not be
// used afterwards. The strings passed to the plan must lie outside of both. O(n) bytes moved; no
// allocation.
func (e *Edit) Apply(dst []byte) Packed {
	kind, run := e.src.Kind(), e.src.run()
	if e.cuts {
		var ch Change
		ch.cover(run, e.cut, e.cut)
		short := run[:len(run)+ch.Grow()]
		ch.Apply(short, run, true)
		run = short
	}
	p, was, is := Packed(dst[:e.size]), e.src.head(), headSize(e.timed)
	e.ch.Apply(Run(p[is:]), run, is >= was)
	p.putHead(kind, e.count, e.timed, e.earliest)
	return p
}

// PutField plans to set a hash's field to value, with a deadline, none (0) or Keep, and returns the
// state of the field before. The caller ensures that the hash does not exceed MaxItems.
func (p Packed) PutField(field, value []byte, deadline, now int64) (e Edit, state State) {
	var k, v Cell
	k.Set(field)
	v.Set(value)
	at, state := p.lookup(&k, now)
	deadline = p.resolve(at, state, deadline)
	p.edit(&e, at, state, deadline)
	if state == Absent {
		p.appendAt(&e.ch)
	} else {
		e.ch.cover(p.run(), at, at)
	}
	e.ch.setPair(&k, &v, deadline)
	e.sized()
	return e, state
}

// PutMember plans to add a member to a set, or to change the deadline of an existing one, and
// returns the state of the member before.
func (p Packed) PutMember(member []byte, deadline, now int64) (e Edit, state State) {
	var c Cell
	c.Set(member)
	at, state := p.lookup(&c, now)
	deadline = p.resolve(at, state, deadline)
	p.edit(&e, at, state, deadline)
	if state == Absent {
		p.appendAt(&e.ch)
		e.ch.set(&c, deadline)
	} else {
		e.ch.stampAt(p.run(), at, deadline)
	}
	e.sized()
	return e, state
}

// PutScore plans to add a member to a sorted set, or to change the score and the deadline of an
// existing one, and returns the state of the member before. score is not NaN.
func (p Packed) PutScore(member []byte, score float64, deadline, now int64) (e Edit, state State) {
	var c Cell
	c.Set(member)
	at, state := p.lookup(&c, now)
	p.planScore(&e, &c, member, at, state, score, deadline)
	return e, state
}

// InsertScore is PutScore for a member that is not stored, not even dead, and that gets no deadline.
func (p Packed) InsertScore(member []byte, score float64) (e Edit) {
	var c Cell
	c.Set(member)
	p.planScore(&e, &c, member, At{}, Absent, score, 0)
	return e
}

// ReplaceScore is PutScore for the living member at a position.
func (p Packed) ReplaceScore(at At, member []byte, score float64, deadline int64) (e Edit) {
	var c Cell
	c.Set(member)
	p.planScore(&e, &c, member, at, Living, score, deadline)
	return e
}

// planScore plans PutScore for the member that lookup has found; c is its cell.
func (p Packed) planScore(e *Edit, c *Cell, member []byte, at At, state State, score float64, deadline int64) {
	var v Cell
	v.setScore(score)
	deadline = p.resolve(at, state, deadline)
	p.edit(e, at, state, deadline)
	if state != Absent && p.Score(at) == score && v.code == at.vtag {
		e.ch.stampAt(p.run(), at, deadline)
		e.sized()
		return
	}
	e.cut, e.cuts = at, state != Absent
	p.place(&e.ch, member, score, at)
	e.ch.setPair(c, &v, deadline)
	e.sized()
}

// AppendField adds a new field without a deadline. Like append, it moves p only if its capacity is
// too small. O(1).
func (p Packed) AppendField(field, value []byte) Packed {
	var k, v Cell
	k.Set(field)
	v.Set(value)
	return p.extend(&k, &v)
}

// AppendScore adds a new member, which belongs after all others, to a sorted set, as AppendField
// does. score is not NaN. O(1).
func (p Packed) AppendScore(member []byte, score float64) Packed {
	var k, v Cell
	k.Set(member)
	v.setScore(score)
	return p.extend(&k, &v)
}

// Append adds an element to a list, or a new member to a set, as AppendField does. O(1).
func (p Packed) Append(elem []byte) Packed {
	var c Cell
	c.Set(elem)
	return p.extend(&c, nil)
}

// Follows reports whether an item with this member and score belongs after all items of a sorted set. O(1).
func (p Packed) Follows(member []byte, score float64) bool {
	r := p.run()
	at := At{end: len(r) - 1, vtag: r[len(r)-1]}
	if at.end == 0 {
		return true
	}
	at.val = at.end - 1 - r.sizeBack(at.end, at.vtag)
	if last := r.Score(at); last != score {
		return last < score
	}
	at.tag = r[at.val] ^ at.vtag
	at.off = at.val - 1 - r.sizeBack(at.val, at.tag)
	return r.Key(at).Compare(member) < 0
}

// extend appends the cells of an item; v may be nil.
func (p Packed) extend(k, v *Cell) Packed {
	off, n := len(p)-1, k.Size(0)
	if v != nil {
		n += v.Size(0)
	}
	last := p[off]
	p = slices.Grow(p, n)[:len(p)+n]
	p[off] = last ^ k.code
	off += 1 + k.put(p[off+1:], 0)
	last = k.code
	if v != nil {
		p[off] = last ^ v.code
		off += 1 + v.put(p[off+1:], 0)
		last = v.code
	}
	p[off] = last
	binary.LittleEndian.PutUint32(p, binary.LittleEndian.Uint32(p)+1<<8)
	return p
}

// place makes ch insert before the first item greater than (score, member), in the run as it is
// after the item at skip (if any) is removed.
func (p Packed) place(ch *Change, member []byte, score float64, skip At) {
	r, prev := p.run(), uint8(0)
	for it := p.Iter(0); it.Next(); {
		at := &it.cur
		if *at == skip {
			continue
		}
		if s := it.Score(); s > score || s == score && it.Key().Compare(member) > 0 {
			off := at.off
			if skip.end != 0 && skip.off < off {
				off -= skip.Size()
			}
			ch.between(off, prev, at.tag)
			return
		}
		prev = at.last()
	}
	ch.between(len(r)-1-skip.Size(), prev, 0)
}

// PushFront plans to put an element at a list's head.
func (p Packed) PushFront(elem []byte, deadline int64) Edit {
	it := p.Iter(0)
	return p.insert(&it, elem, deadline)
}

// PushBack plans to put an element at a list's tail.
func (p Packed) PushBack(elem []byte, deadline int64) Edit {
	it := p.IterBack(0)
	return p.insert(&it, elem, deadline)
}

// InsertBefore plans to put an element before another one.
func (p Packed) InsertBefore(at At, elem []byte, deadline int64) Edit {
	it := Iter{run: p.run(), off: at.off, prev: p.run()[at.off] ^ at.tag}
	return p.insert(&it, elem, deadline)
}

// InsertAfter plans to put an element after another one.
func (p Packed) InsertAfter(at At, elem []byte, deadline int64) Edit {
	it := Iter{run: p.run(), off: at.end, prev: at.last()}
	return p.insert(&it, elem, deadline)
}

// Replace plans to replace an element of a list with elem.
func (p Packed) Replace(at At, elem []byte, deadline int64) (e Edit) {
	deadline = p.resolve(at, Living, deadline)
	p.edit(&e, at, Living, deadline)
	e.ch = p.run().Replace(at, Encode(elem), deadline)
	e.sized()
	return e
}

// SetDeadline plans to give an item a deadline, or none (0).
func (p Packed) SetDeadline(at At, deadline int64) (e Edit) {
	p.edit(&e, at, Living, deadline)
	e.ch.stampAt(p.run(), at, deadline)
	e.sized()
	return e
}

// Delete removes an item in place, and returns the rest.
func (p Packed) Delete(at At) Packed { return p.DeleteRange(at, at) }

// DeleteRange removes the items from first to last, and the dead between them,
// in place, and returns the rest. O(n).
func (p Packed) DeleteRange(first, last At) Packed {
	r := p.run()
	e := Edit{src: p}
	e.ch.cover(r, first, last)
	e.count, e.timed, e.earliest = p.Count(), p.Timed(), p.Earliest()
	lost := false // whether an item with the earliest deadline is removed
	it := Iter{run: r, pair: p.pair(), off: first.off, prev: r[first.off] ^ first.tag}
	for it.off < last.end && it.Next() {
		e.count--
		if it.cur.Timed() {
			e.timed--
			lost = lost || it.Deadline() == e.earliest
		}
	}
	e.sized()
	p = e.Apply(p)
	if lost && e.timed > 0 {
		_, earliest := p.run().Timed(p.pair())
		putDeadline(p[earliestOff:], earliest)
	}
	return p
}

// Reap removes the dead items, in place, and returns the new image. It calls fire, if not nil, for
// each item before it moves any bytes; fire may read the item in p and must not change it. O(n) if an
// item is dead, else O(1).
func (p Packed) Reap(now int64, fire func(at At)) Packed {
	if !p.Due(now) {
		return p
	}
	kind, r := p.Kind(), p.run()
	count, timed := p.Count(), p.Timed()
	r = r.Filter(p.pair(), func(at At) bool {
		if !at.Timed() || now <= r.Deadline(at) {
			return false
		}
		if fire != nil {
			fire(at)
		}
		count, timed = count-1, timed-1
		return true
	})
	_, earliest := r.Timed(p.pair())
	head := headSize(timed)
	move(p[head:], r)
	p = p[:head+len(r)]
	p.putHead(kind, count, timed, earliest)
	return p
}

// lookup returns the item stored under c.
func (p Packed) lookup(c *Cell, now int64) (At, State) {
	at, _, ok := p.run().find(c, p.pair())
	switch {
	case !ok:
		return At{}, Absent
	case expired(p.run().Deadline(at), now):
		return at, Dead
	}
	return at, Living
}

// resolve converts Keep to the deadline that it stands for.
func (p Packed) resolve(at At, state State, deadline int64) int64 {
	if deadline != Keep {
		return deadline
	}
	if state == Living {
		return p.run().Deadline(at)
	}
	return 0
}

// edit begins a plan that writes one item with this deadline. The item replaces the one of at,
// unless state is Absent.
func (p Packed) edit(e *Edit, at At, state State, deadline int64) {
	e.src, e.count, e.timed, e.earliest = p, p.Count(), p.Timed(), p.Earliest()
	if state == Absent {
		e.count++
	} else if at.Timed() {
		e.timed--
		if p.run().Deadline(at) == e.earliest {
			_, e.earliest = p.run().timedExcept(p.pair(), at.off)
		}
	}
	if deadline != 0 {
		if e.timed == 0 || deadline < e.earliest {
			e.earliest = deadline
		}
		e.timed++
	}
}

func (p Packed) insert(it *Iter, elem []byte, deadline int64) (e Edit) {
	if deadline == Keep {
		deadline = 0
	}
	p.edit(&e, At{}, Absent, deadline)
	e.ch.between(it.off, it.prev, it.run[it.off]^it.prev)
	e.ch.Put(elem, deadline)
	e.sized()
	return e
}

// appendAt makes ch insert after the last item.
func (p Packed) appendAt(ch *Change) {
	r := p.run()
	ch.between(len(r)-1, r[len(r)-1], 0)
}

// sized completes the plan.
func (e *Edit) sized() {
	run := len(e.src) - e.src.head() + e.ch.Grow()
	if e.cuts {
		run -= e.cut.Size()
	}
	e.size = headSize(e.timed) + run
}
