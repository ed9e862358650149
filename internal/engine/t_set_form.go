package engine

import (
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
)

// findInt looks a member up in a set of integers.
func findInt(s packed.IntSet, member []byte) (int, bool) {
	n, ok := packed.ParseInt(member)
	if !ok {
		return 0, false
	}
	return s.Find(n)
}

// setForm is a form of sets. A greater form can hold more.
type setForm uint8

const (
	intSetForm setForm = iota
	packedForm
	tableForm
)

// formFor returns the least form that a set must have before members are added. As in Redis, it
// depends on their number, not on the members themselves.
func (tx *Tx) formFor(h *hit, members [][]byte) setForm {
	l := tx.db.layout.Load()
	ints := false
	if h.r == nil {
		_, ints = packed.ParseInt(members[0])
		ints = ints && len(members) <= l.SetIntegers
	} else if h.box() == nil {
		ints = h.image().Kind() == packed.KindIntSet
	}
	switch {
	case ints && len(members) <= l.SetIntegers:
		return intSetForm
	case ints || len(members) > l.SetEntries:
		return tableForm
	}
	return packedForm
}

// addMember adds a member without a deadline to the set that container has looked up, or creates
// the set. It returns the state of the member before. A living member does not change; a dead one
// counts as expired. Afterwards the set has form least or a greater one.
func (tx *Tx) addMember(h *hit, key, member []byte, least setForm) (packed.State, error) {
	dead := tx.deadUnder(h, member)
	was, err := tx.putMember(h, key, member, least)
	if dead != 0 && err == nil {
		tx.lapsed(h.sh, LevelMember, key, member, nil, dead)
	}
	return was, err
}

// addFirst makes a packed set of the members of a missing key and returns the number of members. It returns
// false, and changes nothing, if a member is too long for this form, or if memory runs out.
func (tx *Tx) addFirst(h *hit, key []byte, members [][]byte) (n int, ok bool) {
	var seen seen
	longest := tx.db.layout.Load().SetValue
	p := packed.New(tx.vbuf, packed.KindSet)
	for _, m := range members {
		if len(m) > longest || len(p)+len(m) > maxSmall-itemRoom || p.Count() == packed.MaxItems {
			return 0, false
		}
		if seen.note(tx, m) {
			if _, twice := p.Find(m, 0); twice {
				continue
			}
		}
		p = p.Append(m)
	}
	tx.vbuf = p
	dst, err := tx.room(h, key, Set, len(p))
	if err != nil {
		return 0, false
	}
	copy(dst, p)
	return p.Count(), true
}

func (tx *Tx) putMember(h *hit, key, member []byte, least setForm) (packed.State, error) {
	if h.r != nil {
		if b := h.box(); b != nil {
			was, err := tx.putInTable(b.(setTable).Dict, member, nil, dict.Keep)
			if err == nil { // even if the member exists: the form may have changed for it
				tx.wrote(h)
			}
			return was, err
		}
	}
	if least == tableForm {
		return tx.addEnlarged(h, key, member)
	}
	l := tx.db.layout.Load()
	n, isInt := packed.ParseInt(member)
	switch {
	case h.r == nil && isInt && least == intSetForm:
		tx.vbuf = packed.NewIntSet(tx.vbuf)
		return tx.addInt(h, key, tx.vbuf, n, member)
	case h.r != nil && h.image().Kind() == packed.KindIntSet:
		if isInt {
			return tx.addInt(h, key, packed.IntSet(h.image()), n, member)
		}
		return tx.addToInts(h, key, member)
	}
	p := tx.imageOr(h, packed.KindSet)
	e, was := p.PutMember(member, packed.Keep, tx.itemTime())
	if was == packed.Living {
		return was, nil
	}
	count := p.Count()
	if was == packed.Absent {
		count++
	}
	if count > min(l.SetEntries, packed.MaxItems) || len(member) > l.SetValue || e.Size() > maxSmall {
		return tx.addEnlarged(h, key, member)
	}
	dst, err := tx.room(h, key, Set, e.Size())
	if err != nil {
		return was, err
	}
	e.Apply(dst)
	return was, nil
}

// addInt adds an integer to a set of integers, which is the record's image, or empty for a missing
// key.
func (tx *Tx) addInt(h *hit, key []byte, s packed.IntSet, n int64, member []byte) (packed.State, error) {
	e, ok := s.Add(n)
	if !ok {
		return packed.Living, nil
	}
	if s.Len() >= min(tx.db.layout.Load().SetIntegers, packed.MaxItems) || e.Size() > maxSmall {
		return tx.addEnlarged(h, key, member)
	}
	dst, err := tx.room(h, key, Set, e.Size())
	if err != nil {
		return packed.Absent, err
	}
	e.Apply(dst)
	return packed.Absent, nil
}

// addToInts adds a member that is not an integer to a set of integers, and converts the set to a
// packed set or a large one.
func (tx *Tx) addToInts(h *hit, key, member []byte) (packed.State, error) {
	s := packed.IntSet(h.image())
	if !fitsPacked(tx.db.layout.Load(), s, len(member)) {
		return tx.addEnlarged(h, key, member)
	}
	tx.vbuf = appendMember(packInts(tx.vbuf, s), member)
	dst, err := tx.room(h, key, Set, len(tx.vbuf))
	if err != nil {
		return packed.Absent, err
	}
	copy(dst, tx.vbuf)
	return packed.Absent, nil
}

// fitsPacked reports whether a set of integers and a member of n bytes make a
// packed set.
func fitsPacked(l *Layout, s packed.IntSet, n int) bool { return packable(l, s, 1, n) }

// packable reports whether a set of integers and more members, of up to n bytes each, make a packed
// set.
func packable(l *Layout, s packed.IntSet, more, n int) bool {
	if k := s.Len(); k > 0 {
		var b [20]byte
		n = max(n, len(strconv.AppendInt(b[:0], s.At(0), 10)), len(strconv.AppendInt(b[:0], s.At(k-1), 10)))
	}
	return s.Len()+more <= min(l.SetEntries, packed.MaxItems) && n <= l.SetValue
}

// packInts appends a set of integers in packed form to dst[:0].
func packInts(dst []byte, s packed.IntSet) packed.Packed {
	p := packed.New(dst, packed.KindSet)
	var b [20]byte
	for i := range s.Len() {
		p = appendMember(p, strconv.AppendInt(b[:0], s.At(i), 10))
	}
	return p
}

// appendMember adds a new member to a packed set in Go memory.
func appendMember(p packed.Packed, member []byte) packed.Packed {
	e := p.PushBack(member, 0)
	return e.Apply(grown(p, e.Size()))
}

// grown returns memory for an image of n bytes that replaces p: that of p if it has room.
func grown(p []byte, n int) []byte {
	if n <= cap(p) {
		return p[:n]
	}
	return make([]byte, n, 2*n)
}

// addEnlarged makes a small or missing set large, and adds a member.
func (tx *Tx) addEnlarged(h *hit, key, member []byte) (packed.State, error) {
	t := tx.newSetTable()
	was, err := packed.Absent, error(nil)
	if h.r != nil {
		err = fillSet(t.Dict, h.image())
	}
	if err == nil {
		was, err = tx.putInTable(t.Dict, member, nil, dict.Keep)
	}
	if err == nil {
		err = tx.enlarge(h, key, Set, t)
	}
	if err != nil {
		discard(t)
		return was, ErrFull
	}
	tx.wrote(h)
	return was, nil
}

// fillSet copies the members of a small set, including dead ones that the reclaimer has not removed yet.
func fillSet(d *dict.Dict, img packed.Packed) error {
	var b [20]byte
	if img.Kind() == packed.KindIntSet {
		s := packed.IntSet(img)
		for i := range s.Len() {
			if _, err := d.Add(strconv.AppendInt(b[:0], s.At(i), 10), nil, 0); err != nil {
				return err
			}
		}
		return nil
	}
	for it := img.Iter(0); it.Next(); {
		m := it.Key()
		text := m.B
		if m.IsInt() {
			text = strconv.AppendInt(b[:0], m.N, 10)
		}
		if _, err := d.Add(text, nil, it.Deadline()); err != nil {
			return err
		}
	}
	return nil
}

// setBuilder builds a set without a key. As in Redis, the members and their order determine its form.
type setBuilder struct {
	tx      *Tx
	start   setForm       // begins with this form; the zero value is a set of integers
	hint    int           // if not 0: the number of members to come, which determines start
	expect  int           // the least number of members that the set will have
	repeats bool          // members may come more than once
	img     packed.Packed // small, in Go memory; nil: empty
	table   *dict.Dict    // large
	n       int           // the number of members
	texts   int           // the number of members that are not integers
	index   *memberIndex  // the members of a packed img, if repeats
}

// add adds a member without a deadline, unless the set has it. If members may repeat, one that is not an
// integer must stay unchanged until the set is stored or discarded. It must not be in the set's own memory.
func (b *setBuilder) add(member []byte) error { return b.put(member, 0) }

// put adds a member with a deadline.
func (b *setBuilder) put(member []byte, deadline int64) error {
	before, s := b.n, packed.StrOf(member)
	if b.hint > 0 {
		b.start, b.hint = b.tx.startForm(s.IsInt() && deadline == 0, b.hint), 0
	}
	if b.table != nil || !b.putSmall(b.tx.db.layout.Load(), member, s, deadline) {
		if err := b.putLarge(member, deadline); err != nil {
			return err
		}
	}
	if b.n > before && !s.IsInt() {
		b.texts++
	}
	return nil
}

// startForm returns the form in which Redis begins a set of n members.
func (tx *Tx) startForm(isInt bool, n int) setForm {
	l := tx.db.layout.Load()
	switch {
	case isInt && n <= l.SetIntegers:
		return intSetForm
	case n <= l.SetEntries:
		return packedForm
	}
	return tableForm
}

// putLarge does the work of put for a set that is large, or has to become large.
func (b *setBuilder) putLarge(member []byte, deadline int64) error {
	if b.table == nil {
		b.table = b.tx.newSetTable().Dict
		b.table.Expect(max(b.expect, b.n))
		if b.img != nil {
			if err := fillSet(b.table, b.img); err != nil {
				return ErrFull
			}
			b.img = nil
		}
		b.dropIndex()
	}
	added, err := true, error(nil)
	if b.repeats {
		added, err = b.table.Insert(member, deadline)
	} else {
		_, err = b.table.Add(member, nil, deadline)
	}
	if err != nil {
		return ErrFull
	}
	if added {
		b.n++
	}
	return nil
}

// note adds a member of a packed img to the index, and reports whether it is new.
func (b *setBuilder) note(member packed.Str) bool {
	if !b.repeats {
		return true
	}
	if b.index == nil {
		b.index = b.tx.borrowIndex()
	}
	_, added := b.index.add(member)
	return added
}

func (b *setBuilder) dropIndex() {
	b.tx.returnIndex(b.index)
	b.index = nil
}

// putSmall does the work of put for a small set. It returns false, and changes nothing, if the set would have
// to become large.
func (b *setBuilder) putSmall(l *Layout, member []byte, text packed.Str, deadline int64) bool {
	if b.start == tableForm {
		return false
	}
	if b.img == nil && b.start == intSetForm {
		b.img = packed.Packed(packed.NewIntSet(nil))
	} else if b.img == nil {
		b.img = packed.New(nil, packed.KindSet)
	}
	if b.img.Kind() == packed.KindIntSet {
		s := packed.IntSet(b.img)
		if text.IsInt() && deadline == 0 {
			return b.putInt(l, s, text.N)
		}
		if !fitsPacked(l, s, len(member)) {
			return false
		}
		b.img = packInts(nil, s)
		for i := range s.Len() {
			b.note(packed.Str{N: s.At(i)})
		}
	}
	if !b.note(text) {
		return true
	}
	if b.img.Count() >= min(l.SetEntries, packed.MaxItems) || len(member) > l.SetValue || len(b.img)+len(member) > maxSmall-itemRoom {
		return false
	}
	if deadline == 0 {
		b.img = b.img.Append(member)
	} else {
		e, _ := b.img.PutMember(member, deadline, 0)
		b.img = e.Apply(grown(b.img, e.Size()))
	}
	b.n++
	return true
}

// putInt does the work of putSmall for a set of integers.
func (b *setBuilder) putInt(l *Layout, s packed.IntSet, n int64) bool {
	e, ok := s.Add(n)
	if ok && (s.Len() >= min(l.SetIntegers, packed.MaxItems) || e.Size() > maxSmall) {
		return false
	}
	if ok {
		b.img = packed.Packed(e.Apply(grown(b.img, e.Size())))
		b.n++
	}
	return true
}

// toInts converts a packed set to a set of integers, if it can.
func (b *setBuilder) toInts() {
	if b.texts > 0 || b.n > min(b.tx.db.layout.Load().SetIntegers, packed.MaxItems) || b.img != nil && b.img.Kind() == packed.KindIntSet {
		return
	}
	all := make([]int64, 0, b.n)
	v := b.view()
	v.Each(func(m []byte) {
		n, _ := packed.ParseInt(m)
		all = append(all, n)
	})
	slices.Sort(all)
	s := packed.NewIntSet(nil)
	for _, n := range all { // ascending order: each insertion is at the end and moves nothing
		if e, ok := s.Add(n); ok {
			s = e.Apply(grown(s, e.Size()))
		}
	}
	b.discard()
	b.table, b.img = nil, packed.Packed(s)
}

// discard frees a set that was not stored under a key.
func (b *setBuilder) discard() {
	b.dropIndex()
	if b.table != nil {
		discard(setTable{b.table})
	}
}

// storeIn makes the set the value of a key that holds a set, whose deadline stays, or of a new key.
// The builder must not be used after it. Errors: ErrFull.
func (b *setBuilder) storeIn(h *hit, key []byte) error {
	b.dropIndex()
	if b.table != nil {
		if err := b.tx.enlarge(h, key, Set, setTable{b.table}); err != nil {
			b.discard()
			return err
		}
		b.tx.wrote(h)
		return nil
	}
	dst, err := b.tx.room(h, key, Set, len(b.img))
	if err == nil {
		copy(dst, b.img)
	}
	return err
}

// store makes the set the value of a key, without a deadline, and replaces any value of the key. The builder
// must not be used after it. Errors: ErrFull.
func (b *setBuilder) store(key []byte) error {
	b.dropIndex()
	h := b.tx.find(key)
	if b.table == nil {
		return b.tx.put(&h, key, b.img, spec{flags: uint8(Set)})
	}
	if h.r != nil { // so that enlarge finds a set without a deadline
		if err := b.tx.put(&h, key, packed.New(nil, packed.KindSet), spec{flags: uint8(Set)}); err != nil {
			b.discard()
			return err
		}
	}
	return b.storeIn(&h, key)
}
