package servercmd

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/session"
)

var transactionSpecs = []*command.Spec{&specMulti, &specExec, &specDiscard, &specWatch, &specUnwatch}

var specMulti = command.Spec{
	Name: "multi", Group: command.GroupTransactions, Since: "1.2.0", Complexity: "O(1)",
	Summary: "Starts a transaction.",
	Flags:   command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.NoQueue,
	Client:  command.Stateful,
	Stream:  command.StreamControl,
	Examples: `
> MULTI
OK
> INCR visits
QUEUED
> INCR visits
QUEUED
> EXEC
1) (integer) 1
2) (integer) 2
> MULTI
OK
> MULTI
(error) ERR MULTI calls can not be nested
> DISCARD
OK
`,
	Run: runMulti,
}

func runMulti(c *command.Ctx) error {
	if !session.Of(c).BeginMulti() {
		return command.ReplyError("ERR MULTI calls can not be nested")
	}
	c.Out.OK()
	return nil
}

var specDiscard = command.Spec{
	Name: "discard", Group: command.GroupTransactions, Since: "2.0.0", Complexity: "O(N), when N is the number of queued commands",
	Summary: "Discards a transaction.",
	Flags:   command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.NoQueue,
	Client:  command.Stateful,
	Examples: `
> MULTI
OK
> SET k v
QUEUED
> DISCARD
OK
> GET k
(nil)
> DISCARD
(error) ERR DISCARD without MULTI
`,
	Run: runDiscard,
}

func runDiscard(c *command.Ctx) error {
	s := session.Of(c)
	if !s.InMulti() {
		return command.ReplyError("ERR DISCARD without MULTI")
	}
	s.EndMulti()
	c.Out.OK()
	return nil
}

var specExec = command.Spec{
	Name: "exec", Group: command.GroupTransactions, Since: "1.2.0", Complexity: "Depends on commands in the transaction",
	Summary: "Executes all commands in a transaction.",
	Flags:   command.NoScript | command.Loading | command.Stale | command.SkipSlowlog | command.NoQueue | command.RunsQueue,
	Client:  command.Stateful,
	Stream:  command.StreamControl,
	Examples: `
> MULTI
OK
> SET k v
QUEUED
> GET k
QUEUED
> EXEC
1) OK
2) "v"
> WATCH k
OK
2> SET k other
OK
> MULTI
OK
> SET k mine
QUEUED
> EXEC
(nil)
> EXEC
(error) ERR EXEC without MULTI
`,
	Run: runExec,
}

func runExec(c *command.Ctx) error {
	if !session.Of(c).InMulti() {
		return command.ReplyError("ERR EXEC without MULTI")
	}
	return session.Of(c).Exec(c)
}

var specWatch = command.Spec{
	Name: "watch", Group: command.GroupTransactions, Since: "2.2.0", Complexity: "O(1) for every key.",
	Summary: "Monitors changes to keys to determine the execution of a transaction.",
	Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.NoQueue | command.Sliced |
		command.Blind,
	Client: command.Stateful,
	Args:   []command.Arg{command.ManyKeys("key", command.Meta)},
	Examples: `
> WATCH a b
OK
> MULTI
OK
> WATCH c
(error) ERR WATCH inside MULTI is not allowed
> DISCARD
OK
`,
	Run: runWatch,
}

func runWatch(c *command.Ctx) error {
	if session.Of(c).InMulti() {
		return command.ReplyError("ERR WATCH inside MULTI is not allowed")
	}
	if err := session.Of(c).Watch(c.Args[1:]); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specUnwatch = command.Spec{
	Name: "unwatch", Group: command.GroupTransactions, Since: "2.2.0", Complexity: "O(1)",
	Summary: "Unwatches all keys.",
	Flags:   command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy,
	Client:  command.Stateful,
	Examples: `
> WATCH k
OK
> UNWATCH
OK
2> SET k v
OK
> MULTI
OK
> GET k
QUEUED
> EXEC
1) "v"
`,
	Run: runUnwatch,
}

func runUnwatch(c *command.Ctx) error {
	session.Of(c).Unwatch()
	c.Out.OK()
	return nil
}
