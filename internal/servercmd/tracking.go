package servercmd

import (
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/tracking"
)

// These are the subcommands of CLIENT that control client-side caching.

var specClientTracking = command.Spec{
	Name: "client|tracking", Group: command.GroupConnection, Since: "6.0.0",
	Complexity: "O(1). Some options may introduce additional complexity.",
	Summary: "Makes the server send an invalidation message when a key changes that the connection has read, so that " +
		"the client may cache values.",
	Flags:  ownFlags,
	Client: command.Stateful,
	Args: []command.Arg{command.OneOf("status", command.Token("ON"), command.Token("OFF")),
		command.Opt(command.TokenArg("REDIRECT", command.Int("client-id"))),
		command.Opt(command.RepeatToken(command.TokenArg("PREFIX", command.Str("prefix")))), command.Opt(command.Token("BCAST")),
		command.Opt(command.Token("OPTIN")),
		command.Opt(command.Token("OPTOUT")), command.Opt(command.Token("NOLOOP"))},
	Replies: "OK. From then on the server remembers every key that a read command names, and sends `invalidate` with " +
		"the key, once, at its next change, expiration or eviction; " +
		"a flush sends it with null. REDIRECT: to another connection, which in RESP2 must have subscribed to `" + tracking.InvalidateChannel +
		"`. BCAST: for all keys, or those with a PREFIX, read or not. " +
		"OPTIN, OPTOUT: reads count only, or do not count, after CLIENT CACHING. NOLOOP: not for the connection's own changes.",
	Examples: `
> HELLO 3
$_
...
> CLIENT TRACKING ON
OK
> GET k
(nil)
2> SET k v
OK
1< 1) "invalidate"
2) 1) "k"
2> SET k w
OK
`,
	Run: runClientTracking,
}

func runClientTracking(c *command.Ctx) error {
	s := session.Of(c)
	if err := c.Long(s.Tracking().Mode().Size() * confirmBytes); err != nil && command.EqualFold(c.Args[2], "OFF") {
		return err
	}
	m := &tracking.Mode{}
	if err := parseTracking(c, m); err != nil {
		return err
	}
	on, err := parseOnOff(c.Args[2])
	if err != nil {
		return err
	}

	if s.Conn() == nil {
		return command.ReplyError("ERR CLIENT TRACKING needs a connection that receives its messages")
	}
	if on && s.Full(s.Tracking().Mode().Bytes()+command.ArgsBytes(c.Args)) {
		return command.ErrApart
	}
	if on {
		if err := m.Check(s.Tracking().Mode()); err != nil {
			return command.ReplyError(cleantext.Reply("ERR " + err.Error()))
		}
		s.StartTracking(m)
	} else {
		s.StopTracking()
	}

	c.Out.OK()
	return nil
}

func parseTracking(c *command.Ctx, m *tracking.Mode) error {
	for args := c.Args[3:]; len(args) > 0; args = args[1:] {
		switch {
		case command.EqualFold(args[0], "REDIRECT") && len(args) > 1:
			if m.Redirect != 0 {
				return command.ReplyError("ERR A client can only redirect to a single other client")
			}
			id, ok := numeral.ParseInt(args[1])
			switch {
			case !ok:
				return command.ErrNotInteger
			case session.ServiceOf(c).Client(id) == nil:
				return command.ReplyError("ERR The client ID you want redirect to does not exist")
			}
			m.Redirect = id
			args = args[1:]
		case command.EqualFold(args[0], "PREFIX") && len(args) > 1:
			m.Prefixes = append(m.Prefixes, string(args[1]))
			args = args[1:]
		case command.EqualFold(args[0], "BCAST"):
			m.BCast = true
		case command.EqualFold(args[0], "OPTIN"):
			m.OptIn = true
		case command.EqualFold(args[0], "OPTOUT"):
			m.OptOut = true
		case command.EqualFold(args[0], "NOLOOP"):
			m.NoLoop = true
		default:
			return command.ErrSyntax
		}
	}
	return nil
}

var specClientCaching = command.Spec{
	Name: "client|caching", Group: command.GroupConnection, Since: "6.0.0", Complexity: "O(1)",
	Summary: "Sets whether the server tracks the keys of the next command.",
	Flags:   ownFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{command.OneOf("mode", command.Token("YES"), command.Token("NO"))},
	Replies: "OK. YES needs CLIENT TRACKING with OPTIN, NO with OPTOUT. It applies to one command, or to a whole transaction.",
	Examples: `
> CLIENT TRACKING ON OPTIN
OK
> CLIENT CACHING YES
OK
> CLIENT CACHING NO
(error) ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
`,
	Run: runClientCaching,
}

func runClientCaching(c *command.Ctx) error {
	s := session.Of(c)
	m := s.Tracking().Mode()
	switch {
	case m == nil:
		return command.ReplyError("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case command.EqualFold(c.Args[2], "YES"):
		if !m.OptIn {
			return command.ReplyError("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
		}
	case command.EqualFold(c.Args[2], "NO"):
		if !m.OptOut {
			return command.ReplyError("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
		}
	default:
		return command.ErrSyntax
	}
	s.CacheNext()
	c.Out.OK()
	return nil
}

var specClientGetredir = command.Spec{
	Name: "client|getredir", Group: command.GroupConnection, Since: "6.0.0", Complexity: "O(1)",
	Summary: "Returns the connection that gets this one's invalidation messages.",
	Flags:   ownFlags | command.Inert,
	Replies: "Its id; 0: this one itself; -1: client-side caching is off.",
	Examples: `
> CLIENT GETREDIR
(integer) -1
> CLIENT TRACKING ON
OK
> CLIENT GETREDIR
(integer) 0
`,
	Run: runClientGetredir,
}

func runClientGetredir(c *command.Ctx) error {
	c.Out.Int(session.Of(c).Tracking().Redirect())
	return nil
}

var specClientTrackinginfo = command.Spec{
	Name: "client|trackinginfo", Group: command.GroupConnection, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Describes the connection's client-side caching.",
	Flags:   ownFlags | command.Inert,
	Examples: `
> CLIENT TRACKINGINFO
1) "flags"
2) 1) "off"
3) "redirect"
4) (integer) -1
5) "prefixes"
6) (empty array)
`,
	Run: runClientTrackinginfo,
}

func runClientTrackinginfo(c *command.Ctx) error {
	s := session.Of(c)
	if err := c.Long(s.Tracking().Mode().Size() * confirmBytes); err != nil {
		return err
	}
	var own []string
	flags := []string{"off"}
	if m := s.Tracking().Mode(); m != nil {
		flags[0] = "on"
		own = m.Texts()
		add := func(flag string, on bool) {
			if on {
				flags = append(flags, flag)
			}
		}
		add("bcast", m.BCast)
		add("optin", m.OptIn)
		add("caching-yes", m.OptIn && s.Caching())
		add("optout", m.OptOut)
		add("caching-no", m.OptOut && s.Caching())
		add("noloop", m.NoLoop)
		add("broken_redirect", s.Tracking().Broken())
	}

	c.Out.Map(3)
	c.Out.BulkString("flags")
	c.Out.Set(len(flags))
	for _, f := range flags {
		c.Out.BulkString(f)
	}
	c.Out.BulkString("redirect")
	c.Out.Int(s.Tracking().Redirect())
	c.Out.BulkString("prefixes")
	c.Out.Array(len(own))
	for _, p := range own {
		c.Out.BulkString(p)
	}
	return nil
}
