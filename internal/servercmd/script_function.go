package servercmd

import (
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/script"
	"github.com/ebbdb/ebb/internal/session"
)

var specFCall = command.Spec{
	Name: "fcall", Group: command.GroupScripting, Since: "7.0.0", Complexity: "Depends on the function that is executed.",
	Summary: "Invokes a function.",
	Flags:   scriptFlags | command.MayReplicate | command.Keeps,
	Args:    evalArgs("function", command.Update|command.Access),
	Replies: "The result of the function, as with EVAL. The function gets a table of the keys and one of the other arguments.",
	Examples: `
> FUNCTION LOAD "#!lua name=shop\nredis.register_function('sold', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)"
"shop"
> FCALL sold 1 apples 3
(integer) 3
> FCALL bought 0
(error) ERR Function not found
`,
	Run: monitored(runFCall),
}

var specFCallRO = command.Spec{
	Name: "fcall_ro", Group: command.GroupScripting, Since: "7.0.0", Complexity: "Depends on the function that is executed.",
	Summary: "Invokes a function that only reads.",
	Flags:   scriptFlags | command.ReadOnly | command.Keeps,
	Args:    evalArgs("function", command.Access),
	Replies: "As FCALL. The function must be flagged no-writes.",
	Examples: `
> FUNCTION LOAD "#!lua name=shop\nredis.register_function{function_name='count', callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}"
"shop"
> SET apples 3
OK
> FCALL_RO count 1 apples
"3"
`,
	Run: monitored(runFCall),
}

func runFCall(c *command.Ctx) error {
	f := session.ServiceOf(c).Scripts().Function(c.Args[1])
	if f == nil {
		return command.ReplyError("ERR Function not found")
	}
	keys, args, err := scriptArgs(session.Of(c).OwnArgs(c), command.ReplyError("ERR Bad number of keys provided"))
	if err != nil {
		return err
	}
	return session.Of(c).RunScript(c, f.Flags, f.Name, func(h *session.ScriptHost) error {
		return session.ServiceOf(c).Scripts().CallFunction(f, h, keys, args, c.Out)
	})
}

var specFunction = command.Spec{
	Name: "function", Group: command.GroupScripting, Since: "7.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for function commands.",
	Sub: []*command.Spec{&specFunctionDelete, &specFunctionDump, &specFunctionFlush, &specFunctionHelp, &specFunctionKill, &specFunctionList,
		&specFunctionLoad, &specFunctionRestore, &specFunctionStats},
}

var specFunctionHelp = func() command.Spec {
	s := command.HelpSpec("function", command.GroupScripting, command.CatScripting)
	s.Since = "7.0.0"
	return s
}()

// everyShard holds the tips of commands that change the libraries.
var everyShard = []string{"request_policy:all_shards", "response_policy:all_succeeded"}

const exampleLibrary = "> FUNCTION LOAD \"#!lua name=shop\\nredis.register_function('sold', function() return 1 end)\"\n\"shop\"\n"

var specFunctionLoad = command.Spec{
	Name: "function|load", Group: command.GroupScripting, Since: "7.0.0", Complexity: "O(1) (considering compilation time is redundant)",
	Summary: "Creates a library.",
	Flags:   command.Write | command.DenyOOM | command.NoScript | command.AllKeys | command.Scripts | command.Keeps,
	FanOut:  command.FanOutLast,
	Tips:    everyShard,
	Args:    []command.Arg{command.Opt(command.Token("REPLACE")), command.Str("function-code")},
	Replies: "The library's name. Its code is run once, and registers the functions.",
	Examples: exampleLibrary + "> FUNCTION LOAD \"#!lua name=shop\\nreturn 1\"\n(error) ERR Library 'shop' already exists\n" +
		"> FUNCTION LOAD \"return 1\"\n(error) ERR Missing library metadata\n",
	Run: runFunctionLoad,
}

func runFunctionLoad(c *command.Ctx) error {
	replace, code := false, session.Of(c).OwnArgs(c)[2:]
	for ; len(code) > 1; code = code[1:] {
		if !command.EqualFold(code[0], "REPLACE") {
			return command.ReplyError("ERR Unknown option given: " + string(code[0]))
		}
		replace = true
	}
	var name string
	err := session.Of(c).WithScripts(c, true, func(h *session.ScriptHost) (err error) {
		name, err = session.ServiceOf(c).Scripts().LoadLibrary(code[0], replace, h)
		return err
	})
	if err != nil {
		return err
	}
	c.Tx.Effect("FUNCTION", []byte("LOAD"), []byte("REPLACE"), code[0])
	c.Out.BulkString(name)
	return nil
}

var specFunctionDelete = command.Spec{
	Name: "function|delete", Group: command.GroupScripting, Since: "7.0.0", Complexity: "O(1)",
	Summary:  "Deletes a library and its functions.",
	Flags:    command.Write | command.NoScript | command.AllKeys,
	FanOut:   command.FanOutLast,
	Tips:     everyShard,
	Args:     []command.Arg{command.Str("library-name")},
	Replies:  "OK.",
	Examples: exampleLibrary + "> FUNCTION DELETE shop\nOK\n> FUNCTION DELETE shop\n(error) ERR Library not found\n",
	Run:      runFunctionDelete,
}

func runFunctionDelete(c *command.Ctx) error {
	if err := session.ServiceOf(c).Scripts().DeleteLibrary(c.Args[2]); err != nil {
		return err
	}
	c.Tx.Effect("FUNCTION", []byte("DELETE"), c.Args[2])
	c.Out.OK()
	return nil
}

var specFunctionFlush = command.Spec{
	Name: "function|flush", Group: command.GroupScripting, Since: "7.0.0", Complexity: "O(N) where N is the number of functions deleted",
	Summary:  "Deletes all libraries and functions.",
	Flags:    command.Write | command.NoScript | command.AllKeys,
	FanOut:   command.FanOutLast,
	Tips:     everyShard,
	Args:     []command.Arg{command.Opt(command.OneOf("async", command.Token("ASYNC"), command.Token("SYNC")))},
	Replies:  "OK.",
	Examples: exampleLibrary + "> FUNCTION FLUSH\nOK\n> FUNCTION LIST\n(empty array)\n",
	Run:      runFunctionFlush,
}

func runFunctionFlush(c *command.Ctx) error {
	switch {
	case len(c.Args) > 3:
		return tooMany(c.Args)
	case len(c.Args) == 3 && !command.EqualFold(c.Args[2], "SYNC") && !command.EqualFold(c.Args[2], "ASYNC"):
		return command.ReplyError("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
	}
	session.ServiceOf(c).Scripts().FlushLibraries()
	c.Tx.Effect("FUNCTION", []byte("FLUSH"))
	c.Out.OK()
	return nil
}

// tooMany returns the error for a subcommand with too many arguments.
func tooMany(args [][]byte) error {
	return command.ReplyError("ERR unknown subcommand or wrong number of arguments for '" + string(args[1]) + "'. Try " +
		strings.ToUpper(string(args[0])) +
		" HELP.")
}

var specFunctionDump = command.Spec{
	Name: "function|dump", Group: command.GroupScripting, Since: "7.0.0", Complexity: "O(N) where N is the number of functions",
	Summary: "Dumps all libraries into a serialized binary payload.",
	Flags:   command.NoScript | command.Inert | command.Quotes,
	Replies: "The payload, in Redis's format.",
	Examples: `
> FUNCTION DUMP
"\n\x00]\x9b\\@\x0f\x7f\xa2\xda"
`,
	Run: runFunctionDump,
}

func runFunctionDump(c *command.Ctx) error {
	if err := c.Long(session.ServiceOf(c).Scripts().Stats().FunctionBytes); err != nil {
		return err
	}
	c.Out.Bulk(session.ServiceOf(c).Scripts().DumpLibraries())
	return nil
}

var specFunctionRestore = command.Spec{
	Name: "function|restore", Group: command.GroupScripting, Since: "7.0.0",
	Complexity: "O(N) where N is the number of functions on the payload",
	Summary:    "Restores all libraries from a payload.",
	Flags:      command.Write | command.DenyOOM | command.NoScript | command.AllKeys | command.Scripts | command.Keeps,
	FanOut:     command.FanOutLast,
	Tips:       everyShard,
	Args: []command.Arg{command.Str("serialized-value"),
		command.Opt(command.OneOf("policy", command.Token("FLUSH"), command.Token("APPEND"), command.Token("REPLACE")))},
	Replies: "OK. APPEND (the default) refuses names that exist, REPLACE replaces them, FLUSH deletes all libraries first. The " +
		"command restores all or nothing.",
	Examples: exampleLibrary + "> FUNCTION RESTORE \"\\n\\x00]\\x9b\\\\@\\x0f\\x7f\\xa2\\xda\" FLUSH\nOK\n> FUNCTION LIST\n(empty array)\n" +
		"> FUNCTION RESTORE abc\n(error) ERR DUMP payload version or checksum are wrong\n",
	Run: runFunctionRestore,
}

func runFunctionRestore(c *command.Ctx) error {
	policy := script.Append
	if len(c.Args) > 4 {
		return tooMany(c.Args)
	}
	if len(c.Args) == 4 {
		switch a := c.Args[3]; {
		case command.EqualFold(a, "APPEND"):
		case command.EqualFold(a, "REPLACE"):
			policy = script.Replace
		case command.EqualFold(a, "FLUSH"):
			policy = script.Flush
		default:
			return command.ReplyError("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
		}
	}
	err := session.Of(c).WithScripts(c, true, func(h *session.ScriptHost) error {
		return session.ServiceOf(c).Scripts().RestoreLibraries(c.Args[2], policy, h)
	})
	if err != nil {
		return err
	}

	payload := rdb.Reseal(c.Args[2], rdb.PlainVersion) // libraries are the same in all versions
	c.Tx.Effect("FUNCTION", append([][]byte{[]byte("RESTORE"), payload}, c.Args[3:]...)...)

	c.Out.OK()
	return nil
}

var specFunctionKill = command.Spec{
	Name: "function|kill", Group: command.GroupScripting, Since: "7.0.0", Complexity: "O(1)",
	Summary: "Terminates a function during execution.",
	Flags:   command.NoScript | command.AllowBusy,
	FanOut:  command.FanOutOne,
	Tips:    []string{"request_policy:all_shards", "response_policy:one_succeeded"},
	Replies: "OK; NOTBUSY if no function runs, UNKILLABLE if it has written already.",
	Examples: `
> FUNCTION KILL
(error) NOTBUSY No scripts in execution right now.
`,
	Run: func(c *command.Ctx) error { return runKill(c, true) },
}

var specFunctionList = command.Spec{
	Name: "function|list", Group: command.GroupScripting, Since: "7.0.0", Complexity: "O(N) where N is the number of functions",
	Summary: "Returns information about all libraries.",
	Flags:   command.NoScript | command.Inert | command.Quotes,
	Tips:    []string{"nondeterministic_output_order"},
	Args: []command.Arg{command.Opt(command.TokenArg("LIBRARYNAME", command.Str("library-name-pattern"))),
		command.Opt(command.Token("WITHCODE"))},
	Replies: "A map for each library whose name matches the pattern.",
	Examples: exampleLibrary + "> FUNCTION LIST WITHCODE\n1) 1) \"library_name\"\n   2) \"shop\"\n   3) \"engine\"\n" +
		"   4) \"LUA\"\n   5) \"functions\"\n" +
		"   6) 1) 1) \"name\"\n         2) \"sold\"\n         3) \"description\"\n         4) (nil)\n         5) \"flags\"\n" +
		"         6) (empty array)\n" +
		"   7) \"library_code\"\n   8) \"#!lua name=shop\\nredis.register_function('sold', function() return 1 end)\"\n",
	Run: runFunctionList,
}

func runFunctionList(c *command.Ctx) error {
	var pattern []byte
	code := false
	for args := c.Args[2:]; len(args) > 0; args = args[1:] {
		switch {
		case !code && command.EqualFold(args[0], "WITHCODE"):
			code = true
		case pattern == nil && command.EqualFold(args[0], "LIBRARYNAME"):
			if len(args) < 2 {
				return command.ReplyError("ERR library name argument was not given")
			}
			args = args[1:]
			pattern = args[0]
		default:
			return command.ReplyError("ERR Unknown argument " + string(args[0]))
		}
	}
	if err := c.Long(session.ServiceOf(c).Scripts().Stats().FunctionBytes); err != nil {
		return err
	}
	var found []*script.Library
	for _, l := range session.ServiceOf(c).Scripts().Libraries() {
		if pattern == nil || glob.MatchFold(pattern, []byte(l.Name)) {
			found = append(found, l)
		}
	}

	c.Out.Array(len(found))
	for _, l := range found {
		listLibrary(c, l, code)
	}
	return nil
}

func listLibrary(c *command.Ctx, l *script.Library, code bool) {
	c.Out.Map(3 + int(command.BoolToInt(code)))
	c.Out.BulkString("library_name")
	c.Out.BulkString(l.Name)
	c.Out.BulkString("engine")
	c.Out.BulkString("LUA")
	c.Out.BulkString("functions")
	c.Out.Array(len(l.Functions))
	for _, f := range l.Functions {
		c.Out.Map(3)
		c.Out.BulkString("name")
		c.Out.BulkString(f.Name)
		c.Out.BulkString("description")
		if f.Described {
			c.Out.BulkString(f.Description)
		} else {
			c.Out.Null()
		}
		c.Out.BulkString("flags")
		names := f.Flags.Names()
		c.Out.Set(len(names))
		for _, n := range names {
			c.Out.Simple(n)
		}
	}
	if code {
		c.Out.BulkString("library_code")
		c.Out.BulkString(l.Code)
	}
}

var specFunctionStats = command.Spec{
	Name: "function|stats", Group: command.GroupScripting, Since: "7.0.0", Complexity: "O(1)",
	Summary: "Returns information about the running function.",
	Flags:   command.NoScript | command.AllowBusy | command.Inert,
	FanOut:  command.FanOutOne,
	Tips:    []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"},
	Replies: "A map: the function that runs, its command and its time in ms, or nil; and the engines with their numbers of libraries " +
		"and functions.",
	Examples: `
> FUNCTION STATS
1) "running_script"
2) (nil)
3) "engines"
4) 1) "LUA"
   2) 1) "libraries_count"
      2) (integer) 0
      3) "functions_count"
      4) (integer) 0
`,
	Run: runFunctionStats,
}

func runFunctionStats(c *command.Ctx) error {
	r, runs, err := session.ServiceOf(c).RunningFunction()
	if err != nil {
		return err
	}

	c.Out.Map(2)
	c.Out.BulkString("running_script")
	if !runs {
		c.Out.Null()
	} else {
		c.Out.Map(3)
		c.Out.BulkString("name")
		c.Out.BulkString(r.Name)
		c.Out.BulkString("command")
		c.Out.Array(len(r.Args))
		for _, a := range r.Args {
			c.Out.Bulk(a)
		}
		c.Out.BulkString("duration_ms")
		c.Out.Int((session.ServiceOf(c).DB.Clock().Micros() - r.Began) / 1000)
	}
	stats := session.ServiceOf(c).Scripts().Stats()
	c.Out.BulkString("engines")
	c.Out.Map(1)
	c.Out.BulkString("LUA")
	c.Out.Map(2)
	c.Out.BulkString("libraries_count")
	c.Out.Int(int64(stats.Libraries))
	c.Out.BulkString("functions_count")
	c.Out.Int(int64(stats.Functions))
	return nil
}
