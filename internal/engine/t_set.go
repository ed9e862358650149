package engine

import (
	"strconv"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
)

// A set has three forms, as in Redis 7.2:
//
//	intset     sorted integers, up to Layout.SetIntegers
//	listpack   a packed image, up to Layout.SetEntries members of SetValue bytes
//	hashtable  a table; it stays one, unless SPOP leaves few members
//
// t_set_form.go converts between the forms, t_set_view.go reads all three. Each member can have a
// deadline, but not in an intset. Adding an existing member does not change it. Adding a dead
// member creates it again, without a deadline.

// setTable is a large set.
type setTable struct{ *dict.Dict }

func (tx *Tx) newSetTable() setTable {
	return setTable{dict.New(dict.Config{Memory: tx.db.chunks, Seed: tx.db.seed})}
}

// Clone implements box. It clones dead items too, as a replay of COPY does.
func (t setTable) Clone(tx *Tx) (box, error) {
	c := tx.newSetTable()
	for it := range t.Iter(0) {
		if _, err := c.Add(it.Key, nil, it.Deadline); err != nil {
			discard(c)
			return nil, ErrFull
		}
	}
	return c, nil
}

// SAdd adds members to a set and returns the number of new ones. O(1) for each in a large set; it allocates
// nothing. Errors: ErrWrongType; ErrFull, after SAdd has added the members before the one that did not fit.
func (tx *Tx) SAdd(key []byte, members [][]byte) (added int, err error) {
	h, err := tx.container(key, Set)
	if err != nil {
		return 0, err
	}
	var back [][]byte // members that were dead
	done, least := 0, tx.formFor(&h, members)
	if h.r == nil && least == packedForm && len(members) > 1 {
		if n, ok := tx.addFirst(&h, key, members); ok {
			added, done = n, len(members)
		}
	}
	for ; done < len(members); done++ {
		var was packed.State
		if was, err = tx.addMember(&h, key, members[done], least); err != nil {
			break
		}
		if was == packed.Living {
			continue
		}
		added++
		if was == packed.Dead && tx.db.logging.Load() {
			back = append(back, members[done])
		}
	}
	if added > 0 {
		tx.emitItems("SADD", key, members[:done])
		tx.emitRevived(key, back)
		tx.changed(key, EventSet, "sadd")
		tx.dirty += added - 1
	}
	return added, err
}

// emitRevived logs, as SPERSIST, that dead members exist again, without a deadline. A replay sees dead
// members, so the SADD in the log would not change them.
func (tx *Tx) emitRevived(key []byte, members [][]byte) {
	if len(members) > 0 {
		n := tx.itoa(0, int64(len(members)))
		tx.emitItems("SPERSIST", key, append([][]byte{[]byte("MEMBERS"), n}, members...))
	}
}

// SRem removes members and returns how many existed. It deletes the key if the set becomes empty.
// Expected O(1) for each member of a large set. Errors: ErrWrongType.
func (tx *Tx) SRem(key []byte, members [][]byte) (n int, err error) {
	h, err := tx.container(key, Set)
	if err != nil || h.r == nil {
		return 0, err
	}
	if n = tx.remove(&h, members); n > 0 {
		tx.removedItems(&membersOf, &h, key, members, n, "srem")
	}
	return n, nil
}

// remove removes members from a set and returns how many existed. It keeps the key. The caller
// calls wrote.
func (tx *Tx) remove(h *hit, members [][]byte) (n int) {
	now := tx.itemTime()
	if b := h.box(); b != nil {
		t := b.(setTable)
		for _, m := range members {
			if ref, ok := t.Find(m); ok && t.Alive(ref, now) {
				t.Remove(ref)
				n++
			}
		}
		return n
	}
	img := h.image()
	if img.Kind() == packed.KindIntSet {
		s := packed.IntSet(img)
		for _, m := range members {
			if i, ok := findInt(s, m); ok {
				s = s.Delete(i)
				n++
			}
		}
		img = packed.Packed(s)
	} else {
		for _, m := range members {
			if at, ok := img.Find(m, now); ok {
				img = img.Delete(at)
				n++
			}
		}
	}
	if n > 0 {
		tx.shrunk(h, img)
	}
	return n
}

// SMove moves a member from one set to another and reports whether it existed. Its deadline moves
// with it, unless the destination has the member already. O(1). Errors: ErrWrongType, for the
// destination only if there is a source; ErrFull, and nothing has changed.
func (tx *Tx) SMove(from, to, member []byte) (bool, error) {
	src, err := tx.container(from, Set)
	if err != nil || src.r == nil {
		return false, err
	}
	dst, err := tx.container(to, Set)
	if err != nil {
		return false, err
	}
	v := tx.viewSet(&src)
	if !v.Has(member) || string(from) == string(to) {
		return v.Has(member), nil
	}
	one := [1][]byte{member}
	deadline := int64(0)
	if !tx.replay { // an effect about the deadline follows in the log; in those of older releases the member loses it
		deadline = max(tx.deadlineIn(&src, member), 0)
	}
	was, err := tx.addMember(&dst, to, member, tx.formFor(&dst, one[:]))
	if err != nil {
		return false, err
	}
	if was == packed.Living {
		deadline = 0
	}
	if deadline > 0 {
		if err := tx.stampMoved(to, one[:], deadline); err != nil {
			return false, err
		}
	}
	if src, err = tx.container(from, Set); err != nil { // the table may have moved the source
		return false, err
	}
	left := tx.moveOut(&src, from, to, one[:])
	if was == packed.Dead {
		tx.emitRevived(to, one[:])
	}
	if deadline > 0 {
		tx.emitTimed(membersOf.setsDeadline, to, deadline, membersOf.word, one[:])
	}
	tx.changed(from, EventSet, "srem")
	if !left {
		tx.gone(from)
	}
	if was != packed.Living {
		tx.changed(to, EventSet, "sadd")
	}
	return true, nil
}

// moveOut removes a member that SMove has added to the other set, logs the move, and reports whether living
// members are left. If not, the set no longer exists.
func (tx *Tx) moveOut(src *hit, from, to []byte, one [][]byte) (left bool) {
	tx.remove(src, one)
	left = tx.living(src) > 0
	tx.emit("SMOVE", from, to, one[0])
	if left {
		if src.box() != nil {
			tx.wrote(src)
		}
		return true
	}
	if tx.countExpired(LevelMember, src, from) {
		tx.emit("DEL", from)
	}
	tx.drop(src)
	return false
}

// stampMoved gives a member that SMove has added its deadline, or removes it again.
func (tx *Tx) stampMoved(to []byte, one [][]byte, deadline int64) error {
	dst, err := tx.container(to, Set)
	if err == nil {
		err = tx.setItemDeadline(&membersOf, &dst, to, one[0], deadline)
	}
	switch {
	case err == nil:
		if dst.box() != nil {
			tx.wrote(&dst)
		}
		tx.date(&dst)
	case dst.r != nil:
		tx.remove(&dst, one)
		if tx.living(&dst) == 0 {
			tx.drop(&dst)
		}
	}
	return err
}

// SPop removes a random member, each with the same probability, and returns it, appended to dst; ok
// is false if there is none. It allocates nothing if dst has room. Errors: ErrWrongType.
func (tx *Tx) SPop(key, dst []byte) (member []byte, ok bool, err error) {
	h, err := tx.container(key, Set)
	if err != nil || h.r == nil {
		return dst, false, err
	}
	v, n := tx.viewSet(&h), len(dst)
	all := v.Len()
	if all == 0 {
		return dst, false, nil
	}
	switch rng := tx.random(); {
	case v.large != nil:
		it, _ := v.large.Random(v.now, rng)
		dst = append(dst, it.Key...)
		v.large.Remove(it.Ref)
	case v.ints != nil:
		i := rng.IntN(all)
		dst = strconv.AppendInt(dst, v.ints.At(i), 10)
		tx.shrunk(&h, packed.Packed(v.ints.Delete(i)))
	default:
		at, _ := v.small.Index(rng.IntN(all), v.now)
		dst = append(dst, tx.text(2, v.small.Key(at))...)
		tx.shrunk(&h, v.small.Delete(at))
	}
	one := [1][]byte{dst[n:]}
	tx.removedItems(&membersOf, &h, key, one[:], 1, "spop")
	return dst, true, nil
}

// SPopMany removes up to n random members, calls visit for each, and returns their number. Every
// subset of n members has the same probability. O(n); O(members) for a small set, or if few members
// are left. Errors: ErrWrongType, ErrFull.
func (tx *Tx) SPopMany(key []byte, n int, visit func(member []byte)) (int, error) {
	h, err := tx.container(key, Set)
	if err != nil || h.r == nil {
		return 0, err
	}
	v := tx.viewSet(&h)
	all := v.Len()
	if n = min(n, all); n == 0 {
		return 0, nil
	}
	if n == all {
		v.Each(visit)
		tx.countExpired(LevelMember, &h, key)
		tx.drop(&h)
		tx.emit("DEL", key)
	} else {
		log := itemLog{tx: tx, command: "SREM", key: key}
		if err := tx.pop(&h, key, &v, n, &log, visit); err != nil {
			return 0, err
		}
		log.flush()
	}
	tx.changed(key, EventSet, "spop")
	tx.dirty += n - 1
	if n == all {
		tx.gone(key)
	}
	return n, nil
}

// rebuildShare is the ratio of popped to remaining members from which on SPopMany builds a new set
// of the remaining ones, because that is cheaper. It is Redis's number, so that the forms are the
// same.
const rebuildShare = 5

// pop removes n random members; the set has more than n.
func (tx *Tx) pop(h *hit, key []byte, v *SetView, n int, log *itemLog, see func(member []byte)) error {
	left := v.Len() - n
	visit := func(m []byte) { see(m); log.add(m) }
	switch {
	case v.large != nil && left*rebuildShare <= n:
		return tx.popAllBut(h, key, v, left, log, visit)
	case v.large != nil:
		for range n {
			it, _ := v.large.Random(v.now, tx.random())
			visit(it.Key)
			v.large.Remove(it.Ref)
		}
		tx.wrote(h)
	case v.ints != nil:
		s := v.ints
		places := tx.sampleInts(s.Len(), n)
		for i := len(places) - 1; i >= 0; i-- {
			visit(tx.itoa(2, s.At(places[i])))
			s = s.Delete(places[i])
		}
		tx.shrunk(h, s)
	default:
		p := v.small
		pick := sampler{left: v.Len(), want: n, rng: tx.random()}
		places := make([]packed.At, 0, n)
		for it := p.Iter(v.now); it.Next(); {
			if pick.take() {
				places = append(places, it.At())
				visit(tx.text(2, it.Key()))
			}
		}
		for i := len(places) - 1; i >= 0; i-- { // from the end, so that the other positions do not change
			p = p.Delete(places[i])
		}
		tx.shrunk(h, p)
	}
	return nil
}

// sampleInts returns n random integers below all, ascending.
func (tx *Tx) sampleInts(all, n int) []int {
	pick := sampler{left: all, want: n, rng: tx.random()}
	places := make([]int, 0, n)
	for i := range all {
		if pick.take() {
			places = append(places, i)
		}
	}
	return places
}

// popAllBut removes all members of a large set except left random ones. These become a new set and keep their
// deadlines. It does not copy dead members.
func (tx *Tx) popAllBut(h *hit, key []byte, v *SetView, left int, log *itemLog, visit func(member []byte)) error {
	stays := sampler{left: v.Len(), want: left, rng: tx.random()}
	b := setBuilder{tx: tx, hint: left}
	var gone []uint32
	for it := range v.large.Iter(v.now) {
		if !stays.take() {
			gone = append(gone, it.Ref)
			continue
		}
		if err := b.put(it.Key, it.Deadline); err != nil {
			b.discard()
			return err
		}
	}
	for _, ref := range gone {
		visit(v.large.Key(ref))
	}
	tx.eachDead(h, func(member []byte, deadline int64) {
		log.add(member)
		tx.lapsed(h.sh, LevelMember, key, member, nil, deadline)
	})
	if err := b.storeIn(h, key); err != nil {
		return err
	}
	tx.date(h)
	return nil
}

// NextDue implements dated.
func (t setTable) NextDue() int64 { d, _ := t.Earliest(); return d }
