package engine

import (
	"math"
	"strconv"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/ordered"
	"github.com/ebbdb/ebb/internal/packed"
)

// A sorted set is small as a packed image, up to Layout.ZSetEntries members none
// of which is longer than Layout.ZSetValue; then it is a tree, and stays one.
// Members are ordered by score, and by their bytes where scores are equal. Each
// can have a deadline: another score keeps it, removing the member ends it.
//
// Commands that write, or that address by rank, first remove the due members, so that
// ranks mean the same in a replay of the effects.

// zsetTree is a large sorted set.
type zsetTree struct{ *ordered.Set }

func (tx *Tx) newZSetTree() zsetTree {
	return zsetTree{ordered.New(tx.db.chunks, tx.db.seed)}
}

// NextDue implements dated.
func (t zsetTree) NextDue() int64 { d, _ := t.Earliest(); return d }

// Reap is that of the tree, for lapseItems.
func (t zsetTree) Reap(now int64, budget int, fire func(dict.Item)) int {
	return t.Set.Reap(now, budget, func(e ordered.Entry) { fire(dict.Item{Key: e.Member, Deadline: e.Deadline}) })
}

// Clone implements box. It clones dead items too, as a replay of COPY does.
func (t zsetTree) Clone(tx *Tx) (box, error) {
	c := tx.newZSetTree()
	for w := t.WalkFrom(ordered.Start, 0); w.Next(); {
		e := w.Entry()
		if err := c.Add(e.Member, e.Score, e.Deadline); err != nil {
			discard(c)
			return nil, ErrFull
		}
	}
	return c, nil
}

// Scored is a member and its score.
type Scored struct {
	Score  float64 // never NaN
	Member []byte
}

// zscratch is memory that commands on sorted sets use again and again.
type zscratch struct {
	args  [][]byte // of an effect
	flat  []byte   // bytes that slices point to
	items []Scored
	hits  []GeoHit
}

// keepScratch is up to how many items scratch memory stays with a transaction.
const keepScratch = 1 << 12

// keep returns bytes that stay valid until the scratch memory is used again:
// those of an integer are written out.
func (z *zscratch) keep(s packed.Str) []byte {
	if !s.IsInt() {
		return s.B
	}
	at := len(z.flat)
	z.flat = s.Append(z.flat)
	return z.since(at)
}

// copied returns a copy that stays valid until the scratch memory is used again.
func (z *zscratch) copied(b []byte) []byte {
	at := len(z.flat)
	z.flat = append(z.flat, b...)
	return z.since(at)
}

// since returns what has been written from a place on.
func (z *zscratch) since(at int) []byte { return z.flat[at:len(z.flat):len(z.flat)] }

// number adds a score to the arguments of an effect.
func (z *zscratch) number(f float64) {
	at := len(z.flat)
	z.flat = strconv.AppendFloat(z.flat, f, 'g', -1, 64)
	z.args = append(z.args, z.since(at))
}

// integer adds an integer to the arguments of an effect.
func (z *zscratch) integer(n int64) {
	at := len(z.flat)
	z.flat = strconv.AppendInt(z.flat, n, 10)
	z.args = append(z.args, z.since(at))
}

func (z *zscratch) reset() {
	z.args, z.flat = z.args[:0], z.flat[:0]
	if cap(z.flat) > 64*keepScratch {
		z.args, z.flat = nil, nil
	}
}

// ZAddOptions restrict what ZAdd does. The zero value adds and changes.
type ZAddOptions struct {
	IfAbsent  bool // NX: only members that are not there
	IfExists  bool // XX: only members that are
	IfGreater bool // GT: a member that is there gets greater scores only
	IfLess    bool // LT: a member that is there gets lesser scores only

	timed    bool  // members get this deadline, not that which they have
	deadline int64 // ms since 1970; 0: none
}

// when is the deadline of a member that is written, as a plan wants it.
func (o *ZAddOptions) when() int64 {
	if o.timed {
		return o.deadline
	}
	return packed.Keep
}

// redates reports whether a member with this deadline gets another.
func (o *ZAddOptions) redates(old int64) bool { return o.timed && old != o.deadline }

// ZAdd gives members scores and returns how many were added, and how many more
// have another score than before. A member's deadline stays. O(log n) for each
// item; it allocates nothing. Errors: ErrWrongType; ErrFull, and the items before
// the one that did not fit are in.
func (tx *Tx) ZAdd(key []byte, items []Scored, o ZAddOptions) (added, updated int, err error) {
	h, err := tx.writeZSet(key)
	if err != nil || h.r == nil && o.IfExists {
		return 0, 0, err
	}
	tx.z.reset()
	n, err := tx.putAll(&h, key, items, o)
	tx.zadded(key, n.added+n.updated, "zadd")
	return n.added, n.updated, err
}

// zcounts is what putAll did: how many members are new, have another score, and
// have but another deadline.
type zcounts struct{ added, updated, redated int }

// putAll puts members into a set that writeZSet has looked up, or a new one, and
// notes those that it wrote as the scratch arguments.
func (tx *Tx) putAll(h *hit, key []byte, items []Scored, o ZAddOptions) (n zcounts, err error) {
	large := len(items) > tx.db.layout.Load().ZSetEntries
	if large && h.r != nil && h.box() == nil {
		if err = tx.enlargeZSet(h, key, nil, 0); err != nil {
			return n, err
		}
	}
	for i := range items {
		done, err := tx.putScored(h, key, items[i], o, large)
		if err != nil {
			return n, err
		}
		switch done {
		case zAdded:
			n.added++
		case zUpdated:
			n.updated++
		case zRedated:
			n.redated++
		default:
			continue
		}
		if tx.db.logging.Load() {
			tx.z.number(items[i].Score)
			tx.z.args = append(tx.z.args, items[i].Member)
		}
	}
	return n, nil
}

// ZIncrBy adds to a member's score, which is 0 if it is not there, and returns
// the result; done is false if the options did not allow it. A deadline stays.
// O(log n). Errors: ErrWrongType, ErrScoreNaN, ErrFull.
func (tx *Tx) ZIncrBy(key, member []byte, by float64, o ZAddOptions) (score float64, done bool, err error) {
	h, err := tx.writeZSet(key)
	if err != nil || h.r == nil && o.IfExists {
		return 0, false, err
	}
	v := tx.viewZSet(&h)
	old, there := v.Score(member)
	if there {
		if o.IfAbsent {
			return 0, false, nil
		}
		by += old
	}
	if math.IsNaN(by) {
		return 0, false, ErrScoreNaN
	}
	tx.z.reset()
	was, err := tx.putScored(&h, key, Scored{by, member}, o, false)
	if err != nil || was == zRefused {
		return 0, false, err
	}
	if was != zSame {
		if tx.db.logging.Load() {
			tx.z.number(by)
			tx.z.args = append(tx.z.args, member)
		}
		tx.zadded(key, 1, "zincr")
	}
	return by, true, nil
}

// zadded settles n changes, which the scratch arguments tell.
func (tx *Tx) zadded(key []byte, n int, event string) {
	if n > 0 {
		tx.emitItems("ZADD", key, tx.z.args)
		tx.dirty += n - 1
		tx.changed(key, EventZSet, event)
	}
}

// zoutcome is what putScored did.
type zoutcome uint8

const (
	zRefused zoutcome = iota // the options did not allow it
	zSame                    // the member has that score already
	zAdded
	zUpdated
	zRedated // it has that score already, but another deadline now
)

// decide says what is to be done about a living member of a score.
func (o *ZAddOptions) decide(old, score float64) zoutcome {
	switch {
	case o.IfAbsent, o.IfGreater && score <= old, o.IfLess && score >= old:
		return zRefused
	case score == old:
		return zSame
	}
	return zUpdated
}

// putScored gives a member of the set that writeZSet has looked up, or of a new
// one, a score. If large is set a new one is large.
func (tx *Tx) putScored(h *hit, key []byte, m Scored, o ZAddOptions, large bool) (zoutcome, error) {
	if h.r == nil {
		if o.IfExists {
			return zRefused, nil
		}
		return zAdded, tx.addScored(h, key, m, o.deadline, large)
	}
	if b := h.box(); b != nil {
		return tx.putInTree(h, b.(zsetTree), m, o)
	}
	p, now := h.image(), tx.itemTime()
	m.Score = smallScore(m.Score)
	at, ok := p.Find(m.Member, now)
	if !ok {
		if o.IfExists {
			return zRefused, nil
		}
		return zAdded, tx.addScored(h, key, m, o.deadline, false)
	}
	done := o.decide(p.Score(at), m.Score)
	if done == zSame && o.redates(p.Deadline(at)) {
		done = zRedated
	}
	if done < zAdded {
		return done, nil
	}
	e, _ := p.PutScore(m.Member, m.Score, o.when(), now)
	dst, err := tx.room(h, key, ZSet, e.Size())
	if err != nil {
		return done, err
	}
	e.Apply(dst)
	return done, nil
}

// smallScore is a score as small sets keep it: like Redis's they know one zero
// only.
func smallScore(score float64) float64 {
	if score == 0 {
		return 0
	}
	return score
}

// putInTree is putScored for a large set.
func (tx *Tx) putInTree(h *hit, t zsetTree, m Scored, o ZAddOptions) (done zoutcome, err error) {
	now := tx.itemTime()
	p := t.Look(m.Member, now)
	switch {
	case p.Living:
		if done, err = tx.rewriteScored(t, p, m, o); done < zAdded {
			return done, nil
		}
	case o.IfExists:
		return zRefused, nil
	case p.Found:
		done = zAdded
		_, err = t.Put(m.Member, m.Score, o.deadline, now)
	default:
		done = zAdded
		err = t.Add(m.Member, m.Score, o.deadline)
	}
	if err != nil {
		return zRefused, ErrFull
	}
	tx.wrote(h)
	return done, nil
}

// rewriteScored gives a living member of a large set a score, and a deadline
// where the options have one.
func (tx *Tx) rewriteScored(t zsetTree, p ordered.Spot, m Scored, o ZAddOptions) (done zoutcome, err error) {
	done = o.decide(p.Score, m.Score)
	switch {
	case done == zRefused:
	case o.timed:
		now := tx.itemTime()
		if done == zSame {
			if old, _ := t.Deadline(m.Member, now); !o.redates(old) {
				return zSame, nil
			}
			done, m.Score = zRedated, p.Score
		}
		_, err = t.Put(m.Member, m.Score, o.deadline, now)
	case done == zUpdated:
		err = t.Rescore(p, m.Score)
	}
	return done, err
}

// addScored adds a member with a deadline, 0 for none, to a small set, or to none;
// the set may become large.
func (tx *Tx) addScored(h *hit, key []byte, m Scored, deadline int64, large bool) error {
	l := tx.db.layout.Load()
	if !large && len(m.Member) <= l.ZSetValue {
		p := tx.imageOr(h, packed.KindZSet)
		if p.Count() < min(l.ZSetEntries, packed.MaxItems) {
			e, _ := p.PutScore(m.Member, smallScore(m.Score), deadline, tx.itemTime())
			if e.Size() <= maxSmall {
				dst, err := tx.room(h, key, ZSet, e.Size())
				if err == nil {
					e.Apply(dst)
				}
				return err
			}
		}
	}
	return tx.enlargeZSet(h, key, &m, deadline)
}

// enlargeZSet makes a small set, or none, a large one, and adds a member with a
// deadline to it if that is not nil.
func (tx *Tx) enlargeZSet(h *hit, key []byte, m *Scored, deadline int64) error {
	t := tx.newZSetTree()
	err := tx.fillTree(t, h)
	if err == nil && m != nil {
		_, err = t.Put(m.Member, m.Score, deadline, tx.itemTime())
	}
	if err == nil {
		err = tx.enlarge(h, key, ZSet, t)
	}
	if err != nil {
		discard(t)
		return ErrFull
	}
	tx.wrote(h)
	return nil
}

// fillTree copies the members of a small set.
func (tx *Tx) fillTree(t zsetTree, h *hit) error {
	if h.r == nil {
		return nil
	}
	for it := h.image().Iter(0); it.Next(); {
		if err := t.Add(tx.text(2, it.Key()), it.Score(), it.Deadline()); err != nil {
			return err
		}
	}
	return nil
}

// ZRem removes members and returns how many were there. A set that becomes empty
// is removed. O(log n) for each. Errors: ErrWrongType.
func (tx *Tx) ZRem(key []byte, members [][]byte) (n int, err error) {
	h, err := tx.writeZSet(key)
	if err != nil || h.r == nil {
		return 0, err
	}
	now, left := tx.itemTime(), 0
	if b := h.box(); b != nil {
		t := b.(zsetTree)
		for _, m := range members {
			if p := t.Look(m, now); p.Living {
				t.Remove(p)
				n++
			}
		}
		left = t.Count()
	} else {
		p := h.image()
		for _, m := range members {
			if at, ok := p.Find(m, now); ok {
				p = p.Delete(at)
				n++
			}
		}
		if left = p.Count(); n > 0 && left > 0 {
			tx.shrunk(&h, p)
		}
	}
	if n > 0 {
		tx.emitItems("ZREM", key, members)
		tx.zremoved(&h, key, n, left, "zrem")
	}
	return n, nil
}

// zremoved settles the removal of n members, after which so many are left.
func (tx *Tx) zremoved(h *hit, key []byte, n, left int, event string) {
	switch {
	case left == 0:
		tx.drop(h)
	case h.box() != nil:
		tx.wrote(h)
	}
	tx.dirty += n - 1
	tx.changed(key, EventZSet, event)
	if left == 0 {
		tx.gone(key)
	}
}

// writeZSet looks up a key that must hold a sorted set, or nothing, for a
// command that writes. What is due in it has been removed.
func (tx *Tx) writeZSet(key []byte) (hit, error) {
	h, err := tx.container(key, ZSet)
	if err == nil && h.r != nil {
		tx.reapZSet(&h, key)
	}
	return h, err
}

// reapZSet removes the members of a set that are due. If none is left the set is
// gone. Not in a replay. O(1) if nothing is due.
func (tx *Tx) reapZSet(h *hit, key []byte) {
	for !tx.replay && h.r != nil && tx.dueIn(h) && tx.lapse(h, key, math.MaxInt) {
	}
}
