package engine

import (
	"math/big"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
)

// A hash has the small form, a packed image, up to Layout.HashEntries fields and while no field and
// no value is longer than Layout.HashValue. After that it is a table, and stays one. Each field can
// have a deadline: writing a value clears it, and the increments keep it.

// hashTable is a large hash.
type hashTable struct{ *dict.Dict }

func (tx *Tx) newHashTable() hashTable {
	return hashTable{dict.New(dict.Config{Memory: tx.db.chunks, Seed: tx.db.seed, ValueSize: dict.Variable})}
}

// Clone implements box. It clones dead items too, as a replay of COPY does.
func (t hashTable) Clone(tx *Tx) (box, error) {
	c := tx.newHashTable()
	for it := range t.Iter(0) {
		if _, err := c.Add(it.Key, it.Value, it.Deadline); err != nil {
			discard(c)
			return nil, ErrFull
		}
	}
	return c, nil
}

// HSet sets fields of a hash, given as field, value, field, value ..., and returns the number of new fields.
// It clears their deadlines. Expected O(1) for each pair; it allocates nothing. Errors: ErrWrongType;
// ErrFull, after HSet has set the pairs before the one that did not fit.
func (tx *Tx) HSet(key []byte, pairs [][]byte) (added int, err error) {
	h, err := tx.container(key, Hash)
	if err != nil {
		return 0, err
	}
	done, large := 0, len(pairs)/2 > tx.db.layout.Load().HashEntries
	for ; done < len(pairs); done += 2 {
		var was packed.State
		if was, err = tx.putField(&h, key, pairs[done], pairs[done+1], 0, large); err != nil {
			break
		}
		if was != packed.Living {
			added++
		}
	}
	if done > 0 {
		tx.emitItems("HSET", key, pairs[:done])
		tx.dirty += done/2 - 1
		tx.changed(key, EventHash, "hset")
	}
	return added, err
}

// HSetNX sets a field that does not exist, and reports whether it did. Errors: ErrWrongType,
// ErrFull.
func (tx *Tx) HSetNX(key, field, value []byte) (bool, error) {
	h, err := tx.container(key, Hash)
	if err != nil {
		return false, err
	}
	v := tx.viewHash(&h)
	if _, ok := v.Get(field); ok {
		return false, nil
	}
	if _, err := tx.putField(&h, key, field, value, 0, false); err != nil {
		return false, err
	}
	tx.emit("HSET", key, field, value)
	tx.changed(key, EventHash, "hset")
	return true, nil
}

// HDel removes fields and returns the number that existed. It deletes the key if the hash becomes empty.
// Errors: ErrWrongType.
func (tx *Tx) HDel(key []byte, fields [][]byte) (n int, err error) {
	h, err := tx.container(key, Hash)
	if err != nil || h.r == nil {
		return 0, err
	}
	now := tx.itemTime()
	if b := h.box(); b != nil {
		t := b.(hashTable)
		for _, f := range fields {
			if ref, ok := t.Find(f); ok && t.Alive(ref, now) {
				t.Remove(ref)
				n++
			}
		}
	} else {
		p := h.image()
		for _, f := range fields {
			if at, ok := p.Find(f, now); ok {
				p = p.Delete(at)
				n++
			}
		}
		if n > 0 {
			tx.shrunk(&h, p)
		}
	}
	if n > 0 {
		tx.removedItems(&fieldsOf, &h, key, fields, n, "hdel")
	}
	return n, nil
}

// HIncrBy adds to the integer in a field and returns the result. A missing field
// counts as 0. It allocates nothing. Errors: ErrWrongType, ErrFieldNotInteger,
// ErrOverflow, ErrFull.
func (tx *Tx) HIncrBy(key, field []byte, by int64) (int64, error) {
	h, err := tx.container(key, Hash)
	if err != nil {
		return 0, err
	}
	v := tx.viewHash(&h)
	n, there, err := v.integer(field)
	if err != nil {
		return 0, err
	}
	if overflows(n, by) {
		return 0, ErrOverflow
	}
	n += by
	val := tx.itoa(0, n)
	if _, err := tx.putField(&h, key, field, val, packed.Keep, false); err != nil {
		return 0, err
	}
	if there {
		tx.emit("HINCRBY", key, field, tx.itoa(1, by))
	} else {
		tx.emit("HSET", key, field, val) // clears the deadline of a dead field that a replay may see
	}
	tx.changed(key, EventHash, "hincrby")
	return n, nil
}

// HIncrByFloat adds to the number in a field and returns the stored result, as
// IncrByFloat does. Errors: ErrNotFloat and ErrInfinite for by, ErrWrongType,
// ErrFieldNotFloat, ErrNaN, ErrFull.
func (tx *Tx) HIncrByFloat(key, field, by []byte) ([]byte, error) {
	var d *big.Float // parsed if the fast path does not apply
	if _, short := parseDecimal(by); !short {
		var err error
		if d, err = parseFloat(by); err != nil {
			return nil, err
		}
		if d.IsInf() {
			return nil, ErrInfinite
		}
	}
	h, err := tx.container(key, Hash)
	if err != nil {
		return nil, err
	}
	v := tx.viewHash(&h)
	old, there := v.Get(field)
	if !there {
		old = []byte("0")
	}
	out, short := tx.addDecimals(old, by)
	if !short {
		n, err := parseFloat(old)
		if err != nil {
			return nil, ErrFieldNotFloat
		}
		if d == nil {
			if d, err = parseFloat(by); err != nil {
				return nil, err
			}
		}
		if n, err = addFloat(n, d); err != nil {
			return nil, err
		}
		out = formatFloat(n)
	}
	if _, err := tx.putField(&h, key, field, out, packed.Keep, false); err != nil {
		return nil, err
	}
	tx.emitIncrement(&h, key, field, by, out)
	tx.changed(key, EventHash, "hincrbyfloat")
	return out, nil
}

// emitIncrement logs a field's new number as HSET, so that a replay does not calculate. HSET clears a
// deadline, so for a field with a deadline emitIncrement logs the client's command instead.
func (tx *Tx) emitIncrement(h *hit, key, field, by, val []byte) {
	if !tx.db.logging.Load() {
		return
	}
	v := tx.viewHash(h)
	if v.Deadline(field) > 0 {
		tx.emit("HINCRBYFLOAT", key, field, by)
		return
	}
	tx.emit("HSET", key, field, val)
}

// putField sets a field of the hash that container has looked up, or creates the hash. It returns the earlier
// state of the field; a dead field counts as expired. deadline may be packed.Keep. If large is set, the hash
// becomes large in any case.
func (tx *Tx) putField(h *hit, key, field, value []byte, deadline int64, large bool) (packed.State, error) {
	dead := tx.deadUnder(h, field)
	was, err := tx.storeField(h, key, field, value, deadline, large)
	if dead != 0 && err == nil {
		tx.lapsed(h.sh, LevelField, key, field, nil, dead)
	}
	return was, err
}

func (tx *Tx) storeField(h *hit, key, field, value []byte, deadline int64, large bool) (packed.State, error) {
	if h.r != nil {
		if b := h.box(); b != nil {
			was, err := tx.putInTable(b.(hashTable).Dict, field, value, deadline)
			if err == nil {
				tx.wrote(h)
			}
			return was, err
		}
	}
	l := tx.db.layout.Load()
	if !large && max(len(field), len(value)) <= l.HashValue {
		p := tx.imageOr(h, packed.KindHash)
		e, was := p.PutField(field, value, deadline, tx.itemTime())
		count := p.Count()
		if was == packed.Absent {
			count++
		}
		if count <= min(l.HashEntries, packed.MaxItems) && e.Size() <= maxSmall {
			dst, err := tx.room(h, key, Hash, e.Size())
			if err != nil {
				return was, err
			}
			e.Apply(dst)
			return was, nil
		}
	}
	return tx.putEnlarged(h, key, field, value, deadline)
}

// putEnlarged makes a small or missing hash large, and sets a field in it.
func (tx *Tx) putEnlarged(h *hit, key, field, value []byte, deadline int64) (packed.State, error) {
	t := tx.newHashTable()
	was, err := packed.Absent, tx.fillTable(t, h)
	if err == nil {
		was, err = tx.putInTable(t.Dict, field, value, deadline)
	}
	if err == nil {
		err = tx.enlarge(h, key, Hash, t)
	}
	if err != nil {
		discard(t)
		return was, ErrFull
	}
	tx.wrote(h)
	return was, nil
}

// fillTable copies the fields of a small hash, including dead ones that the reclaimer has not removed yet.
func (tx *Tx) fillTable(t hashTable, h *hit) error {
	if h.r == nil {
		return nil
	}
	for it := h.image().Iter(0); it.Next(); {
		if _, err := t.Add(tx.text(2, it.Key()), tx.text(3, it.Value()), it.Deadline()); err != nil {
			return err
		}
	}
	return nil
}

// NextDue implements dated.
func (t hashTable) NextDue() int64 { d, _ := t.Earliest(); return d }
