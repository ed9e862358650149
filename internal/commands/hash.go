package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var hashSpecs = []*command.Spec{&specHSet, &specHSetNX, &specHMSet, &specHGet, &specHMGet, &specHGetAll, &specHKeys, &specHVals,
	&specHLen, &specHStrLen, &specHExists, &specHDel, &specHIncrBy, &specHIncrByFloat, &specHRandField, &specHScan}

// fieldBytes is the cost of looking up one field, a cache miss or two, in bytes read sequentially.
const fieldBytes = 512

// longFields is Ctx.Long for a command that looks up n fields.
func longFields(c *command.Ctx, n int) error { return c.Long(n * fieldBytes) }

func fieldValues() command.Arg {
	return command.Repeat(command.Block("field_value", command.Str("field"), command.Str("value")))
}

var specHSet = command.Spec{
	Name: "hset", Group: command.GroupHash, Since: "2.0.0",
	Complexity: "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is called with " +
		"multiple field/value pairs.",
	Summary: "Creates or modifies the value of a field in a hash.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Update), fieldValues()},
	History: []command.Change{{Since: "4.0.0", Text: "Accepts multiple `field` and `value` arguments."}},
	Replies: "How many of the fields are new. Fields that are set lose their expiration time.",
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HSET user age 37
(integer) 0
> HGETALL user
1) "name"
2) "Ada"
3) "age"
4) "37"
`,
	Run: runHSet,
}

func runHSet(c *command.Ctx) error {
	added, err := hset(c)
	if err != nil {
		return err
	}
	c.Out.Int(int64(added))
	return nil
}

// hset sets the fields of HSET and HMSET.
func hset(c *command.Ctx) (added int, err error) {
	if len(c.Args)%2 != 0 {
		return 0, command.WrongArity(c.Spec)
	}
	if err := longFields(c, len(c.Args)); err != nil {
		return 0, err
	}
	return c.Tx.HSet(c.Args[1], c.Args[2:])
}

var specHMSet = command.Spec{
	Name: "hmset", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the number of fields being set.",
	Summary:    "Sets the values of multiple fields.",
	Flags:      command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args:       []command.Arg{command.Key("key", command.Update), fieldValues()},
	Deprecated: &command.Deprecation{Since: "4.0.0", ReplacedBy: "`HSET` with multiple field-value pairs"},
	Examples: `
> HMSET user name Ada age 36
OK
> HMGET user name age
1) "Ada"
2) "36"
`,
	Run: runHMSet,
}

func runHMSet(c *command.Ctx) error {
	if _, err := hset(c); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specHSetNX = command.Spec{
	Name: "hsetnx", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Sets the value of a field in a hash only when the field doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Insert), command.Str("field"), command.Str("value")},
	Replies: "1 if the field was set, 0 if it existed.",
	Examples: `
> HSETNX user name Ada
(integer) 1
> HSETNX user name Eve
(integer) 0
> HGET user name
"Ada"
`,
	Run: runHSetNX,
}

func runHSetNX(c *command.Ctx) error {
	set, err := c.Tx.HSetNX(c.Args[1], c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(set))
	return nil
}

var specHGet = command.Spec{
	Name: "hget", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Returns the value of a field in a hash.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read), command.Str("field")},
	Replies: "The value, or nil if there is no such field.",
	Examples: `
> HSET user name Ada
(integer) 1
> HGET user name
"Ada"
> HGET user age
(nil)
`,
	Run: runHGet,
}

func runHGet(c *command.Ctx) error {
	val, ok, err := c.Tx.HGet(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	bulkOrNull(c, val, ok)
	return nil
}

var specHMGet = command.Spec{
	Name: "hmget", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the number of fields being requested.",
	Summary: "Returns the values of multiple fields in a hash.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read), command.Many("field")},
	Replies: "The values in the order of the fields, nil for those that are not there.",
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HMGET user age height name
1) "36"
2) (nil)
3) "Ada"
`,
	Run: runHMGet,
}

func runHMGet(c *command.Ctx) error {
	fields := c.Args[2:]
	if err := longFields(c, len(fields)); err != nil {
		return err
	}
	h, err := c.Tx.Hash(c.Args[1])
	if err != nil {
		return err
	}

	c.Out.Array(len(fields))
	for _, f := range fields {
		v, ok := h.Get(f)
		bulkOrNull(c, v, ok)
	}
	return nil
}

// hashOrder holds the tips of commands that return fields in no order.
var hashOrder = []string{"nondeterministic_output_order"}

var specHGetAll = command.Spec{
	Name: "hgetall", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the size of the hash.",
	Summary: "Returns all fields and values in a hash.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read), command.Opt(command.Token("WITHTTL"))},
	Tips:    hashOrder,
	Replies: "A map, in RESP2 an array of fields and values; empty if there is no such key. With WITHTTL an array of " +
		"arrays of field, value, and the field's time to live in ms, -1 without a deadline.",
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HGETALL user
1) "name"
2) "Ada"
3) "age"
4) "36"
> HGETALL none
(empty array)
`,
	Run:   runHGetAll,
	Takes: takesWithTTL,
}

func runHGetAll(c *command.Ctx) error {
	ttls := len(c.Args) == 3
	h, err := wholeHash(c)
	if err != nil {
		return err
	}

	if ttls {
		c.Out.Array(h.Len())
		h.EachTimed(func(field, value []byte, deadline int64) {
			c.Out.Array(3)
			c.Out.Bulk(field)
			c.Out.Bulk(value)
			c.Out.Int(ttlOf(c, deadline))
		})
		return nil
	}

	c.Out.Map(h.Len())
	h.Each(func(field, value []byte) {
		c.Out.Bulk(field)
		c.Out.Bulk(value)
	})
	return nil
}

// wholeHash looks up a hash that the command walks over.
func wholeHash(c *command.Ctx) (engine.HashView, error) {
	if err := c.LongWalk(c.Args[1]); err != nil {
		return engine.HashView{}, err
	}
	return c.Tx.Hash(c.Args[1])
}

var specHKeys = command.Spec{
	Name: "hkeys", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the size of the hash.",
	Summary: "Returns all fields in a hash.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Tips:    hashOrder,
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HKEYS user
1) "name"
2) "age"
> HKEYS none
(empty array)
`,
	Run: runHKeys,
}

func runHKeys(c *command.Ctx) error {
	h, err := wholeHash(c)
	if err != nil {
		return err
	}

	c.Out.Array(h.Len())
	h.Each(func(field, _ []byte) { c.Out.Bulk(field) })
	return nil
}

var specHVals = command.Spec{
	Name: "hvals", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the size of the hash.",
	Summary: "Returns all values in a hash.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Tips:    hashOrder,
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HVALS user
1) "Ada"
2) "36"
> HVALS none
(empty array)
`,
	Run: runHVals,
}

func runHVals(c *command.Ctx) error {
	h, err := wholeHash(c)
	if err != nil {
		return err
	}

	c.Out.Array(h.Len())
	h.Each(func(_, value []byte) { c.Out.Bulk(value) })
	return nil
}

var specHLen = command.Spec{
	Name: "hlen", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Returns the number of fields in a hash.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HLEN user
(integer) 2
> HLEN none
(integer) 0
`,
	Run: runHLen,
}

func runHLen(c *command.Ctx) error {
	h, err := c.Tx.Hash(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Int(int64(h.Len()))
	return nil
}

var specHStrLen = command.Spec{
	Name: "hstrlen", Group: command.GroupHash, Since: "3.2.0", Complexity: "O(1)",
	Summary: "Returns the length of the value of a field.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta), command.Str("field")},
	Replies: "Bytes; 0 if there is no such field.",
	Examples: `
> HSET user name Ada
(integer) 1
> HSTRLEN user name
(integer) 3
> HSTRLEN user age
(integer) 0
`,
	Run: runHStrLen,
}

func runHStrLen(c *command.Ctx) error {
	val, _, err := c.Tx.HGet(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	c.Out.Int(int64(len(val)))
	return nil
}

var specHExists = command.Spec{
	Name: "hexists", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Determines whether a field exists in a hash.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta), command.Str("field")},
	Replies: "1 if it is there, 0 if not.",
	Examples: `
> HSET user name Ada
(integer) 1
> HEXISTS user name
(integer) 1
> HEXISTS user age
(integer) 0
`,
	Run: runHExists,
}

func runHExists(c *command.Ctx) error {
	_, ok, err := c.Tx.HGet(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(ok))
	return nil
}

var specHDel = command.Spec{
	Name: "hdel", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the number of fields to be removed.",
	Summary: "Deletes one or more fields and their values from a hash. Deletes the hash if no fields remain.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Delete), command.Many("field")},
	History: []command.Change{{Since: "2.4.0", Text: "Accepts multiple `field` arguments."}},
	Replies: "The number of fields that existed.",
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HDEL user age height
(integer) 1
> HDEL user name
(integer) 1
> EXISTS user
(integer) 0
`,
	Run: runHDel,
}

func runHDel(c *command.Ctx) error {
	if err := longFields(c, len(c.Args)); err != nil {
		return err
	}
	n, err := c.Tx.HDel(c.Args[1], c.Args[2:])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specHIncrBy = command.Spec{
	Name: "hincrby", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Increments the integer value of a field in a hash by a number. Uses 0 as initial value if the field doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Update|command.Access), command.Str("field"), command.Int("increment")},
	Replies: "The new value. An expiration time of the field stays.",
	Examples: `
> HINCRBY stats visits 5
(integer) 5
> HINCRBY stats visits -2
(integer) 3
> HSET stats page home
(integer) 1
> HINCRBY stats page 1
(error) ERR hash value is not an integer
`,
	Run: runHIncrBy,
}

func runHIncrBy(c *command.Ctx) error {
	by, ok := numeral.ParseInt(c.Args[3])
	if !ok {
		return command.ErrNotInteger
	}
	n, err := c.Tx.HIncrBy(c.Args[1], c.Args[2], by)
	if err != nil {
		return err
	}
	c.Out.Int(n)
	return nil
}

var specHIncrByFloat = command.Spec{
	Name: "hincrbyfloat", Group: command.GroupHash, Since: "2.6.0", Complexity: "O(1)",
	Summary: "Increments the floating point value of a field by a number. Uses 0 as initial value if the field doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Update|command.Access), command.Str("field"), command.Double("increment")},
	Replies: "The new value, as a string. An expiration time of the field stays.",
	Examples: `
> HSET cart total 10.50
(integer) 1
> HINCRBYFLOAT cart total 0.1
"10.6"
> HINCRBYFLOAT cart total -5
"5.6"
`,
	Run: runHIncrByFloat,
}

func runHIncrByFloat(c *command.Ctx) error {
	n, err := c.Tx.HIncrByFloat(c.Args[1], c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	c.Out.Bulk(n)
	return nil
}
