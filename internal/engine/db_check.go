package engine

import (
	"errors"
	"fmt"
	"maps"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/packed"
)

// Check verifies the invariants of the whole engine: tables, wheels, containers, counters, and the
// lines of waiting clients. It is for tests, because it locks all shards and costs O(keys and
// items). The error names the first place where an invariant is broken.
func (db *DB) Check() error {
	tx := db.BeginAll(0)
	defer tx.Commit()
	boxes := 0
	for _, sh := range db.shards {
		boxes += len(sh.lazyFree)
		for i, sp := range sh.spaces {
			if sp == nil {
				continue
			}
			n, err := sp.check(i)
			if err != nil {
				return fmt.Errorf("shard %d, database %d: %w", sh.id, i, err)
			}
			boxes += n
		}
		if err := sh.checkLines(); err != nil {
			return fmt.Errorf("shard %d: %w", sh.id, err)
		}
	}
	if err := tx.checkWakes(); err != nil {
		return err
	}
	if err := db.checkLeases(); err != nil {
		return err
	}
	if n := db.chunks.Live(); boxes == 0 && n != 0 {
		return fmt.Errorf("%d bytes of chunks are lent, but there is no large container", n)
	}
	return nil
}

// check verifies a space and returns the number of its large containers.
func (sp *space) check(db int) (boxes int, err error) {
	if sp.db != db {
		return 0, fmt.Errorf("the space has the database number %d", sp.db)
	}
	if err := sp.tab.Check(); err != nil {
		return 0, err
	}
	c := &spaceCheck{sp: sp, used: make([]bool, len(sp.exts))}
	sp.tab.Each(func(ref arena.Ref) {
		if err == nil {
			if err = c.record(ref); err != nil {
				err = fmt.Errorf("key %.100q: %w", sp.key(sp.rec(ref)), err)
			}
		}
	})
	if err != nil {
		return 0, err
	}
	return c.boxes, c.finish()
}

// spaceCheck recounts what the records of a space use: bytes, handles and wheel entries.
type spaceCheck struct {
	sp    *space
	used  []bool // handles
	boxes int
	slots int   // bytes of records
	timed int   // keys with deadlines
	sum   int64 // of the deadlines
	nexts int   // entries in the second wheel
	fresh int   // entries in the wheel of fresh deadlines
	kept  [maxKinds]int
	kinds [maxKinds]int  // keys
	sinks map[string]int // the streams that queues deliver to
}

// dated verifies that the wheel has an entry for a container that is not later than the container's
// next item.
func (c *spaceCheck) dated(h *hit) error {
	at, have, d := (&Tx{db: c.sp.sh.db}).nextIn(h), h.r.nextAt(), h.r.deadline()
	if at != 0 && (d == 0 || at < d) && (have == 0 || have > at) {
		return fmt.Errorf("an item of the %v falls due at %d, the record's entry says %d", h.r.Kind(), at, have)
	}
	return nil
}

func (c *spaceCheck) record(ref arena.Ref) error {
	sp := c.sp
	r := sp.rec(ref)
	c.slots += sp.mem.SlotOf(ref)
	c.kinds[r.Kind()]++
	if r.Kind().Indexed() && !sp.index.has(sp.Hash(ref), ref, r.Kind()) {
		return fmt.Errorf("the key is not in the index of kind %v", r.Kind())
	}
	if keeps(r.Kind()) {
		c.kept[r.Kind()] += sp.mem.SlotOf(ref)
	}
	if r.klen&bigKey != 0 {
		if err := c.handle(handleOf(r.inlineKey()), r.Kind()); err != nil {
			return err
		}
	}
	if r.has(flagExt) {
		if err := c.handle(handleOf(r.inlineValue()), r.Kind()); err != nil {
			return err
		}
	}
	h := hit{sh: sp.sh, sp: sp, r: r}
	if err := c.deadlines(&h); err != nil {
		return err
	}
	if r.Kind().plain() {
		return nil
	}
	b := h.box()
	if b == nil {
		return packed.Validate(h.image())
	}
	c.boxes++
	if q, ok := b.(queueBox); ok && len(q.Deliver) > 0 {
		if c.sinks == nil {
			c.sinks = map[string]int{}
		}
		c.sinks[string(q.Deliver)]++
	}
	if n := sp.exts[handleOf(r.inlineValue())].size; n != b.Size() {
		return fmt.Errorf("the count of the container's bytes is %d, want %d", n, b.Size())
	}
	return b.(interface{ Check() error }).Check()
}

// deadlines counts the deadlines of a record, and its entries in the wheels.
func (c *spaceCheck) deadlines(h *hit) error {
	r := h.r
	if r.has(flagDeadline) {
		c.timed++
		c.sum += r.entry().Deadline()
	}
	if r.timed() && r.next().Linked() {
		c.nexts++
	}
	if r.hasFresh() {
		if r.Kind() != String {
			return fmt.Errorf("a key of kind %v has a fresh deadline", r.Kind())
		}
		if r.freshEntry().Linked() {
			c.fresh++
		}
	}
	if r.Kind() != String {
		return c.dated(h)
	}
	return nil
}

func (c *spaceCheck) handle(h uint32, k Kind) error {
	switch {
	case h == 0 || int(h) >= len(c.used):
		return fmt.Errorf("there is no handle %d", h)
	case c.used[h]:
		return fmt.Errorf("handle %d belongs to another record", h)
	}
	c.used[h] = true
	x := &c.sp.exts[h]
	if !keeps(k) {
		k = None
	}
	if x.kind != k {
		return fmt.Errorf("handle %d is counted as %v; its record is of kind %v", h, x.kind, k)
	}
	c.kept[k] += x.size
	return nil
}

// finish compares the sums with the counters of the space.
func (c *spaceCheck) finish() error {
	sp := c.sp
	if err := sp.index.check(c.kinds); err != nil {
		return err
	}
	if c.kept != sp.kept {
		return fmt.Errorf("the bytes counted by kind are %v, want %v", sp.kept, c.kept)
	}
	if !maps.Equal(c.sinks, sp.sinks) {
		return fmt.Errorf("the queues deliver to %v, want %v", sp.sinks, c.sinks)
	}
	if n := sp.mem.Live(); n != c.slots {
		return fmt.Errorf("the count of the bytes of records is %d, want %d", n, c.slots)
	}
	n, ttls := 0, int64(0)
	if sp.due != nil {
		n, ttls = sp.due.Len(), sp.ttls
		if err := sp.due.Check(); err != nil {
			return err
		}
	}
	if n != c.timed || ttls != c.sum {
		return fmt.Errorf("the count of deadlines is %d with the sum %d, want %d with %d", n, ttls, c.timed, c.sum)
	}
	if err := c.checkFresh(); err != nil {
		return err
	}
	if sp.next != nil {
		if err := sp.next.Check(); err != nil {
			return err
		}
		if sp.next.Len() != c.nexts {
			return fmt.Errorf("the second wheel has %d entries, want %d", sp.next.Len(), c.nexts)
		}
	} else if c.nexts > 0 {
		return fmt.Errorf("%d records are in a second wheel, which does not exist", c.nexts)
	}
	for f := sp.freeExt; f != 0; f = sp.exts[f].next {
		if c.used[f] {
			return fmt.Errorf("handle %d is free and in use, or free twice", f)
		}
		c.used[f] = true
	}
	bytes := 0
	for i := range sp.exts[1:] {
		if !c.used[i+1] {
			return fmt.Errorf("handle %d is lost", i+1)
		}
		bytes += sp.exts[i+1].size
	}
	if bytes != sp.extBytes {
		return fmt.Errorf("the count of bytes outside of records is %d, want %d", sp.extBytes, bytes)
	}
	return nil
}

// checkLines verifies a shard's lines.
func (sh *shard) checkLines() error {
	sh.lines.mu.Lock()
	defer sh.lines.mu.Unlock()
	for k, l := range sh.lines.all {
		var counts [maxKinds]int32
		var last *place
		wants := map[Want]int32{}
		for p := l.head; p != nil; p = p.next {
			if !p.in || p.l != l || p.prev != last {
				return fmt.Errorf("the line of %.100q is broken", k.key)
			}
			for kind := range counts {
				if p.t.Kinds&(1<<kind) != 0 {
					counts[kind]++
				}
			}
			if p.t.Want != (Want{}) {
				wants[p.t.Want]++
			}
			last = p
		}
		switch {
		case l.key != k || l.tail != last || counts != l.counts || !maps.Equal(wants, l.wants):
			return fmt.Errorf("the line of %.100q is miscounted", k.key)
		case last == nil:
			return errors.New("an empty line was kept")
		case l.signalled:
			return fmt.Errorf("the line of %.100q was signalled, but not served", k.key)
		case l.slot != 0 && sh.lines.wakes.slots[l.slot].l != l:
			return fmt.Errorf("the line of %.100q has the wake-up of another line", k.key)
		}
	}
	return sh.lines.wakes.check(&sh.lines)
}
