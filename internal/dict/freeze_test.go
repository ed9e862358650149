package dict_test

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/testing/chunktest"
)

// freeze freezes the dict of the model, unless there is a frozen copy: from then
// on the live one continues while a goroutine reads the copy.
func (m *model) freeze(t *rapid.T) {
	if m.frozen != nil {
		return
	}
	f, items, now, due := m.dict.Freeze(), maps.Clone(m.items), m.now, m.dict.Due(m.now)
	m.frozen = f
	m.watch = chunktest.Watch(&m.mem, func() error {
		if f.Count() != len(items) || f.Due(now) != due {
			return fmt.Errorf("%d items, %d due, want %d, %d", f.Count(), f.Due(now), len(items), due)
		}
		for it := range f.Iter(0) {
			want, ok := items[string(it.Key)]
			if !ok || it.Deadline != want.deadline || !bytes.Equal(it.Value, want.value) {
				return fmt.Errorf("%q is %q until %d, want %v", it.Key, it.Value, it.Deadline, want)
			}
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

func TestAFrozenDictCostsTheChunksThatAreWrittenTo(t *testing.T) {
	var mem chunktest.Memory
	d := newSet(&mem)
	for i := range 200_000 {
		d.Put(fmt.Append(nil, i), nil, 0, 0)
	}
	before := mem.Held()
	f := d.Freeze()
	for i := range 1000 {
		d.Has(fmt.Append(nil, i), 0)
	}
	if mem.Held() != before {
		t.Fatalf("reads took %d bytes", mem.Held()-before)
	}
	d.Put([]byte("0"), nil, 100, 0)
	if more := mem.Held() - before; more == 0 || more > 4*64<<10 {
		t.Fatalf("one write took %d bytes", more)
	}
	for !f.Free(1) {
	}
	if mem.Held() > before+64<<10 {
		t.Fatalf("%d bytes before, %d after", before, mem.Held())
	}
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestADictIsNotFrozenTwice(t *testing.T) {
	var mem chunktest.Memory
	d := newSet(&mem)
	d.Put([]byte("a"), nil, 0, 0)
	f := d.Freeze()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a second frozen copy was made")
			}
		}()
		d.Freeze()
	}()
	f.Free(100)
	d.Freeze().Free(100)
}

func BenchmarkFreeze(b *testing.B) {
	var mem chunktest.Memory
	d := newSet(&mem)
	for i := range 1_000_000 {
		d.Put(fmt.Append(nil, i), nil, 0, 0)
	}
	for b.Loop() {
		d.Freeze().Free(100)
	}
}

// large returns a dict with chunks of 1 KiB, so that what one change touches lies in
// many, and what changes it.
func large(seed uint64) (*chunktest.Memory, *dict.Dict, func(n int, grow bool)) {
	mem := &chunktest.Memory{Max: 1 << 10}
	d := dict.New(dict.Config{Memory: mem, Seed: maphash.MakeSeed(), ValueSize: dict.Variable})
	rng := rand.New(rand.NewPCG(seed, seed+1))
	return mem, d, func(n int, grow bool) { churn(d, rng, n, grow) }
}

func TestALargeDictGoesOnBesideItsFrozenCopy(t *testing.T) {
	mem, d, change := large(3)
	chunktest.GoesOn(t, mem, d, 20_000, change, func(d *dict.Dict) (items []string) {
		for it := range d.Iter(0) {
			items = append(items, fmt.Sprintf("%s %d %x", it.Key, it.Deadline, it.Value))
		}
		return items
	})
}

func TestTheFirstChangesAfterAFreeze(t *testing.T) {
	mem, d, change := large(5)
	chunktest.FirstChanges(t, mem, d, 10_000, change)
}

// churn changes a dict n times; it grows or shrinks on the whole.
func churn(d *dict.Dict, rng *rand.Rand, n int, grow bool) {
	for range n {
		key := fmt.Append(nil, rng.IntN(20_000))
		switch k := rng.IntN(10); {
		case k < 5 == grow:
			d.Put(key, make([]byte, rng.IntN(20)), rng.Int64N(2)*rng.Int64N(1000), 0)
		case k == 9:
			d.ClearDeadline(key, 0)
		case k == 8:
			d.Compact(100)
		default:
			d.Delete(key, 0)
		}
	}
}

func TestALargeValueIsCopiedBeforeItIsWrittenTo(t *testing.T) {
	var mem chunktest.Memory
	d := dict.New(dict.Config{Memory: &mem, Seed: maphash.MakeSeed(), ValueSize: dict.Variable})
	key, old, other := []byte("k"), bytes.Repeat([]byte("a"), 20_000), bytes.Repeat([]byte("b"), 19_000)
	d.Put(key, old, 0, 0)
	d.Put([]byte("gone"), old, 0, 0)
	f := d.Freeze()
	d.Put(key, other, 0, 0)
	d.Delete([]byte("gone"), 0)
	d.Put([]byte("new"), other, 0, 0)
	for _, k := range []string{"k", "gone"} {
		if v, ok := f.Get([]byte(k), 0); !ok || !bytes.Equal(v, old) {
			t.Errorf("%s: %d bytes of %q", k, len(v), v[0])
		}
	}
	if v, _ := d.Get(key, 0); !bytes.Equal(v, other) {
		t.Error("the live dict lost its value")
	}
	for !f.Free(10) {
	}
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	for !d.Free(10) {
	}
	if mem.Held()+mem.Taken() != 0 {
		t.Errorf("%d and %d bytes left", mem.Held(), mem.Taken())
	}
}
