package engine

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
)

// SetOperation combines sets.
type SetOperation uint8

// These are the operations.
const (
	Intersection SetOperation = iota
	Union
	Difference // the members of the first set that are in no other set
)

// command and event return the name of the operation's *STORE command and of its event.
func (o SetOperation) command() string {
	return [...]string{"SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"}[o]
}

func (o SetOperation) event() string {
	return [...]string{"sinterstore", "sunionstore", "sdiffstore"}[o]
}

// Combine visits the members of a combination of the sets of keys until visit returns false. An
// intersection costs O(members of the smallest x sets), a union O(all members), a difference the
// cheaper of O(members of the first x sets) and O(all members). visit must not write. Errors:
// ErrWrongType for any key, and nothing was visited; ErrFull if there is no memory for intermediate
// results.
func (tx *Tx) Combine(o SetOperation, keys [][]byte, visit func(member []byte) bool) error {
	views, err := tx.setViews(keys)
	if err != nil {
		return err
	}
	return tx.combine(o, keys, views, visit)
}

// setViews looks up all sets.
func (tx *Tx) setViews(keys [][]byte) ([]SetView, error) {
	for _, key := range keys { // a lookup may remove dead members, which may move the sets found before
		if _, err := tx.container(key, Set); err != nil {
			return nil, err
		}
	}
	views := make([]SetView, len(keys))
	for i, key := range keys {
		var err error
		if views[i], err = tx.Members(key); err != nil {
			return nil, err
		}
	}
	return views, nil
}

func (tx *Tx) combine(o SetOperation, keys [][]byte, views []SetView, visit func(member []byte) bool) error {
	switch o {
	case Intersection:
		intersect(views, visit)
		return nil
	case Union:
		return tx.union(views, visit)
	default:
		return tx.subtract(keys, views, visit)
	}
}

func bySize(a, b SetView) int { return a.Len() - b.Len() }

// intersect goes through the smallest set.
func intersect(views []SetView, visit func(member []byte) bool) {
	slices.SortFunc(views, bySize)
	texts := func(v SetView) bool { return v.ints == nil }
	large := func(v SetView) bool { return v.small == nil }
	switch n := views[0].Len(); {
	case !slices.ContainsFunc(views, texts):
		intersectInts(views, visit)
		return
	case n > fewLookups && !slices.ContainsFunc(views, large):
		intersectPacked(views, visit)
		return
	}
	rest := expectAll(views[1:], views[0].Len())
	defer forgetAll(rest)
	views[0].until(func(m []byte) bool {
		p := probe{member: m}
		for i := range rest {
			if !p.in(&rest[i]) {
				return true
			}
		}
		return visit(m)
	})
}

// expectAll and forgetAll call expect and forget of all views.
func expectAll(views []SetView, n int) []SetView {
	for i := range views {
		views[i].expect(n)
	}
	return views
}

func forgetAll(views []SetView) {
	for i := range views {
		views[i].forget()
	}
}

// probe looks a member up in several sets.
type probe struct {
	member []byte
	hash   uint64 // in large sets, whose seed is the same
	hashed bool
}

// in does the work of Has.
func (p *probe) in(v *SetView) bool {
	if v.large == nil {
		return v.Has(p.member)
	}
	if !p.hashed {
		p.hash, p.hashed = v.large.Hash(p.member), true
	}
	return v.large.HasHashed(p.member, p.hash, v.now)
}

// intersectInts is intersect for sets of integers. It walks once over all of them, side by side.
func intersectInts(views []SetView, visit func(member []byte) bool) {
	tx, first, rest := views[0].tx, views[0].ints, views[1:]
	var few [8]int
	at := append(few[:0], make([]int, len(rest))...) // for each of rest: the position of the walk
	for i := range first.Len() {
		n, has := first.At(i), 0
		for has < len(rest) {
			s := rest[has].ints
			if at[has] = s.Seek(at[has], n); at[has] == s.Len() {
				return
			}
			if s.At(at[has]) != n {
				break
			}
			has++
		}
		if has == len(rest) && !visit(tx.itoa(2, n)) {
			return
		}
	}
}

// intersectPacked is intersect for packed sets. It builds an index of the smallest, and walks once over each of the others.
func intersectPacked(views []SetView, visit func(member []byte) bool) {
	tx := views[0].tx
	x := tx.indexOf(views[0].small)
	defer tx.returnIndex(x)
	x.met = append(x.met[:0], make([]int32, len(x.items))...) // by member: the number of other sets that have it, up to the first that does not
	for i := range views[1:] {
		v := &views[1+i]
		for it := v.small.Iter(v.now); it.Next(); {
			if at := x.find(it.Key()); at >= 0 && x.met[at] == int32(i) {
				x.met[at]++
			}
		}
	}
	for at, item := range x.items {
		if int(x.met[at]) == len(views)-1 && !visit(tx.text(2, item)) {
			return
		}
	}
}

// fewSets is the number of sets up to which a union looks each member up in the earlier sets, rather than in
// a set that it builds.
const fewSets = 3

// union visits the members of all views, each once.
func (tx *Tx) union(views []SetView, visit func(member []byte) bool) error {
	views = slices.DeleteFunc(views, func(v SetView) bool { return v.Len() == 0 })
	texts := func(v SetView) bool { return v.ints == nil }
	if len(views) == 1 || len(views) <= fewSets && slices.ContainsFunc(views, texts) {
		unionOfFew(views, visit)
		return nil
	}
	b := setBuilder{tx: tx, repeats: true}
	defer b.discard()
	for i := range views {
		if err := b.addAll(&views[i]); err != nil {
			return err
		}
	}
	v := b.view()
	v.until(visit)
	return nil
}

// unionOfFew visits the members of the largest set, and then the members of the others that are in no earlier
// set.
func unionOfFew(views []SetView, visit func(member []byte) bool) {
	slices.SortFunc(views, func(a, b SetView) int { return bySize(b, a) })
	defer forgetAll(views)
	more := true
	for i := range views {
		before := views[:i]
		if i > 0 {
			before[i-1].expect(views[i].Len())
		}
		views[i].until(func(m []byte) bool {
			p := probe{member: m}
			for k := range before {
				if p.in(&before[k]) {
					return true
				}
			}
			more = visit(m)
			return more
		})
		if !more {
			return
		}
	}
}

// addAll adds the members of a set.
func (b *setBuilder) addAll(v *SetView) (err error) {
	if b.img == nil && b.table == nil && v.ints != nil && v.ints.Len() <= b.tx.db.layout.Load().SetIntegers {
		b.img, b.n = slices.Clone(packed.Packed(v.ints)), v.ints.Len()
		return nil
	}
	v.until(func(m []byte) bool {
		err = b.add(m)
		return err == nil
	})
	return err
}

// view returns a view of the set that has been built.
func (b *setBuilder) view() SetView {
	h := SetView{tx: b.tx, large: b.table}
	if b.table == nil && b.img != nil {
		h.of(b.img)
	}
	return h
}

// subtract chooses the cheaper of two ways: it looks each member of the first set up in the others,
// or it removes the others' members from a copy of the first.
func (tx *Tx) subtract(keys [][]byte, views []SetView, visit func(member []byte) bool) error {
	first, rest := views[0], views[1:]
	for _, key := range keys[1:] {
		if bytes.Equal(key, keys[0]) {
			return nil
		}
	}
	look, take := first.Len()*len(views)/2, first.Len() // the first successful lookup of a member is the last
	for i := range rest {
		take += rest[i].Len()
	}
	if look <= take {
		slices.SortFunc(rest, func(a, b SetView) int { return b.Len() - a.Len() })
		defer forgetAll(expectAll(rest, first.Len()))
		first.until(func(m []byte) bool {
			p := probe{member: m}
			for i := range rest {
				if p.in(&rest[i]) {
					return true
				}
			}
			return visit(m)
		})
		return nil
	}
	t := tx.newSetTable()
	defer discard(t)
	if err := copySet(t.Dict, &first); err != nil {
		return err
	}
	for i := range rest {
		rest[i].until(func(m []byte) bool {
			t.Delete(m, 0)
			return t.Count() > 0
		})
	}
	v := SetView{tx: tx, large: t.Dict}
	v.until(visit)
	return nil
}

func copySet(d *dict.Dict, v *SetView) (err error) {
	v.until(func(m []byte) bool {
		if _, e := d.Add(m, nil, 0); e != nil {
			err = ErrFull
		}
		return err == nil
	})
	return err
}

// CombineStore stores a combination of the sets of keys under dst, replaces any value of dst, and returns the
// number of members. If the combination is empty, it deletes dst. Neither the key nor its members have
// deadlines. It costs as much as Combine. Errors: ErrWrongType for any of keys; ErrFull.
func (tx *Tx) CombineStore(o SetOperation, dst []byte, keys [][]byte) (int, error) {
	views, err := tx.setViews(keys)
	if err != nil {
		return 0, err
	}
	due := false
	for i := range views {
		due = due || views[i].due()
	}
	b := setBuilder{tx: tx, repeats: o == Union}
	if o == Intersection && slices.MinFunc(views, bySize).ints == nil {
		b.start = packedForm
	}
	if err := b.combine(o, keys, views); err != nil {
		b.discard()
		return 0, err
	}
	if o == Intersection && b.n > 0 {
		b.toInts()
	}
	if b.n == 0 {
		b.discard()
		tx.Del(dst)
		return 0, nil
	}
	if err := b.store(dst); err != nil {
		return 0, err
	}
	if tx.db.logging.Load() {
		tx.emitCombination(o, dst, keys, &b, due)
	}
	tx.changed(dst, EventSet, o.event())
	return b.n, nil
}

// combine adds the members of a combination of sets.
func (b *setBuilder) combine(o SetOperation, keys [][]byte, views []SetView) (err error) {
	if o == Union {
		for i := range views {
			b.expect = max(b.expect, views[i].Len())
		}
		for i := range views { // in their order, on which the form depends
			if err := b.addAll(&views[i]); err != nil {
				return err
			}
		}
		return nil
	}
	small := func(v SetView) bool { return v.large == nil } // its members may be in scratch memory
	if o == Intersection && !slices.ContainsFunc(views, small) {
		if least := slices.MinFunc(views, bySize); least.Len() <= mostCollected {
			return b.intersectLarge(views, least.Len())
		}
	}
	full := error(nil)
	err = b.tx.combine(o, keys, views, func(m []byte) bool {
		full = b.add(m)
		return full == nil
	})
	return cmp.Or(err, full)
}

// mostCollected bounds the memory of intersectLarge.
const mostCollected = 1 << 16

// intersectLarge adds the members of an intersection of large sets, of which the smallest has n members. It
// collects the members first, so that a table has its final size from the beginning.
func (b *setBuilder) intersectLarge(views []SetView, n int) error {
	all := make([][]byte, 0, n)
	intersect(views, func(m []byte) bool {
		all = append(all, m)
		return true
	})
	b.expect = len(all)
	if len(all) > min(b.tx.db.layout.Load().SetEntries, packed.MaxItems) {
		b.start = tableForm
	}
	for _, m := range all {
		if err := b.add(m); err != nil {
			return err
		}
	}
	return nil
}

// emitCombination logs a *STORE command. If a source has dead members, which a replay would combine
// too, it logs the result instead.
func (tx *Tx) emitCombination(o SetOperation, dst []byte, keys [][]byte, b *setBuilder, due bool) {
	if !due {
		tx.emitItems(o.command(), dst, keys)
		return
	}
	tx.emit("DEL", dst)
	log := itemLog{tx: tx, command: "SADD", key: dst}
	v := b.view()
	v.Each(log.add)
	log.flush()
}
