package engine

import "math"

// This file takes the members of sorted sets whose scores are due times.

// Due returns a walk over up to count members that are due at the transaction's instant, lowest
// scores first. O(log n).
func (v *ZSetView) Due(d Due, count int) ZWalk {
	return v.Range(&ZRange{By: ByScore, Min: ScoreBound{Score: math.Inf(-1)}, Max: ScoreBound{Score: d.Cutoff(v.tx.now)}, Limited: true, Count: int64(count)})
}

// ZPopDue removes up to count members that are due, lowest scores first, and returns their number. If there are any,
// it first calls begin with their number, and then visit with each, before it removes them. O(log n)
// for each. Errors: ErrWrongType.
func (tx *Tx) ZPopDue(key []byte, d Due, count int, begin func(n int), visit func(member []byte, score float64)) (n int, err error) {
	h, err := tx.writeZSet(key)
	if err != nil || h.r == nil {
		return 0, err
	}
	v := tx.viewZSet(&h)
	w := v.Due(d, count)
	if n = w.Len(); n == 0 {
		return 0, nil
	}
	begin(n)
	logged := tx.db.logging.Load()
	tx.z.reset()
	for w.Next() {
		member := w.Member()
		visit(member, w.Score())
		if logged {
			tx.z.args = append(tx.z.args, tx.z.copied(member))
		}
	}
	tx.emitItems("ZREM", key, tx.z.args)
	left := tx.zcut(&h, v, 0, n)
	tx.zremoved(&h, key, n, left, "zrem")
	return n, nil
}

// dueMembers are copies of members that are due, in their order.
type dueMembers struct {
	members   [][]byte
	scores    []float64
	deadlines []int64
}

// takeDue copies up to count due members of a set. The copies use the scratch memory.
func (tx *Tx) takeDue(v *ZSetView, d Due, count int) (m dueMembers) {
	tx.z.reset()
	for w := v.Due(d, count); w.Next(); {
		tx.z.args = append(tx.z.args, tx.z.copied(w.Member()))
		m.scores = append(m.scores, w.Score())
		m.deadlines = append(m.deadlines, w.Deadline())
	}
	m.members = tx.z.args
	return m
}

// reply calls begin with the number of members, and then visit with each.
func (m *dueMembers) reply(begin func(n int), visit func(member []byte, score float64)) {
	begin(len(m.members))
	for i, member := range m.members {
		visit(member, m.scores[i])
	}
}

// ZMoveDue moves up to count members that are due to an end of a list, one after the other, lowest scores first, with
// their deadlines. It returns their number. If there are any, it calls begin with their number, and
// then visit with each and the score by which it was due. It moves all or, after an error, none.
// O(log n) for each. Errors: ErrWrongType, ErrFull.
func (tx *Tx) ZMoveDue(from, to []byte, end End, d Due, count int, begin func(n int), visit func(member []byte, score float64)) (n int, err error) {
	src, err := tx.writeZSet(from)
	if err != nil {
		return 0, err
	}
	dst, err := tx.writeList(to)
	if err != nil || src.r == nil {
		return 0, err
	}
	v := tx.viewZSet(&src)
	m := tx.takeDue(&v, d, count)
	if n = len(m.members); n == 0 {
		return 0, nil
	}
	b := movedBlock{elems: m.members, end: end, deadlines: m.deadlines}
	if err := tx.addBlock(&dst, to, b); err != nil {
		return 0, err
	}
	m.reply(begin, visit)
	left := tx.cutDue(&src, from, n)
	tx.emitItems("ZREM", from, m.members)
	tx.emitItems(pushCommand[end], to, m.members)
	tx.emitDeadlines(to, b)
	tx.changed(to, EventList, pushed[end])
	tx.dirty--
	tx.zremoved(&src, from, n, left, "zrem")
	return n, nil
}

// cutDue removes the n members with the lowest scores after another key was written, and returns the number
// of members left.
func (tx *Tx) cutDue(src *hit, key []byte, n int) (left int) {
	*src = tx.find(key) // the write may have moved the position of the source
	return tx.zcut(src, tx.viewZSet(src), 0, n)
}

// ZPostponeDue moves up to count due members to another sorted set, or within the same one, with their
// deadlines. Their new score is the transaction's instant plus delay us. It returns their number. If there
// are any, it calls begin with their number, and then visit with each and its old score. It moves all or,
// after an error, none. O(log n) for each. Errors: ErrWrongType, ErrFull.
func (tx *Tx) ZPostponeDue(from, to []byte, delay int64, d Due, count int, begin func(n int), visit func(member []byte, score float64)) (n int, err error) {
	src, err := tx.writeZSet(from)
	if err != nil {
		return 0, err
	}
	same := string(from) == string(to)
	dst := src
	if !same {
		dst, err = tx.writeZSet(to)
	}
	if err != nil || src.r == nil {
		return 0, err
	}
	v := tx.viewZSet(&src)
	m := tx.takeDue(&v, d, count)
	if n = len(m.members); n == 0 {
		return 0, nil
	}
	score := d.Score(tx.now + delay)
	redated, err := tx.putDue(&dst, to, m, score, !same)
	if err != nil {
		return 0, err
	}
	m.reply(begin, visit)
	left := 1
	if !same {
		left = tx.cutDue(&src, from, n)
		tx.emitItems("ZREM", from, m.members)
	}
	tx.emitPostponed(to, m, score, redated)
	tx.changed(to, EventZSet, "zadd")
	if same {
		tx.dirty += n - 1
		return n, nil
	}
	tx.dirty--
	tx.zremoved(&src, from, n, left, "zrem")
	return n, nil
}

// putDue gives members a score in a set. With dated, they also get their deadlines; redated are the indexes
// of members whose deadline has changed. If memory runs out, it restores the set.
func (tx *Tx) putDue(dst *hit, key []byte, m dueMembers, score float64, dated bool) (redated []int, err error) {
	type state struct {
		score    float64
		deadline int64
		there    bool
	}
	olds := make([]state, len(m.members))
	for i, member := range m.members {
		v := tx.viewZSet(dst)
		old := &olds[i]
		if old.score, old.there = v.Score(member); old.there {
			old.deadline = max(v.Deadline(member), 0)
		}
		if dated && old.deadline != m.deadlines[i] {
			redated = append(redated, i)
		}
		o := ZAddOptions{timed: dated, deadline: m.deadlines[i]}
		if _, err = tx.putScored(dst, key, Scored{score, member}, o, false); err == nil {
			continue
		}
		for ; i > 0; i-- {
			old, member := &olds[i-1], m.members[i-1]
			if o.deadline = old.deadline; old.there {
				_, _ = tx.putScored(dst, key, Scored{old.score, member}, o, false) // the space that it had is free
			} else {
				tx.takeScored(dst, member)
			}
		}
		return nil, err
	}
	tx.date(dst)
	return redated, nil
}

// takeScored removes a member of a set without effects, and the key of an empty set.
func (tx *Tx) takeScored(h *hit, member []byte) {
	v := tx.viewZSet(h)
	rank, _, ok := v.Rank(member)
	if !ok {
		return
	}
	if tx.zcut(h, v, rank, 1) == 0 {
		tx.drop(h)
	} else if h.box() != nil {
		tx.wrote(h)
	}
}

// emitPostponed logs the members with their new score, and the deadlines that have changed.
func (tx *Tx) emitPostponed(key []byte, m dueMembers, score float64, redated []int) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	args := make([][]byte, 0, 2*len(m.members))
	at := len(tx.z.flat)
	tx.z.number(score)
	text := tx.z.since(at)
	for _, member := range m.members {
		args = append(args, text, member)
	}
	tx.emitItems("ZADD", key, args)
	byDeadline(len(redated), func(i int) int64 { return m.deadlines[redated[i]] }, func(deadline int64, of []int) {
		args = args[:0]
		for _, i := range of {
			args = append(args, m.members[redated[i]])
		}
		if deadline == 0 {
			tx.emitCounted("ZPERSIST", key, "MEMBERS", args)
		} else {
			tx.emitTimed("ZPEXPIREAT", key, deadline, "MEMBERS", args)
		}
	})
}
