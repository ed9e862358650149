package btree_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/ordered/btree"
	"github.com/ebbdb/ebb/internal/testing/chunktest"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// record is a record to which the tests' references lead.
type record struct {
	key  uint64
	name string
}

// records orders by key and name.
type records map[uint32]record

func (r records) Key(ref uint32) uint64 { return r.at(ref).key }

func (r records) Tie(ref uint32, p btree.Probe) int {
	return bytes.Compare([]byte(r.at(ref).name), p.Bytes)
}

func (r records) Probe(ref uint32) btree.Probe { return probe(r.at(ref)) }

func (r records) at(ref uint32) record {
	rec, ok := r[ref]
	if !ok {
		panic(fmt.Sprintf("the tree asks for record %d, which is gone", ref))
	}
	return rec
}

func probe(r record) btree.Probe { return btree.Probe{Key: r.key, Bytes: []byte(r.name)} }

func compare(a, b record) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.name, b.name)) }

// model is a tree beside a sorted slice.
type model struct {
	mem     chunktest.Memory
	records records
	tree    *btree.Tree
	sorted  []uint32
	next    uint32
	keys    uint64 // keys are below this
}

func newModel(t *rapid.T) *model {
	m := &model{records: make(records), keys: rapid.SampledFrom([]uint64{1, 5, 1 << 40}).Draw(t, "keys")}
	m.tree = btree.New(&m.mem, m.records, rapid.Bool().Draw(t, "keyed"))
	return m
}

func (m *model) place(r record) (int, bool) {
	return slices.BinarySearchFunc(m.sorted, r, func(ref uint32, r record) int { return compare(m.records[ref], r) })
}

func (m *model) draw(t *rapid.T) record {
	return record{rapid.Uint64Range(0, m.keys-1).Draw(t, "key"), fmt.Sprint(rapid.IntRange(0, 2000).Draw(t, "name"))}
}

func (m *model) add(t *rapid.T, r record) {
	at, found := m.place(r)
	if found {
		return
	}
	m.next++
	m.records[m.next] = r
	if err := m.tree.Insert(probe(r), m.next); err != nil {
		if m.mem.Limit == 0 {
			t.Fatal(err)
		}
		delete(m.records, m.next)
		return
	}
	m.sorted = slices.Insert(m.sorted, at, m.next)
}

func (m *model) insert(t *rapid.T) {
	for range rapid.IntRange(1, 400).Draw(t, "n") {
		m.add(t, m.draw(t))
	}
}

func (m *model) ascend(t *rapid.T) {
	r := record{}
	if n := len(m.sorted); n > 0 {
		r = m.records[m.sorted[n-1]]
	}
	equal := rapid.Bool().Draw(t, "equal keys")
	for i := range rapid.IntRange(1, 1000).Draw(t, "n") {
		if equal {
			r.name = fmt.Sprintf("~%04d", i) // behind all others
		} else {
			r.key++
		}
		m.add(t, r)
	}
}

func (m *model) remove(t *rapid.T, at int) {
	ref := m.sorted[at]
	if !m.tree.Delete(probe(m.records[ref]), ref) {
		t.Fatalf("record %v not found", m.records[ref])
	}
	if m.tree.Delete(probe(m.records[ref]), ref) {
		t.Fatalf("record %v deleted twice", m.records[ref])
	}
	delete(m.records, ref)
	m.sorted = slices.Delete(m.sorted, at, at+1)
}

func (m *model) delete(t *rapid.T) {
	n := rapid.IntRange(1, 600).Draw(t, "n")
	where := rapid.IntRange(0, 3).Draw(t, "where")
	for range min(n, len(m.sorted)) {
		at := 0
		switch where {
		case 0:
			at = len(m.sorted) - 1
		case 1, 2:
			at = rapid.IntRange(0, len(m.sorted)-1).Draw(t, "at")
		}
		m.remove(t, at)
	}
}

func (m *model) update(t *rapid.T) {
	if len(m.sorted) == 0 {
		t.Skip("empty")
	}
	if !m.tree.Reserve() {
		return
	}
	limit := m.mem.Limit
	m.mem.Limit = 1
	m.remove(t, rapid.IntRange(0, len(m.sorted)-1).Draw(t, "at"))
	m.add(t, m.draw(t))
	m.mem.Limit = limit
}

func (m *model) replace(t *rapid.T) {
	if len(m.sorted) == 0 {
		t.Skip("empty")
	}
	at := rapid.IntRange(0, len(m.sorted)-1).Draw(t, "at")
	old := m.sorted[at]
	m.next++
	m.records[m.next] = m.records[old]
	m.tree.Replace(probe(m.records[old]), m.next)
	delete(m.records, old)
	m.sorted[at] = m.next
}

func (m *model) check(t *rapid.T) {
	if err := m.tree.Check(); err != nil {
		t.Fatal(err)
	}
	if m.tree.Len() != len(m.sorted) {
		t.Fatalf("Len %d, want %d", m.tree.Len(), len(m.sorted))
	}
	i := 0
	for c := m.tree.Seek(0); c.OK(); c.Next() {
		if key, ref := c.Entry(); ref != m.sorted[i] || key != m.records[ref].key || c.Ref() != ref {
			t.Fatalf("entry %d is (%d, %d), want %d", i, key, ref, m.sorted[i])
		}
		i++
	}
	for c := m.tree.Seek(i - 1); c.OK(); c.Prev() {
		i--
		if c.Ref() != m.sorted[i] {
			t.Fatalf("backwards, entry %d is %d, want %d", i, c.Ref(), m.sorted[i])
		}
	}
	if key, ref, ok := m.tree.First(); ok != (len(m.sorted) > 0) || ok && (ref != m.sorted[0] || key != m.records[ref].key) {
		t.Fatalf("First is (%d, %d, %v)", key, ref, ok)
	}
	r := m.draw(t)
	at, _ := m.place(r)
	if got := m.tree.Rank(probe(r)); got != at {
		t.Fatalf("Rank(%v) = %d, want %d", r, got, at)
	}
	before, _ := m.place(record{key: r.key})
	after, _ := m.place(record{key: r.key + 1})
	if got := m.tree.Rank(btree.Probe{Key: r.key, Side: -1}); got != before {
		t.Fatalf("Rank(before %d) = %d, want %d", r.key, got, before)
	}
	if got := m.tree.Rank(btree.Probe{Key: r.key, Side: +1}); got != after {
		t.Fatalf("Rank(after %d) = %d, want %d", r.key, got, after)
	}
	if at < len(m.sorted) {
		if key, ref := m.tree.At(at); ref != m.sorted[at] || key != m.records[ref].key {
			t.Fatalf("At(%d) = (%d, %d), want %d", at, key, ref, m.sorted[at])
		}
	}
}

func TestTreeIsASortedSlice(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := newModel(t)
		m.mem.Limit = rapid.SampledFrom([]int{0, 0, 40 << 10}).Draw(t, "limit")
		t.Repeat(map[string]func(*rapid.T){
			"insert": m.insert, "ascend": m.ascend, "delete": m.delete, "update": m.update, "replace": m.replace, "": m.check,
		})
		for m.tree.FreeAll(2) == 2 {
		}
		if m.mem.Held() != 0 {
			t.Fatalf("%d bytes not given back", m.mem.Held())
		}
	})
}

func TestAscendingEntriesFillTheirNodes(t *testing.T) {
	var mem chunktest.Memory
	recs := make(records)
	tree := btree.New(&mem, recs, true)
	const n = 100_000
	for i := range uint32(n) {
		recs[i+1] = record{key: uint64(i)}
		if err := tree.Insert(btree.Probe{Key: uint64(i)}, i+1); err != nil {
			t.Fatal(err)
		}
	}
	if per := float64(tree.Used()) / n; per > 13 {
		t.Fatalf("%.1f bytes per entry", per)
	}
}

// counted counts the records that a tree reads: to order equal keys, and for their keys.
type counted struct {
	records
	ties, keys int
}

func (c *counted) Key(ref uint32) uint64 {
	c.keys++
	return c.records.Key(ref)
}

func (c *counted) Tie(ref uint32, p btree.Probe) int {
	c.ties++
	return c.records.Tie(ref, p)
}

func TestAnEntryAtTheEndReadsOneRecord(t *testing.T) {
	for _, keyed := range []bool{true, false} {
		var mem chunktest.Memory
		order := &counted{records: records{}}
		tree := btree.New(&mem, order, keyed)
		const n = 20_000
		for i := range uint32(n) {
			r := record{key: 7, name: fmt.Sprintf("%06d", i)}
			order.records[i+1] = r
			if err := tree.Insert(probe(r), i+1); err != nil {
				t.Fatal(err)
			}
		}
		before := order.ties
		first := record{key: 7, name: "0"}
		order.records[n+1] = first
		if err := tree.Insert(probe(first), n+1); err != nil {
			t.Fatal(err)
		}
		if searched := order.ties - before; before > n || searched < 2 {
			t.Errorf("keyed %v: %d entries at the end read %d records, one at the front read %d", keyed, n, before, searched)
		}
		if err := tree.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnEmptiedTreeHoldsNoNodes(t *testing.T) {
	var mem chunktest.Memory
	recs := make(records)
	tree := btree.New(&mem, recs, false)
	rng := rand.New(rand.NewPCG(1, 2))
	order := rng.Perm(20_000)
	for _, i := range order {
		recs[uint32(i+1)] = record{key: uint64(i)}
		if err := tree.Insert(btree.Probe{Key: uint64(i)}, uint32(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range rng.Perm(20_000) {
		if !tree.Delete(btree.Probe{Key: uint64(i)}, uint32(i+1)) {
			t.Fatalf("entry %d is gone", i)
		}
	}
	if tree.Used() != 0 || mem.Held() > 2<<10 {
		t.Fatalf("an empty tree uses %d bytes and holds %d", tree.Used(), mem.Held())
	}
}

func TestADeleteReadsOnlyTheFirstRecordsOfLeaves(t *testing.T) {
	var mem chunktest.Memory
	order := &counted{records: records{}}
	tree := btree.New(&mem, order, false)
	const n = 20_000
	for i := range uint32(n) {
		order.records[i+1] = record{key: uint64(i)}
		if err := tree.Insert(probe(order.records[i+1]), i+1); err != nil {
			t.Fatal(err)
		}
	}
	order.keys, order.ties = 0, 0
	for i := range uint32(n) {
		if !tree.Delete(probe(order.records[i+1]), i+1) {
			t.Fatalf("entry %d is gone", i)
		}
		if i == 0 && order.keys > 2 {
			t.Errorf("it read the keys of %d records", order.keys)
		}
	}
	if per := float64(order.keys) / n; per > 2 {
		t.Errorf("each read the keys of %.2f records", per)
	}
}

// In a leaf whose entries share one key, an insert orders by the records' references alone.
func TestAnInsertAmongEqualKeysReadsTwoKeysOfItsLeaf(t *testing.T) {
	var mem chunktest.Memory
	order := &counted{records: records{}}
	tree := btree.New(&mem, order, false)
	const n = 20_000
	for i := range uint32(n) {
		order.records[i+1] = record{key: 7, name: fmt.Sprintf("%06d", 2*i)}
		if err := tree.Insert(probe(order.records[i+1]), i+1); err != nil {
			t.Fatal(err)
		}
	}
	order.keys = 0
	between := record{key: 7, name: fmt.Sprintf("%06d", n+1)}
	order.records[n+1] = between
	if err := tree.Insert(probe(between), n+1); err != nil {
		t.Fatal(err)
	}
	if order.keys > 5 { // two of the leaf, the last one, and the first ones of the halves of the leaf, which is full
		t.Errorf("it read %d keys", order.keys)
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}
