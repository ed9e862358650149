package commands

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

const errWeight = command.ReplyError("ERR weight value is not a float")

// weighing returns the grammar that follows the keys of unions and intersections.
func weighing() []command.Arg {
	return []command.Arg{command.Opt(command.TokenArg("WEIGHTS", command.Repeat(command.Int("weight")))),
		command.Opt(command.TokenArg("AGGREGATE", command.OneOf("aggregate", command.Token("SUM"), command.Token("MIN"), command.Token("MAX"))))}
}

// combined returns the grammar of a combination that replies with its result, and stored the grammar of one
// that stores its result.
func combined(options ...command.Arg) []command.Arg {
	return append(append([]command.Arg{command.Count("numkeys"), command.ManyKeys("key", command.Read)}, options...),
		command.Opt(command.Token("WITHSCORES")))
}

func stored(options ...command.Arg) []command.Arg {
	return append([]command.Arg{command.Key("destination", command.Overwrite), command.Count("numkeys"),
		command.ManyKeys("key", command.Read)}, options...)
}

var specZUnion = command.Spec{
	Name: "zunion", Group: command.GroupSortedSet, Since: "6.2.0",
	Complexity: "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements " +
		"in the resulting sorted set.",
	Summary: "Returns the union of multiple sorted sets.",
	Flags:   command.ReadOnly,
	Args:    combined(weighing()...),
	Replies: "An array of members, each with its score if requested: the sum of its scores, each times the set's weight. " +
		"The members of sets count with the score 1.",
	Examples: `
> ZADD a 1 x 2 y
(integer) 2
> ZADD b 10 y
(integer) 1
> ZUNION 2 a b WEIGHTS 1 2 WITHSCORES
1) "x"
2) "1"
3) "y"
4) "22"
`,
	Run: func(c *command.Ctx) error { return zcombine(c, engine.ZUnion) },
}

var specZInter = command.Spec{
	Name: "zinter", Group: command.GroupSortedSet, Since: "6.2.0",
	Complexity: "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input " +
		"sorted sets and M being the number of elements in the resulting sorted set.",
	Summary: "Returns the intersect of multiple sorted sets.",
	Flags:   command.ReadOnly,
	Args:    combined(weighing()...),
	Replies: "An array of members, each with its score if requested, as in ZUNION.",
	Examples: `
> ZADD a 1 x 2 y
(integer) 2
> ZADD b 10 y
(integer) 1
> ZINTER 2 a b AGGREGATE MAX WITHSCORES
1) "y"
2) "10"
`,
	Run: func(c *command.Ctx) error { return zcombine(c, engine.ZInter) },
}

var specZDiff = command.Spec{
	Name: "zdiff", Group: command.GroupSortedSet, Since: "6.2.0",
	Complexity: "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of " +
		"the first set, and K is the size of the result set.",
	Summary: "Returns the difference between multiple sorted sets.",
	Flags:   command.ReadOnly,
	Args:    combined(),
	Replies: "An array of the first set's members that are in no other, each with its score if requested.",
	Examples: `
> ZADD a 1 x 2 y
(integer) 2
> ZADD b 10 y
(integer) 1
> ZDIFF 2 a b WITHSCORES
1) "x"
2) "1"
`,
	Run: func(c *command.Ctx) error { return zcombine(c, engine.ZDiff) },
}

func zcombine(c *command.Ctx, op engine.ZOperation) error {
	z, err := parseCombination(c, op, 1)
	if err != nil {
		return err
	}
	scores, err := z.options(true)
	if err != nil {
		return err
	}
	items, err := c.Tx.ZCombine(&z.ZCombination)
	if err != nil {
		return err
	}

	reply := scoredArray(c, len(items), scores)
	for _, m := range items {
		reply(m.Member, m.Score)
	}
	return nil
}

var specZUnionStore = command.Spec{
	Name: "zunionstore", Group: command.GroupSortedSet, Since: "2.0.0",
	Complexity: "O(N)+O(M log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements " +
		"in the resulting sorted set.",
	Summary: "Stores the union of multiple sorted sets in a key.",
	Flags:   command.Write | command.DenyOOM,
	Args:    stored(weighing()...),
	Replies: "The number of members stored, which have no deadlines at the destination. None at all deletes the destination.",
	Examples: `
> ZADD a 1 x 2 y
(integer) 2
> ZADD b 10 y
(integer) 1
> ZUNIONSTORE c 2 a b
(integer) 2
> ZRANGE c 0 -1 WITHSCORES
1) "x"
2) "1"
3) "y"
4) "12"
`,
	Run: func(c *command.Ctx) error { return zcombineStore(c, engine.ZUnion) },
}

var specZInterStore = command.Spec{
	Name: "zinterstore", Group: command.GroupSortedSet, Since: "2.0.0",
	Complexity: "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input " +
		"sorted sets and M being the number of elements in the resulting sorted set.",
	Summary: "Stores the intersect of multiple sorted sets in a key.",
	Flags:   command.Write | command.DenyOOM,
	Args:    stored(weighing()...),
	Replies: "The number of members stored, which have no deadlines at the destination. None at all deletes the destination.",
	Examples: `
> ZADD a 1 x 2 y
(integer) 2
> ZADD b 10 y
(integer) 1
> ZINTERSTORE c 2 a b
(integer) 1
> ZRANGE c 0 -1 WITHSCORES
1) "y"
2) "12"
`,
	Run: func(c *command.Ctx) error { return zcombineStore(c, engine.ZInter) },
}

var specZDiffStore = command.Spec{
	Name: "zdiffstore", Group: command.GroupSortedSet, Since: "6.2.0",
	Complexity: "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of " +
		"the first set, and K is the size of the result set.",
	Summary: "Stores the difference of multiple sorted sets in a key.",
	Flags:   command.Write | command.DenyOOM,
	Args:    stored(),
	Replies: "The number of members stored, which have no deadlines at the destination. None at all deletes the destination.",
	Examples: `
> ZADD a 1 x 2 y
(integer) 2
> ZADD b 10 y
(integer) 1
> ZDIFFSTORE c 2 a b
(integer) 1
> ZRANGE c 0 -1 WITHSCORES
1) "x"
2) "1"
`,
	Run: func(c *command.Ctx) error { return zcombineStore(c, engine.ZDiff) },
}

func zcombineStore(c *command.Ctx, op engine.ZOperation) error {
	z, err := parseCombination(c, op, 2)
	if err != nil {
		return err
	}
	if _, err := z.options(false); err != nil {
		return err
	}
	n, err := c.Tx.ZCombineStore(c.Args[1], &z.ZCombination)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specZInterCard = command.Spec{
	Name: "zintercard", Group: command.GroupSortedSet, Since: "7.0.0",
	Complexity: "O(N*K) worst case with N being the smallest input sorted set, K being the number of input sorted sets.",
	Summary:    "Returns the number of members of the intersect of multiple sorted sets.",
	Flags:      command.ReadOnly,
	Args: []command.Arg{command.Count("numkeys"), command.ManyKeys("key", command.Read),
		command.Opt(command.TokenArg("LIMIT", command.Int("limit")))},
	Replies: "The number; counting ends at LIMIT, if that is not 0.",
	Examples: `
> ZADD a 1 x 2 y
(integer) 2
> ZADD b 10 y
(integer) 1
> ZINTERCARD 2 a b
(integer) 1
> ZINTERCARD 2 a a LIMIT 1
(integer) 1
`,
	Run: runZInterCard,
}

func runZInterCard(c *command.Ctx) error {
	z, err := parseCombination(c, engine.ZInter, 1)
	if err != nil {
		return err
	}
	limit, err := command.ParseLimit(z.rest)
	if err != nil {
		return err
	}

	n, err := c.Tx.ZInterCard(z.Keys, int(limit))
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

// combination is a parsed combination, and the arguments after its keys.
type combination struct {
	engine.ZCombination
	rest [][]byte
}

// parseCombination reads "numkeys key ..." from the argument at on. Like Redis, it checks the types of the
// keys before it reads the options.
func parseCombination(c *command.Ctx, op engine.ZOperation, at int) (z combination, err error) {
	n, ok := numeral.ParseInt(c.Args[at])
	switch {
	case !ok:
		return z, command.ErrNotInteger
	case n < 1:
		return z, command.ReplyError(fmt.Sprintf("ERR at least 1 input key is needed for '%s' command", strings.ToLower(c.Spec.Name)))
	case n > int64(len(c.Args)-at-1):
		return z, command.ErrSyntax
	}
	z.Operation = op
	z.Keys, z.rest = c.Args[at+1:at+1+int(n)], c.Args[at+1+int(n):]
	size, err := c.Tx.ZCombineSize(z.Keys)
	if err == nil {
		err = longMembers(c, size)
	}
	return z, err
}

// options reads the options of a combination. WITHSCORES is an option only if the command replies with the
// result.
func (z *combination) options(replied bool) (scores bool, err error) {
	weighed := z.Operation != engine.ZDiff
	for rest := z.rest; len(rest) > 0; {
		switch a := rest[0]; {
		case weighed && len(rest) > len(z.Keys) && command.EqualFold(a, "WEIGHTS"):
			z.Weights = make([]float64, len(z.Keys))
			for i := range z.Weights {
				var ok bool
				if z.Weights[i], ok = numeral.ParseDouble(rest[1+i]); !ok {
					return false, errWeight
				}
			}
			rest = rest[1+len(z.Keys):]
		case weighed && len(rest) > 1 && command.EqualFold(a, "AGGREGATE"):
			switch b := rest[1]; {
			case command.EqualFold(b, "SUM"):
				z.Aggregate = engine.Sum
			case command.EqualFold(b, "MIN"):
				z.Aggregate = engine.Min
			case command.EqualFold(b, "MAX"):
				z.Aggregate = engine.Max
			default:
				return false, command.ErrSyntax
			}
			rest = rest[2:]
		case replied && command.EqualFold(a, "WITHSCORES"):
			scores, rest = true, rest[1:]
		default:
			return false, command.ErrSyntax
		}
	}
	return scores, nil
}
