package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var specZPopMin = command.Spec{
	Name: "zpopmin", Group: command.GroupSortedSet, Since: "5.0.0",
	Complexity: "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements popped.",
	Summary: "Returns the lowest-scoring members from a sorted set after removing them. Deletes the sorted set " +
		"if the last member was popped.",
	Flags:   command.Write | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete), command.Opt(command.Int("count"))},
	Replies: "An array of members, each with its score. It is empty if there is no such key.",
	Examples: `
> ZADD z 1 a 2 b
(integer) 2
> ZPOPMIN z
1) "a"
2) "1"
> ZPOPMIN z 5
1) "b"
2) "2"
`,
	Run: func(c *command.Ctx) error { return zpop(c, false) },
}

var specZPopMax = command.Spec{
	Name: "zpopmax", Group: command.GroupSortedSet, Since: "5.0.0",
	Complexity: "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements popped.",
	Summary: "Returns the highest-scoring members from a sorted set after removing them. Deletes the sorted set " +
		"if the last member was popped.",
	Flags:   command.Write | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete), command.Opt(command.Int("count"))},
	Replies: "An array of members, each with its score. It is empty if there is no such key.",
	Examples: `
> ZADD z 1 a 2 b
(integer) 2
> ZPOPMAX z
1) "b"
2) "2"
> ZPOPMAX z 5
1) "a"
2) "1"
`,
	Run: func(c *command.Ctx) error { return zpop(c, true) },
}

func zpop(c *command.Ctx, highest bool) error {
	count, pairs := int64(1), false
	if len(c.Args) > 3 {
		return command.ErrSyntax
	}
	if len(c.Args) == 3 {
		var ok bool
		if count, ok = numeral.ParseInt(c.Args[2]); !ok || count < 0 {
			return command.ErrPositive
		}
		pairs = c.Out.Proto == 3
	}

	n, err := popMembers(c, c.Args[1], count, highest, func(n int) {
		if !pairs {
			n *= 2
		}
		c.Out.Array(n)
	}, pairs)
	if err == nil && n == 0 {
		c.Out.Array(0)
	}
	return err
}

// popMembers removes members and replies with them and their scores; if pairs is set, each member and its
// score are an array. If there are any members it first calls begin.
func popMembers(c *command.Ctx, key []byte, count int64, highest bool, begin func(n int), pairs bool) (n int, err error) {
	many := command.CountTo(count)
	if many > 1 {
		z, err := c.Tx.ZSet(key, true)
		if err != nil {
			return 0, err
		}
		if err := longMembers(c, 2*min(many, z.Len())); err != nil {
			return 0, err
		}
	}
	return c.Tx.ZPop(key, many, highest, begin, func(member []byte, score float64) {
		if pairs {
			c.Out.Array(2)
		}
		scorePair(c, member, score)
	})
}

// minMax returns the grammar of the two ends of a sorted set.
func minMax() command.Arg { return command.OneOf("where", command.Token("MIN"), command.Token("MAX")) }

var specZMPop = command.Spec{
	Name: "zmpop", Group: command.GroupSortedSet, Since: "7.0.0",
	Complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted " +
		"set, and M being the number of elements popped.",
	Summary: "Returns the highest- or lowest-scoring members from the first of some sorted sets that is not empty, after removing them.",
	Flags:   command.Write,
	Args:    command.ManyPopArgs(minMax()),
	Replies: "An array of the key and an array of members, each in an array with its score; nil if all keys are empty.",
	Examples: `
> ZADD b 1 x 2 y
(integer) 2
> ZMPOP 2 a b MIN
1) "b"
2) 1) 1) "x"
      2) "1"
> ZMPOP 2 a b MAX COUNT 5
1) "b"
2) 1) 1) "y"
      2) "2"
> ZMPOP 2 a b MAX
(nil)
`,
	Run: runZMPop,
}

func runZMPop(c *command.Ctx) error {
	p, err := command.ParseManyPop(c.Args[1:], "MIN", "MAX")
	if err != nil {
		return err
	}
	popped, err := zpopFirst(c, p, p.Keys)
	if err == nil && !popped {
		c.Out.NullArray()
	}
	return err
}

// zpopFirst pops from the first of the keys that is not empty, and reports
// whether there was one.
func zpopFirst(c *command.Ctx, p command.ManyPop, keys [][]byte) (bool, error) {
	for _, key := range keys {
		n, err := popMembers(c, key, p.Count, p.Last, func(n int) {
			c.Out.Array(2)
			c.Out.Bulk(key)
			c.Out.Array(n)
		}, true)
		if n > 0 || err != nil {
			return true, err
		}
	}
	return false, nil
}

var specBZMPop = command.Spec{
	Name: "bzmpop", Group: command.GroupSortedSet, Since: "7.0.0",
	Complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted " +
		"set, and M being the number of elements popped.",
	Summary: "Does what ZMPOP does, but waits while all keys are empty.",
	Flags:   command.Write | command.Blocking,
	Args:    append([]command.Arg{command.Double("timeout")}, command.ManyPopArgs(minMax())...),
	Replies: "As ZMPOP; nil after timeout seconds, of which 0 is for ever.",
	Examples: `
> ZADD z 1 x 2 y
(integer) 2
> BZMPOP 0.5 1 z MAX
1) "z"
2) 1) 1) "y"
      2) "2"
`,
	Run: runBZMPop,
}

func runBZMPop(c *command.Ctx) error {
	ms, err := command.ParseTimeout(c.Args[1])
	if err != nil {
		return err
	}
	p, err := command.ParseManyPop(c.Args[2:], "MIN", "MAX")
	if err != nil {
		return err
	}

	popped, err := zpopFirst(c, p, c.Candidates(p.Keys))
	if err != nil || popped {
		return err
	}
	return c.Block(command.Wait{Keys: p.Keys, Kinds: engine.KindsOf(engine.ZSet), Millis: ms})
}

var specBZPopMin = command.Spec{
	Name: "bzpopmin", Group: command.GroupSortedSet, Since: "5.0.0",
	Complexity: "O(log(N)) with N being the number of elements in the sorted set.",
	Summary: "Removes and returns the member with the lowest score from the first of some sorted sets that is not " +
		"empty, and waits while all are.",
	Flags:   command.Write | command.Blocking | command.Fast,
	Args:    []command.Arg{command.ManyKeys("key", command.Access|command.Delete), command.Double("timeout")},
	History: []command.Change{{Since: "6.0.0", Text: "`timeout` is interpreted as a double instead of an integer."}},
	Replies: "An array of key, member and score; nil after timeout seconds, of which 0 is for ever.",
	Examples: `
> ZADD z 1 x 2 y
(integer) 2
> BZPOPMIN a z 0
1) "z"
2) "x"
3) "1"
`,
	Run: func(c *command.Ctx) error { return bzpop(c, false) },
}

var specBZPopMax = command.Spec{
	Name: "bzpopmax", Group: command.GroupSortedSet, Since: "5.0.0",
	Complexity: "O(log(N)) with N being the number of elements in the sorted set.",
	Summary: "Removes and returns the member with the highest score from the first of some sorted sets that is not " +
		"empty, and waits while all are.",
	Flags:   command.Write | command.Blocking | command.Fast,
	Args:    []command.Arg{command.ManyKeys("key", command.Access|command.Delete), command.Double("timeout")},
	History: []command.Change{{Since: "6.0.0", Text: "`timeout` is interpreted as a double instead of an integer."}},
	Replies: "An array of key, member and score; nil after timeout seconds, of which 0 is for ever.",
	Examples: `
> ZADD z 1 x 2 y
(integer) 2
> BZPOPMAX a z 0
1) "z"
2) "y"
3) "2"
`,
	Run: func(c *command.Ctx) error { return bzpop(c, true) },
}

func bzpop(c *command.Ctx, highest bool) error {
	keys := c.Args[1 : len(c.Args)-1]
	ms, err := command.ParseTimeout(c.Args[len(c.Args)-1])
	if err != nil {
		return err
	}

	for _, key := range c.Candidates(keys) {
		n, err := popMembers(c, key, 1, highest, func(int) {
			c.Out.Array(3)
			c.Out.Bulk(key)
		}, false)
		if n > 0 || err != nil {
			return err
		}
	}
	return c.Block(command.Wait{Keys: keys, Kinds: engine.KindsOf(engine.ZSet), Millis: ms})
}
