package command

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

const errWeight = ReplyError("ERR weight value is not a float")

// weighing is the grammar behind the keys of unions and intersections.
func weighing() []Arg {
	return []Arg{Opt(TokenArg("WEIGHTS", Repeat(Int("weight")))),
		Opt(TokenArg("AGGREGATE", OneOf("aggregate", Token("SUM"), Token("MIN"), Token("MAX"))))}
}

// combined is the grammar of a combination whose result is replied, stored that
// of one whose result is kept.
func combined(options ...Arg) []Arg {
	return append(append([]Arg{Count("numkeys"), ManyKeys("key", Read)}, options...), Opt(Token("WITHSCORES")))
}

func stored(options ...Arg) []Arg {
	return append([]Arg{Key("destination", Overwrite), Count("numkeys"), ManyKeys("key", Read)}, options...)
}

var specZUnion = Spec{
	Name: "zunion", Group: GroupSortedSet, Since: "6.2.0",
	Complexity: "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements in the resulting sorted set.",
	Summary:    "Returns the union of multiple sorted sets.",
	Flags:      ReadOnly,
	Args:       combined(weighing()...),
	Replies:    "An array of members, each with its score where asked: the sum of its scores, each times the set's weight. The members of sets count with the score 1.",
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
	Run: func(c *Ctx) error { return c.zcombine(engine.ZUnion) },
}

var specZInter = Spec{
	Name: "zinter", Group: GroupSortedSet, Since: "6.2.0",
	Complexity: "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input sorted sets and M being the number of elements in the resulting sorted set.",
	Summary:    "Returns the intersect of multiple sorted sets.",
	Flags:      ReadOnly,
	Args:       combined(weighing()...),
	Replies:    "An array of members, each with its score where asked, as ZUNION's.",
	Examples: `
> ZADD a 1 x 2 y
(integer) 2
> ZADD b 10 y
(integer) 1
> ZINTER 2 a b AGGREGATE MAX WITHSCORES
1) "y"
2) "10"
`,
	Run: func(c *Ctx) error { return c.zcombine(engine.ZInter) },
}

var specZDiff = Spec{
	Name: "zdiff", Group: GroupSortedSet, Since: "6.2.0",
	Complexity: "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of the first set, and K is the size of the result set.",
	Summary:    "Returns the difference between multiple sorted sets.",
	Flags:      ReadOnly,
	Args:       combined(),
	Replies:    "An array of the first set's members that are in no other, each with its score where asked.",
	Examples: `
> ZADD a 1 x 2 y
(integer) 2
> ZADD b 10 y
(integer) 1
> ZDIFF 2 a b WITHSCORES
1) "x"
2) "1"
`,
	Run: func(c *Ctx) error { return c.zcombine(engine.ZDiff) },
}

func (c *Ctx) zcombine(op engine.ZOperation) error {
	z, err := c.parseCombination(op, 1)
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

	reply := c.scoredArray(len(items), scores)
	for _, m := range items {
		reply(m.Member, m.Score)
	}
	return nil
}

var specZUnionStore = Spec{
	Name: "zunionstore", Group: GroupSortedSet, Since: "2.0.0",
	Complexity: "O(N)+O(M log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements in the resulting sorted set.",
	Summary:    "Stores the union of multiple sorted sets in a key.",
	Flags:      Write | DenyOOM,
	Args:       stored(weighing()...),
	Replies:    "The number of members stored. None at all deletes the destination.",
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
	Run: func(c *Ctx) error { return c.zcombineStore(engine.ZUnion) },
}

var specZInterStore = Spec{
	Name: "zinterstore", Group: GroupSortedSet, Since: "2.0.0",
	Complexity: "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input sorted sets and M being the number of elements in the resulting sorted set.",
	Summary:    "Stores the intersect of multiple sorted sets in a key.",
	Flags:      Write | DenyOOM,
	Args:       stored(weighing()...),
	Replies:    "The number of members stored. None at all deletes the destination.",
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
	Run: func(c *Ctx) error { return c.zcombineStore(engine.ZInter) },
}

var specZDiffStore = Spec{
	Name: "zdiffstore", Group: GroupSortedSet, Since: "6.2.0",
	Complexity: "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of the first set, and K is the size of the result set.",
	Summary:    "Stores the difference of multiple sorted sets in a key.",
	Flags:      Write | DenyOOM,
	Args:       stored(),
	Replies:    "The number of members stored. None at all deletes the destination.",
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
	Run: func(c *Ctx) error { return c.zcombineStore(engine.ZDiff) },
}

func (c *Ctx) zcombineStore(op engine.ZOperation) error {
	z, err := c.parseCombination(op, 2)
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

var specZInterCard = Spec{
	Name: "zintercard", Group: GroupSortedSet, Since: "7.0.0",
	Complexity: "O(N*K) worst case with N being the smallest input sorted set, K being the number of input sorted sets.",
	Summary:    "Returns the number of members of the intersect of multiple sorted sets.",
	Flags:      ReadOnly,
	Args:       []Arg{Count("numkeys"), ManyKeys("key", Read), Opt(TokenArg("LIMIT", Int("limit")))},
	Replies:    "The number; counting ends at LIMIT, if that is not 0.",
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

func runZInterCard(c *Ctx) error {
	z, err := c.parseCombination(engine.ZInter, 1)
	if err != nil {
		return err
	}
	limit, err := parseLimit(z.rest)
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

// combination is a parsed one, and the arguments behind its keys.
type combination struct {
	engine.ZCombination
	rest [][]byte
}

// parseCombination reads "numkeys key ..." from an argument on. What the keys
// hold is looked at before the options are, as in Redis.
func (c *Ctx) parseCombination(op engine.ZOperation, at int) (z combination, err error) {
	n, ok := resp.ParseInt(c.Args[at])
	switch {
	case !ok:
		return z, ErrNotInteger
	case n < 1:
		return z, ReplyError(fmt.Sprintf("ERR at least 1 input key is needed for '%s' command", strings.ToLower(c.Spec.Name)))
	case n > int64(len(c.Args)-at-1):
		return z, ErrSyntax
	}
	z.Operation = op
	z.Keys, z.rest = c.Args[at+1:at+1+int(n)], c.Args[at+1+int(n):]
	size, err := c.Tx.ZCombineSize(z.Keys)
	if err == nil {
		err = c.longMembers(size)
	}
	return z, err
}

// options reads the options of a combination; WITHSCORES only where its result
// is replied.
func (z *combination) options(replied bool) (scores bool, err error) {
	weighed := z.Operation != engine.ZDiff
	for rest := z.rest; len(rest) > 0; {
		switch a := rest[0]; {
		case weighed && len(rest) > len(z.Keys) && EqualFold(a, "WEIGHTS"):
			z.Weights = make([]float64, len(z.Keys))
			for i := range z.Weights {
				var ok bool
				if z.Weights[i], ok = resp.ParseDouble(rest[1+i]); !ok {
					return false, errWeight
				}
			}
			rest = rest[1+len(z.Keys):]
		case weighed && len(rest) > 1 && EqualFold(a, "AGGREGATE"):
			switch b := rest[1]; {
			case EqualFold(b, "SUM"):
				z.Aggregate = engine.Sum
			case EqualFold(b, "MIN"):
				z.Aggregate = engine.Min
			case EqualFold(b, "MAX"):
				z.Aggregate = engine.Max
			default:
				return false, ErrSyntax
			}
			rest = rest[2:]
		case replied && EqualFold(a, "WITHSCORES"):
			scores, rest = true, rest[1:]
		default:
			return false, ErrSyntax
		}
	}
	return scores, nil
}
