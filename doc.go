// Package ebb is the door to a home for data with a deadline. A URL decides
// what is behind it:
//
//	c, err := ebb.Open(ctx, "mem://")                          an engine in this process, private
//	c, err := ebb.Open(ctx, "mem://sessions")                  the same, shared by name in this process
//	c, err := ebb.Open(ctx, "file:///var/lib/app")             the same with files: what is written is kept
//	c, err := ebb.Open(ctx, "redis://user:pw@host:6379/0")     an ebb server, Redis or Valkey
//	c, err := ebb.Open(ctx, "rediss://host:6380")              with TLS
//	c, err := ebb.Open(ctx, "unix:///run/ebb.sock")            over a unix socket
//	c, err := ebb.Open(ctx, "redis+sentinel://h1,h2,h3/mymaster")
//	                                                           the master that Sentinel names
//	c, err := ebb.Open(ctx, "redis+cluster://h1:6379,h2:6379") Redis or Valkey Cluster
//	c := ebb.Wrap(universalClient)                             a go-redis client that is there already
//	c := ebb.Use(driver)                                       another client library, such as contrib/rueidis
//
// What is written against a Conn behaves the same on all of them:
//
//	                  ┌─ embedded ─ command.Session ─ engine ─ (files)   a function call, no RESP
//	Conn ── backend ──┤
//	                  ├─ remote ─── go-redis ─ sockets ─ one server, Sentinel's master, or a cluster's nodes
//	                  └─ driven ─── a Driver
//
// A Conn has one method for every command there is, Do, typed methods for the
// ones programs use most, and the four things that Do cannot do, because they
// need a connection to themselves: Pipeline and Tx (a Batch of commands, the
// latter atomic), Watch, Block, and Subscribe. Replicated is a view of it whose
// writes no failover loses. Capabilities says what is behind it.
//
// # Files
//
// A file:// URL names a directory. It is locked while it is open: in one process it
// leads to one engine, and another process is told who has it. What is appended is
// synced every second; with ?fsync=always a call returns when what it wrote, or read,
// is on disk, and Engine.Sync waits for that at any time. Close writes what is left,
// syncs it, and says whether it could. Engine.Backup writes a snapshot. An ebb server
// reads the same directory, and so does redis-server while it holds nothing but what
// Redis knows.
//
// # Errors
//
// A reply that is an error comes back as a ReplyError. What is not there is
// ErrNil. A backend that cannot be reached, or is not ready, is ErrUnavailable. An
// error after the context ended has the context's error in its chain, so that
// errors.Is(err, context.DeadlineExceeded) says what it should. After either of
// the last two a command may or may not have taken effect: it is sent once at
// most. If ErrUnavailable comes with a ReplyError, it certainly has not.
//
// # Reading the source
//
// Start at Conn.Do in conn.go, then embedded.go, which is all there is between
// a call and the engine, and remote.go, with remotecluster.go for the nodes.
package ebb
