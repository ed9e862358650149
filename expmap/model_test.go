package expmap

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/expirytest"
)

// TestModel compares every layout with a Go map and a clock, in virtual time.
func TestModel(t *testing.T) {
	expirytest.Play(t, []mode{modeAuto, modeFields, modeZset, modeRedisson}, model)
}

// world is a map beside its model, on one clock.
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
	if lay == modeRedisson {
		create = Redisson[string, int]
	}
	m, err := create(b.Conn, name, o)
	if err != nil {
		t.Fatal(err)
	}
	if lay == modeFields || lay == modeZset {
		m.force = lay
	}
	w := &world{m: m, Model: expirytest.Model[int]{Backend: b, Of: m, Delete: m.Remove,
		Idle: o.IdleTTL, MaxLen: o.MaxLen, Sharp: lay == modeRedisson}}
	return w.Steps(map[string]func(*rapid.T){"set": w.set, "get": w.get, "get many": w.getMany, "": w.compare})
}

func (w *world) set(t *rapid.T) {
	k, v, ttl, nx := expirytest.Keys.Draw(t, "key"), rapid.IntRange(0, 99).Draw(t, "value"), expirytest.TTLs.Draw(t, "ttl"), rapid.Bool().Draw(t, "nx")
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

func (w *world) get(t *rapid.T) {
	k := expirytest.Keys.Draw(t, "key")
	want, there := w.Get(k)
	v, ok, err := w.m.Get(t.Context(), k)
	expirytest.Check(t, "get", fmt.Sprint(v, ok), fmt.Sprint(want, there), err)
	w.Touch(k)
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

// compare compares all that can be read without touching anything.
func (w *world) compare(t *rapid.T) {
	seen := map[string]int{}
	for e, err := range w.m.All(t.Context()) {
		expirytest.Check(t, "all", true, true, err)
		seen[e.Key] = e.Value
	}
	w.Compare(t, seen)
}
