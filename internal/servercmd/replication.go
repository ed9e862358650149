package servercmd

import (
	"errors"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/session"
)

func replicaArgs() []command.Arg {
	return []command.Arg{command.OneOf("args", command.Block("host-port", command.Str("host"), command.Int("port")),
		command.Block("no-one", command.Token("NO"), command.Token("ONE")))}
}

var specReplicaof = command.Spec{
	Name: "replicaof", Group: command.GroupServer, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Makes the server a replica of another one, or, with NO ONE, a master.",
	Flags:   command.Admin | command.NoScript | command.Stale | command.NoAsyncLoading | command.AllKeys,
	Args:    replicaArgs(),
	Replies: "OK at once: the server connects afterwards, and the master's data replaces all data unless the master " +
		"still has the stream after this server's offset. A replica that becomes a master keeps its data, and its replicas may continue.",
	Examples: `
> REPLICAOF NO ONE
OK
> REPLICAOF 127.0.0.1 port
(error) ERR Invalid master port
`,
	Run: runReplicaof,
}

var specSlaveof = command.Spec{
	Name: "slaveof", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary:    "Is the old name of REPLICAOF.",
	Flags:      command.Admin | command.NoScript | command.Stale | command.NoAsyncLoading | command.AllKeys,
	Args:       replicaArgs(),
	Deprecated: &command.Deprecation{Since: "5.0.0", ReplacedBy: "`REPLICAOF`"},
	Examples: `
> SLAVEOF NO ONE
OK
`,
	Run: runReplicaof,
}

// errGrouped is the error of commands that choose the master, on a member of a group.
const errGrouped = command.ReplyError("ERR the group of this server chooses the master: GROUP PROMOTE makes another node the master")

func runReplicaof(c *command.Ctx) error {
	svc, host := session.ServiceOf(c), string(c.Args[1])
	r := svc.Replication()
	noOne := command.EqualFold(c.Args[1], "NO") && command.EqualFold(c.Args[2], "ONE")
	port, ok := numeral.ParseInt(c.Args[2])
	switch {
	case c.Host.Clustered():
		return command.ReplyError("ERR REPLICAOF not allowed in cluster mode.")
	case svc.Grouped():
		return errGrouped
	case r.FailingOver():
		return command.ReplyError("ERR REPLICAOF not allowed while failing over.")
	case !noOne && (!ok || port < 0 || port > 65535):
		return command.ReplyError("ERR Invalid master port")
	}

	link, replica := r.Link()
	switch {
	case noOne && replica:
		r.Promote(c.Tx)
		svc.Log.Info("a replica has become a master, as a client asked", "id", session.Of(c).ID(), "offset", svc.DB.Log().End())
	case noOne:
	case replica && link.Host == host && link.Port == int(port):
		c.Out.Simple("OK Already connected to specified master")
		return nil
	default:
		svc.Log.Info("a client asked to replicate a master", "id", session.Of(c).ID(), "host", cleantext.Line(host, maxHost), "port", port)
		r.Follow(c.Tx, host, int(port))
	}

	c.Out.OK()
	return nil
}

// maxHost is the greatest number of bytes of a host in the log; a DNS name is not longer.
const maxHost = 255

var specFailover = command.Spec{
	Name: "failover", Group: command.GroupServer, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Exchanges the roles with a replica: writes wait until the replica has all data, the replica becomes the master, " +
		"and this server its replica.",
	Flags: command.Admin | command.NoScript | command.Stale | command.AllKeys,
	Args: []command.Arg{command.Opt(command.TokenArg("TO", command.Block("target", command.Str("host"), command.Int("port"),
		command.Opt(command.Token("FORCE"))))),
		command.Opt(command.Token("ABORT")), command.Opt(command.TokenArg("TIMEOUT", command.Int("milliseconds")))},
	Replies: "OK when the failover has begun: INFO's master_failover_state shows its progress. Without TO it selects the first " +
		"replica that has all data. After TIMEOUT the server gives up, or, with FORCE, the replica takes over with the data that it has.",
	Examples: `
> FAILOVER
(error) ERR FAILOVER requires connected replicas.
> FAILOVER ABORT
(error) ERR No failover in progress.
`,
	Run: runFailover,
}

func runFailover(c *command.Ctx) error {
	o, abort, err := parseFailover(c.Args)
	if err != nil {
		return err
	}
	r := session.ServiceOf(c).Replication()
	switch {
	case c.Host.Clustered():
		return command.ReplyError("ERR FAILOVER not allowed in cluster mode.")
	case session.ServiceOf(c).Grouped():
		return errGrouped
	}
	if abort {
		if !r.AbortFailover(c.Tx, "a client asked for that") {
			return command.ReplyError("ERR No failover in progress.")
		}
		c.Out.OK()
		return nil
	}
	if err := r.CanFailOver(o); err != nil {
		return err
	}

	r.FailOver(o)
	c.Out.OK()
	return nil
}

// parseFailover parses FAILOVER's arguments.
func parseFailover(args [][]byte) (o replication.Order, abort bool, err error) {
	to, timed := false, false
	for i := 1; i < len(args); i++ {
		more := len(args) - i - 1
		switch {
		case command.EqualFold(args[i], "TIMEOUT") && more >= 1 && !timed:
			if o.Timeout, err = failoverTimeout(args[i+1]); err != nil {
				return o, abort, err
			}
			timed = true
			i++
		case command.EqualFold(args[i], "TO") && more >= 2 && !to:
			to, o.Host = true, string(args[i+1])
			if o.Port, err = strconv.Atoi(string(args[i+2])); err != nil {
				return o, abort, command.ErrNotInteger
			}
			i += 2
		case command.EqualFold(args[i], "ABORT") && !abort:
			abort = true
		case command.EqualFold(args[i], "FORCE") && !o.Force:
			o.Force = true
		default:
			return o, abort, command.ErrSyntax
		}
	}
	return o, abort, nil
}

func failoverTimeout(b []byte) (time.Duration, error) {
	ms, err := strconv.ParseInt(string(b), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax) || err != nil:
		return 0, command.ErrNotInteger
	case ms <= 0:
		return 0, command.ReplyError("ERR FAILOVER timeout must be greater than 0")
	}
	return time.Duration(min(ms, int64(time.Hour*24*365/time.Millisecond))) * time.Millisecond, nil
}

var specRole = command.Spec{
	Name: "role", Group: command.GroupServer, Since: "2.8.12", Complexity: "O(1)",
	Summary:    "Returns the server's role in replication, its offset, and its replicas.",
	Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.Inert,
	Categories: command.CatAdmin | command.CatDangerous,
	Replies: "Of a master: `master`, its offset, and address and offset of each replica. Of a replica: `slave`, the master's host and port, " +
		"the state of the link, and the offset, -1 while there is no stream.",
	Examples: `
> ROLE
1) "master"
2) (integer) 0
3) (empty array)
`,
	Run: runRole,
}

func runRole(c *command.Ctx) error {
	link, replica := session.ServiceOf(c).Replication().Link()
	if !replica {
		return masterRole(c)
	}
	offset := int64(-1)
	if link.Up {
		offset = session.ServiceOf(c).DB.Log().End()
	}

	c.Out.Array(5)
	c.Out.BulkString("slave")
	c.Out.BulkString(link.Host)
	c.Out.Int(int64(link.Port))
	c.Out.BulkString(link.Step)
	c.Out.Int(offset)
	return nil
}

// masterRole writes ROLE's reply on a master.
func masterRole(c *command.Ctx) error {
	var online []replication.ReplicaState
	for _, f := range session.ServiceOf(c).Replication().Replicas() {
		if f.Online {
			online = append(online, f)
		}
	}

	c.Out.Array(3)
	c.Out.BulkString("master")
	c.Out.Int(session.ServiceOf(c).DB.Log().End())
	c.Out.Array(len(online))
	for _, f := range online {
		c.Out.Array(3)
		c.Out.BulkString(f.Host)
		c.Out.BulkString(strconv.Itoa(f.Port))
		c.Out.BulkString(strconv.FormatInt(f.Acked, 10))
	}
	return nil
}

var specDebugChangeReplID = command.Spec{
	Name: "debug|change-repl-id", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(1)",
	Summary: "Gives the replication stream a new id, so that replicas that reconnect need a full synchronisation.",
	Flags:   adminFlags | command.AllKeys,
	Examples: `
> DEBUG CHANGE-REPL-ID
OK
`,
	Run: debugging(runDebugChangeReplID),
}

func runDebugChangeReplID(c *command.Ctx) error {
	session.ServiceOf(c).Replication().ChangeID()
	c.Out.OK()
	return nil
}
