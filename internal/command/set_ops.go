package command

import (
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

var specSInter = Spec{
	Name: "sinter", Group: GroupSet, Since: "1.0.0",
	Complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
	Summary:    "Returns the intersect of multiple sets.",
	Flags:      ReadOnly,
	Args:       []Arg{ManyKeys("key", Read)},
	Tips:       setOrder,
	Replies:    "A set in RESP3, an array in RESP2, of members in no order.",
	Examples: `
> SADD a 1 2 3
(integer) 3
> SADD b 2 3 4
(integer) 3
> SINTER a b
1) "2"
2) "3"
> SINTER a nothing
(empty array)
`,
	Run: func(c *Ctx) error { return c.combineSets(engine.Intersection) },
}

var specSUnion = Spec{
	Name: "sunion", Group: GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary: "Returns the union of multiple sets.",
	Flags:   ReadOnly,
	Args:    []Arg{ManyKeys("key", Read)},
	Tips:    setOrder,
	Replies: "A set in RESP3, an array in RESP2, of members in no order.",
	Examples: `
> SADD a 1 2
(integer) 2
> SADD b 2 3
(integer) 2
> SUNION a b nothing
1) "1"
2) "2"
3) "3"
`,
	Run: func(c *Ctx) error { return c.combineSets(engine.Union) },
}

var specSDiff = Spec{
	Name: "sdiff", Group: GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary: "Returns the difference of multiple sets.",
	Flags:   ReadOnly,
	Args:    []Arg{ManyKeys("key", Read)},
	Tips:    setOrder,
	Replies: "A set in RESP3, an array in RESP2: the members of the first set that are in none of the others, in no order.",
	Examples: `
> SADD a 1 2 3
(integer) 3
> SADD b 2 4
(integer) 2
> SDIFF a b nothing
1) "1"
2) "3"
`,
	Run: func(c *Ctx) error { return c.combineSets(engine.Difference) },
}

func (c *Ctx) combineSets(o engine.SetOperation) error {
	keys := c.Args[1:]
	if err := c.Long(c.combineWork(keys)); err != nil {
		return err
	}
	mark := c.Out.Mark()
	members, n := c.Out.SetLater(), 0
	err := c.Tx.Combine(o, keys, func(m []byte) bool {
		c.Out.Bulk(m)
		n++
		return true
	})
	if err != nil {
		c.Out.Rollback(mark)
		return err
	}
	c.Out.Patch(members, n)
	return nil
}

// combineWork is what Ctx.Long wants to know of combining sets: all are walked
// at worst.
func (c *Ctx) combineWork(keys [][]byte) int {
	n := 0
	for _, key := range keys {
		n += c.Tx.ValueSize(key)
	}
	return n * walkBytes
}

// storedSets is the grammar of a combination that is stored.
func storedSets(access KeyFlags) []Arg {
	return []Arg{Key("destination", access), ManyKeys("key", Read)}
}

var specSInterStore = Spec{
	Name: "sinterstore", Group: GroupSet, Since: "1.0.0",
	Complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
	Summary:    "Stores the intersect of multiple sets in a key.",
	Flags:      Write | DenyOOM,
	Args:       storedSets(Overwrite),
	Replies:    "The number of members. Where it is 0 the destination is deleted.",
	Examples: `
> SADD a 1 2 3
(integer) 3
> SADD b 2 3 4
(integer) 3
> SINTERSTORE both a b
(integer) 2
> SMEMBERS both
1) "2"
2) "3"
`,
	Run: func(c *Ctx) error { return c.storeSets(engine.Intersection) },
}

var specSUnionStore = Spec{
	Name: "sunionstore", Group: GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary: "Stores the union of multiple sets in a key.",
	Flags:   Write | DenyOOM,
	Args:    storedSets(Overwrite),
	Replies: "The number of members. Where it is 0 the destination is deleted.",
	Examples: `
> SADD a 1 2
(integer) 2
> SADD b 2 3
(integer) 2
> SUNIONSTORE all a b
(integer) 3
> SMEMBERS all
1) "1"
2) "2"
3) "3"
`,
	Run: func(c *Ctx) error { return c.storeSets(engine.Union) },
}

var specSDiffStore = Spec{
	Name: "sdiffstore", Group: GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary: "Stores the difference of multiple sets in a key.",
	Flags:   Write | DenyOOM,
	Args:    storedSets(Overwrite),
	Replies: "The number of members. Where it is 0 the destination is deleted.",
	Examples: `
> SADD a 1 2 3
(integer) 3
> SADD b 2 4
(integer) 2
> SDIFFSTORE rest a b
(integer) 2
> SMEMBERS rest
1) "1"
2) "3"
`,
	Run: func(c *Ctx) error { return c.storeSets(engine.Difference) },
}

func (c *Ctx) storeSets(o engine.SetOperation) error {
	keys := c.Args[2:]
	if err := c.Long(c.combineWork(keys)); err != nil {
		return err
	}
	n, err := c.Tx.CombineStore(o, c.Args[1], keys)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specSInterCard = Spec{
	Name: "sintercard", Group: GroupSet, Since: "7.0.0",
	Complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
	Summary:    "Returns the number of members of the intersect of multiple sets.",
	Flags:      ReadOnly,
	Args:       []Arg{Count("numkeys"), ManyKeys("key", Read), Opt(TokenArg("LIMIT", Int("limit")))},
	Replies:    "The number; counting ends at LIMIT, if that is not 0.",
	Examples: `
> SADD a 1 2 3
(integer) 3
> SADD b 2 3 4
(integer) 3
> SINTERCARD 2 a b
(integer) 2
> SINTERCARD 2 a b LIMIT 1
(integer) 1
`,
	Run: runSInterCard,
}

const errKeysTooMany = ReplyError("ERR Number of keys can't be greater than number of args")

func runSInterCard(c *Ctx) error {
	n, ok := resp.ParseInt(c.Args[1])
	switch {
	case !ok || n < 1:
		return errNumKeys
	case n > int64(len(c.Args)-2):
		return errKeysTooMany
	}
	keys := c.Args[2 : 2+n]
	limit, err := parseLimit(c.Args[2+n:])
	if err != nil {
		return err
	}
	if err := c.Long(c.combineWork(keys)); err != nil {
		return err
	}

	found := int64(0)
	err = c.Tx.Combine(engine.Intersection, keys, func([]byte) bool {
		found++
		return found != limit
	})
	if err != nil {
		return err
	}
	c.Out.Int(found)
	return nil
}
