package engine

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/ordered"
	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/stream"
)

// This file gives access to the living items of containers and to their deadlines, whatever the layout, for a
// walk over the keyspace and for a lookup of one key.

// Item is an item of a container during a walk: a hash's field and value, a
// list's element, a set's member, a sorted set's member and score.
type Item struct {
	Key      []byte // field, element or member
	Value    []byte // of a field
	Score    float64
	Deadline int64 // ms since 1970; 0: none
}

// walker is a box that visits its living items. Lists and sorted sets visit them in order.
type walker interface {
	walk(now int64, visit func(Item))
}

// Lookup returns a key for a walk over its value; ok is false if there is no such key. It does not
// count as an access. The result is valid until the next write.
func (tx *Tx) Lookup(key []byte) (k Key, ok bool) {
	h := tx.find(key)
	if h.r == nil {
		return Key{}, false
	}
	return Key{tx, h.sp, h.r, h.ref()}, true
}

// Items visits the living items of a hash, list, set or sorted set; the item is valid during the
// call. O(items). A stream's entries are not items.
func (k Key) Items(visit func(Item)) {
	now := k.tx.itemTime()
	h := hit{sp: k.sp, r: k.r}
	switch kind := k.Kind(); {
	case kind.plain():
	case h.box() != nil:
		if w, ok := h.box().(walker); ok {
			w.walk(now, visit)
		}
	case h.image().Kind() == packed.KindIntSet:
		s := packed.IntSet(h.image())
		for i := range s.Len() {
			visit(Item{Key: k.tx.itoa(2, s.At(i))})
		}
	default:
		k.walkImage(h.image(), now, visit)
	}
}

// Payload returns the bytes that DUMP writes for a value of a kind that Redis does
// not have; nil for others. O(value).
func (k Key) Payload() []byte {
	m := moduleOf(k.Kind())
	if m.dump == nil {
		return nil
	}
	return bytes.Clone(m.dump(k.tx, new(rdb.Encoder), &hit{sh: k.sp.sh, sp: k.sp, r: k.r}))
}

func (k Key) walkImage(p packed.Packed, now int64, visit func(Item)) {
	for it := p.Iter(now); it.Next(); {
		x := Item{Key: k.tx.text(2, it.Key()), Deadline: it.Deadline()}
		switch p.Kind() {
		case packed.KindHash:
			x.Value = k.tx.text(3, it.Value())
		case packed.KindZSet:
			x.Score = it.Score()
		}
		visit(x)
	}
}

// Len returns the number of living items, as Items visits them.
func (k Key) Len() int {
	n := 0
	k.Items(func(Item) { n++ })
	return n
}

func (t hashTable) walk(now int64, visit func(Item)) {
	for it := range t.Iter(now) {
		visit(Item{Key: it.Key, Value: it.Value, Deadline: it.Deadline})
	}
}

func (t setTable) walk(now int64, visit func(Item)) {
	for it := range t.Iter(now) {
		visit(Item{Key: it.Key, Deadline: it.Deadline})
	}
}

func (t zsetTree) walk(now int64, visit func(Item)) {
	for w := t.WalkFrom(ordered.Start, now); w.Next(); {
		e := w.Entry()
		visit(Item{Key: e.Member, Score: e.Score, Deadline: e.Deadline})
	}
}

// Stream returns a stream's value, for reading its entries and groups; nil if the key holds another
// kind. The caller must not change it.
func (k Key) Stream() *stream.Stream {
	h := hit{sp: k.sp, r: k.r}
	if k.Kind() != Stream {
		return nil
	}
	return h.box().(streamBox).Stream
}

// sealSize is the size in bytes of the type, the version and the checksum of a DUMP payload.
const sealSize = 11

// SerializedSize returns the size of a value in a snapshot, in bytes; ok is false if there is no such key. It
// does not count as an access. O(value).
func (tx *Tx) SerializedSize(key []byte) (n int, ok bool) {
	h := tx.find(key)
	if h.r == nil {
		return 0, false
	}
	return len(tx.dump(nil, h)) - sealSize, true
}

// ValueSize estimates the size of a key's value in bytes, and so the cost of a walk over it; 0 if there is no
// such key. It does not count as an access. O(1).
func (tx *Tx) ValueSize(key []byte) int {
	h := tx.find(key)
	switch {
	case h.r == nil:
		return 0
	case h.r.has(flagExt):
		return h.sp.exts[handleOf(h.r.inlineValue())].size
	}
	return h.r.valueLen()
}
