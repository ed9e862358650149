package chunklist

import "github.com/ebbdb/ebb/internal/packed"

// EachComing calls visit for every element that has a deadline from now on and up to
// until(), first to last, until visit returns false. It asks until again for each block,
// because a caller that has found earlier deadlines needs fewer. O(groups + blocks that may
// have such elements). visit must not change the list or keep elem.
func (l *List) EachComing(now int64, until func() int64, visit func(elem packed.Str, deadline int64) bool) {
	for g := range l.groups {
		if l.groups[g].timed == 0 || l.groups[g].earliest > until() {
			continue
		}
		for e := range l.groups[g].ents {
			if ent := l.at(g, e); ent.timed == 0 || ent.earliest > until() {
				continue
			}
			it := Iter{l: l, now: now, g: g, e: e}
			for it.load(false); it.nextHere(); {
				if d := it.Deadline(); d != 0 && !visit(it.Value(), d) {
					return
				}
			}
		}
	}
}
