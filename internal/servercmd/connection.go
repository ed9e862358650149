package servercmd

import (
	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/session"
)

var connectionSpecs = []*command.Spec{&specAuth, &specClient, &specEcho, &specHello, &specPing, &specQuit, &specReset, &specSelect}

var specPing = command.Spec{
	Name: "ping", Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Returns the server's liveliness response.",
	Flags:   command.Fast | command.Inert | command.InSubscription,
	FanOut:  command.FanOutOne,
	Stream:  command.StreamControl,
	Args:    []command.Arg{command.Opt(command.Str("message"))},
	Tips:    []string{"request_policy:all_shards", "response_policy:all_succeeded"},
	Examples: `
> PING
PONG
> PING hello
"hello"
`,
	Run: runPing,
}

func runPing(c *command.Ctx) error {
	if len(c.Args) > 2 {
		return command.WrongArity(c.Spec)
	}
	if session.Of(c).Subscribed() && c.Out.Proto != 3 {
		c.Out.Array(2)
		c.Out.BulkString("pong")
		if len(c.Args) == 2 {
			c.Out.Bulk(c.Args[1])
		} else {
			c.Out.BulkString("")
		}
		return nil
	}
	if len(c.Args) == 2 {
		c.Out.Bulk(c.Args[1])
	} else {
		c.Out.Simple("PONG")
	}
	return nil
}

var specEcho = command.Spec{
	Name: "echo", Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Returns the given string.",
	Flags:   command.Loading | command.Stale | command.Fast | command.Inert,
	Args:    []command.Arg{command.Str("message")},
	Examples: `
> ECHO "as it is"
"as it is"
`,
	Run: runEcho,
}

func runEcho(c *command.Ctx) error {
	c.Out.Bulk(c.Args[1])
	return nil
}

// authFlags are the flags of commands that a client may send before it has logged in.
const authFlags = command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy

var specAuth = command.Spec{
	Name: "auth", Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(N) where N is the number of passwords defined for the user",
	Summary: "Authenticates the connection.",
	Flags:   authFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{command.Opt(command.Str("username")).Since("6.0.0"), command.Str("password")},
	History: []command.Change{{Since: "6.0.0", Text: "Added ACL style (username and password)."}},
	Replies: "OK, or WRONGPASS, and the connection keeps its user. Without a name the user is 'default', whose password " +
		"is the directive requirepass.",
	Examples: `
> AUTH secret
(error) ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
> CONFIG SET requirepass secret
OK
2> GET k
(error) NOAUTH Authentication required.
2> AUTH guess
(error) WRONGPASS invalid username-password pair or user is disabled.
2> AUTH default secret
OK
2> GET k
(nil)
`,
	Run: runAuth,
}

func runAuth(c *command.Ctx) error {
	user, password := []byte(acl.DefaultUser), c.Args[len(c.Args)-1]
	switch {
	case len(c.Args) > 3:
		return command.ErrSyntax
	case len(c.Args) == 3:
		user = c.Args[1]
	case session.ServiceOf(c).Accounts().Default().User().NoPass:
		return command.ReplyError("ERR AUTH <password> called without any password configured for the default user. Are you sure " +
			"your configuration is correct?")
	}
	if err := session.Of(c).Authenticate(c.Args[0], user, password); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specHello = command.Spec{
	Name: "hello", Group: command.GroupConnection, Since: "6.0.0", Complexity: "O(1)",
	Summary: "Switches to a version of the protocol, and introduces client and server to each other.",
	Flags:   authFlags,
	Client:  command.Stateful,
	Args: []command.Arg{command.Opt(command.Block("arguments", command.Int("protover"),
		command.Opt(command.TokenArg("AUTH", command.Block("username_password", command.Str("username"), command.Str("password")))),
		command.Opt(command.TokenArg("SETNAME", command.Str("clientname")))))},
	History: []command.Change{{Since: "6.2.0",
		Text: "`protover` made optional; when called without arguments the command reports the current connection's context."}},
	Examples: `
> HELLO 3 SETNAME worker
1# "server" => "redis"
2# "version" => "7.4.0"
3# "proto" => (integer) 3
4# "id" => (integer) 1
5# "mode" => "standalone"
6# "role" => "master"
7# "modules" => (empty array)
> HELLO 4
(error) NOPROTO unsupported protocol version
`,
	Run: runHello,
}

func runHello(c *command.Ctx) error {
	s, svc := session.Of(c), session.ServiceOf(c)
	h, err := parseHello(c.Args[1:])
	if err != nil {
		return err
	}
	if h.user != nil {
		if err := s.Authenticate(c.Args[0], h.user, h.password); err != nil {
			return err
		}
	}
	if s.LoggedOut() {
		return command.ReplyError("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO " +
			"<proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	}

	if h.named {
		s.SetName(h.name)
	}
	if h.proto != 0 {
		s.SetProto(h.proto)
	}

	w := c.Out
	w.Map(7)
	w.BulkString("server")
	w.BulkString("redis")
	w.BulkString("version")
	w.BulkString(admin.RedisVersion)
	w.BulkString("proto")
	w.Int(int64(max(w.Proto, 2)))
	w.BulkString("id")
	w.Int(s.ID())
	w.BulkString("mode")
	w.BulkString(svc.Admin().Host.Mode())
	w.BulkString("role")
	if svc.Replication().IsReplica() {
		w.BulkString("replica")
	} else {
		w.BulkString("master")
	}
	w.BulkString("modules")
	w.Array(0)
	return nil
}

// hello holds the options of a HELLO.
type hello struct {
	proto          int // 0: the protocol stays
	user, password []byte
	name           []byte
	named          bool
}

func parseHello(args [][]byte) (h hello, err error) {
	if len(args) > 0 {
		n, ok := numeral.ParseInt(args[0])
		switch {
		case !ok:
			return h, command.ReplyError("ERR Protocol version is not an integer or out of range")
		case n < 2 || n > 3:
			return h, command.ReplyError("NOPROTO unsupported protocol version")
		}
		h.proto = int(n)
		args = args[1:]
	}
	for len(args) > 0 {
		switch {
		case command.EqualFold(args[0], "AUTH") && len(args) > 2:
			h.user, h.password = args[1], args[2]
			args = args[3:]
		case command.EqualFold(args[0], "SETNAME") && len(args) > 1:
			if !cleantext.Visible(args[1]) {
				return h, errClientName
			}
			h.name, h.named = args[1], true
			args = args[2:]
		default:
			return h, command.ReplyError("ERR Syntax error in HELLO option '" + string(args[0]) + "'")
		}
	}
	return h, nil
}

var specSelect = command.Spec{
	Name: "select", Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Changes the selected database.",
	Flags:   command.Loading | command.Stale | command.Fast,
	Client:  command.Stateful,
	Stream:  command.StreamControl,
	Args:    []command.Arg{command.Int("index")},
	Examples: `
> SET k v
OK
> SELECT 1
OK
> GET k
(nil)
> SELECT 99
(error) ERR DB index is out of range
`,
	Run: runSelect,
}

func runSelect(c *command.Ctx) error {
	n, ok := numeral.ParseInt(c.Args[1])
	switch {
	case !ok:
		return command.ErrNotInteger
	case int64(int32(n)) != n:
		return command.ErrInt32
	case n != 0 && c.Host.Clustered():
		return command.ErrNoDatabases("SELECT")
	case n < 0 || n >= int64(session.ServiceOf(c).DB.Databases()):
		return command.ErrDBIndex
	}
	session.Of(c).SelectDB(int(n))
	c.Out.OK()
	return nil
}

var specReset = command.Spec{
	Name: "reset", Group: command.GroupConnection, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Resets the connection to its initial state.",
	Flags:   authFlags | command.NoQueue | command.InSubscription,
	Client:  command.Stateful,
	Replies: "RESET. The command ends MULTI, WATCH, subscriptions, CLIENT REPLY, NO-EVICT and NO-TOUCH, and removes " +
		"the name; the database is 0, the protocol is RESP2, and the client has to send the password again if there is one.",
	Examples: `
> CLIENT SETNAME me
OK
> SELECT 3
OK
> MULTI
OK
> RESET
RESET
> CLIENT GETNAME
(nil)
> EXEC
(error) ERR EXEC without MULTI
`,
	Run: runReset,
}

func runReset(c *command.Ctx) error {
	s := session.Of(c)
	if err := c.Long((s.Subscriptions().Len() + s.Tracking().Mode().Size()) * confirmBytes); err != nil {
		return err
	}
	s.Reset()
	c.Out.Simple("RESET")
	return nil
}

var specQuit = command.Spec{
	Name: "quit", Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
	Summary:       "Closes the connection, after all replies are written.",
	Flags:         authFlags | command.NoQueue | command.InSubscription,
	Client:        command.Stateful,
	ArityOverride: -1, ArityReason: "QUIT ignores its arguments, so that every client can leave",
	Examples: `
> QUIT
OK
> PING
(closed)
`,
	Run: runQuit,
}

func runQuit(c *command.Ctx) error {
	session.Of(c).CloseAfterReply()
	c.Out.OK()
	return nil
}
