package commands

import (
	"errors"
	"math"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var specIncr = command.Spec{
	Name: "incr", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Increments the integer value of a key by one. Uses 0 as initial value if the key doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Update|command.Access)},
	Examples: `
> INCR visits
(integer) 1
> INCR visits
(integer) 2
> SET name Ada
OK
> INCR name
(error) ERR value is not an integer or out of range
`,
	Run: func(c *command.Ctx) error { return incrBy(c, 1) },
}

var specDecr = command.Spec{
	Name: "decr", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Decrements the integer value of a key by one. Uses 0 as initial value if the key doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Update|command.Access)},
	Examples: `
> SET stock 10
OK
> DECR stock
(integer) 9
`,
	Run: func(c *command.Ctx) error { return incrBy(c, -1) },
}

var specIncrBy = command.Spec{
	Name: "incrby", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Increments the integer value of a key by a number. Uses 0 as initial value if the key doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Update|command.Access), command.Int("increment")},
	Examples: `
> SET k 10
OK
> INCRBY k 5
(integer) 15
`,
	Run: runIncrBy,
}

func runIncrBy(c *command.Ctx) error {
	by, ok := numeral.ParseInt(c.Args[2])
	if !ok {
		return command.ErrNotInteger
	}
	return incrBy(c, by)
}

var specDecrBy = command.Spec{
	Name: "decrby", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Decrements a number from the integer value of a key. Uses 0 as initial value if the key doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Update|command.Access), command.Int("decrement")},
	Examples: `
> SET k 10
OK
> DECRBY k 3
(integer) 7
`,
	Run: runDecrBy,
}

func runDecrBy(c *command.Ctx) error {
	by, ok := numeral.ParseInt(c.Args[2])
	switch {
	case !ok:
		return command.ErrNotInteger
	case by == math.MinInt64: // its negation does not fit
		return command.ReplyError("ERR decrement would overflow")
	}
	return incrBy(c, -by)
}

func incrBy(c *command.Ctx, by int64) error {
	n, err := c.Tx.IncrBy(c.Args[1], by)
	if err != nil {
		return err
	}
	c.Out.Int(n)
	return nil
}

var specIncrByFloat = command.Spec{
	Name: "incrbyfloat", Group: command.GroupString, Since: "2.6.0", Complexity: "O(1)",
	Summary: "Increments the floating point value of a key by a number. Uses 0 as initial value if the key doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Update|command.Access), command.Double("increment")},
	Examples: `
> SET k 10.50
OK
> INCRBYFLOAT k 0.1
"10.6"
> INCRBYFLOAT k -5
"5.6"
> INCRBYFLOAT k 2.0e2
"205.60000000000000001"
`,
	Run: runIncrByFloat,
}

func runIncrByFloat(c *command.Ctx) error {
	n, err := c.Tx.IncrByFloat(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	c.Out.Bulk(n)
	return nil
}

var specIncrEx = command.Spec{
	Name: "increx", Group: command.GroupString, Since: "8.8.0", Complexity: "O(1)",
	Summary: "Increments the number stored at a key within bounds, and sets its expiration time.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Reveals,
	Args: append([]command.Arg{command.Key("key", command.Update|command.Access),
		command.Opt(command.OneOf("increment", command.TokenArg("BYFLOAT", command.Double("float")),
			command.TokenArg("BYINT", command.Int("integer")))),
		command.Opt(command.TokenArg("LBOUND", command.Str("lowerbound"))), command.Opt(command.TokenArg("UBOUND", command.Str("upperbound"))),
		command.Opt(command.Token("SATURATE")),
		expiryArgs(command.Token("PERSIST")), command.Opt(command.Token("ENX"))}, modifiers()...),
	Replies: "The new value and the number that was added. A result out of bounds changes nothing and adds 0; with SATURATE it becomes the " +
		"bound. ENX sets the time only where the key has none. Integers, or with BYFLOAT strings (RESP3: doubles).",
	Examples: `
> INCREX calls UBOUND 2 EX 60 ENX
1) (integer) 1
2) (integer) 1
> INCREX calls UBOUND 2 EX 60 ENX
1) (integer) 2
2) (integer) 1
> INCREX calls UBOUND 2 EX 60 ENX
1) (integer) 2
2) (integer) 0
> INCREX calls BYINT 5 UBOUND 4 SATURATE
1) (integer) 4
2) (integer) 2
> TTL calls
(integer) 60
> INCREX price BYFLOAT 0.5
1) "0.5"
2) "0.5"
`,
	Run: runIncrEx,
}

// These are the errors of INCREX.
const (
	errIncrBounds = command.ReplyError("ERR LBOUND is greater than UBOUND")
	errIncrENX    = command.ReplyError("ERR ENX needs an expire time: EX, PX, EXAT or PXAT")
)

// increx holds the arguments of INCREX.
type increx struct {
	by, low, high               []byte
	float, byInt, saturate, enx bool
	life                        lifetime
}

func runIncrEx(c *command.Ctx) error {
	var x increx
	for i := 2; i < len(c.Args); {
		n, err := x.option(c.Args, i)
		if err != nil {
			return err
		}
		if n == 0 {
			return command.ErrSyntax
		}
		i += n
	}
	if x.enx && x.life.unit == noTime {
		return errIncrENX
	}
	if err := x.life.resolve(c, true); err != nil {
		return err
	}
	life := engine.Life{Deadline: x.life.deadline, Span: x.life.span, Persist: x.life.persist, OnlyNew: x.enx}
	if x.float {
		return x.runFloat(c, life)
	}
	return x.runInt(c, life)
}

// option reads one option and returns how many arguments it took.
func (x *increx) option(args [][]byte, i int) (int, error) {
	var arg *[]byte
	switch a := args[i]; {
	case command.EqualFold(a, "BYINT") && !x.float:
		arg, x.byInt = &x.by, true
	case command.EqualFold(a, "BYFLOAT") && !x.byInt:
		arg, x.float = &x.by, true
	case command.EqualFold(a, "LBOUND"):
		arg = &x.low
	case command.EqualFold(a, "UBOUND"):
		arg = &x.high
	case command.EqualFold(a, "SATURATE"):
		x.saturate = true
		return 1, nil
	case command.EqualFold(a, "ENX"):
		x.enx = true
		return 1, nil
	default:
		return x.life.option(args, i, false, true)
	}
	if i+1 >= len(args) || *arg != nil {
		return 0, command.ErrSyntax
	}
	*arg = args[i+1]
	return 2, nil
}

func (x *increx) runInt(c *command.Ctx, life engine.Life) error {
	by, low, high := int64(1), int64(math.MinInt64), int64(math.MaxInt64)
	for _, p := range []struct {
		text []byte
		n    *int64
	}{{x.by, &by}, {x.low, &low}, {x.high, &high}} {
		var ok bool
		if p.text == nil {
			continue
		}
		if *p.n, ok = numeral.ParseInt(p.text); !ok {
			return command.ErrNotInteger
		}
	}
	if low > high {
		return errIncrBounds
	}

	n, added, err := c.Tx.IncrBounded(c.Args[1], by, engine.IncrOptions{Low: low, High: high, Saturate: x.saturate, Life: life})
	if err != nil {
		return err
	}
	c.Out.Array(2)
	c.Out.Int(n)
	c.Out.Int(added)
	return nil
}

func (x *increx) runFloat(c *command.Ctx, life engine.Life) error {
	n, added, err := c.Tx.IncrBoundedFloat(c.Args[1], x.by, engine.FloatOptions{Low: x.low, High: x.high, Saturate: x.saturate, Life: life})
	if errors.Is(err, engine.ErrBounds) {
		return errIncrBounds
	}
	if err != nil {
		return err
	}
	c.Out.Array(2)
	replyNumber(c, n)
	replyNumber(c, added)
	return nil
}

// replyNumber replies with a decimal number: a double in RESP3, otherwise a string.
func replyNumber(c *command.Ctx, text []byte) {
	f, ok := numeral.ParseDouble(text)
	if c.Out.Proto == 3 && ok {
		c.Out.Double(f)
		return
	}
	c.Out.Bulk(text)
}
