package servercmd

import (
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/session"
)

var specConfig = command.Spec{
	Name: "config", Group: command.GroupServer, Since: "2.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about the configuration.",
	Sub:     []*command.Spec{&specConfigGet, &specConfigHelp, &specConfigResetstat, &specConfigRewrite, &specConfigSet},
}

var specConfigHelp = command.HelpSpec("config", command.GroupServer, 0)

var specConfigGet = command.Spec{
	Name: "config|get", Group: command.GroupServer, Since: "2.0.0",
	Complexity: "O(N) when N is the number of configuration parameters provided",
	Summary:    "Returns the directives whose names match patterns, with their values.",
	Flags:      adminFlags | command.Inert,
	Args:       []command.Arg{command.Repeat(command.Block("parameter", command.Str("parameter")))},
	History:    []command.Change{{Since: "7.0.0", Text: "Added the ability to pass multiple pattern parameters in one call"}},
	Examples: `
> CONFIG GET maxmemory timeout (differs: config-get-order)
1) "maxmemory"
2) "0"
3) "timeout"
4) "0"
> CONFIG GET *-unheard-of
(empty array)
`,
	Run: runConfigGet,
}

func runConfigGet(c *command.Ctx) error {
	pairs := session.ServiceOf(c).Config.Get(texts(c.Args[2:])...)
	c.Out.Map(len(pairs) / 2)
	for _, s := range pairs {
		c.Out.BulkString(s)
	}
	return nil
}

// texts copies arguments to strings.
func texts(args [][]byte) []string {
	s := make([]string, len(args))
	for i, a := range args {
		s[i] = string(a)
	}
	return s
}

var specConfigSet = command.Spec{
	Name: "config|set", Group: command.GroupServer, Since: "2.0.0",
	Complexity: "O(N) when N is the number of configuration parameters provided",
	Summary:    "Sets directives, all of them or none.",
	Flags:      adminFlags | command.SelfLock | command.OfServer,
	FanOut:     command.FanOutLast,
	Args:       []command.Arg{command.Repeat(command.Block("parameter_value", command.Str("parameter"), command.Str("value")))},
	Tips:       everyNode,
	History:    []command.Change{{Since: "7.0.0", Text: "Added the ability to set multiple parameters in one call."}},
	Examples: `
> CONFIG SET maxmemory 100mb timeout 60
OK
> CONFIG GET maxmemory
1) "maxmemory"
2) "104857600"
> CONFIG SET maxmemory much
(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
`,
	Run: runConfigSet,
}

func runConfigSet(c *command.Ctx) error {
	if err := session.ServiceOf(c).ChangeConfig(c.Tx, session.Of(c).Local(), texts(c.Args[2:])); err != nil {
		return command.ReplyError(cleantext.Reply(err.Error()))
	}
	c.Out.OK()
	return nil
}

var specConfigRewrite = command.Spec{
	Name: "config|rewrite", Group: command.GroupServer, Since: "2.8.0", Complexity: "O(1)",
	Summary: "Writes the configuration to the file that it was read from.",
	Flags:   adminFlags | command.Slow,
	FanOut:  command.FanOutLast,
	Tips:    everyNode,
	Examples: `
> CONFIG REWRITE
(error) ERR The server is running without a config file
`,
	Run: runConfigRewrite,
}

func runConfigRewrite(c *command.Ctx) error {
	if err := session.ServiceOf(c).Config.Rewrite(); err != nil {
		session.ServiceOf(c).Log.Warn("CONFIG REWRITE failed", "err", err)
		return command.ReplyError(cleantext.Reply(err.Error()))
	}
	c.Out.OK()
	return nil
}

var specConfigResetstat = command.Spec{
	Name: "config|resetstat", Group: command.GroupServer, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Sets the statistics that INFO shows to zero.",
	Flags:   adminFlags | command.SelfLock | command.OfServer,
	FanOut:  command.FanOutLast,
	Tips:    everyNode,
	Examples: `
> CONFIG RESETSTAT
OK
`,
	Run: runConfigResetstat,
}

func runConfigResetstat(c *command.Ctx) error {
	session.ServiceOf(c).ResetStats(c.Tx)
	c.Out.OK()
	return nil
}
