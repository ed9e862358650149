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
	Examples:   "> SADD a 1 2 3\n(integer) 3\n> SADD b 2 3 4\n(integer) 3\n> SINTER a b\n1) \"2\"\n2) \"3\"\n> SINTER a nothing\n(empty array)\n",
	Run:        func(c *Ctx) error { return c.combineSets(engine.Intersection) },
}

var specSUnion = Spec{
	Name: "sunion", Group: GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary:  "Returns the union of multiple sets.",
	Flags:    ReadOnly,
	Args:     []Arg{ManyKeys("key", Read)},
	Tips:     setOrder,
	Replies:  "A set in RESP3, an array in RESP2, of members in no order.",
	Examples: "> SADD a 1 2\n(integer) 2\n> SADD b 2 3\n(integer) 2\n> SUNION a b nothing\n1) \"1\"\n2) \"2\"\n3) \"3\"\n",
	Run:      func(c *Ctx) error { return c.combineSets(engine.Union) },
}

var specSDiff = Spec{
	Name: "sdiff", Group: GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary:  "Returns the difference of multiple sets.",
	Flags:    ReadOnly,
	Args:     []Arg{ManyKeys("key", Read)},
	Tips:     setOrder,
	Replies:  "A set in RESP3, an array in RESP2: the members of the first set that are in none of the others, in no order.",
	Examples: "> SADD a 1 2 3\n(integer) 3\n> SADD b 2 4\n(integer) 2\n> SDIFF a b nothing\n1) \"1\"\n2) \"3\"\n",
	Run:      func(c *Ctx) error { return c.combineSets(engine.Difference) },
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
	Examples:   "> SADD a 1 2 3\n(integer) 3\n> SADD b 2 3 4\n(integer) 3\n> SINTERSTORE both a b\n(integer) 2\n> SMEMBERS both\n1) \"2\"\n2) \"3\"\n",
	Run:        func(c *Ctx) error { return c.storeSets(engine.Intersection) },
}

var specSUnionStore = Spec{
	Name: "sunionstore", Group: GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary:  "Stores the union of multiple sets in a key.",
	Flags:    Write | DenyOOM,
	Args:     storedSets(Overwrite),
	Replies:  "The number of members. Where it is 0 the destination is deleted.",
	Examples: "> SADD a 1 2\n(integer) 2\n> SADD b 2 3\n(integer) 2\n> SUNIONSTORE all a b\n(integer) 3\n> SMEMBERS all\n1) \"1\"\n2) \"2\"\n3) \"3\"\n",
	Run:      func(c *Ctx) error { return c.storeSets(engine.Union) },
}

var specSDiffStore = Spec{
	Name: "sdiffstore", Group: GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary:  "Stores the difference of multiple sets in a key.",
	Flags:    Write | DenyOOM,
	Args:     storedSets(Overwrite),
	Replies:  "The number of members. Where it is 0 the destination is deleted.",
	Examples: "> SADD a 1 2 3\n(integer) 3\n> SADD b 2 4\n(integer) 2\n> SDIFFSTORE rest a b\n(integer) 2\n> SMEMBERS rest\n1) \"1\"\n2) \"3\"\n",
	Run:      func(c *Ctx) error { return c.storeSets(engine.Difference) },
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
	Examples:   "> SADD a 1 2 3\n(integer) 3\n> SADD b 2 3 4\n(integer) 3\n> SINTERCARD 2 a b\n(integer) 2\n> SINTERCARD 2 a b LIMIT 1\n(integer) 1\n",
	Run:        runSInterCard,
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
