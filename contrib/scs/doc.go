// Package scsebb stores the sessions of scs in ebb, Redis or Valkey:
//
//	store, err := scsebb.New(c, "session")
//	...
//	manager := scs.New()
//	manager.Store = store
//
// A session is one key, which the server expires: no sweeper runs. With Options.Idle a session also ends
// after a time without a request. Each read of a session moves that deadline, so a request that
// changes nothing writes nothing; scs's own IdleTimeout writes the whole session at each request.
//
// Start reading at New.
package scsebb
