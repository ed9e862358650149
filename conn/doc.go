// Package conn is the foundation of the toolkit. Conn is an open backend, and Driver is the interface that a
// backend implements. The package links neither an engine nor a client library.
//
//	limit, lock, queue, ... ──> Conn ──> Driver ──┬─ embed     the engine in this process
//	                                              ├─ goredis   servers, through go-redis
//	                                              └─ contrib/rueidis, otel, a program's own
//
// A program gets a Conn from ebb.Open, which takes any URL, or from embed.Open or
// goredis.Open, which link one Driver alone. ebb.Conn is the same type as conn.Conn: programs use
// the names of package ebb, and conn is for libraries and drivers.
//
// Conn.Do runs any command. Conn has typed methods for the most used commands, and methods for work that
// needs a connection of its own: Pipeline and Tx (a Batch of commands, the latter atomic), Watch, Block and
// Subscribe. Replicated is a view of a Conn whose writes no failover loses.
//
// # Errors
//
// An error reply is returned as a ReplyError. ErrNil means that there is no such key or element.
// ErrUnavailable means that the backend cannot be reached, or is not ready. If the context of a call has
// ended, its error is in the chain. After either of these two a command may or may not have taken effect: a
// Driver sends it at most once. If ErrUnavailable comes with a ReplyError, the command has not run.
//
// # Reading the source
//
// Start reading at Conn.Do in conn.go, then Driver in driver.go. args.go says how
// arguments become texts.
package conn
