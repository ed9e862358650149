package commands_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

// bloomModel is an engine with filters, a replica, and for each filter the items with the times at which they
// were added.
type bloomModel struct {
	e       *transcript.Engine
	replica *modeltest.Replica
	keys    map[string]*bloomTruth
}

// bloomTruth holds the parameters and the items of a filter.
type bloomTruth struct {
	window, generations int64
	added               map[string]int64 // when each item was added last, in ms
}

func (f *bloomTruth) clone() *bloomTruth {
	c := *f
	c.added = map[string]int64{}
	for k, v := range f.added {
		c.added[k] = v
	}
	return &c
}

func (m *bloomModel) now() int64 { return m.e.Clock.Micros() / 1000 }

func (m *bloomModel) do(t *rapid.T, args ...string) resp.Value {
	v, err := m.e.Do(1, args...)
	if err != nil {
		t.Fatal(args, err)
	}
	return v
}

func (m *bloomModel) key(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "{a}c"}).Draw(t, "key")
}

// Filters remember each item for at least the promised time and forget it at most the promised time later,
// whatever happens to their keys. The effects of each command lead to the same filters.
func TestBloomFiltersKeepTheirPromises(t *testing.T) {
	tier.Sequential(t)
	draw.Check(t, func(t *rapid.T) {
		e, err := transcript.NewEngine()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		r, err := modeltest.NewReplica()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		m := &bloomModel{e: e, replica: r, keys: map[string]*bloomTruth{}}
		if rapid.Bool().Draw(t, "lazy") {
			m.do(t, "DEBUG", "SET-ACTIVE-EXPIRE", "0")
		}
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"reserve": m.reserve,
			"add":     m.add,
			"insert":  m.insert,
			"copy":    m.copy,
			"rename":  m.rename,
			"dump":    m.dump,
			"chunks":  m.chunks,
			"persist": func(t *rapid.T) { m.do(t, "PERSIST", m.key(t)) },
			"expire":  func(t *rapid.T) { m.do(t, "EXPIRE", m.key(t), "1000000") },
			"pass": func(t *rapid.T) {
				m.e.Clock.Advance(time.Duration(rapid.Int64Range(1, 90).Draw(t, "ms")) * time.Millisecond)
			},
		})
	})
}

func (m *bloomModel) check(t *rapid.T) {
	if err := m.e.DB.Check(); err != nil {
		t.Fatal(err)
	}
	for key, f := range m.keys {
		for item, at := range f.added {
			v := m.do(t, "BF.EXISTS", key, item)
			age := m.now() - at
			surely := f.window == 0 || age <= f.window
			maybe := surely || age <= f.window+(f.window+f.generations-1)/f.generations
			if surely && v.Int != 1 || !maybe && v.Int != 0 {
				t.Fatalf("%s in %s, of age %d: %v", item, key, age, v)
			}
		}
	}
	if err := m.replica.Follow(m.e.DB); err != nil {
		t.Fatal(err)
	}
}

// options draws the options of a filter, and records them if the key holds none yet.
func (m *bloomModel) options(t *rapid.T, key string) (opts []string) {
	f := &bloomTruth{added: map[string]int64{}}
	if rapid.Bool().Draw(t, "ages") {
		f.window = rapid.Int64Range(1, 200).Draw(t, "window")
		f.generations = rapid.Int64Range(1, min(f.window, 5)).Draw(t, "generations")
		opts = append(opts, "WINDOW", fmt.Sprint(f.window), "GENERATIONS", fmt.Sprint(f.generations))
	}
	opts = append(opts, rapid.SampledFrom([][]string{nil, {"NONSCALING"}, {"EXPANSION", "3"}}).Draw(t, "growth")...)
	if m.keys[key] == nil {
		m.keys[key] = f
	}
	return opts
}

func (m *bloomModel) reserve(t *rapid.T) {
	key := m.key(t)
	if m.keys[key] == nil {
		m.do(t, append([]string{"BF.RESERVE", key, "1e-9", "7"}, m.options(t, key)...)...)
	}
}

func (m *bloomModel) item(t *rapid.T) string {
	return strconv.Itoa(rapid.IntRange(0, 30).Draw(t, "item"))
}

func (m *bloomModel) add(t *rapid.T) {
	key, item := m.key(t), m.item(t)
	if f := m.keys[key]; f != nil {
		if v := m.do(t, "BF.ADD", key, item); v.Kind != resp.KindError {
			f.added[item] = m.now()
		}
	}
}

func (m *bloomModel) insert(t *rapid.T) {
	key := m.key(t)
	args := append([]string{"BF.INSERT", key, "ERROR", "1e-9", "CAPACITY", "5"}, m.options(t, key)...)
	args = append(args, "ITEMS")
	items := rapid.SliceOfN(rapid.IntRange(0, 30), 1, 5).Draw(t, "items")
	for _, n := range items {
		args = append(args, strconv.Itoa(n))
	}
	for i, v := range m.do(t, args...).Elems {
		if v.Kind != resp.KindError {
			m.keys[key].added[strconv.Itoa(items[i])] = m.now()
		}
	}
}

func (m *bloomModel) copy(t *rapid.T) {
	from, to := m.key(t), m.key(t)
	if v := m.do(t, "COPY", from, to, "REPLACE"); v.Int == 1 {
		m.keys[to] = m.keys[from].clone()
	}
}

func (m *bloomModel) rename(t *rapid.T) {
	from, to := m.key(t), m.key(t)
	if f := m.keys[from]; f != nil && from != to {
		m.do(t, "RENAME", from, to)
		delete(m.keys, from)
		m.keys[to] = f
	}
}

func (m *bloomModel) dump(t *rapid.T) {
	from, to := m.key(t), m.key(t)
	if f := m.keys[from]; f != nil {
		m.do(t, "RESTORE", to, "0", m.do(t, "DUMP", from).Str, "REPLACE")
		m.keys[to] = f.clone()
	}
}

func (m *bloomModel) chunks(t *rapid.T) {
	from, to := m.key(t), m.key(t)
	if m.keys[from] == nil || from == to {
		return
	}
	for at := "0"; ; {
		v := m.do(t, "BF.SCANDUMP", from, at)
		if at = fmt.Sprint(v.Elems[0].Int); at == "0" {
			break
		}
		if v := m.do(t, "BF.LOADCHUNK", to, at, v.Elems[1].Str); v.Kind == resp.KindError {
			t.Fatal(v)
		}
	}
	m.keys[to] = m.keys[from].clone()
}
