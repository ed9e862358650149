package delayq

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/chunktest"
)

// text writes out all that a queue holds.
func (q *Queue) text(now int64) string {
	b := fmt.Appendln(nil, q.Config, q.Totals, q.Len(), q.Leased(), q.Ready(now), q.NextDue(), q.Marks(now))
	q.Walk(now, Place{}, func(ref uint32) bool { b = append(b, q.Job(ref).ID...); return true })
	q.Each(func(j Job) bool {
		b = fmt.Appendln(b, j.ID, len(j.Payload), j.Due, j.Expire, j.Deliveries, j.Priority, j.Leased, j.Token, j.Until)
		return true
	})
	q.EachMark(func(key []byte, deadline int64) { b = fmt.Appendf(b, "%s %d\n", key, deadline) })
	return string(b)
}

func TestAFrozenQueueStaysWhatItWas(t *testing.T) {
	mem := &chunktest.Memory{Max: 2 << 10}
	q := New(mem, maphash.MakeSeed())
	q.DeadLetter = []byte("dead")
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 600 {
		change(t, q, rng, i)
	}
	for turn := range 40 {
		want, f := q.text(500), q.Freeze()
		watch := chunktest.Watch(mem, func() error {
			if f.text(500) != want {
				return errors.New("the frozen queue has changed")
			}
			return f.Check()
		})
		for range 5 {
			change(t, q, rng, 600+5*turn)
		}
		must(t, watch.Check())
		must(t, q.Check())
		if turn == 39 {
			for !q.Free(3) {
			}
		}
		must(t, watch.End())
		for !f.Free(3) {
		}
	}
	if mem.Held() != 0 {
		t.Fatalf("%d bytes left", mem.Held())
	}
}

// change makes one change of some kind.
func change(t *testing.T, q *Queue, rng *rand.Rand, i int) {
	ref, ok := q.Find(fmt.Append(nil, rng.IntN(i+1)))
	switch k := rng.IntN(10); {
	case k < 5 || !ok:
		id := fmt.Append(nil, i, "-", rng.Uint64())
		if rng.IntN(2) == 0 {
			id = fmt.Append(nil, i)
		}
		if _, found := q.Find(id); !found {
			must(t, q.Add(&Job{ID: id, Payload: make([]byte, rng.IntN(60)), Due: rng.Int64N(1000), Expire: rng.Int64N(2) * 900,
				Priority: uint8(rng.IntN(3))}, 1))
		}
		must(t, q.Mark(id, 1+rng.Int64N(1000), 1))
	case k < 7 && !q.Job(ref).Leased:
		must(t, q.Take(ref, rng.Int64N(1<<55), 700))
	case k < 7:
		must(t, q.Undeliver(ref, 1))
	case k == 7 && q.Job(ref).Leased:
		must(t, q.Extend(ref, 900))
	case k == 8:
		q.Compact(50)
		q.Forget(int64(i%1000), 3)
	default:
		q.Remove(ref)
	}
}
