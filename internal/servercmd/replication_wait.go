package servercmd

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/session"
)

// This file has WAIT and WAITAOF. A client waits as it does for a key (block.go). replication.Node ends the
// wait when enough replicas have acknowledged, or when the time is up. As in Redis 7, no timeout is out of
// range.

var waitSpecs = []*command.Spec{&specWait, &specWaitAOF}

const (
	errWaitOnReplica = command.ReplyError("ERR WAIT cannot be used with replica instances. Please also note that " +
		"since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just " +
		"local and are not propagated.")
	errWaitAOFOnReplica = command.ReplyError("ERR WAITAOF cannot be used with replica instances. Please also note that " +
		"writes to replicas are just local and are not propagated.")
	errWaitAOFOff = command.ReplyError("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
)

var specWait = command.Spec{
	Name: "wait", Group: command.GroupGeneric, Since: "3.0.0", Complexity: "O(1)",
	Summary:    "Waits until replicas have acknowledged the connection's writes, for at most a number of milliseconds; 0 for ever.",
	Flags:      command.Blocking,
	FanOut:     command.FanOutOne,
	Categories: command.CatConnection, Without: command.CatKeyspace,
	Args: []command.Arg{command.Int("numreplicas"), command.Int("timeout")},
	Tips: []string{"request_policy:all_shards", "response_policy:agg_min"},
	Replies: "The number of replicas that have acknowledged everything that the server had written when the command " +
		"arrived. Inside MULTI, and in a script, it does not wait.",
	Examples: `
> SET k v
OK
> WAIT 0 1000
(integer) 0
`,
	Run: runWait,
}

func runWait(c *command.Ctx) error {
	replicas, ok := numeral.ParseInt(c.Args[1])
	if !ok {
		return command.ErrNotInteger
	}
	timeout, err := command.ParseLongBlock(c.Args[2])
	if err != nil {
		return err
	}
	if session.ServiceOf(c).Replication().IsReplica() {
		return errWaitOnReplica
	}

	r, offset := session.ServiceOf(c).Replication(), session.ServiceOf(c).DB.Log().End()
	reply := func(c *command.Ctx) { c.Out.Int(int64(r.Acked(offset))) }
	if int64(r.Acked(offset)) >= replicas {
		reply(c)
		return nil
	}
	return awaitAcks(c, timeout, reply, func() bool { return int64(r.Acked(offset)) >= replicas })
}

// awaitAcks makes the command wait until met reports enough acknowledgements.
func awaitAcks(c *command.Ctx, timeout int64, reply func(*command.Ctx), met func() bool) error {
	err := c.Block(command.Wait{Millis: timeout, Refused: reply, Expired: reply})
	if err == command.ErrBlocked && c.Waiting == nil {
		session.Of(c).AwaitAcks(met, reply)
	}
	return err
}

var specWaitAOF = command.Spec{
	Name: "waitaof", Group: command.GroupGeneric, Since: "7.2.0", Complexity: "O(1)",
	Summary: "Waits until the append-only files here (1) and of replicas have the connection's writes, for at most a number of " +
		"milliseconds; " +
		"0 for ever.",
	Flags:      command.Blocking,
	FanOut:     command.FanOutOne,
	Categories: command.CatConnection, Without: command.CatKeyspace,
	Args: []command.Arg{command.Int("numlocal"), command.Int("numreplicas"), command.Int("timeout")},
	Tips: []string{"request_policy:all_shards", "response_policy:agg_min"},
	Replies: "Whether they are synced here, 0 or 1, and the number of replicas that report that they have synced " +
		"them. Inside MULTI, and in a script, it does not wait.",
	Errors:   []string{string(errWaitAOFOff) + ": numlocal is 1 and there is no append-only file"},
	Examples: "> SET k v\nOK\n> WAITAOF 0 0 1000\n1) (integer) 0\n2) (integer) 0\n> WAITAOF 1 0 0\n(error) " + string(errWaitAOFOff) + "\n",
	Run:      runWaitAOF,
}

func runWaitAOF(c *command.Ctx) error {
	local, ok1 := numeral.ParseInt(c.Args[1])
	replicas, ok2 := numeral.ParseInt(c.Args[2])
	switch {
	case !ok1:
		return command.ErrNotInteger
	case local < 0 || local > 1:
		return command.ReplyError("ERR value is out of range, value must between 0 and 1")
	case !ok2 || replicas < 0:
		return command.ReplyError("ERR value is out of range, must be positive")
	}
	timeout, err := command.ParseLongBlock(c.Args[3])
	if err != nil {
		return err
	}
	s, r := session.ServiceOf(c), session.ServiceOf(c).Replication()
	files := appends(s.Keeper())
	switch {
	case r.IsReplica():
		return errWaitAOFOnReplica
	case local == 1 && !files:
		return errWaitAOFOff
	}

	log := s.DB.Log()
	offset := log.End()
	here := func() int64 {
		if files && s.Keeper().AppendOnly() && log.Synced() >= offset { // otherwise the server still has to write a first base
			return 1
		}
		return 0
	}
	off := func() bool { return local == 1 && !appends(s.Keeper()) } // CONFIG SET appendonly no, while the client waits
	reply := func(c *command.Ctx) {
		if off() {
			c.Out.Error(string(errWaitAOFOff))
			return
		}
		c.Out.Array(2)
		c.Out.Int(here())
		c.Out.Int(int64(r.SyncedBy(offset)))
	}
	met := func() bool { return off() || here() >= local && int64(r.SyncedBy(offset)) >= replicas }
	if met() {
		reply(c)
		return nil
	}
	if local == 1 {
		r.OnSynced(offset)
	}
	return awaitAcks(c, timeout, reply, met)
}

// appends reports whether there are append-only files.
func appends(k *durable.Keeper) bool { return k.Info().AppendOnly }
