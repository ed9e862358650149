// Package command implements what all commands share: how a command is described, how a
// request is read by that description, and what a handler gets.
//
//	Spec ──> Table ──> Resolve: which command is it?   AppendKeys: which keys does it name?
//	  │
//	  └─ Run(*Ctx): the arguments, the transaction, the reply
//
// A command is one block: a Spec and its run function. A Table is made of Specs, and from
// them come arity, key positions, ACL categories, the COMMAND family, the pages of
// docs/commands and the generated tests.
//
// A Ctx is what a handler gets. Its Host is the client and the server, which package
// session implements; a handler of a command on data needs little of it.
//
// Invariants: a handler reads no clock and takes no lock; it replies once, or returns an
// error; what it wrote before an error is taken back.
//
// Start reading at Spec, then Table.Resolve and Ctx. To add a command, see CONTRIBUTING.md.
// arguments.go has what the commands of several groups read alike, wait.go what a command
// that waits uses, and wire.go the texts of errors.
package command
