// Package command is the commands: what each one is called, how its arguments
// read, which keys it touches, what it does and replies. It is everything
// between the bytes of a client and the data of an engine.
//
//	bytes ─ Session.Serve ─ dispatch ─ runGet ─ engine.Tx.Get
//	        parse in place  may it?    parse,   the data
//	        flush once      lock, now  do,
//	                        run,       reply
//	                        settle
//
// A command is one block: a Spec and its run function. The Table is made of the
// Specs, and from them come arity, key positions, ACL categories, the COMMAND
// family, the pages of docs/commands and the generated tests.
//
// A Session is one client: a connection's, which a network loop calls, or an
// embedded one (Session.Do). What would make a loop wait runs beside it, and the
// session is parked meanwhile. A Service is what the sessions of an engine
// share.
//
// Invariants: a handler reads no clock and takes no lock; it replies once, or
// returns an error; what it did is settled before anybody else sees the shards.
//
// Start reading at Session.Serve, then Session.dispatch and runSet. To add a
// command, see CONTRIBUTING.md. Commands stand in files named after their group
// (list.go and list_move.go, zset.go and zset_*.go ...), which begin with the
// group's Specs; arguments.go has what several groups read alike. Around them are
//
//	block.go, timeouts.go     commands that wait (Ctx.Block)
//	acl*.go                   users, and what dispatch asks of them
//	observe.go                MONITOR, slow calls; tracking.go: client-side caching
//	cluster.go                slots, where the server plays a cluster of one
//	spec.go, grammar.go       what a Spec says, and what is derived from it
package command
