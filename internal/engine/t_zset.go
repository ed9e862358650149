package engine

import (
	"math"
	"strconv"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/ordered"
	"github.com/ebbdb/ebb/internal/packed"
)

// A sorted set has the small form, a packed image, up to Layout.ZSetEntries members and while no
// member is longer than Layout.ZSetValue. After that it is a tree, and stays one. Members are
// ordered by score, and members with equal scores by their bytes. Each member can have a deadline,
// which a change of the score keeps.
//
// Commands that write, or that address members by rank, first remove the due members, so that ranks
// mean the same in a replay of the effects.

// zsetTree is a large sorted set.
type zsetTree struct{ *ordered.Set }

func (tx *Tx) newZSetTree() zsetTree {
	return zsetTree{ordered.New(tx.db.chunks, tx.db.seed)}
}

// NextDue implements dated.
func (t zsetTree) NextDue() int64 { d, _ := t.Earliest(); return d }

// Reap calls the tree's Reap, for lapseItems.
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

// zscratch is scratch memory that commands on sorted sets reuse.
type zscratch struct {
	args  [][]byte // the arguments of an effect
	flat  []byte   // bytes that slices point to
	items []Scored
	hits  []GeoHit
}

// keepScratch is the greatest number of items for which a transaction keeps its scratch memory.
const keepScratch = 1 << 12

// keep returns the bytes of a string; they are valid until the scratch memory is used again. It
// formats an integer.
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

// since returns the bytes that were written from a position on.
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

// ZAddOptions restrict ZAdd. The zero value adds and changes members.
type ZAddOptions struct {
	IfAbsent  bool // NX: only add new members
	IfExists  bool // XX: only update existing members
	IfGreater bool // GT: only raise the score of an existing member
	IfLess    bool // LT: only lower the score of an existing member

	timed    bool  // members get the deadline below instead of keeping theirs
	deadline int64 // ms since 1970; 0: none
}

// when returns the deadline of a written member, as a plan (packed.Edit) needs it.
func (o *ZAddOptions) when() int64 {
	if o.timed {
		return o.deadline
	}
	return packed.Keep
}

// redates reports whether a member with this deadline gets another deadline.
func (o *ZAddOptions) redates(old int64) bool { return o.timed && old != o.deadline }

// ZAdd sets the scores of members. It returns the number of members that were added, and the number of
// existing ones that got a new score. A member keeps its deadline. O(log n) for each item; it allocates
// nothing. Errors: ErrWrongType; ErrFull, after ZAdd has handled the items before the one that did not fit.
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

// zcounts are the results of putAll: the number of members that are new, that have a new score, and
// that only have a new deadline.
type zcounts struct{ added, updated, redated int }

// putAll adds members to a set that writeZSet has looked up, or to a new one, and stores those that
// it wrote in the scratch arguments.
func (tx *Tx) putAll(h *hit, key []byte, items []Scored, o ZAddOptions) (n zcounts, err error) {
	large := len(items) > tx.db.layout.Load().ZSetEntries
	if large && h.r != nil && h.box() == nil {
		if err = tx.enlargeZSet(h, key, nil, 0); err != nil {
			return n, err
		}
	}
	if h.r == nil && !large && len(items) > 1 && !o.timed && !o.IfExists && tx.addFirstScored(h, key, items) {
		for i := range items {
			tx.zlog(&items[i])
		}
		return zcounts{added: len(items)}, nil
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
		tx.zlog(&items[i])
	}
	return n, nil
}

// zlog adds a member to the arguments of the effect, if there is a log.
func (tx *Tx) zlog(m *Scored) {
	if tx.db.logging.Load() {
		tx.z.number(m.Score)
		tx.z.args = append(tx.z.args, m.Member)
	}
}

// addFirstScored makes a small set of the members of a missing key. It returns false, and changes nothing, if
// a member is too long for this form or occurs twice, or if memory runs out.
func (tx *Tx) addFirstScored(h *hit, key []byte, items []Scored) bool {
	var seen seen
	longest := tx.db.layout.Load().ZSetValue
	p := packed.New(tx.vbuf, packed.KindZSet)
	for i := range items {
		m := &items[i]
		if len(m.Member) > longest || len(p)+len(m.Member) > maxSmall-itemRoom || p.Count() == packed.MaxItems {
			return false
		}
		if seen.note(tx, m.Member) {
			if _, twice := p.Find(m.Member, 0); twice {
				return false
			}
		}
		p = withScored(p, m.Member, smallScore(m.Score), 0)
	}
	tx.vbuf = p
	dst, err := tx.room(h, key, ZSet, len(p))
	if err != nil {
		return false
	}
	copy(dst, p)
	return true
}

// withScored adds a new member to an image in Go memory. It tries the end first, because members often arrive
// in order.
func withScored(p packed.Packed, member []byte, score float64, deadline int64) packed.Packed {
	if deadline == 0 && p.Follows(member, score) {
		return p.AppendScore(member, score)
	}
	e, _ := p.PutScore(member, score, deadline, 0)
	return e.Apply(grown(p, e.Size()))
}

// ZIncrBy adds to a member's score and returns the result. A missing member counts as one with the
// score 0. done is false if the options did not allow the change. The member keeps its deadline.
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
		tx.zlog(&Scored{by, member})
		tx.zadded(key, 1, "zincr")
	}
	return by, true, nil
}

// zadded logs, counts and reports n changes; the scratch arguments name them.
func (tx *Tx) zadded(key []byte, n int, event string) {
	if n > 0 {
		tx.emitItems("ZADD", key, tx.z.args)
		tx.dirty += n - 1
		tx.changed(key, EventZSet, event)
	}
}

// zoutcome is the result of putScored.
type zoutcome uint8

const (
	zRefused zoutcome = iota // the options did not allow it
	zSame                    // the member has that score already
	zAdded
	zUpdated
	zRedated // the member has that score already, but got another deadline
)

// decide returns the outcome for a living member whose score is old.
func (o *ZAddOptions) decide(old, score float64) zoutcome {
	switch {
	case o.IfAbsent, o.IfGreater && score <= old, o.IfLess && score >= old:
		return zRefused
	case score == old:
		return zSame
	}
	return zUpdated
}

// putScored sets the score of a member in a set that writeZSet has looked up, or in a new set. If
// large is set, a new set has the large form.
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
	e := p.ReplaceScore(at, m.Member, m.Score, o.when())
	dst, err := tx.room(h, key, ZSet, e.Size())
	if err != nil {
		return done, err
	}
	e.Apply(dst)
	return done, nil
}

// smallScore returns a score as small sets store it. As in Redis, they do not store a negative
// zero.
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

// rewriteScored sets the score of a living member of a large set, and its deadline if the options
// have one.
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

// addScored adds a dead or missing member, with a deadline, 0 for none, to a small or missing set. The set
// may become large.
func (tx *Tx) addScored(h *hit, key []byte, m Scored, deadline int64, large bool) error {
	l := tx.db.layout.Load()
	if !large && len(m.Member) <= l.ZSetValue {
		p := tx.imageOr(h, packed.KindZSet)
		if p.Count() < min(l.ZSetEntries, packed.MaxItems) {
			var e packed.Edit
			if deadline == 0 && p.Timed() == 0 {
				e = p.InsertScore(m.Member, smallScore(m.Score))
			} else {
				e, _ = p.PutScore(m.Member, smallScore(m.Score), deadline, tx.itemTime())
			}
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

// enlargeZSet makes a small or missing set large. If m is not nil, it adds m with a deadline.
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

// ZRem removes members and returns how many existed. It deletes the key if the set becomes empty.
// O(log n) for each. Errors: ErrWrongType.
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

// zremoved logs, counts and reports the removal of n members; left is the number of remaining ones.
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

// writeZSet looks up a key that must hold a sorted set or be missing, for a command that writes,
// and removes the due members.
func (tx *Tx) writeZSet(key []byte) (hit, error) {
	h, err := tx.container(key, ZSet)
	if err == nil && h.r != nil {
		tx.reapZSet(&h, key)
	}
	return h, err
}

// reapZSet removes the due members of a set, and drops the key if none is left. It does nothing in
// a replay. O(1) if no member is due.
func (tx *Tx) reapZSet(h *hit, key []byte) {
	for !tx.replay && h.r != nil && tx.dueIn(h) && tx.lapse(h, key, math.MaxInt) {
	}
}
