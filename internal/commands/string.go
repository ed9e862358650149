package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

// These are the commands on one string. string_number.go has the commands on numbers, string_many.go those on
// several keys, and string_compare.go the comparisons.

var stringSpecs = []*command.Spec{
	&specGet, &specSet, &specSetNX, &specSetEX, &specPSetEX, &specGetSet, &specGetEx, &specGetDel,
	&specAppend, &specStrLen, &specGetRange, &specSubstr, &specSetRange,
	&specIncr, &specDecr, &specIncrBy, &specDecrBy, &specIncrByFloat, &specIncrEx,
	&specMGet, &specMSet, &specMSetNX, &specMSetEx,
	&specDelEx, &specDelIfEq, &specDigest, &specLCS,
	&specGetFresh, &specStale, &specUnlease, &specEbbFresh, &specEbbLease,
}

// expiryArgs returns the grammar of the expiry options of SET and similar commands.
func expiryArgs(more ...command.Arg) command.Arg {
	return command.Opt(command.OneOf("expiration", append([]command.Arg{
		command.TokenArg("EX", command.Int("seconds")),
		command.TokenArg("PX", command.Int("milliseconds")),
		command.TokenArg("EXAT", command.UnixTime("unix-time-seconds")),
		command.TokenArg("PXAT", command.UnixTime("unix-time-milliseconds")),
	}, more...)...))
}

// setExpiryArgs returns the grammar of SET's own expiry options, each with the version that added
// it.
func setExpiryArgs() command.Arg {
	a := expiryArgs(command.Token("KEEPTTL").Since("6.0.0"))
	a.Args[0].Added, a.Args[1].Added = "2.6.12", "2.6.12"
	a.Args[2].Added, a.Args[3].Added = "6.2.0", "6.2.0"
	return a
}

// modifiers returns the grammar of the options that ebb adds to a time.
func modifiers() []command.Arg {
	return []command.Arg{command.Opt(command.TokenArg("JITTER", command.Int("percent"))), command.Opt(command.Token("SLIDE"))}
}

var specGet = command.Spec{
	Name: "get", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Returns the string value of a key.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Examples: `
> GET nothing
(nil)
> SET greeting Hello
OK
> GET greeting
"Hello"
`,
	Run: runGet,
}

func runGet(c *command.Ctx) error {
	val, ok, err := c.Tx.Get(c.Args[1])
	if err != nil {
		return err
	}
	stringOrNull(c, c.Args[1], val, ok)
	return nil
}

// stringOrNull replies with the string of a key, or with null if ok is false.
func stringOrNull(c *command.Ctx, key, val []byte, ok bool) {
	switch {
	case !ok:
		c.Out.Null()
	case len(val) < command.ShareFrom:
		c.Out.Bulk(val)
	default:
		c.BulkOfKey(key, val)
	}
}

// bulkOrNull replies with a string, or with null if ok is false.
func bulkOrNull(c *command.Ctx, val []byte, ok bool) {
	if ok {
		c.Out.Bulk(val)
	} else {
		c.Out.Null()
	}
}

var specSet = command.Spec{
	Name: "set", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Reveals,
	Lacks:   command.OnlyWith(command.Reveals, 3, "IFEQ", "IFNE", "IFDEQ", "IFDNE"),
	Args: []command.Arg{
		command.Key("key", command.Update|command.Access|command.VariableFlags).Note("RW and ACCESS due to the optional " +
			"`GET` argument"), command.Str("value"),
		command.Opt(command.OneOf("condition", command.Token("NX"), command.Token("XX"),
			command.TokenArg("IFEQ", command.Str("ifeq-value")), command.TokenArg("IFNE", command.Str("ifne-value")),
			command.TokenArg("IFDEQ", command.Str("ifdeq-digest")), command.TokenArg("IFDNE", command.Str("ifdne-digest")),
			command.TokenArg("IFTOKEN", command.Int("token")))).Since("2.6.12"),
		command.Opt(command.Token("GET")).Since("6.2.0"),
		setExpiryArgs(),
		command.Opt(command.TokenArg("JITTER", command.Int("percent"))),
		command.Opt(command.Token("SLIDE")),
		command.Opt(command.TokenArg("FRESH", command.Int("span"))),
	},
	History: []command.Change{{Since: "2.6.12", Text: "Added the `EX`, `PX`, `NX` and `XX` options."},
		{Since: "6.0.0", Text: "Added the `KEEPTTL` option."},
		{Since: "6.2.0", Text: "Added the `GET`, `EXAT` and `PXAT` option."},
		{Since: "7.0.0", Text: "Allowed the `NX` and `GET` options to be used together."}},
	Replies: "OK, or nil if a condition was not met. With GET the old value, nil if there was none. FRESH gives the key a " +
		"second, earlier deadline: a span from now, in the unit of the time beside it; GETFRESH tells a fresh value from a stale one. " +
		"Without FRESH a value is always fresh. IFTOKEN sets only if this is the key's refresh token, which GETFRESH has given " +
		"and nothing has ended since.",
	Errors: freshErrors,
	Examples: `
> SET k v
OK
> SET k w NX
(nil)
> SET k w XX GET
"v"
> SET k x PX 1500
OK
> PTTL k
(integer) 1500
~ 1500ms
> GET k
"x"
~ 1ms
> GET k
(nil)
`,
	Keys: setKeys,
	Run:  runSet,
}

// setKeys finds SET's key. The command reads it only with GET, or with a condition on the old
// value.
func setKeys(dst []command.KeyRef, args [][]byte) ([]command.KeyRef, error) {
	use := command.Overwrite
	for _, a := range args[3:] {
		if command.EqualFold(a, "GET") || command.EqualFold(a, "IFEQ") || command.EqualFold(a, "IFNE") || command.EqualFold(a, "IFDEQ") ||
			command.EqualFold(a, "IFDNE") {
			use = command.Update | command.Access
		}
	}
	return append(dst, command.KeyRef{Pos: 1, Flags: use}), nil
}

func runSet(c *command.Ctx) error {
	var life lifetime
	var o engine.SetOptions
	var fresh []byte
	args := c.Args
	for i := 3; i < len(args); {
		n, err := setOption(&o, args, i)
		if n == 0 && err == nil && command.EqualFold(args[i], "FRESH") && i+1 < len(args) {
			n, fresh = 2, args[i+1]
		}
		if n == 0 && err == nil {
			n, err = life.option(args, i, true, false)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return command.ErrSyntax
		}
		i += n
	}
	if err := life.resolve(c, true); err != nil {
		return err
	}
	o.Deadline, o.Span, o.KeepTTL = life.deadline, life.span, life.keep
	if fresh != nil {
		var err error
		if o.Fresh, err = life.fresh(c, fresh); err != nil {
			return err
		}
	}

	done, old, err := c.Tx.Set(args[1], args[2], o, c.Scratch[:0])
	if err != nil {
		return err
	}

	switch {
	case o.Get:
		if old != nil {
			c.BulkOfOwn(old)
		} else {
			c.Out.Null()
		}
		c.KeepScratch(old)
	case done:
		c.Out.OK()
	default:
		c.Out.Null()
	}
	return nil
}

// setOption reads one of SET's own options and returns how many arguments it
// took.
func setOption(o *engine.SetOptions, args [][]byte, i int) (int, error) {
	a := args[i]
	switch {
	case command.EqualFold(a, "NX"):
		if o.IfExists || o.Compare != engine.Always || o.Token != 0 {
			return 0, command.ErrSyntax
		}
		o.IfAbsent = true
		return 1, nil
	case command.EqualFold(a, "XX"):
		if o.IfAbsent || o.Compare != engine.Always || o.Token != 0 {
			return 0, command.ErrSyntax
		}
		o.IfExists = true
		return 1, nil
	case command.EqualFold(a, "GET"):
		o.Get = true
		return 1, nil
	}
	c, token := comparison(a), command.EqualFold(a, "IFTOKEN")
	if c == engine.Always && !token {
		return 0, nil
	}
	if i+1 >= len(args) || o.IfAbsent || o.IfExists || o.Compare != engine.Always || o.Token != 0 {
		return 0, command.ErrSyntax
	}
	if token {
		var err error
		o.Token, err = parseToken(args[i+1])
		return 2, err
	}
	o.Compare, o.Value = c, args[i+1]
	return 2, checkDigest(c, o.Value)
}

var specSetNX = command.Spec{
	Name: "setnx", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Sets the string value of a key only when the key doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.KeyOW|command.Insert), command.Str("value")},
	Replies: "1 if the key was set, 0 if it existed.",
	Examples: `
> SETNX k v
(integer) 1
> SETNX k w
(integer) 0
> GET k
"v"
`,
	Run: runSetNX,
}

func runSetNX(c *command.Ctx) error {
	done, _, err := c.Tx.Set(c.Args[1], c.Args[2], engine.SetOptions{IfAbsent: true}, nil)
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(done))
	return nil
}

var specSetEX = command.Spec{
	Name: "setex", Group: command.GroupString, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Sets the string value and expiration time of a key. Creates the key if it doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Overwrite), command.Int("seconds"), command.Str("value")},
	Examples: `
> SETEX k 10 v
OK
> TTL k
(integer) 10
> SETEX k 0 v
(error) ERR invalid expire time in 'setex' command
`,
	Run: func(c *command.Ctx) error { return runSetEX(c, seconds) },
}

var specPSetEX = command.Spec{
	Name: "psetex", Group: command.GroupString, Since: "2.6.0", Complexity: "O(1)",
	Summary: "Sets both string value and expiration time in milliseconds of a key. The key is created if it doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Overwrite), command.Int("milliseconds"), command.Str("value")},
	Examples: `
> PSETEX k 1500 v
OK
> PTTL k
(integer) 1500
~ 1501ms
> GET k
(nil)
`,
	Run: func(c *command.Ctx) error { return runSetEX(c, millis) },
}

func runSetEX(c *command.Ctx, unit timeUnit) error {
	life := lifetime{unit: unit, arg: c.Args[2]}
	if err := life.resolve(c, true); err != nil {
		return err
	}
	if _, _, err := c.Tx.Set(c.Args[1], c.Args[3], engine.SetOptions{Deadline: life.deadline}, nil); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specGetSet = command.Spec{
	Name: "getset", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary:    "Returns the previous string value of a key after setting it to a new value.",
	Flags:      command.Write | command.DenyOOM | command.Fast | command.Blind,
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`SET` with the `!GET` argument"},
	Args:       []command.Arg{command.Key("key", command.Update|command.Access), command.Str("value")},
	Examples: `
> GETSET k v
(nil)
> GETSET k w
"v"
> GET k
"w"
`,
	Run: runGetSet,
}

func runGetSet(c *command.Ctx) error {
	_, old, err := c.Tx.Set(c.Args[1], c.Args[2], engine.SetOptions{Get: true}, c.Scratch[:0])
	if err != nil {
		return err
	}
	bulkOrNull(c, old, old != nil)
	c.KeepScratch(old)
	return nil
}

var specGetEx = command.Spec{
	Name: "getex", Group: command.GroupString, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Returns the string value of a key after setting its expiration time.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args: append([]command.Arg{command.Key("key", command.Update|command.Access).Note("RW and UPDATE because it changes the TTL"),
		expiryArgs(command.Token("PERSIST"))}, modifiers()...),
	Replies: "The value, nil if there is no such key.",
	Examples: `
> SET k v
OK
> GETEX k PX 1500
"v"
> PTTL k
(integer) 1500
> GETEX k PERSIST
"v"
> PTTL k
(integer) -1
> GETEX nothing EX 10
(nil)
`,
	Run: runGetEx,
}

func runGetEx(c *command.Ctx) error {
	var life lifetime
	for i := 2; i < len(c.Args); {
		n, err := life.option(c.Args, i, false, true)
		if err != nil {
			return err
		}
		if n == 0 {
			return command.ErrSyntax
		}
		i += n
	}

	// Redis looks up the key before it checks the time.
	val, ok, err := c.Tx.Get(c.Args[1])
	if err != nil || !ok {
		bulkOrNull(c, nil, false)
		return err
	}
	if err := life.resolve(c, true); err != nil {
		return err
	}
	c.BulkOfKey(c.Args[1], val)
	switch {
	case life.deadline != 0:
		c.Tx.Expire(c.Args[1], life.deadline, life.span, 0)
	case life.persist:
		c.Tx.Persist(c.Args[1])
	}
	return nil
}

var specGetDel = command.Spec{
	Name: "getdel", Group: command.GroupString, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Returns the string value of a key after deleting the key.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete)},
	Examples: `
> SET k v
OK
> GETDEL k
"v"
> GETDEL k
(nil)
`,
	Run: runGetDel,
}

func runGetDel(c *command.Ctx) error {
	val, ok, err := c.Tx.GetDel(c.Args[1], c.Scratch[:0])
	if err != nil {
		return err
	}
	if ok {
		c.BulkOfOwn(val)
	} else {
		c.Out.Null()
	}
	c.KeepScratch(val)
	return nil
}

var specAppend = command.Spec{
	Name: "append", Group: command.GroupString, Since: "2.0.0",
	Complexity: "O(1) amortized; a small string that outgrows its place is copied once.",
	Summary:    "Appends a string to the value of a key. Creates the key if it doesn't exist.",
	Flags:      command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args:       []command.Arg{command.Key("key", command.Insert), command.Str("value")},
	Replies:    "The new length.",
	Examples: `
> APPEND k Hello
(integer) 5
> APPEND k " World"
(integer) 11
> GET k
"Hello World"
`,
	Run: runAppend,
}

func runAppend(c *command.Ctx) error {
	n, err := c.Tx.Append(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specStrLen = command.Spec{
	Name: "strlen", Group: command.GroupString, Since: "2.2.0", Complexity: "O(1)",
	Summary: "Returns the length of a string value.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Examples: `
> SET k Hello
OK
> STRLEN k
(integer) 5
> STRLEN nothing
(integer) 0
`,
	Run: runStrLen,
}

func runStrLen(c *command.Ctx) error {
	n, err := c.Tx.StrLen(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specGetRange = command.Spec{
	Name: "getrange", Group: command.GroupString, Since: "2.4.0", Complexity: "O(N) where N is the length of the returned string.",
	Summary: "Returns a substring of the string stored at a key.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read), command.Int("start"), command.Int("end")},
	Replies: "The bytes from start to end, both included; negative offsets count from the end.",
	Examples: `
> SET k "This is a string"
OK
> GETRANGE k 0 3
"This"
> GETRANGE k -3 -1
"ing"
> GETRANGE k 10 100
"string"
`,
	Run: runGetRange,
}

var specSubstr = command.Spec{
	Name: "substr", Group: command.GroupString, Since: "1.0.0", Complexity: "O(N) where N is the length of the returned string.",
	Summary:    "Returns a substring from a string value.",
	Flags:      command.ReadOnly | command.Blind,
	Deprecated: &command.Deprecation{Since: "2.0.0", ReplacedBy: "`GETRANGE`"},
	Args:       []command.Arg{command.Key("key", command.Read), command.Int("start"), command.Int("end")},
	Examples: `
> SET k Hello
OK
> SUBSTR k 1 2
"el"
`,
	Run: runGetRange,
}

func runGetRange(c *command.Ctx) error {
	start, end, err := command.ParseTwo(c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	part, err := c.Tx.GetRange(c.Args[1], start, end)
	if err != nil {
		return err
	}
	c.BulkOfKey(c.Args[1], part)
	return nil
}

var specSetRange = command.Spec{
	Name: "setrange", Group: command.GroupString, Since: "2.2.0",
	Complexity: "O(1), beside copying the value and, where the string grows, the string.",
	Summary:    "Overwrites a part of a string value with another by an offset. Creates the key if it doesn't exist.",
	Flags:      command.Write | command.DenyOOM | command.Blind,
	Args:       []command.Arg{command.Key("key", command.Update), command.Int("offset"), command.Str("value")},
	Replies:    "The new length.",
	Examples: `
> SET k "Hello World"
OK
> SETRANGE k 6 Redis
(integer) 11
> GET k
"Hello Redis"
> SETRANGE padded 3 x
(integer) 4
> GET padded
"\x00\x00\x00x"
`,
	Run: runSetRange,
}

const errOffset = command.ReplyError("ERR offset is out of range")

func runSetRange(c *command.Ctx) error {
	offset, ok := numeral.ParseInt(c.Args[2])
	switch {
	case !ok:
		return command.ErrNotInteger
	case offset < 0:
		return errOffset
	}
	if err := c.Long(growth(c, offset)); err != nil {
		return err
	}
	n, err := c.Tx.SetRange(c.Args[1], offset, c.Args[3])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

// growth returns how many bytes longer the string of the first key must become to reach an offset.
func growth(c *command.Ctx, offset int64) int {
	if offset <= command.LongBytes {
		return 0
	}
	return int(min(offset, int64(c.Tx.DB().MaxString()))) - c.Tx.StrSize(c.Args[1])
}
