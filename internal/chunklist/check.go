package chunklist

import "fmt"

// Check verifies every invariant of the package comment. O(n). It is for tests and debugging.
func (l *List) Check() error {
	sum, blocks, chunks, bigs := totals{earliest: none}, 0, 0, 0
	for g := range l.groups {
		gr := &l.groups[g]
		part := totals{earliest: none}
		for e := range gr.ents {
			if err := l.checkBlock(&gr.ents[e], &part, &chunks, &bigs); err != nil {
				return fmt.Errorf("block %d of group %d: %w", e, g, err)
			}
		}
		if len(gr.ents) == 0 || len(gr.ents) > groupMax {
			return fmt.Errorf("group %d of %d has %d blocks", g, len(l.groups), len(gr.ents))
		}
		if err := gr.totals.agree(part); err != nil {
			return fmt.Errorf("group %d: %w", g, err)
		}
		blocks += len(gr.ents)
		sum.count += part.count
		sum.timed += part.timed
		sum.earliest = min(sum.earliest, gr.earliest)
	}
	if blocks != l.blocks || chunks != l.chunkBytes || bigs != l.bigBytes {
		return fmt.Errorf("%d blocks, %d and %d bytes; counted %d, %d, %d", blocks, chunks, bigs, l.blocks, l.chunkBytes, l.bigBytes)
	}
	return l.totals.agree(sum)
}

// agree compares sums with those counted.
func (t *totals) agree(found totals) error {
	if t.count != found.count || t.timed != found.timed || t.earliest > found.earliest || t.timed == 0 && t.earliest != none {
		return fmt.Errorf("sums %+v, found %+v", *t, found)
	}
	return nil
}

func (l *List) checkBlock(ent *entry, part *totals, chunks, bigs *int) error {
	own := totals{count: int(ent.count), timed: int(ent.timed), earliest: ent.earliest}
	if ent.big() {
		*bigs += cap(l.bigs[ent.ref])
		if ent.count != 1 || ent.timed > 1 || ent.timed == 0 && ent.earliest != none {
			return fmt.Errorf("a big element has %+v: want one element", own)
		}
	} else {
		*chunks += ent.size()
		if ent.off >= ent.end || int(ent.end) > ent.size() || ent.size() > l.maxChunk {
			return fmt.Errorf("a run goes from %d to %d of %d bytes", ent.off, ent.end, ent.size())
		}
		count, timed, earliest, err := l.run(ent).Validate()
		if err != nil {
			return err
		}
		if timed == 0 {
			earliest = none
		}
		if err := own.agree(totals{count: count, timed: timed, earliest: earliest}); err != nil {
			return err
		}
		if count == 0 || count > l.items {
			return fmt.Errorf("%d elements, at most %d", count, l.items)
		}
	}
	part.count += own.count
	part.timed += own.timed
	part.earliest = min(part.earliest, own.earliest)
	return nil
}
