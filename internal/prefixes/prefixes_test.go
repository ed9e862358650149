package prefixes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The index and the sorted set give the answers of a walk over all texts.
func TestPrefixesAreFoundAsByAWalk(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		b := make([]byte, rng.IntN(4)+rng.IntN(2)*64)
		for i := range b {
			b[i] = "ab"[rng.IntN(8)/7]
		}
		return string(b)
	}
	var index Index[string]
	var sorted Set
	places, model := map[string]*Entry[string]{}, map[string]bool{}
	for range 5000 {
		s := text()
		if places[s] == nil {
			places[s] = index.Add(s, s)
		} else if rng.IntN(2) == 0 {
			index.Remove(places[s])
			delete(places, s)
		}
		probe := text()
		found := map[string]bool{}
		index.Each([]byte(probe), func(p string) { found[p] = true })
		for p := range places {
			if strings.HasPrefix(probe, p) && !found[p] {
				t.Fatalf("%q does not find %q", probe, p)
			}
		}
		long := fmt.Sprint(rng.IntN(3000))
		if sorted.Insert(long) == model[long] {
			t.Fatalf("%q is inserted as if it were the other way", long)
		}
		model[long] = true
	}
	var all []string
	sorted.Each(func(s string) { all = append(all, s) })
	if !slices.IsSorted(all) || len(all) != len(model) {
		t.Fatalf("%d texts, want %d", len(all), len(model))
	}
	for range 1000 {
		s := fmt.Sprint(rng.IntN(4000))
		i, _ := slices.BinarySearch(all, s)
		before, from, hasBefore, hasFrom := sorted.Around(s)
		if hasBefore != (i > 0) || hasBefore && before != all[i-1] || hasFrom != (i < len(all)) || hasFrom && from != all[i] {
			t.Fatalf("around %q: %q, %q", s, before, from)
		}
	}
	for range 2000 {
		list := make([]string, rng.IntN(6))
		for i := range list {
			list[i] = text()
		}
		wi, wj, want := 0, 0, false
	search:
		for i := range list {
			for j := i + 1; j < len(list); j++ {
				if Overlap(list[i], list[j]) {
					wi, wj, want = i, j, true
					break search
				}
			}
		}
		if i, j, ok := FirstOverlap(list); ok != want || i != wi || j != wj {
			t.Fatalf("%q: %d, %d, %v, want %d, %d, %v", list, i, j, ok, wi, wj, want)
		}
	}
}
