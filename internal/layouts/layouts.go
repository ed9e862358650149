// Package layouts has the layouts of other libraries for the maps of expmap and the sets of expset: those of Redisson's
// RMapCache and RSetCache.
//
//	redisson.NewMapCache ──▶ expmap.New with Options.Layout ──▶ the scripts of expmap, on the Lua of MapCache
//
// They are here, and not in the module redisson, because the tests of expmap and expset run all operations on them. The two
// packages export a Map and a Set as their types Layout, whose fields no program can set.
package layouts

import "sync"

// Map is a layout of maps: see the type layout of expmap for what its Lua must define.
type Map struct {
	name string
	keys func(name string) [4]string
	lua  Lua

	once    sync.Once
	scripts any
}

// Lua is the Lua of a Map: the functions of every script, those that count uses and limit the entries, and those that replace values.
type Lua struct{ Prelude, Limits, Changes string }

// Name describes the layout.
func (m *Map) Name() string { return m.name }

// Keys returns the keys of a map beside its hash, the last but one with the uses of its entries.
func (m *Map) Keys(name string) [4]string { return m.keys(name) }

// Scripts returns what compile made of the Lua in the first call.
func (m *Map) Scripts(compile func(l Lua) any) any {
	m.once.Do(func() { m.scripts = compile(m.lua) })
	return m.scripts
}

// Set is a layout of sets: a sorted set of members by their deadlines, in which a member is expired at its deadline already.
type Set struct{ name, never string }

// SetCache is the layout of Redisson's RSetCache.
var SetCache = &Set{name: "Redisson's layout", never: "92233720368547758"}

// Name describes the layout.
func (s *Set) Name() string { return s.name }

// Never returns the score of members without a deadline.
func (s *Set) Never() string { return s.never }
