package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
)

// These commands move elements between lists, or wait for elements.

// leftRight returns the grammar of an end of a list.
func leftRight(name string) command.Arg {
	return command.OneOf(name, command.Token("LEFT"), command.Token("RIGHT"))
}

func parseEnd(b []byte) (engine.End, error) {
	switch {
	case command.EqualFold(b, "LEFT"):
		return engine.Head, nil
	case command.EqualFold(b, "RIGHT"):
		return engine.Tail, nil
	}
	return 0, command.ErrSyntax
}

// fromTo returns the keys of a move.
func fromTo() []command.Arg {
	return []command.Arg{command.Key("source", command.Access|command.Delete), command.Key("destination", command.Insert)}
}

var specLMove = command.Spec{
	Name: "lmove", Group: command.GroupList, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Returns an element after popping it from one list and pushing it to another, with its deadline. Deletes the list " +
		"if the last element was moved.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args:    append(fromTo(), leftRight("wherefrom"), leftRight("whereto")),
	Replies: "The element, nil if there is none.",
	Examples: `
> RPUSH a 1 2 3
(integer) 3
> LMOVE a b RIGHT LEFT
"3"
> LMOVE a a LEFT RIGHT
"1"
> LRANGE a 0 -1
1) "2"
2) "1"
`,
	Run: runLMove,
}

func runLMove(c *command.Ctx) error {
	from, to, err := parseEnds(c.Args[3:])
	if err != nil {
		return err
	}
	found, err := c.Tx.LMove(c.Args[1], c.Args[2], from, to, c.Out.Bulk)
	if err == nil && !found {
		c.Out.Null()
	}
	return err
}

func parseEnds(args [][]byte) (from, to engine.End, err error) {
	if from, err = parseEnd(args[0]); err != nil {
		return 0, 0, err
	}
	to, err = parseEnd(args[1])
	return from, to, err
}

var specRPopLPush = command.Spec{
	Name: "rpoplpush", Group: command.GroupList, Since: "1.2.0", Complexity: "O(1)",
	Summary: "Returns the last element of a list after removing and pushing it to another list. Deletes the list if " +
		"the last element was popped.",
	Flags:      command.Write | command.DenyOOM | command.Blind,
	Args:       fromTo(),
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`LMOVE` with the `RIGHT` and `LEFT` arguments"},
	Replies:    "The element, nil if there is none.",
	Examples: `
> RPUSH a 1 2
(integer) 2
> RPOPLPUSH a b
"2"
> LRANGE b 0 -1
1) "2"
`,
	Run: runRPopLPush,
}

func runRPopLPush(c *command.Ctx) error {
	found, err := c.Tx.LMove(c.Args[1], c.Args[2], engine.Tail, engine.Head, c.Out.Bulk)
	if err == nil && !found {
		c.Out.Null()
	}
	return err
}

var specLMPop = command.Spec{
	Name: "lmpop", Group: command.GroupList, Since: "7.0.0",
	Complexity: "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
	Summary: "Returns multiple elements from a list after removing them: from the first list that has any. Deletes the list if " +
		"the last element was popped.",
	Flags:   command.Write | command.Blind,
	Args:    command.ManyPopArgs(leftRight("where")),
	Replies: "An array of the key and an array of at most COUNT elements, by default one; nil if all lists are empty.",
	Examples: `
> RPUSH l a b c
(integer) 3
> LMPOP 2 none l LEFT COUNT 2
1) "l"
2) 1) "a"
   2) "b"
> LMPOP 1 none LEFT
(nil)
`,
	Run: runLMPop,
}

func runLMPop(c *command.Ctx) error {
	m, err := command.ParseManyPop(c.Args[1:], "LEFT", "RIGHT")
	if err != nil {
		return err
	}
	found, err := popFirst(c, m, m.Keys)
	if err == nil && !found {
		c.Out.NullArray()
	}
	return err
}

// popFirst replies with elements of the first list that exists, and reports whether one does.
func popFirst(c *command.Ctx, m command.ManyPop, keys [][]byte) (found bool, err error) {
	end := engine.Head
	if m.Last {
		end = engine.Tail
	}
	for _, key := range keys {
		if err := longPart(c, key, m.Count); err != nil {
			return false, err
		}
		found, err = c.Tx.LPop(key, end, command.CountTo(m.Count), func(n int) {
			c.Out.Array(2)
			c.Out.Bulk(key)
			c.Out.Array(n)
		}, c.Out.Bulk)
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

const waitComplexity = "O(N) where N is the number of provided keys."

var timeoutHistory = []command.Change{{Since: "6.0.0", Text: "`timeout` is interpreted as a double instead of an integer."}}

var specBLPop = command.Spec{
	Name: "blpop", Group: command.GroupList, Since: "2.0.0", Complexity: waitComplexity,
	Summary: "Removes and returns the first element in a list. Waits until an element is available otherwise. Deletes the list if " +
		"the last element was popped.",
	Flags:   command.Write | command.Blocking | command.Blind,
	Args:    []command.Arg{command.ManyKeys("key", command.Access|command.Delete), command.Double("timeout")},
	History: timeoutHistory,
	Replies: "An array of the key and the element; nil when the timeout, in seconds, is over. 0 waits for ever. " +
		"The client that has waited longest is served first. In a transaction the command does not wait.",
	Examples: `
> RPUSH l a
(integer) 1
> BLPOP none l 0
1) "l"
2) "a"
> BLPOP l 0.1
~ 101ms
1< (nil)
2> BLPOP l 0
> RPUSH l b
(integer) 1
2< 1) "l"
2) "b"
`,
	Run: func(c *command.Ctx) error { return popOrWait(c, engine.Head) },
}

var specBRPop = command.Spec{
	Name: "brpop", Group: command.GroupList, Since: "2.0.0", Complexity: waitComplexity,
	Summary: "Removes and returns the last element in a list. Waits until an element is available otherwise. Deletes the list if " +
		"the last element was popped.",
	Flags:   command.Write | command.Blocking | command.Blind,
	Args:    []command.Arg{command.ManyKeys("key", command.Access|command.Delete), command.Double("timeout")},
	History: timeoutHistory,
	Replies: "An array of the key and the element; nil when the timeout, in seconds, is over. 0 waits for ever. " +
		"The client that has waited longest is served first. In a transaction the command does not wait.",
	Examples: `
> RPUSH l a b
(integer) 2
> BRPOP none l 0
1) "l"
2) "b"
`,
	Run: func(c *command.Ctx) error { return popOrWait(c, engine.Tail) },
}

func popOrWait(c *command.Ctx, end engine.End) error {
	last := len(c.Args) - 1
	ms, err := command.ParseTimeout(c.Args[last])
	if err != nil {
		return err
	}

	keys := c.Args[1:last]
	for _, key := range c.Candidates(keys) {
		found, err := c.Tx.LPop(key, end, 1, func(int) { c.Out.Array(2); c.Out.Bulk(key) }, c.Out.Bulk)
		if found || err != nil {
			return err
		}
	}

	return c.Block(command.Wait{Keys: keys, Kinds: engine.KindsOf(engine.List), Millis: ms})
}

var specBLMove = command.Spec{
	Name: "blmove", Group: command.GroupList, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Pops an element from a list, pushes it to another list and returns it. Waits until an element is available " +
		"otherwise. Deletes the list if the last element was moved.",
	Flags:   command.Write | command.DenyOOM | command.Blocking | command.Blind,
	Args:    append(fromTo(), leftRight("wherefrom"), leftRight("whereto"), command.Double("timeout")),
	Replies: "The element; nil when the timeout, in seconds, is over.",
	Examples: `
> RPUSH a 1
(integer) 1
> BLMOVE a b LEFT RIGHT 0
"1"
2> BLMOVE a b LEFT RIGHT 0
> RPUSH a 2
(integer) 1
2< "2"
> LRANGE b 0 -1
1) "1"
2) "2"
`,
	Run: runBLMove,
}

func runBLMove(c *command.Ctx) error {
	from, to, err := parseEnds(c.Args[3:])
	if err != nil {
		return err
	}
	return moveOrWait(c, from, to, c.Args[5])
}

var specBRPopLPush = command.Spec{
	Name: "brpoplpush", Group: command.GroupList, Since: "2.2.0", Complexity: "O(1)",
	Summary: "Pops the last element of a list, pushes it to another list and returns it. Waits until an element is " +
		"available otherwise. Deletes the list if the last element was popped.",
	Flags:      command.Write | command.DenyOOM | command.Blocking | command.Blind,
	Args:       append(fromTo(), command.Double("timeout")),
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`BLMOVE` with the `RIGHT` and `LEFT` arguments"},
	History:    timeoutHistory,
	Replies:    "The element; nil when the timeout, in seconds, is over.",
	Examples: `
> RPUSH a 1 2
(integer) 2
> BRPOPLPUSH a b 0
"2"
> BRPOPLPUSH none b 0.1
~ 101ms
1< (nil)
`,
	Run: func(c *command.Ctx) error { return moveOrWait(c, engine.Tail, engine.Head, c.Args[3]) },
}

func moveOrWait(c *command.Ctx, from, to engine.End, timeout []byte) error {
	ms, err := command.ParseTimeout(timeout)
	if err != nil {
		return err
	}

	for range c.Candidates(c.Args[1:2]) {
		found, err := c.Tx.LMove(c.Args[1], c.Args[2], from, to, c.Out.Bulk)
		if found || err != nil {
			return err
		}
	}

	return c.Block(command.Wait{Keys: c.Args[1:2], Also: c.Args[2:3], Kinds: engine.KindsOf(engine.List), Millis: ms,
		Refused: func(c *command.Ctx) { c.Out.Null() }})
}

var specBLMPop = command.Spec{
	Name: "blmpop", Group: command.GroupList, Since: "7.0.0",
	Complexity: "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
	Summary: "Pops the first elements from one of multiple lists. Waits until an element is available otherwise. " +
		"Deletes the list if the last element was popped.",
	Flags:   command.Write | command.Blocking | command.Blind,
	Args:    append([]command.Arg{command.Double("timeout")}, command.ManyPopArgs(leftRight("where"))...),
	Replies: "An array of the key and an array of at most COUNT elements, by default one; nil when the timeout, in seconds, is over.",
	Examples: `
> RPUSH l a b c
(integer) 3
> BLMPOP 1 2 none l RIGHT COUNT 2
1) "l"
2) 1) "c"
   2) "b"
2> BLMPOP 0 1 other LEFT COUNT 9
> RPUSH other x y
(integer) 2
2< 1) "other"
2) 1) "x"
   2) "y"
`,
	Run: runBLMPop,
}

func runBLMPop(c *command.Ctx) error {
	m, err := command.ParseManyPop(c.Args[2:], "LEFT", "RIGHT")
	if err != nil {
		return err
	}
	ms, err := command.ParseTimeout(c.Args[1])
	if err != nil {
		return err
	}

	found, err := popFirst(c, m, c.Candidates(m.Keys))
	if found || err != nil {
		return err
	}

	return c.Block(command.Wait{Keys: m.Keys, Kinds: engine.KindsOf(engine.List), Millis: ms})
}
