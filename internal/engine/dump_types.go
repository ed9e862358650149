package engine

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/rdb"
)

// itemRoom is an upper bound, in bytes, of an item's size in an image, without its strings.
const itemRoom = 64

// roomFor returns memory for an image of n items. The size is an estimate.
func (r *restorer) roomFor(n int) []byte {
	if r.room != nil {
		return r.room[:0]
	}
	return make([]byte, 0, 16+32*min(n, 128))
}

// Listpack implements rdb.ListpackBuilder. It accepts most values that Redis and ebb have dumped. The others,
// and values that become large containers, are restored item by item.
func (r *restorer) Listpack(t rdb.Type, b []byte) (done bool, err error) {
	l := r.tx.db.layout.Load()
	k, kind, items, longest := Hash, packed.KindHash, l.HashEntries, l.HashValue
	switch t {
	case rdb.TypeQuicklist2:
		return r.listNode(b)
	case rdb.TypeZSetListpack:
		k, kind, items, longest = ZSet, packed.KindZSet, l.ZSetEntries, l.ZSetValue
	case rdb.TypeSetListpack:
		k, kind, items, longest = Set, packed.KindSet, l.SetEntries, l.SetValue
	}
	r.image = r.room
	p, ok := r.pack(0, kind, b, longest)
	if !ok || p.Count() > items || kind == packed.KindSet && startsWithInt(p) {
		return false, nil
	}
	r.kind, r.image, r.items = k, p, p.Count()
	return true, nil
}

// pack makes an image of a listpack in the memory of the restorer's image, from at on; ok is false if the
// items must be restored one by one.
func (r *restorer) pack(at int, kind packed.Kind, b []byte, longest int) (p packed.Packed, ok bool) {
	const longestInt = 20
	if len(b) > keepDump/4 || longest < longestInt {
		return nil, false
	}
	r.image = slices.Grow(r.image[:at], packed.ListpackRoom(len(b)))
	if cap(r.image) > cap(r.room) {
		r.room = r.image
	}
	p, ok = packed.FromListpack(r.image[at:], kind, b, longest, r.tx.db.seed)
	return p, ok && p.Count() > 0
}

// startsWithInt reports whether the first member of a set is an integer. The image of such a set begins with
// all its integers.
func startsWithInt(p packed.Packed) bool {
	it := p.Iter(0)
	return it.Next() && it.Key().IsInt()
}

// BeginHash implements rdb.Builder.
func (r *restorer) BeginHash(n int) error {
	r.kind = Hash
	r.image = packed.New(r.roomFor(n), packed.KindHash)
	if n > r.tx.db.layout.Load().HashEntries {
		r.box = r.tx.newHashTable()
	}
	return nil
}

// Field implements rdb.Builder.
func (r *restorer) Field(field, value []byte, deadline int64) error {
	if r.dead(deadline) {
		r.left = true
		return nil
	}
	r.items++
	if r.box == nil {
		l := r.tx.db.layout.Load()
		if max(len(field), len(value)) <= l.HashValue {
			p := packed.Packed(r.image)
			if r.seen.note(r.tx, field) {
				if _, ok := p.Find(field, 0); ok {
					return errTwice
				}
			}
			switch roomy := len(p)+len(field)+len(value) < maxSmall-itemRoom; {
			case roomy && deadline == 0:
				r.image = p.AppendField(field, value)
				return nil
			case roomy:
				e, _ := p.PutField(field, value, deadline, 0)
				r.image = e.Apply(grown(r.image, e.Size()))
				return nil
			}
		}
		t := r.tx.newHashTable()
		r.box = t
		for it := packed.Packed(r.image).Iter(0); it.Next(); {
			if _, err := t.Add(r.tx.text(2, it.Key()), r.tx.text(3, it.Value()), it.Deadline()); err != nil {
				return ErrFull
			}
		}
	}
	outcome, err := r.box.(hashTable).Put(field, value, deadline, 0)
	return r.added(outcome, err)
}

// added returns the error for the result of adding an item to a table: errTwice if the table had
// the item.
func (r *restorer) added(outcome dict.Outcome, err error) error {
	switch {
	case err != nil:
		return ErrFull
	case outcome != dict.Added:
		return errTwice
	}
	return r.weigh()
}

// BeginList implements rdb.Builder.
func (r *restorer) BeginList(int) error {
	r.kind = List
	r.image = packed.New(r.room[:0], packed.KindList)
	return nil
}

// listNode restores a node of a list in one piece: as the image of a list without elements, or as a block of
// a large list.
func (r *restorer) listNode(b []byte) (done bool, err error) {
	at := 0
	if r.box == nil && r.items > 0 {
		at = len(r.image)
	}
	p, ok := r.pack(at, packed.KindList, b, math.MaxInt)
	r.image = r.image[:at]
	most, count := listLimit(r.tx.db.layout.Load().ListSize)
	switch {
	case !ok:
	case r.box != nil, at > 0 && r.boxed(len(b)):
		if done = r.box.(listBox).PushRun(p.Run(), p.Count()); done {
			r.items += p.Count()
			err = r.setHeld(r.box.Size())
		}
	case at == 0 && len(b) <= most && p.Count() <= min(count, packed.MaxItems):
		r.image, r.items, r.bytes, done = p, p.Count(), len(b)-listpackHead, true
	}
	if r.box == nil && r.items == 0 {
		r.image = packed.New(r.image, packed.KindList)
	}
	return done, err
}

// boxed makes the image the first block of a large list if a node with a listpack of this size certainly has
// too many elements for the image.
func (r *restorer) boxed(size int) bool {
	const beside = 16 // an upper bound of an element's size in a listpack, without its text
	most, count := listLimit(r.tx.db.layout.Load().ListSize)
	if r.items < min(count, packed.MaxItems) && r.bytes+size <= most+beside {
		return false
	}
	l := r.tx.newListBox()
	if !l.PushRun(packed.Packed(r.image).Run(), r.items) {
		return false
	}
	r.box = l
	return true
}

// Element implements rdb.Builder.
func (r *restorer) Element(elem []byte) error { return r.element(elem, 0) }

// element appends an element with a deadline, 0 for none.
func (r *restorer) element(elem []byte, deadline int64) error {
	r.items++
	if r.box == nil {
		p := packed.Packed(r.image)
		if !r.tx.outgrownAt(p, listpackHead+r.bytes, len(elem)) {
			r.bytes += packed.ListpackStr(textOf(elem))
			if deadline == 0 {
				r.image = p.Append(elem)
				return nil
			}
			e := p.PushBack(elem, deadline)
			r.image = e.Apply(grown(r.image, e.Size()))
			return nil
		}
		l := r.tx.newListBox()
		r.box = l
		for it := p.Iter(0); it.Next(); {
			if !l.PushBack(r.tx.text(2, it.Key()), it.Deadline()) {
				return ErrFull
			}
		}
	}
	if !r.box.(listBox).PushBack(elem, deadline) {
		return ErrFull
	}
	return r.weigh()
}

// BeginZSet implements rdb.Builder.
func (r *restorer) BeginZSet(n int) error {
	r.kind = ZSet
	r.image = packed.New(r.roomFor(n), packed.KindZSet)
	if n > r.tx.db.layout.Load().ZSetEntries {
		r.box = r.tx.newZSetTree()
	}
	return nil
}

// Scored implements rdb.Builder.
func (r *restorer) Scored(member []byte, score float64) error { return r.scored(member, score, 0) }

// scored adds a member with a deadline, 0 for none.
func (r *restorer) scored(member []byte, score float64, deadline int64) error {
	r.items++
	if r.box == nil {
		p := packed.Packed(r.image)
		if len(member) <= r.tx.db.layout.Load().ZSetValue {
			if len(p)+len(member) < maxSmall-itemRoom {
				return r.addScore(p, member, score, deadline)
			}
		}
		t := r.tx.newZSetTree()
		r.box = t
		for it := p.Iter(0); it.Next(); {
			if err := t.Add(r.tx.text(2, it.Key()), it.Score(), it.Deadline()); err != nil {
				return ErrFull
			}
		}
	}
	t := r.box.(zsetTree)
	if t.Look(member, 0).Found {
		return errTwice
	}
	if err := t.Add(member, score, deadline); err != nil {
		return ErrFull
	}
	return r.weigh()
}

// addScore adds a member to an image.
func (r *restorer) addScore(p packed.Packed, member []byte, score float64, deadline int64) error {
	if r.seen.note(r.tx, member) {
		if _, ok := p.Find(member, 0); ok {
			return errTwice
		}
	}
	r.image = withScored(p, member, score, deadline)
	return nil
}

// BeginSet implements rdb.Builder.
func (r *restorer) BeginSet(n int) error {
	r.kind = Set
	r.image = packed.NewIntSet(r.roomFor(min(n, 512) / 4))
	if l := r.tx.db.layout.Load(); n > max(l.SetIntegers, l.SetEntries) {
		r.box = r.tx.newSetTable()
	}
	return nil
}

// Integers implements rdb.IntBuilder.
func (r *restorer) Integers(width int, members []byte) error {
	if n := len(members) / width; r.box == nil && n <= min(r.tx.db.layout.Load().SetIntegers, packed.MaxItems) {
		r.image, r.items = packed.Packed(packed.AppendIntSet(r.image, width, members)), n
		return nil
	}
	var one [16]byte
	for ; len(members) > 0; members = members[width:] {
		n := packed.AppendIntSet(one[:0], width, members[:width]).At(0)
		if err := r.member(r.tx.itoa(2, n), 0); err != nil {
			return err
		}
	}
	return nil
}

// Member implements rdb.Builder.
func (r *restorer) Member(member []byte) error { return r.member(member, 0) }

// member adds a member with a deadline, 0 for none. The first member of a set that begins as
// integers must not have a deadline.
func (r *restorer) member(member []byte, deadline int64) error {
	r.items++
	if r.box == nil {
		done, err := r.smallMember(member, deadline)
		if done || err != nil {
			return err
		}
		t := r.tx.newSetTable()
		r.box = t
		if fillSet(t.Dict, r.image) != nil {
			return ErrFull
		}
	}
	outcome, err := r.box.(setTable).Put(member, nil, deadline, 0)
	return r.added(outcome, err)
}

// smallMember adds a member to a set of integers, which may become a packed one,
// or to a packed set; done is false where it must become a table.
func (r *restorer) smallMember(member []byte, deadline int64) (done bool, err error) {
	l := r.tx.db.layout.Load()
	if s := packed.IntSet(r.image); packed.Packed(r.image).Kind() == packed.KindIntSet {
		n, isInt := packed.ParseInt(member)
		switch {
		case isInt && s.Len() < min(l.SetIntegers, packed.MaxItems):
			e, added := s.Add(n)
			if !added {
				return false, errTwice
			}
			r.image = e.Apply(grown(r.image, e.Size()))
			return true, nil
		case isInt || !fitsPacked(l, s, len(member)):
			return false, nil
		}
		r.image = packInts(nil, s)
		for i := range s.Len() {
			r.seen.note(r.tx, r.tx.itoa(2, s.At(i)))
		}
	}
	p := packed.Packed(r.image)
	if r.seen.note(r.tx, member) {
		if _, ok := p.Find(member, 0); ok {
			return false, errTwice
		}
	}
	if p.Count() >= min(l.SetEntries, packed.MaxItems) || len(member) > l.SetValue || len(p)+len(member) > maxSmall-itemRoom {
		return false, nil
	}
	if deadline == 0 {
		r.image = p.Append(member)
		return true, nil
	}
	e, _ := p.PutMember(member, deadline, 0)
	r.image = e.Apply(grown(r.image, e.Size()))
	return true, nil
}
