package expmap

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/expirytest"
)

// TestModel compares every layout with a Go map and a clock, in virtual time.
func TestModel(t *testing.T) {
	expirytest.Play(t, []mode{modeAuto, modeFields, modeZset, modeLayout}, model)
}

// world is a map and its model, on one clock.
type world struct {
	expirytest.Model[int]
	m *Map[string, int]
}

func model(t *rapid.T, b *ebbtest.Backend, name string, lay mode) map[string]func(*rapid.T) {
	o := Options[string, int]{MaxLen: rapid.Int64Range(0, 3).Draw(t, "maxlen")}
	if rapid.Bool().Draw(t, "idles") {
		o.IdleTTL = 50 * time.Millisecond
	}
	create := New[string, int]
	if lay == modeLayout {
		create = newRedisson[string, int]
	}
	m, err := create(b.Conn, name, o)
	if err != nil {
		t.Fatal(err)
	}
	if lay == modeFields || lay == modeZset {
		m.force = lay
	}
	w := &world{m: m, Model: expirytest.Model[int]{Backend: b, Of: m, Delete: m.Remove,
		Idle: o.IdleTTL, MaxLen: o.MaxLen, Sharp: lay == modeLayout}}
	return w.Steps(map[string]func(*rapid.T){"set": w.set, "get": w.get, "get many": w.getMany, "set many": w.setMany,
		"swap": w.swap, "add": w.add,
		"": w.compare})
}

func (w *world) set(t *rapid.T) {
	k, v, ttl, nx := expirytest.Keys.Draw(t, "key"), rapid.IntRange(0, 99).Draw(t, "value"), expirytest.TTLs.Draw(t,
		"ttl"), rapid.Bool().Draw(t, "nx")
	_, there := w.Get(k)
	var did bool
	var err error
	if nx {
		did, err = w.m.SetNX(t.Context(), k, v, ttl)
	} else {
		err = w.m.Set(t.Context(), k, v, ttl)
		did = err == nil
	}
	if !there && w.Full(1) {
		expirytest.Check(t, "set", errors.Is(err, ErrFull), true, nil)
		return
	}
	expirytest.Check(t, "set", did, !nx || !there, err)
	if did {
		w.Put(k, v, ttl)
	}
}

func (w *world) setMany(t *rapid.T) {
	many, ttl := rapid.MapOfN(expirytest.Keys, rapid.IntRange(0, 99), 1, 3).Draw(t, "entries"), expirytest.TTLs.Draw(t, "ttl")
	fresh := 0
	for k := range many {
		if _, there := w.Get(k); !there {
			fresh++
		}
	}
	err := w.m.SetMany(t.Context(), many, ttl)
	if w.Full(fresh) {
		expirytest.Check(t, "set many", errors.Is(err, ErrFull), true, nil)
		return
	}
	expirytest.Check(t, "set many", true, true, err)
	for k, v := range many {
		w.Put(k, v, ttl)
	}
}

func (w *world) swap(t *rapid.T) {
	k, old, v := expirytest.Keys.Draw(t, "key"), rapid.IntRange(0, 9).Draw(t, "old"), rapid.IntRange(0, 9).Draw(t, "value")
	is, there := w.Get(k)
	if rapid.Bool().Draw(t, "right") {
		old = is
	}
	if rapid.Bool().Draw(t, "delete") {
		did, err := w.m.CompareAndDelete(t.Context(), k, old)
		expirytest.Check(t, "compare and delete", did, there && is == old, err)
		if did {
			w.Drop(k)
		}
		return
	}
	did, err := w.m.CompareAndSwap(t.Context(), k, old, v)
	expirytest.Check(t, "compare and swap", did, there && is == old, err)
	if did {
		w.Change(k, v)
	}
}

func (w *world) add(t *rapid.T) {
	k, n, ttl := expirytest.Keys.Draw(t, "key"), rapid.Int64Range(-9, 9).Draw(t, "delta"), expirytest.TTLs.Draw(t, "ttl")
	is, there := w.Get(k)
	sum, err := w.m.Increment(t.Context(), k, n, ttl)
	if !there && w.Full(1) {
		expirytest.Check(t, "increment", errors.Is(err, ErrFull), true, nil)
		return
	}
	expirytest.Check(t, "increment", sum, int64(is)+n, err)
	if there {
		w.Change(k, int(sum))
	} else {
		w.Put(k, int(sum), ttl)
	}
}

func (w *world) get(t *rapid.T) { w.getAnd(t, func(string) {}) }

// getAnd gets an entry, and calls found if it exists.
func (w *world) getAnd(t *rapid.T, found func(k string)) {
	k := expirytest.Keys.Draw(t, "key")
	want, there := w.Get(k)
	v, ok, err := w.m.Get(t.Context(), k)
	expirytest.Check(t, "get", fmt.Sprint(v, ok), fmt.Sprint(want, there), err)
	w.Touch(k)
	if there {
		found(k)
	}
}

func (w *world) getMany(t *rapid.T) {
	all, err := w.m.GetMany(t.Context(), expirytest.Names...)
	expirytest.Check(t, "get many", len(all), w.Len(), err)
	for k, v := range all {
		want, there := w.Get(k)
		expirytest.Check(t, "get many", fmt.Sprint(v, true), fmt.Sprint(want, there), nil)
		w.Touch(k)
	}
}

// compare compares the results of all reads that do not count as use.
func (w *world) compare(t *rapid.T) {
	seen := map[string]int{}
	for e, err := range w.m.All(t.Context()) {
		expirytest.Check(t, "all", true, true, err)
		seen[e.Key] = e.Value
	}
	w.Compare(t, seen)
}
