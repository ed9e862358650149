package engine

import "github.com/ebbdb/ebb/internal/packed"

// This file implements the deadlines of hash fields. ttl_items_keyed.go has the code that hashes share with
// sets.

// HExpire gives fields of a hash a deadline in ms since 1970, if the condition allows it, and calls visit for
// each with ItemMissing, ItemRefused, ItemDone or ItemOutlived. A deadline that is not in the future removes
// the field. HExpire stores and compares a deadline beyond MaxItemDeadline as MaxItemDeadline. It removes a
// hash that becomes empty. O(log n) for each field of a large hash. Errors: ErrWrongType; ErrFull, after
// visit has been called for the earlier fields.
func (tx *Tx) HExpire(key []byte, fields [][]byte, deadline int64, c Condition, visit func(code int)) error {
	return tx.expireKeyed(&fieldsOf, key, fields, deadline, c, visit)
}

// HDeadlines calls visit for each of the fields with its deadline in ms since 1970, NoDeadline, or
// NoKey if there is no such field. It counts as an access. O(1) for each field of a large hash.
// Errors: ErrWrongType.
func (tx *Tx) HDeadlines(key []byte, fields [][]byte, visit func(deadline int64)) error {
	v, err := tx.Hash(key)
	if err != nil {
		return err
	}
	for _, f := range fields {
		visit(v.Deadline(f))
	}
	return nil
}

// HPersist removes the deadlines of fields and calls visit for each with ItemMissing,
// ItemUntimed or ItemDone. It needs no memory. Errors: ErrWrongType.
func (tx *Tx) HPersist(key []byte, fields [][]byte, visit func(code int)) error {
	return tx.persistKeyed(&fieldsOf, key, fields, visit)
}

// HSetEx sets fields of a hash, given as field, value, field, value ..., all of them or none, with a
// deadline: that of the options, or, with Keep, the current one of each field. OnlyNew requires that none of
// the fields exists before, OnlyOld that all do. With a deadline that is not in the future, none of them
// remains. It reports whether it has set them. Expected O(1) for each pair. Errors: ErrWrongType; BoundError,
// and nothing has changed; ErrFull, after the pairs before the one that did not fit were set.
func (tx *Tx) HSetEx(key []byte, pairs [][]byte, o ItemOptions) (bool, error) {
	h, err := tx.container(key, Hash)
	if err != nil {
		return false, err
	}
	v := tx.viewHash(&h)
	if !v.meet(pairs, o) {
		return false, nil
	}
	deadline := itemDeadline(o.Deadline)
	if o.Deadline != 0 && tx.itemPast(deadline) {
		tx.setAndGone(&h, key, pairs)
		return true, nil
	}
	field := func(i int) []byte { return pairs[2*i] }
	if err := bounded(key, v.Len(), o.Max, len(pairs)/2, field, v.has); err != nil {
		return false, err
	}
	if o.Keep {
		deadline = packed.Keep
	}
	done, large := 0, len(pairs)/2 > tx.db.layout.Load().HashEntries
	for ; done < len(pairs) && err == nil; done += 2 {
		_, err = tx.putField(&h, key, pairs[done], pairs[done+1], deadline, large)
	}
	if err != nil {
		done -= 2
	}
	if done > 0 {
		tx.fieldsSet(&h, key, pairs[:done], deadline)
	}
	return err == nil, err
}

// meet reports whether the fields satisfy OnlyNew and OnlyOld.
func (v *HashView) meet(pairs [][]byte, o ItemOptions) bool {
	if !o.OnlyNew && !o.OnlyOld {
		return true
	}
	for i := 0; i < len(pairs); i += 2 {
		if v.has(pairs[i]) != o.OnlyOld {
			return false
		}
	}
	return true
}

func (v *HashView) has(field []byte) bool { return v.Deadline(field) != NoKey }

// fieldsSet logs, counts and reports the change of HSetEx. The deadline may be packed.Keep.
func (tx *Tx) fieldsSet(h *hit, key []byte, pairs [][]byte, deadline int64) {
	tx.emitItems("HSET", key, pairs)
	tx.dirty += len(pairs)/2 - 1
	tx.changed(key, EventHash, "hset")
	switch {
	case deadline == packed.Keep:
		tx.emitKept(h, key, pairs)
	case deadline > 0:
		var fields [][]byte
		for i := 0; i < len(pairs) && tx.db.logging.Load(); i += 2 {
			fields = append(fields, pairs[i])
		}
		tx.date(h)
		tx.emitTimed("HPEXPIREAT", key, deadline, "FIELDS", fields)
		tx.changed(key, EventHash, "hexpire")
		tx.dirty--
	}
}

// emitKept logs the deadlines that fields have kept, because the HSET that logs their values would clear
// them.
func (tx *Tx) emitKept(h *hit, key []byte, pairs [][]byte) {
	if !tx.db.logging.Load() {
		return
	}
	v := tx.viewHash(h)
	for i := 0; i < len(pairs); i += 2 {
		if d := v.Deadline(pairs[i]); d > 0 {
			tx.emitTimed("HPEXPIREAT", key, d, "FIELDS", pairs[i:i+1])
		}
	}
}

// setAndGone sets fields with a deadline that has passed: it removes the existing ones, and sends the events
// of the set and of the removal.
func (tx *Tx) setAndGone(h *hit, key []byte, pairs [][]byte) {
	if h.r == nil {
		tx.passed(key)
	}
	var gone [][]byte
	for i := 0; i < len(pairs); i += 2 {
		if tx.deadlineIn(h, pairs[i]) != NoKey {
			tx.removeItem(h, pairs[i])
			gone = append(gone, pairs[i])
		}
	}
	tx.changed(key, EventHash, "hset")
	if len(gone) > 0 {
		tx.removedItems(&fieldsOf, h, key, gone, len(gone), "hdel")
		return
	}
	tx.changed(key, EventHash, "hdel")
	if h.r == nil {
		tx.gone(key)
	}
}

// HGetEx calls visit with the value of each field, with ok false for a missing one. It gives the
// fields a deadline or, with Persist, removes it. A deadline that is not in the future removes the
// fields after the read. It counts as an access, which also extends the sliding deadline of the
// key. Errors: ErrWrongType; ErrFull, and visit has not been called.
func (tx *Tx) HGetEx(key []byte, fields [][]byte, o ItemOptions, visit func(value []byte, ok bool)) error {
	h, err := tx.open(key, Hash)
	if err != nil {
		return err
	}
	deadline := itemDeadline(o.Deadline)
	var few [8][]byte
	done := few[:0]
	switch {
	case o.Deadline != 0 && tx.itemPast(deadline):
		tx.takeFields(&h, key, fields, visit)
		return nil
	case o.Deadline != 0:
		for _, f := range fields {
			if tx.deadlineIn(&h, f) == NoKey {
				continue
			}
			if err = tx.setItemDeadline(&fieldsOf, &h, key, f, deadline); err != nil {
				break
			}
			done = append(done, f)
		}
		if len(done) > 0 {
			tx.datedItems(&fieldsOf, &h, key, done, deadline)
		}
	case o.Persist:
		for _, f := range fields {
			if tx.deadlineIn(&h, f) > 0 {
				tx.clearDeadline(&h, f)
				done = append(done, f)
			}
		}
		tx.persisted(&fieldsOf, &h, key, done)
	}
	if err != nil {
		return err
	}
	for v, i := tx.viewHash(&h), 0; i < len(fields); i++ {
		visit(v.Get(fields[i]))
	}
	return nil
}

// HGetDel calls visit with the value of each field, with ok false for a missing one, and
// removes the field. It removes a hash that becomes empty. Expected O(1) for each field.
// Errors: ErrWrongType.
func (tx *Tx) HGetDel(key []byte, fields [][]byte, visit func(value []byte, ok bool)) error {
	h, err := tx.open(key, Hash)
	if err == nil {
		tx.takeFields(&h, key, fields, visit)
	}
	return err
}

// takeFields visits the values of fields and removes them, one after the other, so that a field that is named
// twice is missing the second time.
func (tx *Tx) takeFields(h *hit, key []byte, fields [][]byte, visit func(value []byte, ok bool)) {
	var few [8][]byte
	done := few[:0]
	for _, f := range fields {
		v := tx.viewHash(h)
		val, ok := v.Get(f)
		visit(val, ok)
		if ok {
			tx.removeItem(h, f)
			done = append(done, f)
		}
	}
	if len(done) > 0 {
		tx.removedItems(&fieldsOf, h, key, done, len(done), "hdel")
	}
}
