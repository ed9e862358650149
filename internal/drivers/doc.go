// Package drivers is what conn and the Drivers of this module share, and no program needs: the texts of arguments, whether a
// command writes, and the errors of calls that have no reply.
//
//	arguments ── AppendArg, ArgText ──> what a Driver sends                (args.go)
//	a call whose context has ended ── Ended ──> its error                  (errors.go)
//	a call without a reply ── PendingReply, NoReply ──> its error          (pending.go)
//	that error ── AwaitReply, RepeatLater ──> what takes back its effects
//
// A program's own Driver has these functions in package conn/driverutil.
//
// Invariant: a call that may have run without a reply has one of the two errors in its chain.
//
// Start reading at AwaitReply.
package drivers
