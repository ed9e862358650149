package servercmd

import (
	"errors"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/session"
)

var replSpecs = []*command.Spec{&specPsync, &specSync, &specReplconf}

var specPsync = command.Spec{
	Name: "psync", Group: command.GroupServer, Since: "2.8.0", Complexity: "O(1)",
	Summary: "Requests the replication stream from an offset on; the connection becomes a replica's.",
	// the stream takes no other writes meanwhile
	Flags:         command.Admin | command.NoScript | command.NoAsyncLoading | command.NoMulti | command.AllKeys,
	Client:        command.Stateful,
	Args:          []command.Arg{command.Str("replicationid"), command.Int("offset")},
	ArityOverride: -3, ArityReason: "FAILOVER may follow, which Redis does not document",
	Replies: "CONTINUE if the stream continues from there, else FULLRESYNC with its id and offset, and then a snapshot. " +
		"A replica that has not sent REPLCONF capa ebb gets the commands of Redis 7.0; the offsets are the same.",
	SysCmd: true,
	Errors: []string{"NOMASTERLINK: this is a replica without its master"},
	Examples: `
> PSYNC ? x
(error) ERR value is not an integer or out of range
`,
	Run: runPsync,
}

var specSync = command.Spec{
	Name: "sync", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Requests a snapshot and the stream after it, as tools do, and replicas did before PSYNC.",
	Flags:   command.Admin | command.NoScript | command.NoAsyncLoading | command.NoMulti,
	Client:  command.Stateful,
	Replies: "The length of the snapshot in the form of a bulk string, the snapshot, and then the stream.",
	SysCmd:  true,
	Examples: `
> MULTI
OK
> SYNC
(error) ERR Command not allowed inside a transaction
> DISCARD
OK
`,
	Run: runSync,
}

func runPsync(c *command.Ctx) error {
	next, ok := numeral.ParseInt(c.Args[2])
	if !ok {
		return command.ErrNotInteger
	}
	s := session.Of(c)
	q := replication.PsyncRequest{Conn: s.Conn(), Announced: *s.Announced(), ID: string(c.Args[1]), Next: next, FailOver: len(c.Args) > 3}
	if q.FailOver && !command.EqualFold(c.Args[3], "FAILOVER") {
		return command.ErrSyntax
	}

	f, err := session.ServiceOf(c).Replication().Psync(c.Tx, q)
	if err != nil {
		return replicaRefused(err)
	}
	s.Follow(f)
	return nil
}

func runSync(c *command.Ctx) error {
	f, err := session.ServiceOf(c).Replication().Sync(session.Of(c).Conn(), *session.Of(c).Announced())
	if err != nil {
		return replicaRefused(err)
	}
	session.Of(c).Follow(f)
	return nil
}

// replicaRefused returns the reply to a client that cannot be a replica.
func replicaRefused(err error) error {
	if err == replication.ErrNoMasterLink {
		return command.ReplyError("NOMASTERLINK " + err.Error())
	}
	return err
}

var specReplconf = command.Spec{
	Name: "replconf", Group: command.GroupServer, Since: "3.0.0", Complexity: "O(1)",
	Summary:       "Announces the address and the capabilities of a replica, before PSYNC.",
	Flags:         command.Admin | command.NoScript | command.Loading | command.Stale | command.AllowBusy,
	Client:        command.Stateful,
	Stream:        command.StreamControl,
	ArityOverride: -1, ArityReason: "any number of options and values, which Redis does not document",
	SysCmd:  true,
	Replies: "OK. listening-port and ip-address are for INFO and ROLE; capa eof, psync2 or ebb name its capabilities.",
	Examples: `
> REPLCONF listening-port 6380 capa eof capa psync2
OK
> REPLCONF colour blue
(error) ERR Unrecognized REPLCONF option: colour
`,
	Run: runReplconf,
}

func runReplconf(c *command.Ctx) error {
	if len(c.Args)%2 == 0 {
		return command.ErrSyntax
	}
	announced := *session.Of(c).Announced()
	for i := 1; i < len(c.Args); i += 2 {
		option := strings.ToLower(string(c.Args[i]))
		if option == "group" && !session.ServiceOf(c).Grouped() {
			return errors.New("Unrecognized REPLCONF option: group")
		}
		if err := announced.Take(option, string(c.Args[i+1])); err != nil {
			return err
		}
		if option == "group" {
			if err := session.ServiceOf(c).Replication().Fits(string(c.Args[i+1])); err != nil {
				return command.ReplyError(replication.Refused[1:] + err.Error())
			}
		}
	}

	*session.Of(c).Announced() = announced

	c.Out.OK()
	return nil
}
