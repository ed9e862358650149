package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
)

// These commands on single items have the names that KeyDB and Dragonfly use, so that their clients work
// unchanged.

var itemAliasSpecs = []*command.Spec{&specExpireMember, &specExpireMemberAt, &specPExpireMemberAt, &specFieldExpire, &specFieldTTL}

// familyOf returns the family of the container that a key holds, nil if the key does not exist. If the
// value's items have no names or deadlines, it returns ErrWrongType.
func familyOf(c *command.Ctx, key []byte) (*itemFamily, error) {
	switch c.Tx.Type(key) {
	case engine.None:
		return nil, nil
	case engine.Hash:
		return &hashItems, nil
	case engine.Set:
		return &setItems, nil
	case engine.ZSet:
		return &sortedSetItems, nil
	}
	return nil, command.ErrWrongType
}

const memberReplies = "1 if the time was set, or the member deleted because the time is not in the future; 0 if there is no " +
	"such member or no such key. A member is a field of a hash, or a member of a set or a sorted set. As in KeyDB; HEXPIRE, " +
	"SEXPIRE and ZEXPIRE can do more."

var specExpireMember = command.Spec{
	Name: "expiremember", Group: command.GroupGeneric, Since: "0.4.0", Complexity: "O(1)",
	Summary: "Sets the expiration time of a member of a hash, set or sorted set.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args: []command.Arg{command.Key("key", command.Update), command.Str("member"), command.Int("delay"),
		command.Opt(command.OneOf("unit", command.Token("S"), command.Token("MS")))},
	Replies: memberReplies + " The delay is in seconds, with `ms` in milliseconds.",
	Errors:  []string{"ERR invalid expire time, must be >= 0: the delay is negative"},
	Examples: `
> HSET h f v g w
(integer) 2
> EXPIREMEMBER h f 10
(integer) 1
> TTL h f
(integer) 10
> EXPIREMEMBER h g 1500 ms
(integer) 1
~ 1501ms
> HKEYS h
1) "f"
`,
	Run: func(c *command.Ctx) error {
		unit := seconds
		switch n := len(c.Args); {
		case n == 5 && command.EqualFold(c.Args[4], "MS"):
			unit = millis
		case n > 4 && (n > 5 || !command.EqualFold(c.Args[4], "S")):
			return command.ErrSyntax
		}
		return runExpireMember(c, unit)
	},
}

var specExpireMemberAt = command.Spec{
	Name: "expirememberat", Group: command.GroupGeneric, Since: "0.4.0", Complexity: "O(1)",
	Summary: "Sets the expiration time of a member of a hash, set or sorted set to a Unix timestamp.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Update), command.Str("member"), command.UnixTime("unix-time-seconds")},
	Replies: memberReplies,
	Errors:  []string{"ERR invalid expire time, must be >= 0: the time is negative"},
	Examples: `
> SADD s m n
(integer) 2
> EXPIREMEMBERAT s m 33177117420
(integer) 1
> SEXPIRETIME s MEMBERS 1 m
1) (integer) 33177117420
> EXPIREMEMBERAT s m 1
(integer) 1
> SMEMBERS s
1) "n"
`,
	Run: func(c *command.Ctx) error { return runExpireMember(c, unixSeconds) },
}

var specPExpireMemberAt = command.Spec{
	Name: "pexpirememberat", Group: command.GroupGeneric, Since: "0.4.0", Complexity: "O(1)",
	Summary: "Sets the expiration time of a member of a hash, set or sorted set to a Unix timestamp in milliseconds.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Update), command.Str("member"), command.UnixTime("unix-time-milliseconds")},
	Replies: memberReplies,
	Errors:  []string{"ERR invalid expire time, must be >= 0: the time is negative"},
	Examples: `
> ZADD z 1 m
(integer) 1
> PEXPIREMEMBERAT z m 33177117420000
(integer) 1
> ZPEXPIRETIME z MEMBERS 1 m
1) (integer) 33177117420000
> PEXPIREMEMBERAT z n 33177117420000
(integer) 0
`,
	Run: func(c *command.Ctx) error { return runExpireMember(c, unixMillis) },
}

func runExpireMember(c *command.Ctx, unit timeUnit) error {
	t := itemTime{unit: unit}
	f, err := familyOf(c, c.Args[1])
	if err == nil {
		err = t.read(c, c.Args[3])
	}
	if err != nil {
		return err
	}

	set := false
	if f != nil {
		err = f.expire(c.Tx, c.Args[1], c.Args[2:3], t.resolve(c), 0, func(code int) { set = code >= engine.ItemDone })
	}
	if err != nil {
		return err
	}

	c.Out.Int(command.BoolToInt(set))
	return nil
}

// deadlineOf returns an item's deadline for TTL and PTTL. It returns NoDeadline if the item has none, and
// NoKey if the item or the key does not exist.
func deadlineOf(c *command.Ctx, key []byte, item [][]byte) (deadline int64, err error) {
	f, err := familyOf(c, key)
	if f == nil {
		return engine.NoKey, err
	}
	err = f.deadlines(c.Tx, key, item, func(d int64) { deadline = d })
	return deadline, err
}

// persistItem runs PERSIST for one item.
func persistItem(c *command.Ctx, key []byte, item [][]byte) (done bool, err error) {
	f, err := familyOf(c, key)
	if f == nil {
		return false, err
	}
	err = f.persist(c.Tx, key, item, func(code int) { done = code == engine.ItemDone })
	return done, err
}

var specFieldExpire = command.Spec{
	Name: "fieldexpire", Group: command.GroupGeneric, Since: "0.4.0", Complexity: "O(N) where N is the number of specified fields",
	Summary: "Sets the expiration time of fields of a hash, or members of a set or a sorted set, in seconds.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Update), command.Int("seconds"), command.Many("field")},
	Replies: "An array with an integer for each field: 1 if the time was set, 2 if the field was deleted because the " +
		"time is 0, -2 if there is no such field or no such key. " +
		"As in Dragonfly; HEXPIRE, SEXPIRE and ZEXPIRE can do more.",
	Errors: []string{"ERR invalid expire time, must be >= 0: the time is negative"},
	Examples: `
> HSET h f v
(integer) 1
> FIELDEXPIRE h 10 f g
1) (integer) 1
2) (integer) -2
> FIELDTTL h f
(integer) 10
`,
	Run: runFieldExpire,
}

func runFieldExpire(c *command.Ctx) error {
	t, fields := itemTime{unit: seconds}, c.Args[3:]
	f, err := familyOf(c, c.Args[1])
	if err == nil {
		err = t.read(c, c.Args[2])
	}
	if err == nil {
		err = longFields(c, len(fields))
	}
	if err != nil {
		return err
	}

	if f == nil {
		f = &hashItems // it replies that the item does not exist
	}
	codes := make([]int, 0, len(fields))
	err = f.expire(c.Tx, c.Args[1], fields, t.resolve(c), 0, func(code int) { codes = append(codes, code) })
	if err != nil {
		return err
	}

	c.Out.Array(len(codes))
	for _, code := range codes {
		c.Out.Int(int64(code))
	}
	return nil
}

var specFieldTTL = command.Spec{
	Name: "fieldttl", Group: command.GroupGeneric, Since: "0.4.0", Complexity: "O(1)",
	Summary: "Returns the time to live of a field of a hash, or a member of a set or a sorted set, in seconds.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read), command.Str("field")},
	Tips:    []string{"nondeterministic_output"},
	Replies: "The time, rounded up; -1 if the field has none, -2 if there is no such key, -3 if there is no such field. As in Dragonfly.",
	Examples: `
> SADD s m
(integer) 1
> FIELDTTL s m
(integer) -1
> FIELDEXPIRE s 10 m
1) (integer) 1
> FIELDTTL s m
(integer) 10
> FIELDTTL s n
(integer) -3
> FIELDTTL none n
(integer) -2
`,
	Run: runFieldTTL,
}

func runFieldTTL(c *command.Ctx) error {
	there := c.Tx.Exists(c.Args[1])
	d, err := deadlineOf(c, c.Args[1], c.Args[2:3])
	if err != nil {
		return err
	}
	ttl := shownAs(d, c.Tx.Millis(), roundUp, true)
	if there && d == engine.NoKey {
		ttl = -3
	}
	c.Out.Int(ttl)
	return nil
}

// replyItemTTL replies to TTL and PTTL for one item.
func replyItemTTL(c *command.Ctx, item [][]byte, unit func(int64) int64) error {
	d, err := deadlineOf(c, c.Args[1], item)
	if err != nil {
		return err
	}
	c.Out.Int(shownAs(d, c.Tx.Millis(), unit, true))
	return nil
}

// takesItem implements Spec.Takes for TTL, PTTL and PERSIST, which accept an item after the key, as
// in KeyDB.
func takesItem(args [][]byte) bool { return len(args) <= 3 }

// takesWithTTL implements Spec.Takes for commands that accept WITHTTL after a key.
func takesWithTTL(args [][]byte) bool {
	return len(args) == 2 || len(args) == 3 && command.EqualFold(args[2], "WITHTTL")
}

// ttlOf converts a deadline to the reply of WITHTTL: the remaining ms, or -1.
func ttlOf(c *command.Ctx, deadline int64) int64 { return shownAs(deadline, c.Tx.Millis(), nil, true) }
