package dict_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/testing/chunktest"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// model is a dict beside a map.
type model struct {
	mem   chunktest.Memory
	dict  *dict.Dict
	items map[string]item
	size  int // of values
	now   int64
	born  int
	keys  int // keys are numbers below this
	scan  scan

	frozen *dict.Dict // nil: none
	watch  *chunktest.Frozen
}

type item struct {
	value    []byte
	deadline int64
	born     int // which Put made it: distinguishes a key's item from a later one
}

// scan is a Scan under way.
type scan struct {
	cursor uint64
	must   map[string]int // what lived when it began: key to born
	seen   map[string]bool
}

func newModel(t *rapid.T) *model {
	m := &model{items: make(map[string]item), now: 1000}
	m.mem.Max = rapid.SampledFrom([]int{1 << 10, 16 << 10, 64 << 10}).Draw(t, "max")
	m.mem.Limit = rapid.SampledFrom([]int{0, 0, 24 << 10}).Draw(t, "limit")
	m.size = rapid.SampledFrom([]int{dict.Variable, dict.Variable, 0, 8}).Draw(t, "value size")
	m.keys = rapid.SampledFrom([]int{20, 2000}).Draw(t, "keys")
	m.dict = dict.New(dict.Config{Memory: &m.mem, Seed: maphash.MakeSeed(), ValueSize: m.size, Moved: m.moved})
	return m
}

func (m *model) moved(old, to uint32) bool {
	if !bytes.Equal(m.dict.Key(old), m.dict.Key(to)) {
		panic("Moved names two different items")
	}
	return true
}

func (m *model) key(t *rapid.T) string {
	n := rapid.IntRange(0, m.keys-1).Draw(t, "key")
	if n%50 == 7 {
		return fmt.Sprintf("%0*d", n%400, n) // some long ones
	}
	return fmt.Sprint(n)
}

func (m *model) value(t *rapid.T) []byte {
	n := m.size
	if n == dict.Variable {
		n = rapid.OneOf(rapid.IntRange(0, 30), rapid.IntRange(0, 30), rapid.IntRange(0, 9000)).Draw(t, "length")
	}
	m.born++
	return bytes.Repeat([]byte{byte(m.born)}, n)
}

func (m *model) deadline(t *rapid.T) int64 {
	return m.now + rapid.Int64Range(-5, 50).Draw(t, "ttl")
}

func (m *model) living(key string) (item, bool) {
	it, ok := m.items[key]
	return it, ok && !(it.deadline != 0 && m.now > it.deadline)
}

// failed reports whether an operation found no memory, as it may under a limit.
func (m *model) failed(t *rapid.T, err error) bool {
	if err != nil && (m.mem.Limit == 0 || !errors.Is(err, dict.ErrNoMemory)) {
		t.Fatal(err)
	}
	return err != nil
}

func (m *model) put(t *rapid.T) {
	key, value := m.key(t), m.value(t)
	deadline := int64(0)
	switch rapid.IntRange(0, 4).Draw(t, "deadline") {
	case 0:
		deadline = m.deadline(t)
	case 1:
		deadline = dict.Keep
	}
	m.store(t, key, value, deadline)
}

func (m *model) store(t *rapid.T, key string, value []byte, deadline int64) {
	got, err := m.dict.Put([]byte(key), value, deadline, m.now)
	if m.failed(t, err) {
		return
	}
	old, found := m.items[key]
	_, living := m.living(key)
	it, want := item{value, max(deadline, 0), m.born}, dict.Added
	switch {
	case living:
		want, it.born = dict.Replaced, old.born
		if deadline == dict.Keep {
			it.deadline = old.deadline
		}
	case found:
		want = dict.Revived
	}
	if got != want {
		t.Fatalf("Put(%q) = %d, want %d", key, got, want)
	}
	m.items[key] = it
}

func (m *model) putMany(t *rapid.T) {
	from := rapid.IntRange(0, m.keys-1).Draw(t, "from")
	ttl := rapid.Int64Range(0, 60).Draw(t, "ttl")
	for i := range rapid.IntRange(1, 500).Draw(t, "n") {
		m.born++
		deadline := int64(0)
		if ttl > 30 {
			deadline = m.now + ttl - int64(i%7)
		}
		m.store(t, fmt.Sprint((from+i)%m.keys), make([]byte, max(m.size, 0)), deadline)
	}
}

func (m *model) delete(t *rapid.T, key string) {
	_, wantFound := m.items[key]
	_, wantLiving := m.living(key)
	found, living := m.dict.Delete([]byte(key), m.now)
	if found != wantFound || living != wantLiving {
		t.Fatalf("Delete(%q) = %v, %v, want %v, %v", key, found, living, wantFound, wantLiving)
	}
	delete(m.items, key)
}

func (m *model) deleteMany(t *rapid.T) {
	from := rapid.IntRange(0, m.keys-1).Draw(t, "from")
	for i := range rapid.IntRange(1, 800).Draw(t, "n") {
		m.delete(t, fmt.Sprint((from+i)%m.keys))
	}
}

func (m *model) setDeadline(t *rapid.T) {
	key, deadline := m.key(t), m.deadline(t)
	it, living := m.living(key)
	ok, err := m.dict.SetDeadline([]byte(key), deadline, m.now)
	if m.failed(t, err) {
		return
	}
	if ok != living {
		t.Fatalf("SetDeadline(%q) = %v, want %v", key, ok, living)
	}
	if ok {
		it.deadline = deadline
		m.items[key] = it
	}
}

func (m *model) clearDeadline(t *rapid.T) {
	key := m.key(t)
	it, living := m.living(key)
	ok, had := m.dict.ClearDeadline([]byte(key), m.now)
	if ok != living || had != (living && it.deadline != 0) {
		t.Fatalf("ClearDeadline(%q) = %v, %v; item %v, living %v", key, ok, had, it, living)
	}
	if ok {
		it.deadline = 0
		m.items[key] = it
	}
}

func (m *model) reap(t *rapid.T) {
	budget, last := rapid.IntRange(1, 300).Draw(t, "budget"), int64(0)
	due := m.dict.Due(m.now)
	n := m.dict.Reap(m.now, budget, func(it dict.Item) {
		want, ok := m.items[string(it.Key)]
		_, living := m.living(string(it.Key))
		if !ok || living || it.Deadline != want.deadline || !bytes.Equal(it.Value, want.value) || it.Deadline < last {
			t.Fatalf("reaped %q with deadline %d at %d, want %v, last %d", it.Key, it.Deadline, m.now, want, last)
		}
		last = it.Deadline
		delete(m.items, string(it.Key))
	})
	if n != min(due, budget) {
		t.Fatalf("Reap removed %d of %d due, budget %d", n, due, budget)
	}
}

func (m *model) iterateAndDelete(t *rapid.T) {
	salt := rapid.IntRange(0, 3).Draw(t, "salt")
	seen := make(map[string]bool)
	var gone []string
	for it := range m.dict.Iter(m.now) {
		key := string(it.Key)
		if _, ok := m.living(key); !ok || seen[key] {
			t.Fatalf("Iter gives %q, living %v, seen %v", key, ok, seen[key])
		}
		seen[key] = true
		if (len(seen)+salt)%4 != 0 {
			m.dict.Delete([]byte(key), m.now)
			gone = append(gone, key)
		}
	}
	for key := range m.items {
		if _, ok := m.living(key); ok && !seen[key] {
			t.Fatalf("Iter left %q out", key)
		}
	}
	for _, key := range gone {
		delete(m.items, key)
	}
}

func (m *model) step(t *rapid.T) {
	s := &m.scan
	if s.must == nil {
		s.must, s.seen = make(map[string]int), make(map[string]bool)
		for key, it := range m.items {
			if _, ok := m.living(key); ok {
				s.must[key] = it.born
			}
		}
	}
	for range rapid.IntRange(1, 50).Draw(t, "steps") {
		s.cursor = m.dict.Scan(s.cursor, m.now, func(it dict.Item) {
			if _, ok := m.living(string(it.Key)); !ok {
				t.Fatalf("Scan gives %q, which is not there", it.Key)
			}
			s.seen[string(it.Key)] = true
		})
		if s.cursor != 0 {
			continue
		}
		for key, born := range s.must {
			if it, ok := m.living(key); ok && it.born == born && !s.seen[key] {
				t.Fatalf("Scan left %q out", key)
			}
		}
		*s = scan{}
		return
	}
}

func (m *model) random(t *rapid.T) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	it, ok := m.dict.Random(m.now, rng)
	if ok != (m.dict.Len(m.now) > 0) {
		t.Fatalf("Random = %v of %d", ok, m.dict.Len(m.now))
	}
	if _, living := m.living(string(it.Key)); ok && !living {
		t.Fatalf("Random gives %q, which is not there", it.Key)
	}
}

func (m *model) check(t *rapid.T) {
	if err := m.dict.Check(); err != nil {
		t.Fatal(err)
	}
	living, earliest := 0, int64(0)
	for key, it := range m.items {
		_, ok := m.living(key)
		if ok {
			living++
		}
		if it.deadline != 0 && (earliest == 0 || it.deadline < earliest) {
			earliest = it.deadline
		}
		value, found := m.dict.Get([]byte(key), m.now)
		if found != ok || ok && !bytes.Equal(value, it.value) {
			t.Fatalf("Get(%q) = %x, %v, want %x, %v", key, value, found, it.value, ok)
		}
		deadline, found := m.dict.Deadline([]byte(key), m.now)
		if found != ok || ok && deadline != it.deadline {
			t.Fatalf("Deadline(%q) = %d, %v, want %d, %v", key, deadline, found, it.deadline, ok)
		}
	}
	if m.dict.Len(m.now) != living || m.dict.Count() != len(m.items) {
		t.Fatalf("Len %d of %d, want %d of %d", m.dict.Len(m.now), m.dict.Count(), living, len(m.items))
	}
	if got, ok := m.dict.Earliest(); got != earliest || ok != (earliest != 0) {
		t.Fatalf("Earliest %d, want %d", got, earliest)
	}
	due := 0
	m.dict.EachDue(m.now, func(uint32) bool { due++; return true })
	if due != len(m.items)-living {
		t.Fatalf("EachDue visits %d, want %d", due, len(m.items)-living)
	}
	if key := m.key(t); m.items[key].born == 0 && m.dict.Has([]byte(key), m.now) {
		t.Fatalf("Has(%q)", key)
	}
	if m.frozen != nil {
		if err := m.watch.Check(); err != nil {
			t.Fatal(err)
		}
	} else if m.dict.Size() < m.mem.Held()+m.mem.Taken() || m.dict.Used() > m.dict.Size() {
		t.Fatalf("Size %d, Used %d, held %d", m.dict.Size(), m.dict.Used(), m.mem.Held())
	}
}

func TestDictIsAMapWithDeadlines(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"put": m.put, "putMany": m.putMany, "deleteMany": m.deleteMany,
			"delete":      func(t *rapid.T) { m.delete(t, m.key(t)) },
			"setDeadline": m.setDeadline, "clearDeadline": m.clearDeadline, "reap": m.reap,
			"advance": func(t *rapid.T) { m.now += rapid.Int64Range(0, 20).Draw(t, "ms") },
			"iterate": m.iterateAndDelete, "scan": m.step, "scan more": m.step, "random": m.random,
			"compact": func(t *rapid.T) { m.dict.Compact(rapid.IntRange(1, 200).Draw(t, "budget")) },
			"freeze":  m.freeze, "thaw": m.thaw,
			"": m.check,
		})
		early := rapid.Bool().Draw(t, "live one first")
		if !early {
			m.thaw(t)
		}
		for !m.dict.Free(2) {
		}
		m.thaw(t)
		if m.mem.Held() != 0 || m.mem.Taken() != 0 {
			t.Fatalf("%d bytes of chunks and %d outside not given back", m.mem.Held(), m.mem.Taken())
		}
		m.mem.Limit = 0
		if _, err := m.dict.Set([]byte("a"), make([]byte, max(m.size, 0)), m.now); err != nil || m.dict.Len(m.now) != 1 {
			t.Fatalf("a freed dict does not start over: %v", err)
		}
	})
}

func newSet(mem *chunktest.Memory) *dict.Dict {
	return dict.New(dict.Config{Memory: mem, Seed: maphash.MakeSeed()})
}

func TestRandomIsUniform(t *testing.T) {
	var mem chunktest.Memory
	d := newSet(&mem)
	const n, each = 150, 400
	for i := range n {
		if _, err := d.Put(fmt.Append(nil, i), nil, int64(i%3)*10, 0); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	got := make(map[string]int)
	const now = 15 // the second third is dead
	for range each * n * 2 / 3 {
		it, _ := d.Random(now, rng)
		got[string(it.Key)]++
	}
	if len(got) != n*2/3 {
		t.Fatalf("%d different items, want %d", len(got), n*2/3)
	}
	chi := 0.0
	for _, k := range got {
		chi += float64((k-each)*(k-each)) / each
	}
	if chi > 160 { // 99 degrees of freedom: 1 in 10,000
		t.Fatalf("chi square is %.0f", chi)
	}
}

func TestRandomFindsTheOneLivingItem(t *testing.T) {
	var mem chunktest.Memory
	d := newSet(&mem)
	for i := range 20_000 {
		if _, err := d.Put(fmt.Append(nil, i), nil, 10, 0); err != nil {
			t.Fatal(err)
		}
	}
	d.ClearDeadline([]byte("777"), 0)
	if it, ok := d.Random(11, rand.New(rand.NewPCG(1, 2))); !ok || string(it.Key) != "777" {
		t.Fatalf("Random = %q, %v", it.Key, ok)
	}
}

func TestFreeingGoesInSlices(t *testing.T) {
	var mem chunktest.Memory
	d := newSet(&mem)
	for i := range 50_000 {
		if _, err := d.Put(fmt.Append(nil, i), nil, int64(i%2)*100, 0); err != nil {
			t.Fatal(err)
		}
	}
	slices := 0
	for done := false; !done; slices++ {
		before := mem.Held()
		done = d.Free(4)
		if before-mem.Held() > 4*64<<10 {
			t.Fatalf("a slice of 4 chunks gave back %d bytes", before-mem.Held())
		}
	}
	if mem.Held() != 0 || slices < 5 {
		t.Fatalf("%d bytes left after %d slices", mem.Held(), slices)
	}
}

func TestShrinkingGivesMemoryBack(t *testing.T) {
	var mem chunktest.Memory
	d := newSet(&mem)
	for i := range 30_000 {
		d.Put(fmt.Append(nil, i), nil, 1000, 0)
	}
	for i := range 30_000 - 200 {
		d.Delete(fmt.Append(nil, i), 0)
		d.Compact(4)
	}
	for d.Compact(100) == 100 {
	}
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if mem.Held() > 20<<10 {
		t.Fatalf("200 items hold %d bytes", mem.Held())
	}
}
