package command

var specModule = Spec{
	Name: "module", Group: GroupServer, Since: "4.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about modules.",
	Sub:     []*Spec{&specModuleHelp, &specModuleList, &specModuleLoad, &specModuleLoadEx, &specModuleUnload},
}

var specModuleHelp = helpSince("module", "5.0.0")

// bloomVersion is the version of RedisBloom whose commands ebb has, as modules
// count: two digits each for major, minor and patch.
const bloomVersion = 20612

var specModuleList = Spec{
	Name: "module|list", Group: GroupServer, Since: "4.0.0", Complexity: "O(N) where N is the number of loaded modules.",
	Summary: "Returns the modules that clients look for: `bf`, whose commands are built in.",
	Flags:   Admin | NoScript,
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

func runModuleList(c *Ctx) error {
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

const errNoModules = ReplyError("ERR ebb loads no modules: what it can do is built in")

func runNoModules(*Ctx) error { return errNoModules }

// moduleFlags are those of what would load a module.
const moduleFlags = Admin | NoScript | NoAsyncLoading

var specModuleLoad = Spec{
	Name: "module|load", Group: GroupServer, Since: "4.0.0", Complexity: "O(1)",
	Summary: "Would load a module; ebb loads none, and replies an error.",
	Flags:   moduleFlags,
	Args:    []Arg{Str("path"), Opt(Many("arg"))},
	Examples: `
> MODULE LOAD /usr/lib/redis/bf.so
(error) ERR ebb loads no modules: what it can do is built in
`,
	Run: runNoModules,
}

var specModuleLoadEx = Spec{
	Name: "module|loadex", Group: GroupServer, Since: "7.0.0", Complexity: "O(1)",
	Summary: "Would load a module with a configuration; ebb loads none, and replies an error.",
	Flags:   moduleFlags,
	Args: []Arg{Str("path"), Opt(RepeatToken(TokenArg("CONFIG", Block("configs", Str("name"), Str("value"))))),
		Opt(Repeat(TokenArg("ARGS", Block("args", Str("arg")))))},
	Examples: `
> MODULE LOADEX /usr/lib/redis/bf.so
(error) ERR ebb loads no modules: what it can do is built in
`,
	Run: runNoModules,
}

var specModuleUnload = Spec{
	Name: "module|unload", Group: GroupServer, Since: "4.0.0", Complexity: "O(1)",
	Summary: "Would unload a module; there is none to unload, and it replies an error.",
	Flags:   moduleFlags,
	Args:    []Arg{Str("name")},
	Examples: `
> MODULE UNLOAD bf
(error) ERR ebb loads no modules: what it can do is built in
`,
	Run: runNoModules,
}
