package servercmd

import (
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/session"
)

// These are the subcommands of CLIENT that reach other connections.

var specClientKill = command.Spec{
	Name: "client|kill", Group: command.GroupConnection, Since: "2.4.0", Complexity: "O(N) where N is the number of client connections",
	Summary: "Closes connections: the one with an address, or all that match every filter.",
	Flags:   adminFlags,
	Args: []command.Arg{command.OneOf("filter", command.Str("ip:port").DeprecatedSince("2.8.12"),
		command.Repeat(command.OneOf("new-format", append([]command.Arg{
			command.Opt(command.TokenArg("ID", command.Repeat(command.Int("client-id")))).Since("2.8.12"),
			command.Opt(command.TokenArg("TYPE", command.OneOf("normal_master_slave_pubsub", command.Token("NORMAL"),
				command.Token("MASTER").Since("3.2.0"),
				command.Token("SLAVE"),
				command.Token("REPLICA").Since("5.0.0"), command.Token("PUBSUB")))).Since("2.8.12"),
			command.Opt(command.TokenArg("USER", command.Str("username"))),
			command.Opt(command.TokenArg("ADDR", command.Str("ip:port"))),
			command.Opt(command.TokenArg("LADDR", command.Str("ip:port"))).Since("6.2.0"),
			command.Opt(command.TokenArg("SKIPME", command.Str("yes/no"))),
			command.Opt(command.TokenArg("MAXAGE", command.Int("seconds"))).Since("7.4.0")}, clientFilters()...)...)))},
	ArityOverride: -3, ArityReason: "as in Redis, the filters are optional in the grammar, and one is needed",
	History: []command.Change{{Since: "2.8.12", Text: "Added new filter format."}, {Since: "2.8.12", Text: "`ID` option."},
		{Since: "3.2.0", Text: "Added `master` type in for `TYPE` option."},
		{Since: "5.0.0", Text: "Replaced `slave` `TYPE` with `replica`. `slave` still supported for backward compatibility."},
		{Since: "6.2.0", Text: "`LADDR` option."},
		{Since: "7.4.0", Text: "`MAXAGE` option."}, {Since: "9.0.0",
			Text: "Valkey's `FLAGS`, `NAME`, `IDLE`, `LIB-NAME`, `LIB-VER`, `DB`, `CAPA`, `IP`, filters with `NOT-`, and several ids."}},
	Replies: "OK for an address; for filters, the number of closed connections. Filters do not match the caller's own connection, " +
		"unless SKIPME no is given. " +
		clientFilterWords,
	Examples: `
2> CLIENT ID
(integer) $id
> CLIENT KILL ID $id
(integer) 1
> CLIENT KILL ID $id
(integer) 0
> CLIENT KILL 192.0.2.1:1234
(error) ERR No such client
`,
	Run: runClientKill,
}

func runClientKill(c *command.Ctx) error {
	f := clientFilter{skipMe: true, badID: command.ReplyError("ERR client-id should be greater than 0"), oddID: command.ErrSyntax, leastID: 1}
	old := len(c.Args) == 3
	if old {
		f.tests = map[string]clientTest{"ADDR": func(x session.ClientInfo, _ int64) bool { return x.Addr == string(c.Args[2]) }}
		f.skipMe = false
	} else if err := f.parse(c, c.Args[2:]); err != nil {
		return err
	}

	all := session.ServiceOf(c).Clients()
	if err := c.Long(len(all) * clientBytes); err != nil {
		return err
	}
	n, now := int64(0), c.Now()
	for _, s := range all {
		if s.Conn() != nil && !(f.skipMe && s == session.Of(c)) && f.matches(s.Info(), now) {
			session.Of(c).Kill(s)
			n++
		}
	}

	switch {
	case !old:
		c.Out.Int(n)
	case n == 0:
		return command.ReplyError("ERR No such client")
	default:
		c.Out.OK()
	}
	return nil
}

var specClientPause = command.Spec{
	Name: "client|pause", Group: command.GroupConnection, Since: "3.0.0", Complexity: "O(1)",
	Summary: "Suspends clients for a time in milliseconds: all their commands, or those that write.",
	Flags:   adminFlags,
	Args: []command.Arg{command.Int("timeout"),
		command.Opt(command.OneOf("mode", command.Token("WRITE"), command.Token("ALL"))).Since("6.2.0")},
	History: []command.Change{{Since: "6.2.0", Text: "`CLIENT PAUSE WRITE` mode added along with the `mode` option."}},
	Replies: "OK. Of two pauses the later end and the stricter mode apply. CLIENT PAUSE and UNPAUSE themselves never wait.",
	Examples: `
> CLIENT PAUSE 1000 WRITE
OK
> GET k
(nil)
2> SET k v
~ 1001ms
2< OK
> GET k
"v"
`,
	Run: runClientPause,
}

func runClientPause(c *command.Ctx) error {
	all := true
	if len(c.Args) > 3 {
		switch {
		case len(c.Args) > 4:
			return wrongSubcommand(c)
		case command.EqualFold(c.Args[3], "WRITE"):
			all = false
		case !command.EqualFold(c.Args[3], "ALL"):
			return command.ReplyError("ERR CLIENT PAUSE mode must be WRITE or ALL")
		}
	}
	ms, err := command.ParseMillis(c.Args[2])
	switch {
	case err == command.ErrTimeoutRange: // longer than a human life
		ms = math.MaxInt64
	case err != nil:
		return err
	}
	session.ServiceOf(c).Pause(ms, all)
	c.Out.OK()
	return nil
}

// wrongSubcommand returns the error about too many arguments of a subcommand whose arity has no
// upper bound.
func wrongSubcommand(c *command.Ctx) error {
	return command.ReplyError(cleantext.Reply("ERR unknown subcommand or wrong number of arguments for '" +
		string(command.Clip(c.Args[1], 128)) + "'. Try " + strings.ToUpper(c.Spec.Parent().Name) + " HELP."))
}

var specClientUnpause = command.Spec{
	Name: "client|unpause", Group: command.GroupConnection, Since: "6.2.0", Complexity: "O(N) Where N is the number of paused clients",
	Summary: "Ends a CLIENT PAUSE.",
	Flags:   adminFlags,
	Examples: `
> CLIENT PAUSE 100000
OK
2> PING
> CLIENT UNPAUSE
OK
2< PONG
`,
	Run: runClientUnpause,
}

func runClientUnpause(c *command.Ctx) error {
	session.ServiceOf(c).Unpause()
	c.Out.OK()
	return nil
}

var specClientUnblock = command.Spec{
	Name: "client|unblock", Group: command.GroupConnection, Since: "5.0.0", Complexity: "O(log N) where N is the number of client connections",
	Summary: "Ends the wait of another connection's blocking command.",
	Flags:   adminFlags,
	Args: []command.Arg{command.Int("client-id"),
		command.Opt(command.OneOf("timeout_error", command.Token("TIMEOUT"), command.Token("ERROR")))},
	Replies: "1 if the connection was waiting, 0 if not.",
	Examples: `
> CLIENT UNBLOCK 99
(integer) 0
> CLIENT UNBLOCK 99 PLEASE
(error) ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR
`,
	Run: runClientUnblock,
}

func runClientUnblock(c *command.Ctx) error {
	if len(c.Args) > 4 {
		return wrongSubcommand(c)
	}
	withError := len(c.Args) == 4 && command.EqualFold(c.Args[3], "ERROR")
	if len(c.Args) == 4 && !withError && !command.EqualFold(c.Args[3], "TIMEOUT") {
		return command.ReplyError("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	}
	id, ok := numeral.ParseInt(c.Args[2])
	if !ok {
		return command.ErrNotInteger
	}

	done := session.ServiceOf(c).Unblock(c.Tx, id, withError)

	c.Out.Int(command.BoolToInt(done))
	return nil
}
