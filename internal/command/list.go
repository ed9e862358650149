package command

import (
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

var listSpecs = []*Spec{&specLPush, &specRPush, &specLPushX, &specRPushX, &specLPop, &specRPop, &specLLen, &specLRange,
	&specLIndex, &specLSet, &specLInsert, &specLRem, &specLTrim, &specLPos, &specLMove, &specRPopLPush, &specLMPop,
	&specBLPop, &specBRPop, &specBLMove, &specBRPopLPush, &specBLMPop}

// pushComplexity is that of all commands that push.
const pushComplexity = "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments."

var specLPush = Spec{
	Name: "lpush", Group: GroupList, Since: "1.0.0", Complexity: pushComplexity,
	Summary: "Prepends elements to a list, one after the other. Creates the key if it doesn't exist.",
	Flags:   Write | DenyOOM | Fast,
	Args:    []Arg{Key("key", Insert), Many("element")},
	History: []Change{{"2.4.0", "Accepts multiple `element` arguments."}},
	Replies: "The length of the list.",
	Examples: `
> LPUSH l a b
(integer) 2
> LRANGE l 0 -1
1) "b"
2) "a"
`,
	Run: func(c *Ctx) error { return c.push(engine.Head, false) },
}

var specRPush = Spec{
	Name: "rpush", Group: GroupList, Since: "1.0.0", Complexity: pushComplexity,
	Summary: "Appends elements to a list. Creates the key if it doesn't exist.",
	Flags:   Write | DenyOOM | Fast,
	Args:    []Arg{Key("key", Insert), Many("element")},
	History: []Change{{"2.4.0", "Accepts multiple `element` arguments."}},
	Replies: "The length of the list.",
	Examples: `
> RPUSH l a b
(integer) 2
> LRANGE l 0 -1
1) "a"
2) "b"
`,
	Run: func(c *Ctx) error { return c.push(engine.Tail, false) },
}

var specLPushX = Spec{
	Name: "lpushx", Group: GroupList, Since: "2.2.0", Complexity: pushComplexity,
	Summary: "Prepends elements to a list only when the list exists.",
	Flags:   Write | DenyOOM | Fast,
	Args:    []Arg{Key("key", Insert), Many("element")},
	History: []Change{{"4.0.0", "Accepts multiple `element` arguments."}},
	Replies: "The length of the list, 0 if there is none.",
	Examples: `
> LPUSHX l a
(integer) 0
> LPUSH l a
(integer) 1
> LPUSHX l b
(integer) 2
`,
	Run: func(c *Ctx) error { return c.push(engine.Head, true) },
}

var specRPushX = Spec{
	Name: "rpushx", Group: GroupList, Since: "2.2.0", Complexity: pushComplexity,
	Summary: "Appends elements to a list only when the list exists.",
	Flags:   Write | DenyOOM | Fast,
	Args:    []Arg{Key("key", Insert), Many("element")},
	History: []Change{{"4.0.0", "Accepts multiple `element` arguments."}},
	Replies: "The length of the list, 0 if there is none.",
	Examples: `
> RPUSHX l a
(integer) 0
> RPUSH l a
(integer) 1
> RPUSHX l b c
(integer) 3
`,
	Run: func(c *Ctx) error { return c.push(engine.Tail, true) },
}

func (c *Ctx) push(end engine.End, onlyThere bool) error {
	n, err := c.Tx.LPush(c.Args[1], end, c.Args[2:], onlyThere)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specLPop = Spec{
	Name: "lpop", Group: GroupList, Since: "1.0.0", Complexity: "O(N) where N is the number of elements returned",
	Summary: "Removes and returns the first elements of a list. Deletes the list if the last element was popped.",
	Flags:   Write | Fast,
	Args:    []Arg{Key("key", Access|Delete), Opt(Int("count")).Since("6.2.0")},
	History: []Change{{"6.2.0", "Added the `count` argument."}},
	Replies: "The element, nil if there is no list; with count an array of at most so many.",
	Examples: `
> RPUSH l a b c
(integer) 3
> LPOP l
"a"
> LPOP l 5
1) "b"
2) "c"
> LPOP l
(nil)
`,
	Run: func(c *Ctx) error { return c.pop(engine.Head) },
}

var specRPop = Spec{
	Name: "rpop", Group: GroupList, Since: "1.0.0", Complexity: "O(N) where N is the number of elements returned",
	Summary: "Removes and returns the last elements of a list. Deletes the list if the last element was popped.",
	Flags:   Write | Fast,
	Args:    []Arg{Key("key", Access|Delete), Opt(Int("count")).Since("6.2.0")},
	History: []Change{{"6.2.0", "Added the `count` argument."}},
	Replies: "The element, nil if there is no list; with count an array of at most so many, the last one first.",
	Examples: `
> RPUSH l a b c
(integer) 3
> RPOP l
"c"
> RPOP l 5
1) "b"
2) "a"
> RPOP l
(nil)
`,
	Run: func(c *Ctx) error { return c.pop(engine.Tail) },
}

func (c *Ctx) pop(end engine.End) error {
	switch len(c.Args) {
	case 2:
		return c.popOne(end)
	case 3:
	default:
		return WrongArity(c.Spec)
	}
	count, ok := resp.ParseInt(c.Args[2])
	if !ok || count < 0 {
		return errPositive
	}
	if err := c.longPart(c.Args[1], count); err != nil {
		return err
	}

	found, err := c.Tx.LPop(c.Args[1], end, countTo(count), c.Out.Array, c.Out.Bulk)

	if err == nil && !found {
		c.Out.NullArray()
	}
	return err
}

func (c *Ctx) popOne(end engine.End) error {
	found, err := c.Tx.LPop(c.Args[1], end, 1, func(int) {}, c.Out.Bulk)
	if err == nil && !found {
		c.Out.Null()
	}
	return err
}

// longPart is Long for count of a list's elements.
func (c *Ctx) longPart(key []byte, count int64) error {
	if count <= besideElements || !c.Host.OnLoop() {
		return nil
	}
	return c.Long(c.Tx.ListBytes(key))
}

// besideElements is how many short elements may be replied on a network loop.
const besideElements = 4096

var specLLen = Spec{
	Name: "llen", Group: GroupList, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Returns the length of a list.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Meta)},
	Replies: "The length, 0 if there is no list.",
	Examples: `
> RPUSH l a b
(integer) 2
> LLEN l
(integer) 2
`,
	Run: runLLen,
}

func runLLen(c *Ctx) error {
	l, err := c.Tx.List(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Int(int64(l.Len()))
	return nil
}

var specLRange = Spec{
	Name: "lrange", Group: GroupList, Since: "1.0.0",
	Complexity: "O(S+N) where S is about the square root of the list's length; and N is the number of elements in the specified range.",
	Summary:    "Returns a range of elements from a list.",
	Flags:      ReadOnly,
	Args:       []Arg{Key("key", Read), Int("start"), Int("stop")},
	Replies:    "An array of the elements from position start to stop, both inclusive; negative ones count from the end.",
	Examples: `
> RPUSH l a b c
(integer) 3
> LRANGE l -2 -1
1) "b"
2) "c"
> LRANGE l 5 9
(empty array)
`,
	Run: runLRange,
}

func runLRange(c *Ctx) error {
	start, stop, err := parseTwo(c.Args[2], c.Args[3])
	if err != nil {
		return err
	}

	l, err := c.Tx.List(c.Args[1])
	if err != nil {
		return err
	}
	from, to := l.Span(start, stop)
	n := to - from + 1
	if n > besideElements {
		if err := c.Long(int(float64(l.Bytes()) * float64(n) / float64(l.Len()))); err != nil {
			return err
		}
	}

	c.Out.Array(n)
	l.Range(from, to, c.Out.Bulk)
	return nil
}

var specLIndex = Spec{
	Name: "lindex", Group: GroupList, Since: "1.0.0", Complexity: "O(S) where S is about the square root of the list's length.",
	Summary: "Returns an element from a list by its index.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read), Int("index")},
	Replies: "The element, nil if there is none. Negative positions count from the end.",
	Examples: `
> RPUSH l a b c
(integer) 3
> LINDEX l -1
"c"
> LINDEX l 3
(nil)
`,
	Run: runLIndex,
}

func runLIndex(c *Ctx) error {
	l, err := c.Tx.List(c.Args[1])
	if err != nil {
		return err
	}
	index, ok := resp.ParseInt(c.Args[2])
	switch {
	case ok:
	case l.Exists():
		return ErrNotInteger
	default: // as Redis, which looks for the list first
		c.Out.Null()
		return nil
	}
	elem, ok := l.Index(index)
	c.bulkOrNull(elem, ok)
	return nil
}

var specLSet = Spec{
	Name: "lset", Group: GroupList, Since: "1.0.0", Complexity: "O(S) where S is about the square root of the list's length.",
	Summary: "Sets the value of an element in a list by its index, and clears its deadline.",
	Flags:   Write | DenyOOM,
	Args:    []Arg{Key("key", Update), Int("index"), Str("element")},
	Examples: `
> RPUSH l a b c
(integer) 3
> LSET l -1 z
OK
> LINDEX l 2
"z"
> LSET l 3 z
(error) ERR index out of range
`,
	Run: runLSet,
}

func runLSet(c *Ctx) error {
	index, ok := resp.ParseInt(c.Args[2])
	if !ok {
		switch l, err := c.Tx.List(c.Args[1]); {
		case err != nil:
			return err
		case !l.Exists():
			return ErrNoSuchKey
		}
		return ErrNotInteger
	}
	if err := c.Tx.LSet(c.Args[1], index, c.Args[3]); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specLInsert = Spec{
	Name: "linsert", Group: GroupList, Since: "2.2.0", Complexity: "O(N) where N is the number of elements to traverse before seeing the value pivot.",
	Summary: "Inserts an element before or after another element in a list.",
	Flags:   Write | DenyOOM,
	Args:    []Arg{Key("key", Insert), OneOf("where", Token("BEFORE"), Token("AFTER")), Str("pivot"), Str("element")},
	Replies: "The length of the list; 0 if there is none, -1 if it has no such element.",
	Examples: `
> RPUSH l a c
(integer) 2
> LINSERT l BEFORE c b
(integer) 3
> LRANGE l 0 -1
1) "a"
2) "b"
3) "c"
> LINSERT l AFTER z x
(integer) -1
`,
	Run: runLInsert,
}

func runLInsert(c *Ctx) error {
	before := EqualFold(c.Args[2], "BEFORE")
	if !before && !EqualFold(c.Args[2], "AFTER") {
		return ErrSyntax
	}
	if err := c.longList(c.Args[1]); err != nil {
		return err
	}
	n, err := c.Tx.LInsert(c.Args[1], before, c.Args[3], c.Args[4])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

// longList is Long for a walk over all of a list.
func (c *Ctx) longList(key []byte) error {
	if !c.Host.OnLoop() {
		return nil
	}
	return c.Long(c.Tx.ListBytes(key))
}

var specLRem = Spec{
	Name: "lrem", Group: GroupList, Since: "1.0.0", Complexity: "O(N+M) where N is the length of the list and M is the number of elements removed.",
	Summary: "Removes elements from a list: the first that are equal to one, the last, or all. Deletes the list if the last element was removed.",
	Flags:   Write,
	Args:    []Arg{Key("key", Delete), Int("count"), Str("element")},
	Replies: "How many were removed. A positive count removes the first ones, a negative one the last, 0 all.",
	Examples: `
> RPUSH l a b a b a
(integer) 5
> LREM l -2 a
(integer) 2
> LRANGE l 0 -1
1) "a"
2) "b"
3) "b"
`,
	Run: runLRem,
}

func runLRem(c *Ctx) error {
	count, ok := resp.ParseInt(c.Args[2])
	if !ok {
		return ErrNotInteger
	}
	if err := c.longList(c.Args[1]); err != nil {
		return err
	}
	n, err := c.Tx.LRem(c.Args[1], count, c.Args[3])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specLTrim = Spec{
	Name: "ltrim", Group: GroupList, Since: "1.0.0", Complexity: "O(N) where N is the number of elements to be removed by the operation.",
	Summary: "Removes elements from both ends of a list. Deletes the list if all elements were trimmed.",
	Flags:   Write,
	Args:    []Arg{Key("key", Delete), Int("start"), Int("stop")},
	Examples: `
> RPUSH l a b c d
(integer) 4
> LTRIM l 1 -2
OK
> LRANGE l 0 -1
1) "b"
2) "c"
> LTRIM l 5 9
OK
> EXISTS l
(integer) 0
`,
	Run: runLTrim,
}

func runLTrim(c *Ctx) error {
	start, stop, err := parseTwo(c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	if err := c.longList(c.Args[1]); err != nil {
		return err
	}
	if err := c.Tx.LTrim(c.Args[1], start, stop); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specLPos = Spec{
	Name: "lpos", Group: GroupList, Since: "6.0.6",
	Complexity: "O(N) where N is the number of elements in the list, for the average case. When searching for elements near the head or the tail " +
		"of the list, or when the MAXLEN option is provided, the command may run in constant time.",
	Summary: "Returns the index of matching elements in a list.",
	Flags:   ReadOnly,
	Args: []Arg{Key("key", Read), Str("element"), Opt(TokenArg("RANK", Int("rank"))),
		Opt(TokenArg("COUNT", Int("num-matches"))), Opt(TokenArg("MAXLEN", Int("len")))},
	Replies: "The position of the first match, or of the one that RANK says (negative: from the end), nil if there is none; " +
		"with COUNT an array of so many, 0 for all. MAXLEN bounds how many elements are looked at.",
	Examples: `
> RPUSH l a b c b a
(integer) 5
> LPOS l b
(integer) 1
> LPOS l b RANK -1
(integer) 3
> LPOS l a COUNT 0
1) (integer) 0
2) (integer) 4
`,
	Run: runLPos,
}

const errRankZero = ReplyError("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")

func runLPos(c *Ctx) error {
	rank, count, limit, many := int64(1), int64(1), int64(0), false
	for args := c.Args[3:]; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			return ErrSyntax
		}
		n, ok := resp.ParseInt(args[1])
		switch {
		case EqualFold(args[0], "RANK") && !ok:
			return ErrNotInteger
		case EqualFold(args[0], "RANK") && n == -1<<63: // it has no positive counterpart
			return errNegMax
		case EqualFold(args[0], "RANK") && n == 0:
			return errRankZero
		case EqualFold(args[0], "RANK"):
			rank = n
		case EqualFold(args[0], "COUNT") && (!ok || n < 0):
			return ReplyError("ERR COUNT can't be negative")
		case EqualFold(args[0], "COUNT"):
			count, many = n, true
		case EqualFold(args[0], "MAXLEN") && (!ok || n < 0):
			return ReplyError("ERR MAXLEN can't be negative")
		case EqualFold(args[0], "MAXLEN"):
			limit = n
		default:
			return ErrSyntax
		}
	}

	l, err := c.Tx.List(c.Args[1])
	if err != nil {
		return err
	}
	if limit == 0 || limit > besideElements {
		if err := c.Long(l.Bytes()); err != nil {
			return err
		}
	}

	if many {
		var n int
		later := c.Out.ArrayLater()
		l.Positions(c.Args[2], rank, count, limit, func(pos int) { c.Out.Int(int64(pos)); n++ })
		c.Out.Patch(later, n)
		return nil
	}
	found := false
	l.Positions(c.Args[2], rank, 1, limit, func(pos int) { c.Out.Int(int64(pos)); found = true })
	if !found {
		c.Out.Null()
	}
	return nil
}
