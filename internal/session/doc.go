// Package session implements clients: it turns the bytes of a connection, or the calls of an
// embedded client, into commands that run on an engine, and into replies.
//
//	bytes ─ Session.Serve ─ dispatch ─ runGet ─ engine.Tx.Get
//	        parse in place  may it?    parse,   the data
//	        flush once      lock, now  do,
//	                        run,       reply
//	                        settle
//
// A Session is one client: a connection's, which a network loop calls, or an embedded one
// (Session.Do). A command that would hold up a loop runs in the background, and the session is
// parked meanwhile. A Service holds the state that the sessions of an engine share.
//
// Invariants: a session's methods are called by one goroutine at a time; what a command did is
// settled before another client sees the shards.
//
// Start reading at Session.Serve, then Session.dispatch. These files are around them:
//
//	host.go                   what the commands on data (package commands) see of a session (command.Host)
//	block.go, timeouts.go     commands that wait (Ctx.Block)
//	acl*.go                   users, and what dispatch asks of them
//	observe.go                MONITOR, slow calls; tracking.go: client-side caching
//	cluster.go                slots, where the server plays a cluster of one
package session
