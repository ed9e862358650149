package engine

// This file implements the deadlines of members of sorted sets. Each method first removes the dead
// members, so the code below it only sees living ones.

// ZExpire gives members of a sorted set a deadline in ms since 1970, if the condition allows it, and calls
// visit for each with ItemMissing, ItemRefused, ItemDone or ItemOutlived. A deadline that is not in the
// future removes the member. ZExpire stores and compares a deadline beyond MaxItemDeadline as
// MaxItemDeadline. It deletes the key if the set becomes empty. O(log n) for each member of a large set.
// Errors: ErrWrongType; ErrFull, after the earlier members have been visited.
func (tx *Tx) ZExpire(key []byte, members [][]byte, deadline int64, c Condition, visit func(code int)) error {
	h, err := tx.writeZSet(key)
	if err != nil {
		return err
	}
	deadline = itemDeadline(deadline)
	past := tx.itemPast(deadline)
	tx.z.reset()
	done, left := 0, 0
	for _, m := range members {
		var code int
		if code, left, err = tx.expireScored(&h, key, m, deadline, c, past); err != nil {
			break
		}
		if code >= ItemDone {
			done++
			tx.z.args = append(tx.z.args, m)
		}
		visit(code)
	}
	switch {
	case done == 0:
	case past:
		tx.emitItems("ZREM", key, tx.z.args)
		tx.zremoved(&h, key, done, left, "zrem")
	default:
		if h.box() != nil {
			tx.wrote(&h)
		}
		tx.date(&h)
		tx.emitTimed("ZPEXPIREAT", key, deadline, "MEMBERS", tx.z.args)
		tx.dirty += done - 1
		tx.changed(key, EventZSet, "zexpire")
	}
	return err
}

// expireScored gives one member a deadline, or removes the member if past is set, and returns the
// number of members left. It keeps the key.
func (tx *Tx) expireScored(h *hit, key, member []byte, deadline int64, c Condition, past bool) (code, left int, err error) {
	if h.r == nil {
		return ItemMissing, 0, nil
	}
	if b := h.box(); b != nil {
		code, err = tx.expireInTree(b.(zsetTree), member, deadline, c, past)
		return code, b.(zsetTree).Count(), err
	}
	p := h.image()
	left = p.Count()
	at, ok := p.Find(member, tx.itemTime())
	switch {
	case !ok:
		return ItemMissing, left, nil
	case !c.allows(p.Deadline(at), deadline):
		return ItemRefused, left, nil
	case past:
		tx.shrunk(h, p.Delete(at))
		return ItemOutlived, left - 1, nil
	}
	return ItemDone, left, tx.stampItem(h, key, ZSet, p.SetDeadline(at, deadline))
}

func (tx *Tx) expireInTree(t zsetTree, member []byte, deadline int64, c Condition, past bool) (code int, err error) {
	now := tx.itemTime()
	p := t.Look(member, now)
	if !p.Living {
		return ItemMissing, nil
	}
	old, _ := t.Deadline(member, now)
	switch {
	case !c.allows(old, deadline):
		return ItemRefused, nil
	case past:
		t.Remove(p)
		return ItemOutlived, nil
	}
	if _, err := t.SetDeadline(member, deadline, now); err != nil {
		return 0, ErrFull
	}
	return ItemDone, nil
}

// ZDeadlines calls visit for each of some members with its deadline in ms since 1970, NoDeadline,
// or NoKey if there is no such member. It counts as an access. Errors: ErrWrongType.
func (tx *Tx) ZDeadlines(key []byte, members [][]byte, visit func(deadline int64)) error {
	v, err := tx.ZSet(key, false)
	if err != nil {
		return err
	}
	for _, m := range members {
		visit(v.Deadline(m))
	}
	return nil
}

// ZPersist removes the deadlines of members and calls visit for each with ItemMissing, ItemUntimed or
// ItemDone. Errors: ErrWrongType; ErrFull, after the earlier members have been visited.
func (tx *Tx) ZPersist(key []byte, members [][]byte, visit func(code int)) error {
	h, err := tx.writeZSet(key)
	if err != nil {
		return err
	}
	tx.z.reset()
	for _, m := range members {
		var code int
		if code, err = tx.persistScored(&h, key, m); err != nil {
			break
		}
		if code == ItemDone {
			tx.z.args = append(tx.z.args, m)
		}
		visit(code)
	}
	if n := len(tx.z.args); n > 0 {
		if h.box() != nil {
			tx.wrote(&h)
		}
		tx.emitCounted("ZPERSIST", key, "MEMBERS", tx.z.args)
		tx.dirty += n - 1
		tx.changed(key, EventZSet, "zpersist")
	}
	return err
}

func (tx *Tx) persistScored(h *hit, key, member []byte) (code int, err error) {
	v := tx.viewZSet(h)
	switch v.Deadline(member) {
	case NoKey:
		return ItemMissing, nil
	case NoDeadline:
		return ItemUntimed, nil
	}
	if v.large != nil {
		v.large.ClearDeadline(member, v.now)
		return ItemDone, nil
	}
	at, _ := v.small.Find(member, v.now)
	return ItemDone, tx.stampItem(h, key, ZSet, v.small.SetDeadline(at, 0))
}

// ZAddEx does the work of ZAdd with a deadline: the written members get it, or lose theirs if it is 0. With a
// deadline that is not in the future, it removes the existing members and adds none. It uses Deadline, Keep
// and Max of t. Errors: the errors of ZAdd; BoundError, and nothing has changed.
func (tx *Tx) ZAddEx(key []byte, items []Scored, o ZAddOptions, t ItemOptions) (added, updated int, err error) {
	if t.Deadline != 0 {
		if t.Deadline = itemDeadline(t.Deadline); tx.itemPast(t.Deadline) {
			return tx.addOutlived(key, items, o)
		}
	}
	h, err := tx.writeZSet(key)
	if err != nil || h.r == nil && o.IfExists {
		return 0, 0, err
	}
	if err := tx.zbounded(&h, key, items, o, t.Max); err != nil {
		return 0, 0, err
	}
	o.timed, o.deadline = !t.Keep, t.Deadline
	tx.z.reset()
	n, err := tx.putAll(&h, key, items, o)
	all := n.added + n.updated + n.redated
	if all == 0 {
		return 0, 0, err
	}
	if o.deadline != 0 {
		tx.date(&h)
	}
	tx.emitAddEx(key, o)
	tx.dirty += all - 1
	tx.changed(key, EventZSet, "zadd")
	if o.deadline != 0 {
		tx.changedTime(key, EventZSet, "zexpire")
	}
	return n.added, n.updated, err
}

// zbounded returns a BoundError if the new ones among items would exceed the bound.
func (tx *Tx) zbounded(h *hit, key []byte, items []Scored, o ZAddOptions, limit int) error {
	v := tx.viewZSet(h)
	if limit == 0 || o.IfExists {
		return nil
	}
	return bounded(key, v.Len(), limit, len(items), func(i int) []byte { return items[i].Member }, func(member []byte) bool {
		_, there := v.Score(member)
		return there
	})
}

// emitAddEx logs the members of the scratch arguments: a ZADD, and then the command that sets or
// removes their deadlines.
func (tx *Tx) emitAddEx(key []byte, o ZAddOptions) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	tx.emitItems("ZADD", key, tx.z.args)
	if !o.timed {
		return
	}
	members := make([][]byte, 0, len(tx.z.args)/2)
	for i := 1; i < len(tx.z.args); i += 2 {
		members = append(members, tx.z.args[i])
	}
	if o.deadline != 0 {
		tx.emitTimed("ZPEXPIREAT", key, o.deadline, "MEMBERS", members)
	} else {
		tx.emitCounted("ZPERSIST", key, "MEMBERS", members)
	}
}

// addOutlived does the work of ZAddEx with a deadline that has passed: it removes the members that the
// options allow to write.
func (tx *Tx) addOutlived(key []byte, items []Scored, o ZAddOptions) (added, updated int, err error) {
	v, err := tx.ZSet(key, false)
	if err != nil {
		return 0, 0, err
	}
	var gone [][]byte
	for i := range items {
		old, there := v.Score(items[i].Member)
		switch {
		case !there && !o.IfExists:
			added++
		case there && o.decide(old, items[i].Score) != zRefused:
			gone = append(gone, items[i].Member)
			if old != items[i].Score {
				updated++
			}
		}
	}
	_, err = tx.ZRem(key, gone)
	return added, updated, err
}
