package command

import "github.com/ebbdb/ebb/engine"

// ZADDEX, LPUSHEX and RPUSHEX: adding items that have a deadline, up to a bound.

// addExComplexity is that of adding n items.
const addExComplexity = "O(N) where N is the number of elements added, O(N*log(M)) in a sorted set of M members"

// addExErrors are those of adding up to a bound.
func addExErrors() []string {
	return []string{
		"FULL 'key' holds ...: more living items would be there than MAXLEN allows; nothing was added",
		"ERR invalid expire time, must be >= 0: the time is below zero",
		"ERR invalid expire time in '...' command: the time is too late",
		"ERR MAXLEN must be a positive integer: it is not",
	}
}

// addExOptions is the grammar of the options that end with the items.
func addExOptions(keep ...Arg) []Arg {
	return []Arg{expiryArgs(keep...), Opt(TokenArg("JITTER", Int("percent"))), Opt(TokenArg("MAXLEN", Int("max-items")))}
}

var specZAddEx = Spec{
	Name: "zaddex", Group: GroupSortedSet, Since: "0.4.0", Complexity: addExComplexity,
	Summary: "Adds members with an expiration time to a sorted set, or updates scores and times, up to a number of members.",
	Flags:   Write | DenyOOM | Fast,
	Args: append(append([]Arg{Key("key", Update),
		Opt(OneOf("condition", Token("NX"), Token("XX"))),
		Opt(OneOf("comparison", Token("GT"), Token("LT"))),
		Opt(Token("CH").As("change"))}, addExOptions(Token("KEEPTTL"))...),
		Block("MEMBERS", Count("nummembers"), Repeat(Block("data", Double("score"), Str("member"))))),
	Replies: "The number of members added, with CH of those added or given another score. Without a time the members have none; " +
		"KEEPTTL leaves it to those that are there. Members that NX, XX, GT or LT leave alone keep their time. A time that is past removes the members.",
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

// zaddExKeys finds ZADDEX's key, as zaddKeys does that of ZADD.
func zaddExKeys(dst []KeyRef, args [][]byte) ([]KeyRef, error) {
	use := Update
	for _, word := range args[2:] {
		if EqualFold(word, "MEMBERS") {
			break
		}
		if EqualFold(word, "CH") {
			use |= Access
		}
	}
	return append(dst, KeyRef{1, use}), nil
}

func runZAddEx(c *Ctx) error {
	z := zaddArgs{}
	p := itemParser{c: c, f: &sortedSetItems}
	args, err := p.added(2, &z)
	if err != nil {
		return err
	}
	var few [8]engine.Scored // as many as fit on the stack
	items, err := scoredArgs(few[:0], args)
	if err != nil {
		return err
	}
	if err := c.longMembers(len(items)); err != nil {
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

var specLPushEx = Spec{
	Name: "lpushex", Group: GroupList, Since: "0.4.0", Complexity: addExComplexity,
	Summary: "Prepends elements with an expiration time to a list, one after the other, up to a number of elements.",
	Flags:   Write | DenyOOM | Fast,
	Args: append(append([]Arg{Key("key", Insert)}, addExOptions()...),
		Block("ELEMENTS", Count("numelements"), Many("element"))),
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
	Run: func(c *Ctx) error { return c.pushEx(engine.Head) },
}

var specRPushEx = Spec{
	Name: "rpushex", Group: GroupList, Since: "0.4.0", Complexity: addExComplexity,
	Summary: "Appends elements with an expiration time to a list, up to a number of elements.",
	Flags:   Write | DenyOOM | Fast,
	Args: append(append([]Arg{Key("key", Insert)}, addExOptions()...),
		Block("ELEMENTS", Count("numelements"), Many("element"))),
	Replies: pushExReplies,
	Errors:  addExErrors(),
	Examples: `
> RPUSHEX l PX 500 MAXLEN 2 ELEMENTS 2 a b
(integer) 2
> RPUSHEX l MAXLEN 2 ELEMENTS 1 c
(error) FULL 'l' holds 2 items, 1 more would exceed MAXLEN 2
`,
	Run: func(c *Ctx) error { return c.pushEx(engine.Tail) },
}

func (c *Ctx) pushEx(end engine.End) error {
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

// pushedItems is what the elements that are pushed are called.
var pushedItems = itemFamily{word: "ELEMENTS", item: "element", items: "elements"}

// added reads options, and the items, each of which takes so many arguments. z
// takes the options of ZADD; it is nil for lists, where nothing is there before.
func (p *itemParser) added(width int, z *zaddArgs) ([][]byte, error) {
	args, i := p.c.Args, 2
	for i < len(args) && !EqualFold(args[i], p.f.word) {
		n, err := 1, error(nil)
		switch a := args[i]; {
		case z != nil && z.condition(a):
		case len(a) == 0, z == nil && EqualFold(a, "KEEPTTL"):
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
	return ReplyError(oneLine("ERR unknown argument: " + string(clip(a, 128))))
}
