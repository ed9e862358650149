package delayq

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/chunktest"
)

func newTestQueue(limit int) (*Queue, *chunktest.Memory) {
	m := &chunktest.Memory{Limit: limit}
	return New(m, maphash.MakeSeed()), m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill adds n jobs with delays of up to a minute.
func fill(t testing.TB, q *Queue, n int, payload []byte) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		must(t, q.Add(&Job{ID: fmt.Appendf(nil, "job-%07d", i), Payload: payload, Due: 1000 + rng.Int64N(60_000),
			Priority: uint8(rng.IntN(Priorities))}, 1))
	}
}

func TestAMillionJobsCostLittleMore(t *testing.T) {
	q, _ := newTestQueue(0)
	const n = 200_000
	payload := bytes.Repeat([]byte("p"), 100)
	fill(t, q, n, payload)
	over := q.Size()/n - len(payload) - len("job-0000000")
	t.Logf("%d bytes a job beyond its id and payload", over)
	if over > 70 {
		t.Errorf("a delayed job costs %d bytes beyond its id and payload", over)
	}
}

func TestJobsThatFallDueTogetherComeInOrder(t *testing.T) {
	q, _ := newTestQueue(0)
	fill(t, q, 20_000, nil)
	must(t, q.Check())
	last := dueKey(9, 0)
	for token := int64(1); ; token++ {
		ref, ok := q.Next(100_000)
		if !ok {
			break
		}
		j := q.Job(ref)
		if key := dueKey(j.Priority, j.Due); key < last {
			t.Fatalf("%+v comes late", j)
		} else {
			last = key
		}
		must(t, q.Take(ref, token, 200_000))
	}
	if q.Leased() != 20_000 || q.Ready(100_000) != 0 {
		t.Fatalf("%d are leased, %d ready", q.Leased(), q.Ready(100_000))
	}
	must(t, q.Check())
}

func TestANumberAboveAllIdsIsTheIDOfNoJob(t *testing.T) {
	q, _ := newTestQueue(0)
	for _, x := range []struct {
		id   string
		last int64 // the greatest number so far
	}{{"job", 0}, {"-5", 0}, {"07", 0}, {"7", 7}, {"99999999999999999999", 7}, {"41", 41}, {"8", 41}, {"42x", 41},
		{"9007199254740991", 1<<53 - 1}} {
		must(t, q.Add(&Job{ID: []byte(x.id), Due: 1}, 1))
		if !q.Passed(x.last) || q.Passed(x.last+1) {
			t.Errorf("after %q: %d is passed: %v, %d: %v", x.id, x.last, q.Passed(x.last), x.last+1, q.Passed(x.last+1))
		}
		ref, _ := q.Find([]byte(x.id))
		q.Remove(ref)
		must(t, q.Check())
	}
}

func TestCompactionKeepsJobsInTheirPlaces(t *testing.T) {
	q, m := newTestQueue(0)
	fill(t, q, 5000, bytes.Repeat([]byte("p"), 50))
	for token := range int64(2000) {
		ref, _ := q.Next(100_000)
		must(t, q.Take(ref, token+1, 1000+token%7))
	}
	for i := range 5000 {
		if ref, ok := q.Find(fmt.Appendf(nil, "job-%07d", i)); ok && i%5 != 0 {
			q.Remove(ref)
		}
	}
	must(t, q.Check())
	before := q.Size()
	for q.Compact(64) == 64 {
	}
	must(t, q.Check())
	if q.Size() >= before {
		t.Errorf("%d bytes before, %d after", before, q.Size())
	}
	must(t, q.Mark([]byte("m"), 5, 1))
	for !q.Free(3) {
	}
	if m.Held() != 0 {
		t.Errorf("%d bytes are left", m.Held())
	}
}

func TestWhereMemoryEndsNothingChanges(t *testing.T) {
	for limit := 2 << 10; limit < 64<<10; limit += 5 << 10 {
		q, _ := newTestQueue(limit)
		rng := rand.New(rand.NewPCG(3, uint64(limit)))
		for i := range 400 {
			before := fmt.Sprint(q.Len(), q.Leased(), q.Ready(30_000))
			var err error
			if ref, ok := q.Next(30_000); ok && rng.IntN(3) == 0 {
				err = q.Take(ref, int64(i), 50_000)
			} else if ref, ok := q.LapseNext(100_000); ok && rng.IntN(3) == 0 && q.Job(ref).Leased {
				err = q.Release(ref, 60, 1)
			} else {
				err = q.Add(&Job{ID: fmt.Append(nil, i), Payload: bytes.Repeat([]byte("p"), rng.IntN(200)), Due: rng.Int64N(60_000),
					Expire: rng.Int64N(2) * 90_000}, 1)
			}
			if err == ErrNoMemory {
				if after := fmt.Sprint(q.Len(), q.Leased(), q.Ready(30_000)); after != before {
					t.Fatalf("limit %d: %s became %s", limit, before, after)
				}
			}
			if i%10 == 0 || err != nil {
				must(t, q.Check())
			}
		}
	}
}

func BenchmarkTake(b *testing.B) {
	q, _ := newTestQueue(0)
	fill(b, q, 100_000, []byte("payload"))
	token := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		token++
		ref, _ := q.Next(100_000)
		must(b, q.Take(ref, token, 200_000))
		must(b, q.Release(ref, 60_000, 100_000))
	}
}
