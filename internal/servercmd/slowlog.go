package servercmd

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/session"
)

var specSlowlog = command.Spec{
	Name: "slowlog", Group: command.GroupServer, Since: "2.2.12", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about slow calls.",
	Sub:     []*command.Spec{&specSlowlogGet, &specSlowlogHelp, &specSlowlogLen, &specSlowlogReset},
}

var specSlowlogHelp = helpSince("slowlog", "6.2.0")

// helpSince returns the HELP of a container that has it since a later version.
func helpSince(container, since string) command.Spec {
	s := command.HelpSpec(container, command.GroupServer, 0)
	s.Since = since
	return s
}

var specSlowlogGet = command.Spec{
	Name: "slowlog|get", Group: command.GroupServer, Since: "2.2.12", Complexity: "O(N) where N is the number of entries returned",
	Summary: "Returns the latest calls that took longer than slowlog-log-slower-than.",
	Flags:   command.Admin | command.Loading | command.Stale | command.Inert | command.Quotes,
	FanOut:  command.FanOutOne,
	Tips:    []string{"request_policy:all_nodes", "nondeterministic_output"},
	Args:    []command.Arg{command.Opt(command.Int("count"))},
	History: []command.Change{{Since: "4.0.0", Text: "Added client IP address, port and name to the reply."}},
	Replies: "Up to count calls, 10 by default, -1 for all, the latest first: number, time, microseconds, arguments (32 " +
		"at most, of 128 bytes), the client's address and name.",
	Examples: `
> CONFIG SET slowlog-log-slower-than 0
OK
> SET k v
OK
> SLOWLOG GET 1
1) 1) (integer) 1
   2) (integer) 1700000000
   3) (integer) 0
   4) 1) "SET"
      2) "k"
      3) "v"
   5) $_
   6) ""
`,
	Run: runSlowlogGet,
}

func runSlowlogGet(c *command.Ctx) error {
	n := int64(10)
	switch {
	case len(c.Args) > 3:
		return wrongSubcommand(c)
	case len(c.Args) == 3:
		var ok bool
		if n, ok = numeral.ParseInt(c.Args[2]); !ok || n < -1 {
			return command.ReplyError("ERR count should be greater than or equal to -1")
		}
	}

	calls := session.ServiceOf(c).Admin().Slowlog.Latest(n)

	c.Out.Array(len(calls))
	for _, e := range calls {
		c.Out.Array(6)
		c.Out.Int(e.ID)
		c.Out.Int(e.At)
		c.Out.Int(e.Micros)
		c.Out.Array(len(e.Args))
		for _, a := range e.Args {
			c.Out.BulkString(a)
		}
		c.Out.BulkString(e.Addr)
		c.Out.BulkString(e.Name)
	}
	return nil
}

var specSlowlogLen = command.Spec{
	Name: "slowlog|len", Group: command.GroupServer, Since: "2.2.12", Complexity: "O(1)",
	Summary: "Returns the number of calls in the slow log.",
	Flags:   command.Admin | command.Loading | command.Stale | command.Inert,
	FanOut:  command.FanOutOne,
	Tips:    []string{"request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"},
	Examples: `
> SLOWLOG LEN
(integer) 0
`,
	Run: runSlowlogLen,
}

func runSlowlogLen(c *command.Ctx) error {
	c.Out.Int(int64(session.ServiceOf(c).Admin().Slowlog.Len()))
	return nil
}

var specSlowlogReset = command.Spec{
	Name: "slowlog|reset", Group: command.GroupServer, Since: "2.2.12", Complexity: "O(N) where N is the number of entries in the slowlog",
	Summary: "Empties the slow log.",
	Flags:   command.Admin | command.Loading | command.Stale,
	FanOut:  command.FanOutOne,
	Tips:    everyNode,
	Examples: `
> SLOWLOG RESET
OK
> SLOWLOG LEN
(integer) 0
`,
	Run: runSlowlogReset,
}

func runSlowlogReset(c *command.Ctx) error {
	session.ServiceOf(c).Admin().Slowlog.Reset()
	c.Out.OK()
	return nil
}
