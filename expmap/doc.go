// Package expmap implements a map that programs share and whose entries expire one by one.
//
//	m, err := expmap.New(c, "sessions", expmap.Options[string, Session]{IdleTTL: 30 * time.Minute, MaxLen: 10_000})
//	err = m.Set(ctx, id, s, 12*time.Hour)
//	s, ok, err := m.Get(ctx, id)
//
// A map is a hash. The layout depends on the backend and on the options:
//
//	ebb                 fields with deadlines; HSETEX, HGET ... one command each, and a
//	                    script with an Eviction or an IdleTTL
//	Redis >= 7.4,       fields with deadlines; a script for each operation
//	  Valkey >= 9
//	other servers, and  a sorted set of deadlines and the hash; every script
//	  with Events or    removes some expired entries first
//	  an Eviction
//	Options.Layout      the layout of Redisson's MapCache, which Java programs can share
//
// Invariants of every layout: an entry lives up to and including the millisecond of its
// deadline (in Redisson's layout up to the millisecond before), by the server's clock.
// Afterwards no operation returns, counts or lists it, even while the server has not yet
// reclaimed its memory. MaxLen is checked in the step that adds. In a map with Events, the step
// that removes an expired entry also records the event.
//
// Start reading at Map; scripts.go has the layouts.
package expmap
