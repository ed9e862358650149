package command

import (
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

// The commands of one string: strings_number.go has those of numbers,
// strings_many.go those of several keys, strings_compare.go the comparisons.

var stringSpecs = []*Spec{
	&specGet, &specSet, &specSetNX, &specSetEX, &specPSetEX, &specGetSet, &specGetEx, &specGetDel,
	&specAppend, &specStrLen, &specGetRange, &specSubstr, &specSetRange,
	&specIncr, &specDecr, &specIncrBy, &specDecrBy, &specIncrByFloat, &specIncrEx,
	&specMGet, &specMSet, &specMSetNX, &specMSetEx,
	&specDelEx, &specDelIfEq, &specDigest, &specLCS,
}

// expiryArgs is the grammar of the expiry options of SET's kin.
func expiryArgs(more ...Arg) Arg {
	return Opt(OneOf("expiration", append([]Arg{
		TokenArg("EX", Int("seconds")),
		TokenArg("PX", Int("milliseconds")),
		TokenArg("EXAT", UnixTime("unix-time-seconds")),
		TokenArg("PXAT", UnixTime("unix-time-milliseconds")),
	}, more...)...))
}

// setExpiryArgs is the grammar of SET's own expiry options, which came one after
// another.
func setExpiryArgs() Arg {
	a := expiryArgs(Token("KEEPTTL").Since("6.0.0"))
	a.Args[0].Added, a.Args[1].Added = "2.6.12", "2.6.12"
	a.Args[2].Added, a.Args[3].Added = "6.2.0", "6.2.0"
	return a
}

// modifiers is the grammar of our own additions to a time.
func modifiers() []Arg { return []Arg{Opt(TokenArg("JITTER", Int("percent"))), Opt(Token("SLIDE"))} }

var specGet = Spec{
	Name: "get", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Returns the string value of a key.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Read)},
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

func runGet(c *Ctx) error {
	val, ok, err := c.Tx.Get(c.Args[1])
	if err != nil {
		return err
	}
	c.stringOrNull(c.Args[1], val, ok)
	return nil
}

// stringOrNull replies the string of a key, or that there is none.
func (c *Ctx) stringOrNull(key, val []byte, ok bool) {
	switch {
	case !ok:
		c.Out.Null()
	case len(val) < ShareFrom:
		c.Out.Bulk(val)
	default:
		c.BulkOfKey(key, val)
	}
}

// bulkOrNull replies a string, or that there is none.
func (c *Ctx) bulkOrNull(val []byte, ok bool) {
	if ok {
		c.Out.Bulk(val)
	} else {
		c.Out.Null()
	}
}

var specSet = Spec{
	Name: "set", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
	Flags:   Write | DenyOOM,
	Args: []Arg{
		Key("key", Update|Access|VariableFlags).Note("RW and ACCESS due to the optional `GET` argument"), Str("value"),
		Opt(OneOf("condition", Token("NX"), Token("XX"),
			TokenArg("IFEQ", Str("ifeq-value")), TokenArg("IFNE", Str("ifne-value")),
			TokenArg("IFDEQ", Str("ifdeq-digest")), TokenArg("IFDNE", Str("ifdne-digest")))).Since("2.6.12"),
		Opt(Token("GET")).Since("6.2.0"),
		setExpiryArgs(),
		Opt(TokenArg("JITTER", Int("percent"))),
		Opt(Token("SLIDE")),
	},
	History: []Change{{"2.6.12", "Added the `EX`, `PX`, `NX` and `XX` options."}, {"6.0.0", "Added the `KEEPTTL` option."},
		{"6.2.0", "Added the `GET`, `EXAT` and `PXAT` option."}, {"7.0.0", "Allowed the `NX` and `GET` options to be used together."}},
	Replies: "OK, or nil if a condition was not met. With GET the old value, nil if there was none.",
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

// setKeys finds SET's key. Only with GET, or a condition on the old value, does
// the command read it.
func setKeys(dst []KeyRef, args [][]byte) ([]KeyRef, error) {
	use := Overwrite
	for _, a := range args[3:] {
		if EqualFold(a, "GET") || EqualFold(a, "IFEQ") || EqualFold(a, "IFNE") || EqualFold(a, "IFDEQ") || EqualFold(a, "IFDNE") {
			use = Update | Access
		}
	}
	return append(dst, KeyRef{1, use}), nil
}

func runSet(c *Ctx) error {
	var life lifetime
	var o engine.SetOptions
	args := c.Args
	for i := 3; i < len(args); {
		n, err := setOption(&o, args, i)
		if n == 0 && err == nil {
			n, err = life.option(args, i, true, false)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrSyntax
		}
		i += n
	}
	if err := life.resolve(c, true); err != nil {
		return err
	}
	o.Deadline, o.Span, o.KeepTTL = life.deadline, life.span, life.keep

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
	case EqualFold(a, "NX"):
		if o.IfExists || o.Compare != engine.Always {
			return 0, ErrSyntax
		}
		o.IfAbsent = true
		return 1, nil
	case EqualFold(a, "XX"):
		if o.IfAbsent || o.Compare != engine.Always {
			return 0, ErrSyntax
		}
		o.IfExists = true
		return 1, nil
	case EqualFold(a, "GET"):
		o.Get = true
		return 1, nil
	}
	c := comparison(a)
	if c == engine.Always {
		return 0, nil
	}
	if i+1 >= len(args) || o.IfAbsent || o.IfExists || o.Compare != engine.Always {
		return 0, ErrSyntax
	}
	o.Compare, o.Value = c, args[i+1]
	return 2, checkDigest(c, o.Value)
}

var specSetNX = Spec{
	Name: "setnx", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Sets the string value of a key only when the key doesn't exist.",
	Flags:   Write | DenyOOM | Fast,
	Args:    []Arg{Key("key", KeyOW|Insert), Str("value")},
	Replies: "1 if the key was set, 0 if it was there.",
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

func runSetNX(c *Ctx) error {
	done, _, err := c.Tx.Set(c.Args[1], c.Args[2], engine.SetOptions{IfAbsent: true}, nil)
	if err != nil {
		return err
	}
	c.Out.Int(b2i(done))
	return nil
}

var specSetEX = Spec{
	Name: "setex", Group: GroupString, Since: "2.0.0", Complexity: "O(1)",
	Summary: "Sets the string value and expiration time of a key. Creates the key if it doesn't exist.",
	Flags:   Write | DenyOOM,
	Args:    []Arg{Key("key", Overwrite), Int("seconds"), Str("value")},
	Examples: `
> SETEX k 10 v
OK
> TTL k
(integer) 10
> SETEX k 0 v
(error) ERR invalid expire time in 'setex' command
`,
	Run: func(c *Ctx) error { return runSetEX(c, seconds) },
}

var specPSetEX = Spec{
	Name: "psetex", Group: GroupString, Since: "2.6.0", Complexity: "O(1)",
	Summary: "Sets both string value and expiration time in milliseconds of a key. The key is created if it doesn't exist.",
	Flags:   Write | DenyOOM,
	Args:    []Arg{Key("key", Overwrite), Int("milliseconds"), Str("value")},
	Examples: `
> PSETEX k 1500 v
OK
> PTTL k
(integer) 1500
~ 1501ms
> GET k
(nil)
`,
	Run: func(c *Ctx) error { return runSetEX(c, millis) },
}

func runSetEX(c *Ctx, unit timeUnit) error {
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

var specGetSet = Spec{
	Name: "getset", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
	Summary:    "Returns the previous string value of a key after setting it to a new value.",
	Flags:      Write | DenyOOM | Fast,
	Deprecated: &Deprecation{"6.2.0", "`SET` with the `!GET` argument"},
	Args:       []Arg{Key("key", Update|Access), Str("value")},
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

func runGetSet(c *Ctx) error {
	_, old, err := c.Tx.Set(c.Args[1], c.Args[2], engine.SetOptions{Get: true}, c.Scratch[:0])
	if err != nil {
		return err
	}
	c.bulkOrNull(old, old != nil)
	c.KeepScratch(old)
	return nil
}

var specGetEx = Spec{
	Name: "getex", Group: GroupString, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Returns the string value of a key after setting its expiration time.",
	Flags:   Write | Fast,
	Args: append([]Arg{Key("key", Update|Access).Note("RW and UPDATE because it changes the TTL"),
		expiryArgs(Token("PERSIST"))}, modifiers()...),
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

func runGetEx(c *Ctx) error {
	var life lifetime
	for i := 2; i < len(c.Args); {
		n, err := life.option(c.Args, i, false, true)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrSyntax
		}
		i += n
	}

	// Redis looks the key up before it looks at the time.
	val, ok, err := c.Tx.Get(c.Args[1])
	if err != nil || !ok {
		c.bulkOrNull(nil, false)
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

var specGetDel = Spec{
	Name: "getdel", Group: GroupString, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Returns the string value of a key after deleting the key.",
	Flags:   Write | Fast,
	Args:    []Arg{Key("key", Access|Delete)},
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

func runGetDel(c *Ctx) error {
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

var specAppend = Spec{
	Name: "append", Group: GroupString, Since: "2.0.0",
	Complexity: "O(1) amortized; a small string that outgrows its place is copied once.",
	Summary:    "Appends a string to the value of a key. Creates the key if it doesn't exist.",
	Flags:      Write | DenyOOM | Fast,
	Args:       []Arg{Key("key", Insert), Str("value")},
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

func runAppend(c *Ctx) error {
	n, err := c.Tx.Append(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specStrLen = Spec{
	Name: "strlen", Group: GroupString, Since: "2.2.0", Complexity: "O(1)",
	Summary: "Returns the length of a string value.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Meta)},
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

func runStrLen(c *Ctx) error {
	n, err := c.Tx.StrLen(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specGetRange = Spec{
	Name: "getrange", Group: GroupString, Since: "2.4.0", Complexity: "O(N) where N is the length of the returned string.",
	Summary: "Returns a substring of the string stored at a key.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read), Int("start"), Int("end")},
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

var specSubstr = Spec{
	Name: "substr", Group: GroupString, Since: "1.0.0", Complexity: "O(N) where N is the length of the returned string.",
	Summary:    "Returns a substring from a string value.",
	Flags:      ReadOnly,
	Deprecated: &Deprecation{"2.0.0", "`GETRANGE`"},
	Args:       []Arg{Key("key", Read), Int("start"), Int("end")},
	Examples: `
> SET k Hello
OK
> SUBSTR k 1 2
"el"
`,
	Run: runGetRange,
}

func runGetRange(c *Ctx) error {
	start, end, err := parseTwo(c.Args[2], c.Args[3])
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

var specSetRange = Spec{
	Name: "setrange", Group: GroupString, Since: "2.2.0",
	Complexity: "O(1), beside copying the value and, where the string grows, the string.",
	Summary:    "Overwrites a part of a string value with another by an offset. Creates the key if it doesn't exist.",
	Flags:      Write | DenyOOM,
	Args:       []Arg{Key("key", Update), Int("offset"), Str("value")},
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

const errOffset = ReplyError("ERR offset is out of range")

func runSetRange(c *Ctx) error {
	offset, ok := resp.ParseInt(c.Args[2])
	switch {
	case !ok:
		return ErrNotInteger
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

// growth is by how many bytes the string of the first key must grow to reach an
// offset.
func growth(c *Ctx, offset int64) int {
	if offset <= LongBytes {
		return 0
	}
	return int(min(offset, int64(c.Tx.DB().MaxString()))) - c.Tx.StrSize(c.Args[1])
}
