package command

import (
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

var hashSpecs = []*Spec{&specHSet, &specHSetNX, &specHMSet, &specHGet, &specHMGet, &specHGetAll, &specHKeys, &specHVals,
	&specHLen, &specHStrLen, &specHExists, &specHDel, &specHIncrBy, &specHIncrByFloat, &specHRandField, &specHScan}

const (
	// fieldBytes is what looking one field up costs, in bytes of a walk over
	// memory: a cache miss or two.
	fieldBytes = 512
	// walkBytes is what a byte of a large container costs a walk over its items,
	// which go through a table and are written out one by one.
	walkBytes = 8
)

// longFields is Long for a command that looks up n fields.
func (c *Ctx) longFields(n int) error { return c.Long(n * fieldBytes) }

// longWalk is Long for a command that walks over all items of a container.
func (c *Ctx) longWalk(key []byte) error { return c.Long(c.Tx.ValueSize(key) * walkBytes) }

func fieldValues() Arg { return Repeat(Block("field_value", Str("field"), Str("value"))) }

var specHSet = Spec{
	Name: "hset", Group: GroupHash, Since: "2.0.0",
	Complexity: "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is called with multiple field/value pairs.",
	Summary:    "Creates or modifies the value of a field in a hash.",
	Flags:      Write | DenyOOM | Fast,
	Args:       []Arg{Key("key", Update), fieldValues()},
	History:    []Change{{"4.0.0", "Accepts multiple `field` and `value` arguments."}},
	Replies:    "How many of the fields are new. Fields that are set lose their expiration time.",
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

func runHSet(c *Ctx) error {
	added, err := c.hset()
	if err != nil {
		return err
	}
	c.Out.Int(int64(added))
	return nil
}

// hset sets the fields of HSET and HMSET.
func (c *Ctx) hset() (added int, err error) {
	if len(c.Args)%2 != 0 {
		return 0, WrongArity(c.Spec)
	}
	if err := c.longFields(len(c.Args)); err != nil {
		return 0, err
	}
	return c.Tx.HSet(c.Args[1], c.Args[2:])
}

var specHMSet = Spec{
	Name: "hmset", Group: GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the number of fields being set.",
	Summary:    "Sets the values of multiple fields.",
	Flags:      Write | DenyOOM | Fast,
	Args:       []Arg{Key("key", Update), fieldValues()},
	Deprecated: &Deprecation{"4.0.0", "`HSET` with multiple field-value pairs"},
	Examples: `
> HMSET user name Ada age 36
OK
> HMGET user name age
1) "Ada"
2) "36"
`,
	Run: runHMSet,
}

func runHMSet(c *Ctx) error {
	if _, err := c.hset(); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specHSetNX = Spec{
	Name: "hsetnx", Group: GroupHash, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Sets the value of a field in a hash only when the field doesn't exist.",
	Flags:   Write | DenyOOM | Fast,
	Args:    []Arg{Key("key", Insert), Str("field"), Str("value")},
	Replies: "1 if the field was set, 0 if it was there already.",
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

func runHSetNX(c *Ctx) error {
	set, err := c.Tx.HSetNX(c.Args[1], c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	c.Out.Int(b2i(set))
	return nil
}

var specHGet = Spec{
	Name: "hget", Group: GroupHash, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Returns the value of a field in a hash.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Read), Str("field")},
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

func runHGet(c *Ctx) error {
	val, ok, err := c.Tx.HGet(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	c.bulkOrNull(val, ok)
	return nil
}

var specHMGet = Spec{
	Name: "hmget", Group: GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the number of fields being requested.",
	Summary: "Returns the values of multiple fields in a hash.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Read), Many("field")},
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

func runHMGet(c *Ctx) error {
	fields := c.Args[2:]
	if err := c.longFields(len(fields)); err != nil {
		return err
	}
	h, err := c.Tx.Hash(c.Args[1])
	if err != nil {
		return err
	}

	c.Out.Array(len(fields))
	for _, f := range fields {
		c.bulkOrNull(h.Get(f))
	}
	return nil
}

// hashOrder are the hints of commands that return fields in no order.
var hashOrder = []string{"nondeterministic_output_order"}

var specHGetAll = Spec{
	Name: "hgetall", Group: GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the size of the hash.",
	Summary: "Returns all fields and values in a hash.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read), Opt(Token("WITHTTL"))},
	Tips:    hashOrder,
	Replies: "A map, in RESP2 an array of fields and values; empty if there is no such key. With WITHTTL an array of arrays of field, value, and what is left of the field's life in ms, -1 where nothing ends it.",
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HGETALL user
1) "name"
2) "Ada"
3) "age"
4) "36"
> HGETALL nobody
(empty array)
`,
	Run:   runHGetAll,
	Takes: takesWithTTL,
}

func runHGetAll(c *Ctx) error {
	ttls := len(c.Args) == 3
	h, err := c.wholeHash()
	if err != nil {
		return err
	}

	if ttls {
		c.Out.Array(h.Len())
		h.EachTimed(func(field, value []byte, deadline int64) {
			c.Out.Array(3)
			c.Out.Bulk(field)
			c.Out.Bulk(value)
			c.Out.Int(c.ttlOf(deadline))
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
func (c *Ctx) wholeHash() (engine.HashView, error) {
	if err := c.longWalk(c.Args[1]); err != nil {
		return engine.HashView{}, err
	}
	return c.Tx.Hash(c.Args[1])
}

var specHKeys = Spec{
	Name: "hkeys", Group: GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the size of the hash.",
	Summary: "Returns all fields in a hash.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read)},
	Tips:    hashOrder,
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HKEYS user
1) "name"
2) "age"
> HKEYS nobody
(empty array)
`,
	Run: runHKeys,
}

func runHKeys(c *Ctx) error {
	h, err := c.wholeHash()
	if err != nil {
		return err
	}

	c.Out.Array(h.Len())
	h.Each(func(field, _ []byte) { c.Out.Bulk(field) })
	return nil
}

var specHVals = Spec{
	Name: "hvals", Group: GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the size of the hash.",
	Summary: "Returns all values in a hash.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read)},
	Tips:    hashOrder,
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HVALS user
1) "Ada"
2) "36"
> HVALS nobody
(empty array)
`,
	Run: runHVals,
}

func runHVals(c *Ctx) error {
	h, err := c.wholeHash()
	if err != nil {
		return err
	}

	c.Out.Array(h.Len())
	h.Each(func(_, value []byte) { c.Out.Bulk(value) })
	return nil
}

var specHLen = Spec{
	Name: "hlen", Group: GroupHash, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Returns the number of fields in a hash.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Meta)},
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HLEN user
(integer) 2
> HLEN nobody
(integer) 0
`,
	Run: runHLen,
}

func runHLen(c *Ctx) error {
	h, err := c.Tx.Hash(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Int(int64(h.Len()))
	return nil
}

var specHStrLen = Spec{
	Name: "hstrlen", Group: GroupHash, Since: "3.2.0", Complexity: "O(1)",
	Summary: "Returns the length of the value of a field.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Meta), Str("field")},
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

func runHStrLen(c *Ctx) error {
	val, _, err := c.Tx.HGet(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	c.Out.Int(int64(len(val)))
	return nil
}

var specHExists = Spec{
	Name: "hexists", Group: GroupHash, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Determines whether a field exists in a hash.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Meta), Str("field")},
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

func runHExists(c *Ctx) error {
	_, ok, err := c.Tx.HGet(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	c.Out.Int(b2i(ok))
	return nil
}

var specHDel = Spec{
	Name: "hdel", Group: GroupHash, Since: "2.0.0", Complexity: "O(N) where N is the number of fields to be removed.",
	Summary: "Deletes one or more fields and their values from a hash. Deletes the hash if no fields remain.",
	Flags:   Write | Fast,
	Args:    []Arg{Key("key", Delete), Many("field")},
	History: []Change{{"2.4.0", "Accepts multiple `field` arguments."}},
	Replies: "How many of the fields were there.",
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

func runHDel(c *Ctx) error {
	if err := c.longFields(len(c.Args)); err != nil {
		return err
	}
	n, err := c.Tx.HDel(c.Args[1], c.Args[2:])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specHIncrBy = Spec{
	Name: "hincrby", Group: GroupHash, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Increments the integer value of a field in a hash by a number. Uses 0 as initial value if the field doesn't exist.",
	Flags:   Write | DenyOOM | Fast,
	Args:    []Arg{Key("key", Update|Access), Str("field"), Int("increment")},
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

func runHIncrBy(c *Ctx) error {
	by, ok := resp.ParseInt(c.Args[3])
	if !ok {
		return ErrNotInteger
	}
	n, err := c.Tx.HIncrBy(c.Args[1], c.Args[2], by)
	if err != nil {
		return err
	}
	c.Out.Int(n)
	return nil
}

var specHIncrByFloat = Spec{
	Name: "hincrbyfloat", Group: GroupHash, Since: "2.6.0", Complexity: "O(1)",
	Summary: "Increments the floating point value of a field by a number. Uses 0 as initial value if the field doesn't exist.",
	Flags:   Write | DenyOOM | Fast,
	Args:    []Arg{Key("key", Update|Access), Str("field"), Double("increment")},
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

func runHIncrByFloat(c *Ctx) error {
	n, err := c.Tx.HIncrByFloat(c.Args[1], c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	c.Out.Bulk(n)
	return nil
}
