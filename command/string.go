package command

import (
	"github.com/ebbdb/ebb/engine"
)

// expiryArgs is the grammar of the expiry options of SET and its kin.
func expiryArgs(more ...Arg) Arg {
	return Opt(OneOf("expiration", append([]Arg{
		TokenArg("EX", Int("seconds")).Since("2.6.12"),
		TokenArg("PX", Int("milliseconds")).Since("2.6.12"),
		TokenArg("EXAT", UnixTime("unix-time-seconds")).Since("6.2.0"),
		TokenArg("PXAT", UnixTime("unix-time-milliseconds")).Since("6.2.0"),
	}, more...)...))
}

var specGet = Spec{
	Name: "get", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary:  "Returns the string value of a key.",
	Flags:    ReadOnly | Fast,
	Args:     []Arg{Key("key", Read)},
	Examples: "> GET nothing\n(nil)\n> SET greeting Hello\nOK\n> GET greeting\n\"Hello\"\n",
	Run:      runGet,
}

func runGet(c *Ctx) error {
	val, ok, err := c.Tx.Get(c.Args[1])
	if err != nil {
		return err
	}
	c.bulkOrNull(val, ok)
	return nil
}

// bulkOrNull replies a string, or that there is none.
func (c *Ctx) bulkOrNull(val []byte, ok bool) {
	if ok {
		c.Out.Bulk(val)
	} else {
		c.Out.Null()
	}
}

var specSet = Spec{
	Name: "set", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
	Flags:   Write | DenyOOM,
	Args: []Arg{
		Key("key", Update|Access|VariableFlags).Note("RW and ACCESS due to the optional `GET` argument"), Str("value"),
		Opt(OneOf("condition", Token("NX"), Token("XX"),
			TokenArg("IFEQ", Str("ifeq-value")), TokenArg("IFNE", Str("ifne-value")),
			TokenArg("IFDEQ", Str("ifdeq-digest")), TokenArg("IFDNE", Str("ifdne-digest")))).Since("2.6.12"),
		Opt(Token("GET")).Since("6.2.0"),
		expiryArgs(Token("KEEPTTL").Since("6.0.0")),
		Opt(TokenArg("JITTER", Int("percent"))),
		Opt(Token("SLIDE")),
	},
	Examples: "> SET k v\nOK\n> SET k w NX\n(nil)\n> SET k w XX GET\n\"v\"\n> SET k x PX 1500\nOK\n> PTTL k\n(integer) 1500\n" +
		"~ 1500ms\n> GET k\n\"x\"\n~ 1ms\n> GET k\n(nil)\n",
	Run: runSet,
}

func runSet(c *Ctx) error {
	var life lifetime
	var o engine.SetOptions
	args := c.Args
	for i := 3; i < len(args); {
		n, err := setOption(&o, args, i)
		if n == 0 && err == nil {
			n, err = life.option(args, i, true, false)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrSyntax
		}
		i += n
	}
	if err := life.resolve(c, true); err != nil {
		return err
	}
	o.Deadline, o.Span, o.KeepTTL = life.deadline, life.span, life.keep

	done, old, err := c.Tx.Set(args[1], args[2], o, c.Session.val[:0])
	if err != nil {
		return err
	}

	switch {
	case o.Get:
		c.bulkOrNull(old, old != nil)
		c.Session.keepVal(old)
	case done:
		c.Out.OK()
	default:
		c.Out.Null()
	}
	return nil
}

// setOption reads one of SET's own options and returns how many arguments it
// took.
func setOption(o *engine.SetOptions, args [][]byte, i int) (int, error) {
	a := args[i]
	var compare engine.Comparison
	switch {
	case EqualFold(a, "NX"):
		if o.IfExists || o.Compare != engine.Always {
			return 0, ErrSyntax
		}
		o.IfAbsent = true
		return 1, nil
	case EqualFold(a, "XX"):
		if o.IfAbsent || o.Compare != engine.Always {
			return 0, ErrSyntax
		}
		o.IfExists = true
		return 1, nil
	case EqualFold(a, "GET"):
		o.Get = true
		return 1, nil
	case EqualFold(a, "IFEQ"):
		compare = engine.IfEqual
	case EqualFold(a, "IFNE"):
		compare = engine.IfNotEqual
	case EqualFold(a, "IFDEQ"):
		compare = engine.IfDigestEqual
	case EqualFold(a, "IFDNE"):
		compare = engine.IfDigestDiffers
	default:
		return 0, nil
	}
	if i+1 >= len(args) || o.IfAbsent || o.IfExists || o.Compare != engine.Always {
		return 0, ErrSyntax
	}
	o.Compare, o.Value = compare, args[i+1]
	return 2, nil
}
