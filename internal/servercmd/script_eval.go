package servercmd

import (
	"crypto/sha1"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/script"
	"github.com/ebbdb/ebb/internal/session"
)

var scriptingSpecs = []*command.Spec{&specEval, &specEvalRO, &specEvalSHA, &specEvalSHARO, &specFCall, &specFCallRO,
	&specScript, &specFunction}

// scriptFlags are the flags of the commands that run a script.
const scriptFlags = command.NoScript | command.Stale | command.SkipMonitor | command.NoMandatoryKeys | command.AllKeys | command.Scripts

// evalArgs returns the grammar of EVAL and its variants. The argument what names the
// script.
func evalArgs(what string, access command.KeyFlags) []command.Arg {
	return []command.Arg{command.Str(what), command.Count("numkeys"), command.Opt(command.ManyKeys("key", access)),
		command.Opt(command.Many("arg"))}
}

var specEval = command.Spec{
	Name: "eval", Group: command.GroupScripting, Since: "2.6.0", Complexity: "Depends on the script that is executed.",
	Summary: "Executes a server-side Lua script.",
	Flags:   scriptFlags | command.MayReplicate,
	Args:    evalArgs("script", command.Update|command.Access),
	Replies: "The result of the script: numbers become integers (their fraction is cut), strings and true, nil and false, " +
		"tables up to their first nil.",
	Examples: `
> EVAL "return {KEYS[1], ARGV[1], 3.7}" 1 k v
1) "k"
2) "v"
3) (integer) 3
> EVAL "redis.call('SET', KEYS[1], ARGV[1], 'EX', 100) return redis.call('TTL', KEYS[1])" 1 k v
(integer) 100
> EVAL "return redis.error_reply('NOPE not today')" 0
(error) NOPE not today
`,
	Run: monitored(runEval),
}

var specEvalRO = command.Spec{
	Name: "eval_ro", Group: command.GroupScripting, Since: "7.0.0", Complexity: "Depends on the script that is executed.",
	Summary: "Executes a server-side Lua script that only reads.",
	Flags:   scriptFlags | command.ReadOnly,
	Args:    evalArgs("script", command.Access),
	Replies: "As EVAL.",
	Examples: `
> SET k v
OK
> EVAL_RO "return redis.call('GET', KEYS[1])" 1 k
"v"
`,
	Run: monitored(runEval),
}

var specEvalSHA = command.Spec{
	Name: "evalsha", Group: command.GroupScripting, Since: "2.6.0", Complexity: "Depends on the script that is executed.",
	Summary: "Executes a server-side Lua script by the SHA1 digest of its text.",
	Flags:   scriptFlags | command.MayReplicate,
	Client:  command.Pipelined,
	Args:    evalArgs("sha1", command.Update|command.Access),
	Replies: "As EVAL; NOSCRIPT if the script is not cached.",
	Examples: `
> SCRIPT LOAD "return 'hi'"
"$sha"
> EVALSHA $sha 0
"hi"
> EVALSHA ffffffffffffffffffffffffffffffffffffffff 0
(error) NOSCRIPT No matching script. Please use EVAL.
`,
	Run: monitored(runEvalSHA),
}

var specEvalSHARO = command.Spec{
	Name: "evalsha_ro", Group: command.GroupScripting, Since: "7.0.0", Complexity: "Depends on the script that is executed.",
	Summary: "Executes a server-side Lua script that only reads, by the SHA1 digest of its text.",
	Flags:   scriptFlags | command.ReadOnly,
	Client:  command.Pipelined,
	Args:    evalArgs("sha1", command.Access),
	Replies: "As EVALSHA.",
	Examples: `
> SCRIPT LOAD "return redis.call('EXISTS', KEYS[1])"
"$sha"
> EVALSHA_RO $sha 1 k
(integer) 0
`,
	Run: monitored(runEvalSHA),
}

// monitored makes MONITOR show the command before it runs, so that the calls of its script follow it, and so
// that MONITOR also shows a script that cannot run.
func monitored(run func(*command.Ctx) error) func(*command.Ctx) error {
	return func(c *command.Ctx) error {
		session.Of(c).ShowInMonitors(c.Args)
		return run(c)
	}
}

func runEval(c *command.Ctx) error {
	if start := session.Of(c).Debug(); start != nil {
		return start(c)
	}
	keys, args, err := scriptArgs(c.Args, command.ErrNotInteger)
	if err != nil {
		return err
	}
	s, err := scriptOf(c)
	if err != nil {
		return err
	}
	return eval(c, s, keys, args)
}

// longScript is the length of a script, in bytes, above which its compilation is visible as a running script,
// and can be killed.
const longScript = 16 << 10

// scriptOf returns the script in the arguments of EVAL.
func scriptOf(c *command.Ctx) (s *script.Script, err error) {
	text := c.Args[1]
	if len(text) < longScript {
		return session.ServiceOf(c).Scripts().Script(text)
	}
	err = session.Of(c).WithScripts(c, false, func(h *session.ScriptHost) error {
		s, err = session.ServiceOf(c).Scripts().ScriptTicking(text, h.Tick)
		return err
	})
	return s, err
}

const errNoScript = command.ReplyError("NOSCRIPT No matching script. Please use EVAL.")

func runEvalSHA(c *command.Ctx) error {
	if session.Of(c).Debug() != nil {
		return command.ReplyError("ERR Please use EVAL instead of EVALSHA for debugging")
	}
	if len(c.Args[1]) != 2*sha1.Size {
		return errNoScript
	}
	keys, args, err := scriptArgs(c.Args, command.ErrNotInteger)
	if err != nil {
		return err
	}
	s := session.ServiceOf(c).Scripts().BySHA(c.Args[1])
	if s == nil {
		return errNoScript
	}
	return eval(c, s, keys, args)
}

func eval(c *command.Ctx, s *script.Script, keys, args [][]byte) error {
	return session.Of(c).RunScript(c, s.Flags, "", func(h *session.ScriptHost) error {
		if d, ok := session.Of(c).Debugger().(*scriptDebug); ok {
			d.host = h
			return session.ServiceOf(c).Scripts().Debug(s, h, keys, args, c.Out, d)
		}
		return session.ServiceOf(c).Scripts().Run(s, h, keys, args, c.Out)
	})
}

// scriptArgs parses "numkeys [key ...] [arg ...]" after the command and the script. wrong is the
// error to return if numkeys is not an integer.
func scriptArgs(req [][]byte, wrong error) (keys, args [][]byte, err error) {
	n, ok := numeral.ParseInt(req[2])
	switch rest := req[3:]; {
	case !ok:
		return nil, nil, wrong
	case n > int64(len(rest)):
		return nil, nil, command.ReplyError("ERR Number of keys can't be greater than number of args")
	case n < 0:
		return nil, nil, command.ReplyError("ERR Number of keys can't be negative")
	default:
		return rest[:n], rest[n:], nil
	}
}
