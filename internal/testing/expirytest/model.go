// Package expirytest holds the model for the toolkit's containers whose entries expire one
// by one: a Go map and a clock, in virtual time.
//
//	rapid ── a step ──▶ Container, on ebbtest's clock
//	             └────▶ Model, on its own          and after each: the same?
//
// Model.Steps has the steps of every container. The container's own test has the steps
// that add and read entries, and the layouts.
//
// Start reading at Play.
package expirytest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// Play runs random steps with each layout, again and again with new containers. After each
// step it runs the step "". begin creates a container and returns its steps, by name.
func Play[Layout any](t *testing.T, layouts []Layout,
	begin func(t *rapid.T, b *ebbtest.Backend, name string, l Layout) (steps map[string]func(*rapid.T))) {
	for _, l := range layouts {
		t.Run(fmt.Sprint(l), func(t *testing.T) {
			b := ebbtest.Run(t)
			n := 0
			draw.Check(t, func(rt *rapid.T) {
				n++
				rt.Repeat(begin(rt, b, fmt.Sprint("x", n), l))
			})
		})
	}
}

// Container holds the methods that expmap.Map and expset.Set share.
type Container interface {
	Len(ctx context.Context) (int64, error)
	TTL(ctx context.Context, key string) (time.Duration, bool, error)
	Expire(ctx context.Context, key string, ttl time.Duration) (bool, error)
	Persist(ctx context.Context, key string) (bool, error)
}

// Names are the keys of the entries.
var Names = []string{"a", "b", "c", "d", "e"}

var (
	// Keys draws one of Names.
	Keys = rapid.SampledFrom(Names)
	// TTLs draws a time to live; 0 is none.
	TTLs = rapid.SampledFrom([]time.Duration{0, 10 * time.Millisecond, 40 * time.Millisecond, 200 * time.Millisecond})
)

// Model is a container's model: its entries and their deadlines. Its fields are set before
// the first step.
type Model[V any] struct {
	Backend *ebbtest.Backend
	Of      Container
	Delete  func(ctx context.Context, keys ...string) (int64, error) // Of's
	MaxLen  int64                                                    // 0: any
	Idle    time.Duration                                            // 0: no idle time
	Sharp   bool                                                     // an entry is expired at its deadline already, as in Redisson

	entries map[string]entry[V]
	now     int64 // ms
}

// entry is an entry of the model. Times are in ms of the model; 0: none.
type entry[V any] struct {
	value V
	hard  int64
	idle  int64
}

func (e entry[V]) deadline() int64 {
	switch {
	case e.hard == 0:
		return e.idle
	case e.idle == 0:
		return e.hard
	}
	return min(e.hard, e.idle)
}

// Steps returns the steps of every container, and the given ones.
func (m *Model[V]) Steps(own map[string]func(*rapid.T)) map[string]func(*rapid.T) {
	m.entries = map[string]entry[V]{}
	own["pass"], own["delete"], own["expire"] = m.pass, m.remove, m.expire
	return own
}

// Get returns an entry's value, and whether it exists.
func (m *Model[V]) Get(key string) (v V, there bool) {
	e, there := m.entries[key]
	return e.value, there
}

// Len returns the number of entries.
func (m *Model[V]) Len() int { return len(m.entries) }

// Full reports whether fresh new entries would exceed MaxLen.
func (m *Model[V]) Full(fresh int) bool {
	return m.MaxLen > 0 && fresh > 0 && int64(len(m.entries)+fresh) > m.MaxLen
}

// Put sets an entry.
func (m *Model[V]) Put(key string, v V, ttl time.Duration) {
	m.entries[key] = entry[V]{value: v, hard: m.after(ttl)}
	m.Touch(key)
}

// Change gives an entry another value. Its deadline stays, and it counts as use.
func (m *Model[V]) Change(key string, v V) {
	e := m.entries[key]
	e.value = v
	m.entries[key] = e
	m.Touch(key)
}

// Drop removes an entry.
func (m *Model[V]) Drop(key string) { delete(m.entries, key) }

// Touch restarts an entry's idle time.
func (m *Model[V]) Touch(key string) {
	if e, ok := m.entries[key]; ok && m.Idle > 0 {
		e.idle = m.after(m.Idle)
		m.entries[key] = e
	}
}

// after returns the deadline for a time to live.
func (m *Model[V]) after(ttl time.Duration) int64 {
	if ttl == 0 {
		return 0
	}
	return m.now + ttl.Milliseconds()
}

func (m *Model[V]) pass(t *rapid.T) {
	d := rapid.Int64Range(1, 60).Draw(t, "ms")
	m.Backend.Clock.Advance(time.Duration(d) * time.Millisecond)
	m.now += d
	for key, e := range m.entries {
		if at := e.deadline(); at != 0 && (m.now > at || m.Sharp && m.now == at) {
			delete(m.entries, key)
		}
	}
}

func (m *Model[V]) remove(t *rapid.T) {
	key := Keys.Draw(t, "key")
	n, err := m.Delete(t.Context(), key)
	_, there := m.entries[key]
	Check(t, "delete", n == 1, there, err)
	delete(m.entries, key)
}

func (m *Model[V]) expire(t *rapid.T) {
	key, ttl := Keys.Draw(t, "key"), TTLs.Draw(t, "ttl")
	e, there := m.entries[key]
	if ttl == 0 {
		did, err := m.Of.Persist(t.Context(), key)
		Check(t, "persist", did, e.deadline() != 0, err)
	} else {
		did, err := m.Of.Expire(t.Context(), key, ttl)
		Check(t, "expire", did, there, err)
	}
	if there {
		e.hard = m.after(ttl)
		m.entries[key] = e
		m.Touch(key)
	}
}

// Compare compares the number of entries, their remaining times and their values with the
// model; all has the container's entries. It does not touch an entry.
func (m *Model[V]) Compare(t *rapid.T, all map[string]V) {
	n, err := m.Of.Len(t.Context())
	Check(t, "len", n, int64(len(m.entries)), err)
	Check(t, "all", len(all), len(m.entries), nil)
	for key, e := range m.entries {
		v, there := all[key]
		Check(t, "all", fmt.Sprint(v, there), fmt.Sprint(e.value, true), nil)
		want := ebb.Forever
		if at := e.deadline(); at != 0 {
			want = time.Duration(at-m.now) * time.Millisecond
		}
		d, there, err := m.Of.TTL(t.Context(), key)
		Check(t, "ttl", fmt.Sprint(d, there), fmt.Sprint(want, true), err)
	}
}

// Check fails the test if err is not nil or got is not equal to want.
func Check(t *rapid.T, what string, got, want any, err error) {
	t.Helper()
	if got != want || err != nil {
		t.Fatalf("%s: %v %v, want %v", what, got, err, want)
	}
}
