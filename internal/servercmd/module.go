package servercmd

import "github.com/ebbdb/ebb/internal/command"

var specModule = command.Spec{
	Name: "module", Group: command.GroupServer, Since: "4.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about modules.",
	Sub:     []*command.Spec{&specModuleHelp, &specModuleList, &specModuleLoad, &specModuleLoadEx, &specModuleUnload},
}

var specModuleHelp = helpSince("module", "5.0.0")

// bloomVersion is the version of RedisBloom whose commands ebb implements, in the form of modules:
// two digits each for major, minor and patch.
const bloomVersion = 20612

var specModuleList = command.Spec{
	Name: "module|list", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(N) where N is the number of loaded modules.",
	Summary: "Returns the modules that clients look for: `bf`, whose commands are built in.",
	Flags:   command.Admin | command.NoScript | command.Inert,
	Tips:    []string{"nondeterministic_output_order"},
	Examples: `
> MODULE LIST
1) 1) "name"
   2) "bf"
   3) "ver"
   4) (integer) 20612
   5) "path"
   6) ""
   7) "args"
   8) (empty array)
`,
	Run: runModuleList,
}

func runModuleList(c *command.Ctx) error {
	w := c.Out
	w.Array(1)
	w.Map(4)
	w.BulkString("name")
	w.BulkString("bf")
	w.BulkString("ver")
	w.Int(bloomVersion)
	w.BulkString("path")
	w.BulkString("")
	w.BulkString("args")
	w.Array(0)
	return nil
}

const errNoModules = command.ReplyError("ERR ebb loads no modules: what it can do is built in")

func runNoModules(*command.Ctx) error { return errNoModules }

// moduleFlags are the flags of the commands that would load a module.
const moduleFlags = command.Admin | command.NoScript | command.NoAsyncLoading

var specModuleLoad = command.Spec{
	Name: "module|load", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(1)",
	Summary: "Would load a module; ebb loads none, and replies an error.",
	Flags:   moduleFlags,
	Args:    []command.Arg{command.Str("path"), command.Opt(command.Many("arg"))},
	Examples: `
> MODULE LOAD /usr/lib/redis/bf.so
(error) ERR ebb loads no modules: what it can do is built in
`,
	Run: runNoModules,
}

var specModuleLoadEx = command.Spec{
	Name: "module|loadex", Group: command.GroupServer, Since: "7.0.0", Complexity: "O(1)",
	Summary: "Would load a module with a configuration; ebb loads none, and replies an error.",
	Flags:   moduleFlags,
	Args: []command.Arg{command.Str("path"),
		command.Opt(command.RepeatToken(command.TokenArg("CONFIG", command.Block("configs", command.Str("name"), command.Str("value"))))),
		command.Opt(command.Repeat(command.TokenArg("ARGS", command.Block("args", command.Str("arg")))))},
	Examples: `
> MODULE LOADEX /usr/lib/redis/bf.so
(error) ERR ebb loads no modules: what it can do is built in
`,
	Run: runNoModules,
}

var specModuleUnload = command.Spec{
	Name: "module|unload", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(1)",
	Summary: "Would unload a module; there is none to unload, and it replies an error.",
	Flags:   moduleFlags,
	Args:    []command.Arg{command.Str("name")},
	Examples: `
> MODULE UNLOAD bf
(error) ERR ebb loads no modules: what it can do is built in
`,
	Run: runNoModules,
}
