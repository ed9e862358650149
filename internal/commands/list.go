package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var listSpecs = []*command.Spec{&specLPush, &specRPush, &specLPushX, &specRPushX, &specLPop, &specRPop, &specLLen, &specLRange,
	&specLIndex, &specLSet, &specLInsert, &specLRem, &specLTrim, &specLPos, &specLMove, &specRPopLPush, &specLMPop,
	&specBLPop, &specBRPop, &specBLMove, &specBRPopLPush, &specBLMPop, &specLMoveM, &specBLMoveM}

// pushComplexity is the complexity of all commands that push.
const pushComplexity = "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments."

var specLPush = command.Spec{
	Name: "lpush", Group: command.GroupList, Since: "1.0.0", Complexity: pushComplexity,
	Summary: "Prepends elements to a list, one after the other. Creates the key if it doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Insert), command.Many("element")},
	History: []command.Change{{Since: "2.4.0", Text: "Accepts multiple `element` arguments."}},
	Replies: "The length of the list.",
	Examples: `
> LPUSH l a b
(integer) 2
> LRANGE l 0 -1
1) "b"
2) "a"
`,
	Run: func(c *command.Ctx) error { return push(c, engine.Head, false) },
}

var specRPush = command.Spec{
	Name: "rpush", Group: command.GroupList, Since: "1.0.0", Complexity: pushComplexity,
	Summary: "Appends elements to a list. Creates the key if it doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Insert), command.Many("element")},
	History: []command.Change{{Since: "2.4.0", Text: "Accepts multiple `element` arguments."}},
	Replies: "The length of the list.",
	Examples: `
> RPUSH l a b
(integer) 2
> LRANGE l 0 -1
1) "a"
2) "b"
`,
	Run: func(c *command.Ctx) error { return push(c, engine.Tail, false) },
}

var specLPushX = command.Spec{
	Name: "lpushx", Group: command.GroupList, Since: "2.2.0", Complexity: pushComplexity,
	Summary: "Prepends elements to a list only when the list exists.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Insert), command.Many("element")},
	History: []command.Change{{Since: "4.0.0", Text: "Accepts multiple `element` arguments."}},
	Replies: "The length of the list, 0 if there is none.",
	Examples: `
> LPUSHX l a
(integer) 0
> LPUSH l a
(integer) 1
> LPUSHX l b
(integer) 2
`,
	Run: func(c *command.Ctx) error { return push(c, engine.Head, true) },
}

var specRPushX = command.Spec{
	Name: "rpushx", Group: command.GroupList, Since: "2.2.0", Complexity: pushComplexity,
	Summary: "Appends elements to a list only when the list exists.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Insert), command.Many("element")},
	History: []command.Change{{Since: "4.0.0", Text: "Accepts multiple `element` arguments."}},
	Replies: "The length of the list, 0 if there is none.",
	Examples: `
> RPUSHX l a
(integer) 0
> RPUSH l a
(integer) 1
> RPUSHX l b c
(integer) 3
`,
	Run: func(c *command.Ctx) error { return push(c, engine.Tail, true) },
}

func push(c *command.Ctx, end engine.End, onlyThere bool) error {
	n, err := c.Tx.LPush(c.Args[1], end, c.Args[2:], onlyThere)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specLPop = command.Spec{
	Name: "lpop", Group: command.GroupList, Since: "1.0.0", Complexity: "O(N) where N is the number of elements returned",
	Summary: "Removes and returns the first elements of a list. Deletes the list if the last element was popped.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete), command.Opt(command.Int("count")).Since("6.2.0")},
	History: []command.Change{{Since: "6.2.0", Text: "Added the `count` argument."}},
	Replies: "The element, nil if there is no list; with count an array of at most count elements.",
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
	Run: func(c *command.Ctx) error { return pop(c, engine.Head) },
}

var specRPop = command.Spec{
	Name: "rpop", Group: command.GroupList, Since: "1.0.0", Complexity: "O(N) where N is the number of elements returned",
	Summary: "Removes and returns the last elements of a list. Deletes the list if the last element was popped.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete), command.Opt(command.Int("count")).Since("6.2.0")},
	History: []command.Change{{Since: "6.2.0", Text: "Added the `count` argument."}},
	Replies: "The element, nil if there is no list; with count an array of at most count elements, the last one first.",
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
	Run: func(c *command.Ctx) error { return pop(c, engine.Tail) },
}

func pop(c *command.Ctx, end engine.End) error {
	switch len(c.Args) {
	case 2:
		return popOne(c, end)
	case 3:
	default:
		return command.WrongArity(c.Spec)
	}
	count, ok := numeral.ParseInt(c.Args[2])
	if !ok || count < 0 {
		return command.ErrPositive
	}
	if err := longPart(c, c.Args[1], count); err != nil {
		return err
	}

	found, err := c.Tx.LPop(c.Args[1], end, command.CountTo(count), c.Out.Array, c.Out.Bulk)

	if err == nil && !found {
		c.Out.NullArray()
	}
	return err
}

func popOne(c *command.Ctx, end engine.End) error {
	found, err := c.Tx.LPop(c.Args[1], end, 1, func(int) {}, c.Out.Bulk)
	if err == nil && !found {
		c.Out.Null()
	}
	return err
}

// longPart is Ctx.Long for count elements of a list.
func longPart(c *command.Ctx, key []byte, count int64) error {
	if count <= backgroundElements || !c.Host.OnLoop() {
		return nil
	}
	return c.Long(c.Tx.ListBytes(key))
}

// backgroundElements is the number of short elements that a reply on a network loop may have.
const backgroundElements = 4096

var specLLen = command.Spec{
	Name: "llen", Group: command.GroupList, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Returns the length of a list.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Replies: "The length, 0 if there is no list.",
	Examples: `
> RPUSH l a b
(integer) 2
> LLEN l
(integer) 2
`,
	Run: runLLen,
}

func runLLen(c *command.Ctx) error {
	l, err := c.Tx.List(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Int(int64(l.Len()))
	return nil
}

var specLRange = command.Spec{
	Name: "lrange", Group: command.GroupList, Since: "1.0.0",
	Complexity: "O(S+N) where S is about the square root of the list's length; and N is the number of elements in the specified range.",
	Summary:    "Returns a range of elements from a list.",
	Flags:      command.ReadOnly | command.Blind,
	Args:       []command.Arg{command.Key("key", command.Read), command.Int("start"), command.Int("stop")},
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

func runLRange(c *command.Ctx) error {
	start, stop, err := command.ParseTwo(c.Args[2], c.Args[3])
	if err != nil {
		return err
	}

	l, err := c.Tx.List(c.Args[1])
	if err != nil {
		return err
	}
	from, to := l.Span(start, stop)
	n := to - from + 1
	if n > backgroundElements {
		if err := c.Long(int(float64(l.Bytes()) * float64(n) / float64(l.Len()))); err != nil {
			return err
		}
	}

	c.Out.Array(n)
	l.Range(from, to, c.Out.Bulk)
	return nil
}

var specLIndex = command.Spec{
	Name: "lindex", Group: command.GroupList, Since: "1.0.0", Complexity: "O(S) where S is about the square root of the list's length.",
	Summary: "Returns an element from a list by its index.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read), command.Int("index")},
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

func runLIndex(c *command.Ctx) error {
	l, err := c.Tx.List(c.Args[1])
	if err != nil {
		return err
	}
	index, ok := numeral.ParseInt(c.Args[2])
	switch {
	case ok:
	case l.Exists():
		return command.ErrNotInteger
	default: // as Redis, which looks up the list first
		c.Out.Null()
		return nil
	}
	elem, ok := l.Index(index)
	bulkOrNull(c, elem, ok)
	return nil
}

var specLSet = command.Spec{
	Name: "lset", Group: command.GroupList, Since: "1.0.0", Complexity: "O(S) where S is about the square root of the list's length.",
	Summary: "Sets the value of an element in a list by its index, and clears its deadline.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Update), command.Int("index"), command.Str("element")},
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

func runLSet(c *command.Ctx) error {
	index, ok := numeral.ParseInt(c.Args[2])
	if !ok {
		switch l, err := c.Tx.List(c.Args[1]); {
		case err != nil:
			return err
		case !l.Exists():
			return command.ErrNoSuchKey
		}
		return command.ErrNotInteger
	}
	if err := c.Tx.LSet(c.Args[1], index, c.Args[3]); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specLInsert = command.Spec{
	Name: "linsert", Group: command.GroupList, Since: "2.2.0",
	Complexity: "O(N) where N is the number of elements to traverse before seeing the value pivot.",
	Summary:    "Inserts an element before or after another element in a list.",
	Flags:      command.Write | command.DenyOOM | command.Reveals,
	Args: []command.Arg{command.Key("key", command.Insert), command.OneOf("where", command.Token("BEFORE"), command.Token("AFTER")),
		command.Str("pivot"),
		command.Str("element")},
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

func runLInsert(c *command.Ctx) error {
	before := command.EqualFold(c.Args[2], "BEFORE")
	if !before && !command.EqualFold(c.Args[2], "AFTER") {
		return command.ErrSyntax
	}
	if err := longList(c, c.Args[1]); err != nil {
		return err
	}
	n, err := c.Tx.LInsert(c.Args[1], before, c.Args[3], c.Args[4])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

// longList is Ctx.Long for a walk over a whole list.
func longList(c *command.Ctx, key []byte) error {
	if !c.Host.OnLoop() {
		return nil
	}
	return c.Long(c.Tx.ListBytes(key))
}

var specLRem = command.Spec{
	Name: "lrem", Group: command.GroupList, Since: "1.0.0",
	Complexity: "O(N+M) where N is the length of the list and M is the number of elements removed.",
	Summary: "Removes elements from a list: the first that are equal to one, the last, or all. Deletes the list if " +
		"the last element was removed.",
	Flags:   command.Write | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Delete), command.Int("count"), command.Str("element")},
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

func runLRem(c *command.Ctx) error {
	count, ok := numeral.ParseInt(c.Args[2])
	if !ok {
		return command.ErrNotInteger
	}
	if err := longList(c, c.Args[1]); err != nil {
		return err
	}
	n, err := c.Tx.LRem(c.Args[1], count, c.Args[3])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specLTrim = command.Spec{
	Name: "ltrim", Group: command.GroupList, Since: "1.0.0",
	Complexity: "O(N) where N is the number of elements to be removed by the operation.",
	Summary:    "Removes elements from both ends of a list. Deletes the list if all elements were trimmed.",
	Flags:      command.Write | command.Blind,
	Args:       []command.Arg{command.Key("key", command.Delete), command.Int("start"), command.Int("stop")},
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

func runLTrim(c *command.Ctx) error {
	start, stop, err := command.ParseTwo(c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	if err := longList(c, c.Args[1]); err != nil {
		return err
	}
	if err := c.Tx.LTrim(c.Args[1], start, stop); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specLPos = command.Spec{
	Name: "lpos", Group: command.GroupList, Since: "6.0.6",
	Complexity: "O(N) where N is the number of elements in the list, for the average case. When searching for elements " +
		"near the head or the tail of the list, or when the MAXLEN option is provided, the command may run in constant time.",
	Summary: "Returns the index of matching elements in a list.",
	Flags:   command.ReadOnly | command.Reveals,
	Args: []command.Arg{command.Key("key", command.Read), command.Str("element"), command.Opt(command.TokenArg("RANK", command.Int("rank"))),
		command.Opt(command.TokenArg("COUNT", command.Int("num-matches"))), command.Opt(command.TokenArg("MAXLEN", command.Int("len")))},
	Replies: "The position of the first match, or of the match that RANK names (negative: from the end), nil if there is none; " +
		"with COUNT an array of at most that number, 0 for all. MAXLEN bounds the number of compared elements.",
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

const errRankZero = command.ReplyError("ERR RANK can't be zero: use 1 to start from the first match, 2 from the " +
	"second ... or use negative to start from the end of the list")

func runLPos(c *command.Ctx) error {
	rank, count, limit, many := int64(1), int64(1), int64(0), false
	for args := c.Args[3:]; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			return command.ErrSyntax
		}
		n, ok := numeral.ParseInt(args[1])
		switch {
		case command.EqualFold(args[0], "RANK") && !ok:
			return command.ErrNotInteger
		case command.EqualFold(args[0], "RANK") && n == -1<<63: // it has no positive counterpart
			return command.ErrNegMax
		case command.EqualFold(args[0], "RANK") && n == 0:
			return errRankZero
		case command.EqualFold(args[0], "RANK"):
			rank = n
		case command.EqualFold(args[0], "COUNT") && (!ok || n < 0):
			return command.ReplyError("ERR COUNT can't be negative")
		case command.EqualFold(args[0], "COUNT"):
			count, many = n, true
		case command.EqualFold(args[0], "MAXLEN") && (!ok || n < 0):
			return command.ReplyError("ERR MAXLEN can't be negative")
		case command.EqualFold(args[0], "MAXLEN"):
			limit = n
		default:
			return command.ErrSyntax
		}
	}

	l, err := c.Tx.List(c.Args[1])
	if err != nil {
		return err
	}
	if limit == 0 || limit > backgroundElements {
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
