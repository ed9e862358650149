package commands

import (
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
)

// ZADDEX, LPUSHEX and RPUSHEX add items with a deadline, up to a maximum length.

// addExComplexity is the complexity of adding n items.
const addExComplexity = "O(N) where N is the number of elements added, O(N*log(M)) in a sorted set of M members"

// addExErrors returns the errors of these commands.
func addExErrors() []string {
	return []string{
		"FULL 'key' holds ...: more living items would be there than MAXLEN allows; nothing was added",
		"ERR invalid expire time, must be >= 0: the time is below zero",
		"ERR invalid expire time in '...' command: the time is too late",
		"ERR MAXLEN must be a positive integer: it is not",
	}
}

// addExOptions returns the grammar of the options, which end with the items.
func addExOptions(keep ...command.Arg) []command.Arg {
	return []command.Arg{expiryArgs(keep...), command.Opt(command.TokenArg("JITTER", command.Int("percent"))),
		command.Opt(command.TokenArg("MAXLEN", command.Int("max-items")))}
}

var specZAddEx = command.Spec{
	Name: "zaddex", Group: command.GroupSortedSet, Since: "0.4.0", Complexity: addExComplexity,
	Summary: "Adds members with an expiration time to a sorted set, or updates scores and times, up to a number of members.",
	Flags:   command.Write | command.DenyOOM | command.Fast,
	Args: append(append([]command.Arg{command.Key("key", command.Update),
		command.Opt(command.OneOf("condition", command.Token("NX"), command.Token("XX"))),
		command.Opt(command.OneOf("comparison", command.Token("GT"), command.Token("LT"))),
		command.Opt(command.Token("CH").As("change"))}, addExOptions(command.Token("KEEPTTL"))...),
		command.Block("MEMBERS", command.Count("nummembers"),
			command.Repeat(command.Block("data", command.Double("score"), command.Str("member"))))),
	Replies: "The number of members added, with CH of those added or given another score. Without a time the members have none; " +
		"with KEEPTTL existing members keep theirs. Members that NX, XX, GT or LT leave alone keep their time. A time in " +
		"the past removes the members.",
	Errors: addExErrors(),
	Examples: `
> ZADDEX orders PX 1800 MAXLEN 2 MEMBERS 2 1 a 2 b
(integer) 2
> ZADDEX orders PX 1800 MAXLEN 2 MEMBERS 1 3 c
(error) FULL 'orders' holds 2 items, 1 more would exceed MAXLEN 2
~ 1801ms
> ZADDEX orders PX 1800 MAXLEN 2 MEMBERS 1 3 c
(integer) 1
> ZRANGE orders 0 -1
1) "c"
`,
	Keys: zaddExKeys,
	Run:  runZAddEx,
}

// zaddExKeys finds ZADDEX's key as zaddKeys finds ZADD's.
func zaddExKeys(dst []command.KeyRef, args [][]byte) ([]command.KeyRef, error) {
	use := command.Update
	for _, word := range args[2:] {
		if command.EqualFold(word, "MEMBERS") {
			break
		}
		if command.EqualFold(word, "CH") {
			use |= command.Access
		}
	}
	return append(dst, command.KeyRef{Pos: 1, Flags: use}), nil
}

func runZAddEx(c *command.Ctx) error {
	z := zaddArgs{}
	p := itemParser{c: c, f: &sortedSetItems}
	args, err := p.added(2, &z)
	if err != nil {
		return err
	}
	var few [8]engine.Scored // the number that fits on the stack
	items, err := scoredArgs(few[:0], args)
	if err != nil {
		return err
	}
	if err := longMembers(c, len(items)); err != nil {
		return err
	}

	added, updated, err := c.Tx.ZAddEx(c.Args[1], items, z.o, p.ItemOptions)
	if err != nil {
		return err
	}

	if z.ch {
		added += updated
	}
	c.Out.Int(int64(added))
	return nil
}

const pushExReplies = "The length of the list. A time that is past adds nothing."

var specLPushEx = command.Spec{
	Name: "lpushex", Group: command.GroupList, Since: "0.4.0", Complexity: addExComplexity,
	Summary: "Prepends elements with an expiration time to a list, one after the other, up to a number of elements.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args: append(append([]command.Arg{command.Key("key", command.Insert)}, addExOptions()...),
		command.Block("ELEMENTS", command.Count("numelements"), command.Many("element"))),
	Replies: pushExReplies,
	Errors:  addExErrors(),
	Examples: `
> LPUSHEX l PX 500 ELEMENTS 1 a
(integer) 1
> LPUSHEX l ELEMENTS 2 b c
(integer) 3
~ 501ms
> LRANGE l 0 -1
1) "c"
2) "b"
`,
	Run: func(c *command.Ctx) error { return pushEx(c, engine.Head) },
}

var specRPushEx = command.Spec{
	Name: "rpushex", Group: command.GroupList, Since: "0.4.0", Complexity: addExComplexity,
	Summary: "Appends elements with an expiration time to a list, up to a number of elements.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args: append(append([]command.Arg{command.Key("key", command.Insert)}, addExOptions()...),
		command.Block("ELEMENTS", command.Count("numelements"), command.Many("element"))),
	Replies: pushExReplies,
	Errors:  addExErrors(),
	Examples: `
> RPUSHEX l PX 500 MAXLEN 2 ELEMENTS 2 a b
(integer) 2
> RPUSHEX l MAXLEN 2 ELEMENTS 1 c
(error) FULL 'l' holds 2 items, 1 more would exceed MAXLEN 2
`,
	Run: func(c *command.Ctx) error { return pushEx(c, engine.Tail) },
}

func pushEx(c *command.Ctx, end engine.End) error {
	p := itemParser{c: c, f: &pushedItems}
	elems, err := p.added(1, nil)
	if err != nil {
		return err
	}

	n, err := c.Tx.LPushEx(c.Args[1], end, elems, p.Deadline, p.Max)
	if err != nil {
		return err
	}

	c.Out.Int(int64(n))
	return nil
}

// pushedItems holds the words for the elements that a command pushes.
var pushedItems = itemFamily{word: "ELEMENTS", item: "element", items: "elements"}

// added reads the options, and then the items of width arguments each. z receives the options of ZADD; it is
// nil for lists, as their elements are always new.
func (p *itemParser) added(width int, z *zaddArgs) ([][]byte, error) {
	args, i := p.c.Args, 2
	for i < len(args) && !command.EqualFold(args[i], p.f.word) {
		n, err := 1, error(nil)
		switch a := args[i]; {
		case z != nil && z.condition(a):
		case len(a) == 0, z == nil && command.EqualFold(a, "KEEPTTL"):
			err = unknownArgument(a)
		default:
			n, err = p.option(args, i)
		}
		if err != nil {
			return nil, err
		}
		i += n
	}
	if z != nil {
		if err := z.compatible(); err != nil {
			return nil, err
		}
	}
	return p.read(i, width)
}

func unknownArgument(a []byte) error {
	return command.ReplyError(cleantext.Reply("ERR unknown argument: " + string(command.Clip(a, 128))))
}
