package servercmd

import (
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/session"
)

var specClient = command.Spec{
	Name: "client", Group: command.GroupConnection, Since: "2.4.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about connections.",
	Sub: []*command.Spec{&specClientCaching, &specClientGetname, &specClientGetredir, &specClientHelp, &specClientID,
		&specClientInfo, &specClientKill, &specClientList, &specClientNoEvict, &specClientNoTouch, &specClientPause,
		&specClientReply, &specClientSetinfo,
		&specClientSetname, &specClientTracking, &specClientTrackinginfo, &specClientUnblock, &specClientUnpause},
}

var specClientHelp = command.HelpSpec("client", command.GroupConnection, 0)

// ownFlags are the flags of subcommands about their own connection. adminFlags are those of subcommands that
// reach other connections.
const (
	ownFlags   = command.NoScript | command.Loading | command.Stale
	adminFlags = ownFlags | command.Admin
)

var specClientID = command.Spec{
	Name: "client|id", Group: command.GroupConnection, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Returns the connection's number. Later connections have larger numbers, and the server uses no number twice.",
	Flags:   ownFlags | command.Inert,
	Examples: `
> CLIENT ID
(integer) 1
2> CLIENT ID
(integer) 2
`,
	Run: runClientID,
}

func runClientID(c *command.Ctx) error {
	c.Out.Int(session.Of(c).ID())
	return nil
}

var specClientGetname = command.Spec{
	Name: "client|getname", Group: command.GroupConnection, Since: "2.6.9", Complexity: "O(1)",
	Summary: "Returns the connection's name.",
	Flags:   ownFlags | command.Inert,
	Examples: `
> CLIENT GETNAME
(nil)
> CLIENT SETNAME worker-1
OK
> CLIENT GETNAME
"worker-1"
`,
	Run: runClientGetname,
}

func runClientGetname(c *command.Ctx) error {
	if name := session.Of(c).Info().Name; name != "" {
		c.Out.BulkString(name)
	} else {
		c.Out.Null()
	}
	return nil
}

var specClientSetname = command.Spec{
	Name: "client|setname", Group: command.GroupConnection, Since: "2.6.9", Complexity: "O(1)",
	Summary: "Names the connection. An empty name removes the name.",
	Flags:   ownFlags,
	FanOut:  command.FanOutOne,
	Client:  command.Stateful,
	Tips:    everyNode,
	Args:    []command.Arg{command.Str("connection-name")},
	Examples: `
> CLIENT SETNAME worker-1
OK
> CLIENT SETNAME "worker 1"
(error) ERR Client names cannot contain spaces, newlines or special characters.
`,
	Run: runClientSetname,
}

const errClientName = command.ReplyError("ERR Client names cannot contain spaces, newlines or special characters.")

func runClientSetname(c *command.Ctx) error {
	if !cleantext.Visible(c.Args[2]) {
		return errClientName
	}
	if session.Of(c).Full(int64(len(c.Args[2]))) {
		return command.ErrApart
	}
	session.Of(c).SetName(c.Args[2])
	c.Out.OK()
	return nil
}

var specClientSetinfo = command.Spec{
	Name: "client|setinfo", Group: command.GroupConnection, Since: "7.2.0", Complexity: "O(1)",
	Summary: "Sets the name or version of the connection's client library.",
	Flags:   ownFlags,
	FanOut:  command.FanOutOne,
	Client:  command.Stateful,
	Tips:    everyNode,
	Args: []command.Arg{command.OneOf("attr", command.TokenArg("LIB-NAME", command.Str("libname")),
		command.TokenArg("LIB-VER", command.Str("libver")))},
	Examples: `
> CLIENT SETINFO LIB-NAME mylib
OK
> CLIENT SETINFO LIB-AGE 3
(error) ERR Unrecognized option 'LIB-AGE'
`,
	Run: runClientSetinfo,
}

func runClientSetinfo(c *command.Ctx) error {
	lib, at := session.Of(c).Info().Library, 0
	switch {
	case command.EqualFold(c.Args[2], "LIB-NAME"):
	case command.EqualFold(c.Args[2], "LIB-VER"):
		at = 1
	default:
		return command.ReplyError("ERR Unrecognized option '" + string(c.Args[2]) + "'")
	}
	if !cleantext.Visible(c.Args[3]) {
		return command.ReplyError("ERR " + string(c.Args[2]) + " cannot contain spaces, newlines or special characters.")
	}
	lib[at] = string(c.Args[3])
	session.Of(c).SetLibrary(lib)
	c.Out.OK()
	return nil
}

// onOff returns the argument of a switch.
func onOff() command.Arg { return command.OneOf("enabled", command.Token("ON"), command.Token("OFF")) }

func parseOnOff(b []byte) (on bool, err error) {
	switch {
	case command.EqualFold(b, "ON"):
		return true, nil
	case command.EqualFold(b, "OFF"):
		return false, nil
	}
	return false, command.ErrSyntax
}

var specClientNoEvict = command.Spec{
	Name: "client|no-evict", Group: command.GroupConnection, Since: "7.0.0", Complexity: "O(1)",
	Summary: "Exempts the connection from eviction by maxmemory-clients.",
	Flags:   adminFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{onOff()},
	Examples: `
> CLIENT NO-EVICT ON
OK
> CLIENT NO-EVICT MAYBE
(error) ERR syntax error
`,
	Run: runClientNoEvict,
}

func runClientNoEvict(c *command.Ctx) error {
	on, err := parseOnOff(c.Args[2])
	if err != nil {
		return err
	}
	session.Of(c).SetNoEvict(on)
	c.Out.OK()
	return nil
}

var specClientNoTouch = command.Spec{
	Name: "client|no-touch", Group: command.GroupConnection, Since: "7.2.0", Complexity: "O(1)",
	Summary: "Makes the connection's reads not count as accesses: they change no idle times and no sliding deadlines.",
	Flags:   ownFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{onOff()},
	Examples: `
> SET k v EX 10 SLIDE
OK
> CLIENT NO-TOUCH ON
OK
~ 4s
> GET k
"v"
> TTL k
(integer) 6
> CLIENT NO-TOUCH OFF
OK
> GET k
"v"
> TTL k
(integer) 10
`,
	Run: runClientNoTouch,
}

func runClientNoTouch(c *command.Ctx) error {
	on, err := parseOnOff(c.Args[2])
	if err != nil {
		return err
	}
	session.Of(c).SetNoTouch(on)
	c.Out.OK()
	return nil
}

var specClientReply = command.Spec{
	Name: "client|reply", Group: command.GroupConnection, Since: "3.2.0", Complexity: "O(1)",
	Summary: "Turns replies off and on, or skips the next one. Messages are sent all the same.",
	Flags:   ownFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{command.OneOf("on_off_skip", command.Token("ON"), command.Token("OFF"), command.Token("SKIP"))},
	Replies: "OK to ON; nothing to the others.",
	Examples: `
> CLIENT REPLY OFF
> SET k v
> CLIENT REPLY ON
OK
> CLIENT REPLY SKIP
> SET k w
> GET k
"w"
`,
	Run: runClientReply,
}

func runClientReply(c *command.Ctx) error {
	s := session.Of(c)
	switch {
	case command.EqualFold(c.Args[2], "ON"):
		s.SetReplies(true)
		c.Out.OK()
	case command.EqualFold(c.Args[2], "OFF"):
		s.SetReplies(false)
	case command.EqualFold(c.Args[2], "SKIP"):
		s.SkipReply()
	default:
		return command.ErrSyntax
	}
	return nil
}

var specClientInfo = command.Spec{
	Name: "client|info", Group: command.GroupConnection, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Describes the connection in the form of CLIENT LIST.",
	Flags:   ownFlags | command.Inert,
	Tips:    []string{"nondeterministic_output"},
	Examples: `
> CLIENT SETNAME me
OK
> CLIENT INFO
"id=1 $_ name=me age=0 idle=0 flags=N db=0 $_ cmd=client|info $_"
`,
	Run: runClientInfo,
}

func runClientInfo(c *command.Ctx) error {
	c.Out.Verbatim("txt", string(session.Of(c).Describe(make([]byte, 0, 512), c)))
	return nil
}

var specClientList = command.Spec{
	Name: "client|list", Group: command.GroupConnection, Since: "2.4.0", Complexity: "O(N) where N is the number of client connections",
	Summary: "Lists the connections, one to a line.",
	Flags:   adminFlags | command.Inert,
	Tips:    []string{"nondeterministic_output"},
	Args: append([]command.Arg{
		command.Opt(command.TokenArg("TYPE", command.OneOf("normal_master_replica_pubsub", command.Token("NORMAL"),
			command.Token("MASTER"), command.Token("REPLICA"),
			command.Token("PUBSUB")))).Since("5.0.0"),
		command.Opt(command.TokenArg("ID", command.Block("id", command.Repeat(command.Int("client-id"))))).Since("6.2.0"),
		command.Opt(command.TokenArg("USER", command.Str("username"))), command.Opt(command.TokenArg("ADDR", command.Str("ip:port"))),
		command.Opt(command.TokenArg("LADDR", command.Str("ip:port"))),
		command.Opt(command.TokenArg("SKIPME", command.Str("yes/no"))),
		command.Opt(command.TokenArg("MAXAGE", command.Int("seconds")))}, clientFilters()...),
	History: []command.Change{{Since: "2.8.12", Text: "Added unique client `id` field."},
		{Since: "5.0.0", Text: "Added optional `TYPE` filter."},
		{Since: "6.0.0", Text: "Added `user` field."},
		{Since: "6.2.0", Text: "Added `argv-mem`, `tot-mem`, `laddr` and `redir` fields and the optional `ID` filter."},
		{Since: "7.0.0", Text: "Added `resp`, `multi-mem`, `rbs` and `rbp` fields."}, {Since: "7.0.3", Text: "Added `ssub` field."},
		{Since: "9.0.0", Text: "Valkey's filters in addition to `TYPE` and `ID`."}},
	Replies: "A text. " + clientFilterWords,
	Examples: `
> CLIENT LIST ID 1 99
"id=1 $_\n"
> CLIENT LIST TYPE pubsub
""
> CLIENT LIST TYPE robot
(error) ERR Unknown client type 'robot'
`,
	Run: runClientList,
}

// clientBytes is the number of bytes that a command can scan in the time that it takes to describe or close
// one connection.
const clientBytes = 1024

func runClientList(c *command.Ctx) error {
	const bad = command.ReplyError("ERR Invalid client ID")
	f := clientFilter{badID: bad, oddID: bad, leastID: math.MinInt64}
	if err := f.parse(c, c.Args[2:]); err != nil {
		return err
	}
	all := session.ServiceOf(c).Clients()
	if err := c.Long(len(all) * clientBytes); err != nil {
		return err
	}
	var b []byte
	now := c.Now()
	for _, s := range all {
		if !(f.skipMe && s == session.Of(c)) && f.matches(s.Info(), now) {
			b = append(s.Describe(b, c), '\n')
		}
	}
	c.Out.Verbatim("txt", string(b))
	return nil
}

func parseClientType(b []byte) (string, error) {
	switch t := strings.ToLower(string(b)); t {
	case "normal", "master", "replica", "pubsub":
		return t, nil
	case "slave":
		return "replica", nil
	case "primary":
		return "master", nil
	}
	return "", command.ReplyError("ERR Unknown client type '" + string(b) + "'")
}
