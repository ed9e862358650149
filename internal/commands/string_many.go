package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var specMGet = command.Spec{
	Name: "mget", Group: command.GroupString, Since: "1.0.0", Complexity: "O(N) where N is the number of keys to retrieve.",
	Summary: "Atomically returns the string values of one or more keys.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.ManyKeys("key", command.Read)},
	Tips:    []string{"request_policy:multi_shard"},
	Replies: "An array of values; nil where there is no such key, or no string.",
	Examples: `
> SET a 1
OK
> SET b 2
OK
> MGET a nothing b
1) "1"
2) (nil)
3) "2"
`,
	Run: runMGet,
}

func runMGet(c *command.Ctx) error {
	keys := c.Args[1:]
	c.Out.Array(len(keys))
	for _, key := range keys {
		val, ok, err := c.Tx.Get(key)
		stringOrNull(c, key, val, ok && err == nil)
	}
	return nil
}

// pairArgs returns the grammar of alternating keys and values.
func pairArgs(name string, access command.KeyFlags) command.Arg {
	return command.Repeat(command.Block(name, command.Key("key", access), command.Str("value")))
}

var specMSet = command.Spec{
	Name: "mset", Group: command.GroupString, Since: "1.0.1", Complexity: "O(N) where N is the number of keys to set.",
	Summary: "Atomically creates or modifies the string values of one or more keys.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args:    []command.Arg{pairArgs("key_value", command.Overwrite)},
	Tips:    []string{"request_policy:multi_shard", "response_policy:all_succeeded"},
	Examples: `
> MSET a 1 b 2
OK
> MGET a b
1) "1"
2) "2"
> MSET a 1 b
(error) ERR wrong number of arguments for 'mset' command
`,
	Run: runMSet,
}

func runMSet(c *command.Ctx) error {
	if len(c.Args)%2 == 0 {
		return command.WrongArity(c.Spec)
	}
	if _, err := c.Tx.SetMany(c.Args[1:], engine.SetOptions{}); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specMSetNX = command.Spec{
	Name: "msetnx", Group: command.GroupString, Since: "1.0.1", Complexity: "O(N) where N is the number of keys to set.",
	Summary: "Atomically modifies the string values of one or more keys only when all keys don't exist.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args:    []command.Arg{pairArgs("key_value", command.KeyOW|command.Insert)},
	Replies: "1 if all keys were set, 0 if none was.",
	Examples: `
> MSETNX a 1 b 2
(integer) 1
> MSETNX b 3 c 4
(integer) 0
> MGET a b c
1) "1"
2) "2"
3) (nil)
`,
	Run: runMSetNX,
}

func runMSetNX(c *command.Ctx) error {
	if len(c.Args)%2 == 0 {
		return command.WrongArity(c.Spec)
	}
	done, err := c.Tx.SetMany(c.Args[1:], engine.SetOptions{IfAbsent: true})
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(done))
	return nil
}

var specMSetEx = command.Spec{
	Name: "msetex", Group: command.GroupString, Since: "8.4.0", Complexity: "O(N) where N is the number of keys to set.",
	Summary: "Atomically sets several string keys with a shared expiration time, optionally only if none or all of them exist.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args: append([]command.Arg{command.Count("numkeys"), pairArgs("data", command.Overwrite),
		command.Opt(command.OneOf("condition", command.Token("NX"), command.Token("XX"))), expiryArgs(command.Token("KEEPTTL"))}, modifiers()...),
	Replies: "1 if all keys were set, 0 if none was. With JITTER each key has a share of its own.",
	Examples: `
> MSETEX 2 a 1 b 2 EX 10
(integer) 1
> TTL b
(integer) 10
> MSETEX 2 b 3 c 4 NX
(integer) 0
> MSETEX 2 a 5 b 6 XX KEEPTTL
(integer) 1
> TTL a
(integer) 10
`,
	Run: runMSetEx,
}

// These are the errors of MSETEX.
const (
	errKeyCount = command.ReplyError("ERR invalid numkeys value")
	errNumPairs = command.ReplyError("ERR wrong number of key-value pairs")
)

func runMSetEx(c *command.Ctx) error {
	n, ok := numeral.ParseInt(c.Args[1])
	switch {
	case !ok || n < 1:
		return errKeyCount
	case n > int64(len(c.Args)-2)/2:
		return errNumPairs
	}
	var life lifetime
	var o engine.SetOptions
	end := 2 + 2*int(n)
	for i := end; i < len(c.Args); {
		step, err := keyCondition(&o, c.Args[i])
		if step == 0 && err == nil {
			step, err = life.option(c.Args, i, true, false)
		}
		if err != nil {
			return err
		}
		if step == 0 {
			return command.ErrSyntax
		}
		i += step
	}
	if life.unit != noTime {
		o.Jitter, life.jitter = life.jitter, 0
	}
	if err := life.resolve(c, true); err != nil {
		return err
	}
	o.Deadline, o.Span, o.KeepTTL = life.deadline, life.span, life.keep

	done, err := c.Tx.SetMany(c.Args[2:end], o)
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(done))
	return nil
}

// keyCondition reads NX or XX and returns how many arguments it took.
func keyCondition(o *engine.SetOptions, a []byte) (int, error) {
	switch {
	case command.EqualFold(a, "NX"):
		o.IfAbsent = true
	case command.EqualFold(a, "XX"):
		o.IfExists = true
	default:
		return 0, nil
	}
	if o.IfAbsent && o.IfExists {
		return 0, command.ErrSyntax
	}
	return 1, nil
}
