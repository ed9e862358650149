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
// (Session.Do). It consists of a connection (bytes and replies), a client (what lasts from command to
// command: user, database, transaction, subscriptions), and the command that runs. A command that would
// hold up a loop runs in the background, and the session is parked meanwhile. A Service holds the state
// that the sessions of an engine share.
//
// Invariants: a session's methods are called by one goroutine at a time; what a command did is
// settled before another client sees the shards.
//
// The package has no command: package commands has those on data, and package servercmd, above this one,
// those about the server and its clients. A command reaches the session by command.Host (host.go) or, from
// servercmd, by Of and the exported methods of Session and Service, which are beside their subjects. A method of Session
// whose comment does not name another goroutine is called by the handlers of that session alone. What dispatch has to know of a command is
// in its Spec. The package knows by name the commands that are its protocol: EXEC, PING, SHUTDOWN, CLIENT PAUSE and those that run scripts;
// replication_host.go also knows those of a stream.
//
// Start reading at Session.Serve, then Session.dispatch. These files are around them:
//
//	connection.go, client.go      the two parts of a session
//	held_replies.go, share.go     replies that wait until they may leave, and those that are not copied
//	group.go                      what a server asks of its group, which chooses the master
//	host.go                       what commands on data see of a session (command.Host)
//	describe.go                   what CLIENT LIST shows
//	multi.go                      transactions and watched keys
//	block.go                      commands that wait (Ctx.Block)
//	users.go, identity.go         users, and what dispatch asks of them
//	gates.go, client_list.go      when the server refuses or suspends commands; the sessions of a service
//	script_host.go, busy.go       scripts and their calls; coroutine.go: how they leave a loop
//	subscribers.go                what the commands of pub/sub ask for
//	observe.go, sampling.go       MONITOR, slow calls, hot keys; caching.go: client-side caching
//	settings.go, listener.go      what follows the configuration
//	files.go, replication_host.go what the files and the replication ask of the server; replay.go: logged commands
//	slots.go                      slots, where the server plays a cluster of one
//	direct.go                     what direct calls, which need no session, ask of a service
package session
