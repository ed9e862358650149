package servercmd

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/session"
)

var specScript = command.Spec{
	Name: "script", Group: command.GroupScripting, Since: "2.6.0", Complexity: "Depends on subcommand.",
	Summary: "A container for Lua scripts management commands.",
	Stream:  command.StreamControl,
	Sub: []*command.Spec{&specScriptDebug, &specScriptExists, &specScriptFlush, &specScriptHelp, &specScriptKill,
		&specScriptLoad, &specScriptShow},
}

var specScriptHelp = command.HelpSpec("script", command.GroupScripting, command.CatScripting)

var specScriptExists = command.Spec{
	Name: "script|exists", Group: command.GroupScripting, Since: "2.6.0", Complexity: "O(N) where N is the number of digests",
	Summary: "Determines whether server-side Lua scripts exist in the script cache.",
	Flags:   command.NoScript | command.Inert,
	FanOut:  command.FanOutOne,
	Tips:    []string{"request_policy:all_shards", "response_policy:agg_logical_and"},
	Args:    []command.Arg{command.Many("sha1")},
	Replies: "1 or 0 for each digest.",
	Examples: `
> SCRIPT LOAD "return 1"
"$sha"
> SCRIPT EXISTS $sha ffffffffffffffffffffffffffffffffffffffff
1) (integer) 1
2) (integer) 0
`,
	Run: runScriptExists,
}

func runScriptExists(c *command.Ctx) error {
	c.Out.Array(len(c.Args) - 2)
	for _, sha := range c.Args[2:] {
		c.Out.Int(command.BoolToInt(session.ServiceOf(c).Scripts().BySHA(sha) != nil))
	}
	return nil
}

var specScriptFlush = command.Spec{
	Name: "script|flush", Group: command.GroupScripting, Since: "2.6.0", Complexity: "O(N) where N is the number of scripts in cache",
	Summary: "Removes all server-side Lua scripts from the script cache.",
	Flags:   command.NoScript,
	FanOut:  command.FanOutLast,
	Tips:    everyNode,
	Args:    []command.Arg{command.Opt(command.OneOf("async", command.Token("ASYNC"), command.Token("SYNC"))).Since("6.2.0")},
	History: []command.Change{{Since: "6.2.0", Text: "Added the `ASYNC` and `SYNC` flushing mode modifiers."}},
	Replies: "OK.",
	Examples: `
> SCRIPT LOAD "return 1"
"$sha"
> SCRIPT FLUSH
OK
> SCRIPT EXISTS $sha
1) (integer) 0
`,
	Run: runScriptFlush,
}

func runScriptFlush(c *command.Ctx) error {
	if len(c.Args) > 3 || len(c.Args) == 3 && !command.EqualFold(c.Args[2], "SYNC") && !command.EqualFold(c.Args[2], "ASYNC") {
		return command.ReplyError("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	session.ServiceOf(c).Scripts().Flush()
	c.Out.OK()
	return nil
}

var specScriptKill = command.Spec{
	Name: "script|kill", Group: command.GroupScripting, Since: "2.6.0", Complexity: "O(1)",
	Summary: "Terminates a server-side Lua script during execution.",
	Flags:   command.NoScript | command.AllowBusy,
	FanOut:  command.FanOutOne,
	Tips:    []string{"request_policy:all_shards", "response_policy:one_succeeded"},
	Replies: "OK; NOTBUSY if no script runs, UNKILLABLE if it has written already.",
	Examples: `
> SCRIPT KILL
(error) NOTBUSY No scripts in execution right now.
`,
	Run: func(c *command.Ctx) error { return runKill(c, false) },
}

func runKill(c *command.Ctx, function bool) error {
	if err := session.ServiceOf(c).KillScript(function); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specScriptLoad = command.Spec{
	Name: "script|load", Group: command.GroupScripting, Since: "2.6.0",
	Complexity: "O(N) with N being the length in bytes of the script body.",
	Summary:    "Loads a server-side Lua script to the script cache.",
	Flags:      command.NoScript | command.Stale,
	FanOut:     command.FanOutLast,
	Tips:       everyNode,
	Args:       []command.Arg{command.Str("script")},
	Replies:    "The SHA1 digest of the script, for EVALSHA. It stays cached until SCRIPT FLUSH.",
	Examples: `
> SCRIPT LOAD "return 'hi'"
"2f31ba2bb6d6a0f42cc159d2e2dad55440778de3"
> SCRIPT LOAD "return ("
(error) ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'
`,
	Run: runScriptLoad,
}

// compileCost is the number of bytes that a command can scan in the time that it takes to compile one byte.
const compileCost = 64

func runScriptLoad(c *command.Ctx) error {
	if err := c.Long(len(c.Args[2]) * compileCost); err != nil {
		return err
	}
	if session.ServiceOf(c).DB.ApartFull() {
		return command.ErrApart
	}
	s, err := session.ServiceOf(c).Scripts().Load(c.Args[2])
	if err != nil {
		return err
	}
	c.Out.BulkString(s.SHA)
	return nil
}

var specScriptShow = command.Spec{
	Name: "script|show", Group: command.GroupScripting, Since: "8.0.0", Complexity: "O(1)",
	Summary: "Shows the text of a server-side Lua script in the script cache, as Valkey 8.0 does.",
	Flags:   command.NoScript | command.Inert | command.Quotes,
	Args:    []command.Arg{command.Str("sha1")},
	Replies: "The script's text; NOSCRIPT if it is not cached.",
	Examples: `
> SCRIPT LOAD "return 'hi'"
"$sha"
> SCRIPT SHOW $sha
"return 'hi'"
> SCRIPT SHOW abc
(error) NOSCRIPT No matching script. Please use EVAL.
`,
	Run: runScriptShow,
}

func runScriptShow(c *command.Ctx) error {
	s := session.ServiceOf(c).Scripts().BySHA(c.Args[2])
	if s == nil {
		return errNoScript
	}
	c.Out.BulkString(s.Body)
	return nil
}
