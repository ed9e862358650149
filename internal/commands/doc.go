// Package commands implements the commands on data: strings, hashes, lists, sets, sorted sets,
// streams, expiries, limiters, locks, queues and filters.
//
//	request ─ session.dispatch ─ runSet(*command.Ctx) ─ engine.Tx.Set
//	          locks the keys     parse, do, reply       the data
//
// A command is one block: its Spec, which package command explains, and its run function in three
// paragraphs (parse, do, reply). A group of commands has a file, or some files with the same stem,
// and a list of its Specs. Commands about connections and the server are in package servercmd.
//
// Invariants: a handler takes the instant from its transaction and takes no lock; it reaches the
// client and the server only through command.Host; it replies once, or returns an error.
//
// Start reading at Specs, then at specSet and runSet in string.go. limiter_wait.go and lock.go have
// commands that wait.
package commands
