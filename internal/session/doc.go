// Package session implements clients: it turns the bytes of a connection, or the calls of an
// embedded client, into commands that run on an engine, and into replies.
//
//	bytes ─ Session.Serve ─ dispatch ─ runGet ─ engine.Tx.Get
//	        parse in place  may it?    parse,   the data
//	        flush once      lock, now  do,
//	                        run,       reply
//	                        settle
//
// A Session is one client: a connection's, which a network loop calls, or an embedded one (Session.Do). It
// consists of a connection (bytes and replies), a client (state that lasts from command to command: user,
// database, transaction, subscriptions), and the running command. A command that would delay a loop runs in
// the background, and the session is parked meanwhile. A Service holds the state that the sessions of an
// engine share.
//
// Invariants: a session's methods are called by one goroutine at a time; the effects of a command are settled
// before another client sees the shards.
//
// The package contains no command: package commands has the commands on data, and package servercmd, above
// this one, those about the server and its clients. A command reaches the session by command.Host (host.go)
// or, from servercmd, by Of and the exported methods of Session and Service. Unless its comment names another
// goroutine, only the handlers of its session may call a method of Session. A command's Spec contains what
// dispatch needs to know about it. The package knows some commands by name: those that gates let through
// (gates.go), and those of a replication stream (replication_host.go).
//
// Start reading at Session.Serve, then Session.dispatch. The other files:
//
//	connection.go, client.go      the two parts of a session
//	held_replies.go, share.go     replies that wait until they may be sent, and replies without copies
//	group.go                      the group that chooses the master
//	host.go                       the session as commands on data see it (command.Host)
//	describe.go                   the fields of CLIENT LIST
//	multi.go                      transactions and watched keys
//	block.go                      commands that wait (Ctx.Block)
//	users.go, identity.go         users, and their checks in dispatch
//	gates.go, pause.go            refused and suspended commands
//	client_list.go                the sessions of a service
//	client_bounds.go              the bounds of what clients use: memory, input, output, idle time
//	script_host.go, busy.go       scripts and their calls; coroutine.go: scripts off the loop
//	subscribers.go                the session's part of pub/sub
//	observe.go, sampling.go       MONITOR, slow calls, hot keys; caching.go: client-side caching
//	settings.go, listener.go      state that follows the configuration
//	files.go, replication_host.go the server as files and replication see it; replay.go: logged commands
//	slots.go                      slots, if the server acts as a cluster of one node
//	direct.go                     the service's methods for direct calls, which need no session
package session
