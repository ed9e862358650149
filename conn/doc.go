// Package conn is what the toolkit runs on: Conn, an open backend, and Driver, the
// interface that a backend implements. It links neither an engine nor a client library.
//
//	limit, lock, queue, ... ──> Conn ──> Driver ──┬─ embed     the engine in this process
//	                                              ├─ goredis   servers, through go-redis
//	                                              └─ contrib/rueidis, otel, a program's own
//
// A program gets a Conn from ebb.Open, which takes any URL, or from embed.Open or
// goredis.Open, which link one Driver alone. ebb.Conn is the same type as conn.Conn: programs use
// the names of package ebb, and conn is for libraries and drivers.
//
// A Conn has one method for every command there is, Do, typed methods for those that
// programs use most, and methods for what Do cannot do, because it needs a connection of
// its own: Pipeline and Tx (a Batch of commands, the latter atomic), Watch, Block and
// Subscribe. Replicated is a view of it whose writes no failover loses.
//
// # Errors
//
// An error reply comes back as a ReplyError. ErrNil says that there is no such key or
// element. ErrUnavailable says that the backend cannot be reached, or is not ready. The
// error of a call whose context ended has the context's error in its chain. After either
// of the last two a command may or may not have taken effect: a Driver sends it once at
// most. If ErrUnavailable comes with a ReplyError, the command has not run.
//
// # Reading the source
//
// Start reading at Conn.Do in conn.go, then Driver in driver.go. args.go says how
// arguments become texts.
package conn
