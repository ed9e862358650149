// Package expmap implements a map that programs share and whose entries expire one by one.
//
//	m, err := expmap.New(c, "sessions", expmap.Options[string, Session]{IdleTTL: 30 * time.Minute, MaxLen: 10_000})
//	err = m.Set(ctx, id, s, 12*time.Hour)
//	s, ok, err := m.Get(ctx, id)
//
// A map is a hash. How its entries get their deadlines depends on the backend, and
// on what is asked of the map:
//
//	ebb                 fields with deadlines; HSETEX, HGET ... one command each
//	Redis >= 7.4,       fields with deadlines; a script for each operation
//	  Valkey >= 9
//	others, and where   a sorted set of deadlines beside the hash; every script
//	  Events are asked  removes some of the dead first
//	Redisson            the layout of its MapCache, to share one with Java
//
// Invariants, whatever the layout: an entry lives up to and including the millisecond
// of its deadline (in Redisson's layout up to the one before), by the server's clock, and
// is then never returned, counted or listed, also while its memory is not yet
// reclaimed; MaxLen is checked in the step that adds; an expiry of a map with Events
// is in the stream of events from the step on in which the entry is removed.
//
// Start reading at Map; scripts.go has the layouts.
package expmap
