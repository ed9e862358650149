package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var specSInter = command.Spec{
	Name: "sinter", Group: command.GroupSet, Since: "1.0.0",
	Complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
	Summary:    "Returns the intersect of multiple sets.",
	Flags:      command.ReadOnly,
	Args:       []command.Arg{command.ManyKeys("key", command.Read)},
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
	Run: func(c *command.Ctx) error { return combineSets(c, engine.Intersection) },
}

var specSUnion = command.Spec{
	Name: "sunion", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary: "Returns the union of multiple sets.",
	Flags:   command.ReadOnly,
	Args:    []command.Arg{command.ManyKeys("key", command.Read)},
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
	Run: func(c *command.Ctx) error { return combineSets(c, engine.Union) },
}

var specSDiff = command.Spec{
	Name: "sdiff", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary: "Returns the difference of multiple sets.",
	Flags:   command.ReadOnly,
	Args:    []command.Arg{command.ManyKeys("key", command.Read)},
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
	Run: func(c *command.Ctx) error { return combineSets(c, engine.Difference) },
}

func combineSets(c *command.Ctx, o engine.SetOperation) error {
	keys := c.Args[1:]
	if err := c.Long(combineWork(c, keys)); err != nil {
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

// combineWork returns the cost of combining sets for Ctx.Long: at worst the command walks over all
// of them.
func combineWork(c *command.Ctx, keys [][]byte) int {
	n := 0
	for _, key := range keys {
		n += c.Tx.ValueSize(key)
	}
	return n * command.WalkBytes
}

// storedSets returns the grammar of a combination that is stored.
func storedSets(access command.KeyFlags) []command.Arg {
	return []command.Arg{command.Key("destination", access), command.ManyKeys("key", command.Read)}
}

var specSInterStore = command.Spec{
	Name: "sinterstore", Group: command.GroupSet, Since: "1.0.0",
	Complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
	Summary:    "Stores the intersect of multiple sets in a key.",
	Flags:      command.Write | command.DenyOOM,
	Args:       storedSets(command.Overwrite),
	Replies:    "The number of members, which have no deadlines at the destination. Where it is 0 the destination is deleted.",
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
	Run: func(c *command.Ctx) error { return storeSets(c, engine.Intersection) },
}

var specSUnionStore = command.Spec{
	Name: "sunionstore", Group: command.GroupSet, Since: "1.0.0",
	Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary:    "Stores the union of multiple sets in a key.",
	Flags:      command.Write | command.DenyOOM,
	Args:       storedSets(command.Overwrite),
	Replies:    "The number of members, which have no deadlines at the destination. Where it is 0 the destination is deleted.",
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
	Run: func(c *command.Ctx) error { return storeSets(c, engine.Union) },
}

var specSDiffStore = command.Spec{
	Name: "sdiffstore", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
	Summary: "Stores the difference of multiple sets in a key.",
	Flags:   command.Write | command.DenyOOM,
	Args:    storedSets(command.Overwrite),
	Replies: "The number of members, which have no deadlines at the destination. Where it is 0 the destination is deleted.",
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
	Run: func(c *command.Ctx) error { return storeSets(c, engine.Difference) },
}

func storeSets(c *command.Ctx, o engine.SetOperation) error {
	keys := c.Args[2:]
	if err := c.Long(combineWork(c, keys)); err != nil {
		return err
	}
	n, err := c.Tx.CombineStore(o, c.Args[1], keys)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specSInterCard = command.Spec{
	Name: "sintercard", Group: command.GroupSet, Since: "7.0.0",
	Complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
	Summary:    "Returns the number of members of the intersect of multiple sets.",
	Flags:      command.ReadOnly,
	Args: []command.Arg{command.Count("numkeys"), command.ManyKeys("key", command.Read),
		command.Opt(command.TokenArg("LIMIT", command.Int("limit")))},
	Replies: "The number; counting ends at LIMIT, if that is not 0.",
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

const errKeysTooMany = command.ReplyError("ERR Number of keys can't be greater than number of args")

func runSInterCard(c *command.Ctx) error {
	n, ok := numeral.ParseInt(c.Args[1])
	switch {
	case !ok || n < 1:
		return command.ErrNumKeys
	case n > int64(len(c.Args)-2):
		return errKeysTooMany
	}
	keys := c.Args[2 : 2+n]
	limit, err := command.ParseLimit(c.Args[2+n:])
	if err != nil {
		return err
	}
	if err := c.Long(combineWork(c, keys)); err != nil {
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
