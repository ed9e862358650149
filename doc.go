// Package ebb is the door to a home for data with a deadline. A URL decides
// what is behind it:
//
//	c, err := ebb.Open(ctx, "mem://")                          an engine in this process, private
//	c, err := ebb.Open(ctx, "mem://sessions")                  the same, shared by name in this process
//	c, err := ebb.Open(ctx, "redis://user:pw@host:6379/0")     an ebb server, Redis or Valkey
//	c, err := ebb.Open(ctx, "rediss://host:6380")              with TLS
//	c, err := ebb.Open(ctx, "unix:///run/ebb.sock")            over a unix socket
//
// What is written against a Conn behaves the same on all of them:
//
//	                  ┌─ embedded ─ command.Session ─ engine      a function call, no RESP
//	Conn ── backend ──┤
//	                  └─ remote ─── go-redis ─ socket ─ server
//
// A Conn has one method for every command there is, Do, typed methods for the
// ones programs use most, and the four things that Do cannot do, because they
// need a connection to themselves: Pipeline and Tx (a Batch of commands, the
// latter atomic), Watch, Block, and Subscribe.
//
// # Errors
//
// A reply that is an error comes back as a ReplyError. What is not there is
// ErrNil. A backend that cannot be reached is ErrUnavailable. An error after
// the context ended has the context's error in its chain, so that
// errors.Is(err, context.DeadlineExceeded) says what it should. After either of
// the last two a command may or may not have taken effect: it is sent once at
// most.
//
// # Reading the source
//
// Start at Conn.Do in conn.go, then embedded.go, which is all there is between
// a call and the engine, and remote.go.
package ebb
