package ordered_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/ordered"
	"github.com/ebbdb/ebb/internal/testing/chunktest"
)

// freeze freezes the set of the model, unless there is a frozen copy: from then
// on the live one continues while a goroutine reads the copy.
func (m *model) freeze(t *rapid.T) {
	if m.frozen != nil {
		return
	}
	var stored []entry
	for _, e := range m.members {
		stored = append(stored, e)
	}
	slices.SortFunc(stored, order)
	f := m.set.Freeze()
	m.frozen = f
	m.watch = chunktest.Watch(&m.mem, func() error {
		i := 0
		for w := f.WalkFrom(ordered.Start, 0); w.Next(); i++ {
			e := w.Entry()
			if i >= len(stored) || (entry{string(e.Member), e.Score, e.Deadline}) != stored[i] {
				return fmt.Errorf("entry %d of %d is %v", i, len(stored), e)
			}
			if r, ok := f.Rank(e.Member, 0); !ok || r != i {
				return fmt.Errorf("the rank of entry %d is %d", i, r)
			}
		}
		if i != len(stored) {
			return fmt.Errorf("%d entries, want %d", i, len(stored))
		}
		return f.Check()
	})
}

// thaw ends what freeze has begun.
func (m *model) thaw(t *rapid.T) {
	if m.frozen == nil {
		return
	}
	chunktest.Thaw(t, m.watch, m.frozen)
	m.frozen = nil
}

// large returns a set with chunks of 1 KiB, so that what one change touches lies in
// many, and what changes it.
func large(seed uint64) (*chunktest.Memory, *ordered.Set, func(n int, grow bool)) {
	mem := &chunktest.Memory{Max: 1 << 10}
	s := ordered.New(mem, maphash.MakeSeed())
	rng := rand.New(rand.NewPCG(seed, seed+1))
	return mem, s, func(n int, grow bool) { churn(s, rng, n, grow) }
}

func TestALargeSetGoesOnBesideItsFrozenCopy(t *testing.T) {
	mem, s, change := large(3)
	chunktest.GoesOn(t, mem, s, 10_000, change, func(s *ordered.Set) (members []string) {
		for e := range s.Iter(0) {
			members = append(members, fmt.Sprint(e))
		}
		return members
	})
}

func TestTheFirstChangesAfterAFreeze(t *testing.T) {
	mem, s, change := large(5)
	chunktest.FirstChanges(t, mem, s, 10_000, change)
}

// churn changes a set n times; it grows or shrinks on the whole.
func churn(s *ordered.Set, rng *rand.Rand, n int, grow bool) {
	for range n {
		key := fmt.Append(nil, rng.IntN(10_000))
		switch k := rng.IntN(10); {
		case k < 5 == grow:
			s.Put(key, float64(rng.IntN(100)), rng.Int64N(2)*rng.Int64N(1000), 0)
		case k == 9:
			s.Put(key, float64(rng.IntN(100)), ordered.Keep, 0)
		case k == 8:
			s.Compact(100)
		default:
			s.Delete(key, 0)
		}
	}
}
