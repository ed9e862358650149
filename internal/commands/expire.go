package commands

import (
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
)

var keyExpirySpecs = []*command.Spec{&specExpire, &specPExpire, &specExpireAt, &specPExpireAt,
	&specTTL, &specPTTL, &specExpireTime, &specPExpireTime, &specPersist}

// expireArgs returns the grammar of EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.
func expireArgs(time command.Arg) []command.Arg {
	return []command.Arg{command.Key("key", command.Update), time,
		command.Opt(command.OneOf("condition", command.Token("NX"), command.Token("XX"), command.Token("GT"),
			command.Token("LT"))).Since("7.0.0"),
		command.Opt(command.TokenArg("JITTER", command.Int("percent"))),
		command.Opt(command.Token("SLIDE"))}
}

var expireHistory = []command.Change{{Since: "7.0.0", Text: "Added options: `NX`, `XX`, `GT` and `LT`."}}

const expireReplies = "1 if the time was set, or the key deleted because the time is not in the future; 0 if there is no such key or the " +
	"condition is not met. NX: only if the key has no deadline, XX: only if it has one, GT and LT: only if the new one is later, earlier; " +
	"no deadline counts as infinite. JITTER adds a random share, of at most the percentage; SLIDE lets reads of the value " +
	"extend the deadline " +
	"by the same span."

var specExpire = command.Spec{
	Name: "expire", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Sets the expiration time of a key in seconds.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    expireArgs(command.Int("seconds")),
	History: expireHistory,
	Replies: expireReplies,
	Examples: `
> SET k v
OK
> EXPIRE k 10
(integer) 1
> TTL k
(integer) 10
> EXPIRE k 5 GT
(integer) 0
> EXPIRE k 5 LT
(integer) 1
~ 5001ms
> EXISTS k
(integer) 0
> EXPIRE k 5
(integer) 0
`,
	Run: func(c *command.Ctx) error { return runExpire(c, seconds) },
}

var specPExpire = command.Spec{
	Name: "pexpire", Group: command.GroupGeneric, Since: "2.6.0", Complexity: "O(1)",
	Summary: "Sets the expiration time of a key in milliseconds.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    expireArgs(command.Int("milliseconds")),
	History: expireHistory,
	Replies: expireReplies,
	Examples: `
> SET session s
OK
> PEXPIRE session 1500 SLIDE
(integer) 1
~ 1000ms
> GET session
"s"
~ 1500ms
> PTTL session
(integer) 0
~ 1ms
> GET session
(nil)
`,
	Run: func(c *command.Ctx) error { return runExpire(c, millis) },
}

var specExpireAt = command.Spec{
	Name: "expireat", Group: command.GroupGeneric, Since: "1.2.0", Complexity: "O(1)",
	Summary: "Sets the expiration time of a key to a Unix timestamp.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    expireArgs(command.UnixTime("unix-time-seconds")),
	History: expireHistory,
	Replies: expireReplies,
	Examples: `
> SET k v
OK
> EXPIREAT k 33177117420
(integer) 1
> EXPIRETIME k
(integer) 33177117420
> EXPIREAT k 1
(integer) 1
> EXISTS k
(integer) 0
`,
	Run: func(c *command.Ctx) error { return runExpire(c, unixSeconds) },
}

var specPExpireAt = command.Spec{
	Name: "pexpireat", Group: command.GroupGeneric, Since: "2.6.0", Complexity: "O(1)",
	Summary: "Sets the expiration time of a key to a Unix timestamp in milliseconds.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    expireArgs(command.UnixTime("unix-time-milliseconds")),
	History: expireHistory,
	Replies: expireReplies,
	Examples: `
> SET k v
OK
> PEXPIREAT k 33177117420000 NX
(integer) 1
> PEXPIREAT k 33177117420001 NX
(integer) 0
> PEXPIRETIME k
(integer) 33177117420000
`,
	Run: func(c *command.Ctx) error { return runExpire(c, unixMillis) },
}

// runExpire runs EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.
func runExpire(c *command.Ctx, unit timeUnit) error {
	life := lifetime{unit: unit, arg: c.Args[2]}
	var cond engine.Condition
	for i := 3; i < len(c.Args); {
		n, err := expireOption(&cond, c.Args[i])
		if err == nil && n == 0 {
			n, err = life.modifier(c.Args, i)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return command.ReplyError(cleantext.Reply("ERR Unsupported option " + string(command.Clip(c.Args[i], 128))))
		}
		i += n
	}
	if cond&engine.IfNone != 0 && cond != engine.IfNone {
		return command.ReplyError("ERR NX and XX, GT or LT options at the same time are not compatible")
	}
	if cond&engine.IfLater != 0 && cond&engine.IfEarlier != 0 {
		return command.ReplyError("ERR GT and LT options at the same time are not compatible")
	}
	if err := life.resolve(c, false); err != nil {
		return err
	}

	ok := c.Tx.Expire(c.Args[1], life.deadline, life.span, cond)

	c.Out.Int(command.BoolToInt(ok))
	return nil
}

func expireOption(cond *engine.Condition, a []byte) (int, error) {
	switch {
	case command.EqualFold(a, "NX"):
		*cond |= engine.IfNone
	case command.EqualFold(a, "XX"):
		*cond |= engine.IfSome
	case command.EqualFold(a, "GT"):
		*cond |= engine.IfLater
	case command.EqualFold(a, "LT"):
		*cond |= engine.IfEarlier
	default:
		return 0, nil
	}
	return 1, nil
}

const ttlReplies = "The time, -1 if the key has none, -2 if there is no such key. Asking is not an access: a sliding deadline stays."

var specTTL = command.Spec{
	Name: "ttl", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Returns the expiration time in seconds of a key.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read), command.Opt(command.Str("member"))},
	Tips:    []string{"nondeterministic_output"},
	History: []command.Change{{Since: "2.8.0", Text: "Added the -2 reply."}},
	Replies: ttlReplies + itemTTLReplies + " Seconds are rounded up for a member, to the nearest for a key.",
	Examples: `
> TTL k
(integer) -2
> SET k v
OK
> TTL k
(integer) -1
> EXPIRE k 10
(integer) 1
~ 400ms
> TTL k
(integer) 10
~ 200ms
> TTL k
(integer) 9
`,
	Run:   runTTL,
	Takes: takesItem,
}

const itemTTLReplies = " With a member, as KeyDB has it, of that field of a hash or member of a set or sorted set."

func runTTL(c *command.Ctx) error {
	if item := c.Args[2:]; len(item) > 0 {
		return replyItemTTL(c, item, roundUp)
	}
	c.Out.Int(toSeconds(c.Tx.TTL(c.Args[1])))
	return nil
}

// toSeconds rounds milliseconds to the nearest second; it returns NoDeadline and NoKey unchanged.
func toSeconds(ms int64) int64 {
	if ms < 0 {
		return ms
	}
	return (ms + 500) / 1000
}

var specPTTL = command.Spec{
	Name: "pttl", Group: command.GroupGeneric, Since: "2.6.0", Complexity: "O(1)",
	Summary: "Returns the expiration time in milliseconds of a key.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read), command.Opt(command.Str("member"))},
	Tips:    []string{"nondeterministic_output"},
	History: []command.Change{{Since: "2.8.0", Text: "Added the -2 reply."}},
	Replies: ttlReplies + itemTTLReplies,
	Examples: `
> PTTL k
(integer) -2
> SET k v PX 1500
OK
~ 400ms
> PTTL k
(integer) 1100
> PERSIST k
(integer) 1
> PTTL k
(integer) -1
`,
	Run:   runPTTL,
	Takes: takesItem,
}

func runPTTL(c *command.Ctx) error {
	if item := c.Args[2:]; len(item) > 0 {
		return replyItemTTL(c, item, nil)
	}
	c.Out.Int(c.Tx.TTL(c.Args[1]))
	return nil
}

var specExpireTime = command.Spec{
	Name: "expiretime", Group: command.GroupGeneric, Since: "7.0.0", Complexity: "O(1)",
	Summary: "Returns the expiration time of a key as a Unix timestamp.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Replies: ttlReplies,
	Examples: `
> EXPIRETIME k
(integer) -2
> SET k v
OK
> EXPIRETIME k
(integer) -1
> EXPIREAT k 33177117420
(integer) 1
> EXPIRETIME k
(integer) 33177117420
`,
	Run: runExpireTime,
}

func runExpireTime(c *command.Ctx) error {
	c.Out.Int(toSeconds(c.Tx.Deadline(c.Args[1])))
	return nil
}

var specPExpireTime = command.Spec{
	Name: "pexpiretime", Group: command.GroupGeneric, Since: "7.0.0", Complexity: "O(1)",
	Summary: "Returns the expiration time of a key as a Unix timestamp in milliseconds.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Replies: ttlReplies,
	Examples: `
> SET k v
OK
> PEXPIRETIME k
(integer) -1
> EXPIREAT k 33177117420
(integer) 1
> PEXPIRETIME k
(integer) 33177117420000
`,
	Run: runPExpireTime,
}

func runPExpireTime(c *command.Ctx) error {
	c.Out.Int(c.Tx.Deadline(c.Args[1]))
	return nil
}

var specPersist = command.Spec{
	Name: "persist", Group: command.GroupGeneric, Since: "2.2.0", Complexity: "O(1)",
	Summary: "Removes the expiration time of a key.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Update), command.Opt(command.Str("member"))},
	Replies: "1 if it was removed, 0 if there is no such key, or the key has none." + itemTTLReplies,
	Examples: `
> SET k v EX 10
OK
> PERSIST k
(integer) 1
> TTL k
(integer) -1
> PERSIST k
(integer) 0
`,
	Run:   runPersist,
	Takes: takesItem,
}

func runPersist(c *command.Ctx) error {
	var done bool
	var err error
	if item := c.Args[2:]; len(item) == 0 {
		done = c.Tx.Persist(c.Args[1])
	} else if done, err = persistItem(c, c.Args[1], item); err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(done))
	return nil
}
