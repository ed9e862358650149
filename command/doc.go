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
// command, see CONTRIBUTING.md.
package command
