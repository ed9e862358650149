package command

import "github.com/ebbdb/ebb/engine"

// expireArgs is the grammar behind the time of EXPIRE and its kin.
func expireArgs(time Arg) []Arg {
	return []Arg{Key("key", Update), time,
		Opt(OneOf("condition", Token("NX"), Token("XX"), Token("GT"), Token("LT"))).Since("7.0.0"),
		Opt(TokenArg("JITTER", Int("percent"))),
		Opt(Token("SLIDE"))}
}

var specExpire = Spec{
	Name: "expire", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Sets the expiration time of a key in seconds.",
	Flags:   Write | Fast,
	Args:    expireArgs(Int("seconds")),
	History: []Change{{"7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`."}},
	Examples: "> SET k v\nOK\n> EXPIRE k 10\n(integer) 1\n> TTL k\n(integer) 10\n> EXPIRE k 5 GT\n(integer) 0\n" +
		"> EXPIRE k 5 LT\n(integer) 1\n~ 5001ms\n> EXISTS k\n(integer) 0\n> EXPIRE k 5\n(integer) 0\n",
	Run: func(c *Ctx) error { return runExpire(c, seconds) },
}

// runExpire is EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.
func runExpire(c *Ctx, unit timeUnit) error {
	life := lifetime{unit: unit, arg: c.Args[2]}
	var cond engine.Condition
	for i := 3; i < len(c.Args); {
		n, err := expireOption(&cond, c.Args[i])
		if err == nil && n == 0 {
			n, err = life.modifier(c.Args, i)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return ReplyError("ERR Unsupported option " + string(c.Args[i]))
		}
		i += n
	}
	if cond&engine.IfNone != 0 && cond != engine.IfNone {
		return ReplyError("ERR NX and XX, GT or LT options at the same time are not compatible")
	}
	if cond&engine.IfLater != 0 && cond&engine.IfEarlier != 0 {
		return ReplyError("ERR GT and LT options at the same time are not compatible")
	}
	if err := life.resolve(c, false); err != nil {
		return err
	}

	ok := c.Tx.Expire(c.Args[1], life.deadline, life.span, cond)

	c.Out.Int(b2i(ok))
	return nil
}

func expireOption(cond *engine.Condition, a []byte) (int, error) {
	switch {
	case EqualFold(a, "NX"):
		*cond |= engine.IfNone
	case EqualFold(a, "XX"):
		*cond |= engine.IfSome
	case EqualFold(a, "GT"):
		*cond |= engine.IfLater
	case EqualFold(a, "LT"):
		*cond |= engine.IfEarlier
	default:
		return 0, nil
	}
	return 1, nil
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

var specTTL = Spec{
	Name: "ttl", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
	Summary:  "Returns the expiration time in seconds of a key.",
	Flags:    ReadOnly | Fast,
	Args:     []Arg{Key("key", Read)},
	Tips:     []string{"nondeterministic_output"},
	History:  []Change{{"2.8.0", "Added the -2 reply."}},
	Examples: "> TTL k\n(integer) -2\n> SET k v\nOK\n> TTL k\n(integer) -1\n> EXPIRE k 10\n(integer) 1\n~ 400ms\n> TTL k\n(integer) 10\n~ 200ms\n> TTL k\n(integer) 9\n",
	Run:      runTTL,
}

func runTTL(c *Ctx) error {
	d := c.Tx.TTL(c.Args[1])
	if d >= 0 {
		d = (d + 500) / 1000
	}
	c.Out.Int(d)
	return nil
}
