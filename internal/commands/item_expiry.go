package commands

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

// These are the commands on the deadlines of items: HEXPIRE, HPEXPIRE, HEXPIREAT, HPEXPIREAT, HTTL, HPTTL,
// HEXPIRETIME, HPEXPIRETIME, HPERSIST, and their counterparts for other containers, such as SEXPIRE. An
// itemFamily describes the commands of one kind of container, and specs builds them.

var itemExpirySpecs = slices.Concat(hashItems.specs(), setItems.specs(), sortedSetItems.specs(),
	hashExSpecs, setExSpecs, itemAliasSpecs)

// itemFamily holds the differences between the nine commands of one kind of container and those of
// another.
type itemFamily struct {
	letter string // the first letter of the commands
	kind   engine.Kind
	group  command.Group
	since  string

	word        string // FIELDS
	item, items string // how errors and the documentation name an argument
	of          string // "of a hash"
	thing       string // the object that has the deadline if the item only refers to it: the element of a list, not the index
	create      string // a request and its reply for the examples, which creates the key "k" with the items a and b
	a, b, other string // two items, and one that does not exist

	expire    func(tx *engine.Tx, key []byte, items [][]byte, deadline int64, c engine.Condition, visit func(code int)) error
	deadlines func(tx *engine.Tx, key []byte, items [][]byte, visit func(deadline int64)) error
	persist   func(tx *engine.Tx, key []byte, items [][]byte, visit func(code int)) error
}

var hashItems = itemFamily{
	letter: "h", kind: engine.Hash, group: command.GroupHash, since: "7.4.0",
	word: "FIELDS", item: "field", items: "fields", of: "of a hash",
	create: "> HSET k a 1 b 2\n(integer) 2\n", a: "a", b: "b", other: "z",
	expire: (*engine.Tx).HExpire, deadlines: (*engine.Tx).HDeadlines, persist: (*engine.Tx).HPersist,
}

var setItems = itemFamily{
	letter: "s", kind: engine.Set, group: command.GroupSet, since: "0.4.0",
	word: "MEMBERS", item: "member", items: "members", of: "of a set",
	create: "> SADD k a b\n(integer) 2\n", a: "a", b: "b", other: "z",
	expire: (*engine.Tx).SExpire, deadlines: (*engine.Tx).SDeadlines, persist: (*engine.Tx).SPersist,
}

var sortedSetItems = itemFamily{
	letter: "z", kind: engine.ZSet, group: command.GroupSortedSet, since: "0.4.0",
	word: "MEMBERS", item: "member", items: "members", of: "of a sorted set",
	create: "> ZADD k 1 a 2 b\n(integer) 2\n", a: "a", b: "b", other: "z",
	expire: (*engine.Tx).ZExpire, deadlines: (*engine.Tx).ZDeadlines, persist: (*engine.Tx).ZPersist,
}

// specs builds the family's nine commands.
func (f *itemFamily) specs() []*command.Spec {
	return []*command.Spec{
		f.expireSpec("expire", command.Int("seconds"), seconds, "in seconds",
			"> %EXPIRE k 10 %W 2 %a %z\n1) (integer) 1\n2) (integer) -2\n> %TTL k %W 2 %a %b\n1) (integer) 10\n2) (integer) -1\n"+
				"> %EXPIRE k 5 GT %W 1 %a\n1) (integer) 0\n> %EXPIRE k 0 %W 1 %b\n1) (integer) 2\n~ 10001ms\n> EXISTS k\n(integer) 0\n"),
		f.expireSpec("pexpire", command.Int("milliseconds"), millis, "in milliseconds",
			"> %PEXPIRE k 1500 %W 1 %a\n1) (integer) 1\n> %PTTL k %W 2 %a %b\n1) (integer) 1500\n2) (integer) -1\n"+
				"~ 1500ms\n> %PTTL k %W 1 %a\n1) (integer) 0\n"),
		f.expireSpec("expireat", command.UnixTime("unix-time-seconds"), unixSeconds, "as a Unix timestamp",
			"> %EXPIREAT k 33177117420 %W 1 %a\n1) (integer) 1\n> %EXPIRETIME k %W 1 %a\n1) (integer) 33177117420\n"+
				"> %EXPIREAT k 1 %W 2 %a %b\n1) (integer) 2\n2) (integer) 2\n> EXISTS k\n(integer) 0\n"),
		f.expireSpec("pexpireat", command.UnixTime("unix-time-milliseconds"), unixMillis, "as a Unix timestamp in milliseconds",
			"> %PEXPIREAT k 33177117420000 NX %W 1 %a\n1) (integer) 1\n"+
				"> %PEXPIREAT k 33177117420001 NX %W 1 %a\n1) (integer) 0\n> %PEXPIRETIME k %W 1 %a\n1) (integer) 33177117420000\n"),
		f.readSpec("ttl", "the remaining time of %s, in seconds", roundUp, true,
			"> %PEXPIRE k 1500 %W 1 %a\n1) (integer) 1\n> %TTL k %W 3 %a %b %z\n1) (integer) 2\n2) (integer) -1\n3) (integer) -2\n"),
		f.readSpec("pttl", "the remaining time of %s, in milliseconds", nil, true,
			"> %EXPIRE k 10 %W 1 %a\n1) (integer) 1\n~ 400ms\n> %PTTL k %W 3 %a %b %z\n1) (integer) 9600\n2) (integer) -1\n3) (integer) -2\n"),
		f.readSpec("expiretime", "when %s expire, as a Unix timestamp", roundUp, false,
			"> %EXPIREAT k 33177117420 %W 1 %a\n1) (integer) 1\n> %EXPIRETIME k %W 3 %a %b %z\n1) (integer) 33177117420\n"+
				"2) (integer) -1\n3) (integer) -2\n"),
		f.readSpec("pexpiretime", "when %s expire, as a Unix timestamp in milliseconds", nil, false,
			"> %EXPIREAT k 33177117420 %W 1 %a\n1) (integer) 1\n> %PEXPIRETIME k %W 3 %a %b %z\n1) (integer) 33177117420000\n"+
				"2) (integer) -1\n3) (integer) -2\n"),
		f.persistSpec(),
	}
}

// listed returns the grammar of FIELDS numfields field [field ...].
func (f *itemFamily) listed() command.Arg {
	return command.Block(f.word, command.Count("num"+f.items), command.Many(f.item))
}

// example inserts the family's words into an example.
func (f *itemFamily) example(text string) string {
	upper := strings.ToUpper(f.letter)
	return f.create + strings.NewReplacer("%W", f.word, "%a", f.a, "%b", f.b, "%z", f.other, "%", upper).Replace(text)
}

// holder returns the name of the object that has the deadline, in the singular.
func (f *itemFamily) holder() string {
	if f.thing != "" {
		return f.thing
	}
	return f.item
}

func (f *itemFamily) complexity() string {
	return "O(N) where N is the number of specified " + f.items
}

// refusals lists the documented errors of all nine commands.
func (f *itemFamily) refusals(more ...string) []string {
	return append([]string{
		"ERR Mandatory argument " + f.word + " is missing or not at the right position: another word stands there",
		"ERR The `num" + f.items + "` parameter must match the number of arguments: there are more " + f.items + ", or less",
	}, more...)
}

// effectOf gives the log's use of the family's commands; the log has deadlines in milliseconds since 1970.
var effectOf = map[string]command.StreamUse{"pexpireat": command.StreamEffect, "persist": command.StreamEffect}

func (f *itemFamily) expireSpec(name string, time command.Arg, unit timeUnit, form, example string) *command.Spec {
	return &command.Spec{
		Name: f.letter + name, Group: f.group, Since: f.since, Complexity: f.complexity(),
		Summary: "Sets the expiration time of " + f.items + " " + f.of + ", " + form + ".",
		Flags:   command.Write | command.Fast | command.Blind,
		Stream:  effectOf[name],
		Args: []command.Arg{command.Key("key", command.Update), time,
			command.Opt(command.OneOf("condition", command.Token("NX"), command.Token("XX"), command.Token("GT"), command.Token("LT"))),
			command.Opt(command.TokenArg("JITTER", command.Int("percent"))), f.listed()},
		Replies: "An array with an integer for each " + f.item + ": 1 if the time was set, 2 if the " + f.holder() +
			" was deleted because the time is not in the future, " +
			"0 if the condition is not met, -2 if there is no such " + f.item + " or no such key. NX: only if the " + f.holder() +
			" has no expiration time, XX: only if it has one, " +
			"GT and LT: only if the new one is later, earlier; none counts as infinite. JITTER adds a random share, of at most the percentage. " +
			"The server deletes a key without " + f.holder() + "s.",
		Errors: f.refusals(
			"ERR Parameter `num"+capital(f.items)+"` should be greater than 0: it is not a positive integer",
			"ERR invalid expire time, must be >= 0: the time is negative",
			"ERR invalid expire time in '"+f.letter+name+"' command: the time is later than 2^46-1 ms after 1970"),
		Examples: f.example(example),
		Run:      func(c *command.Ctx) error { return f.runExpire(c, unit) },
	}
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// runExpire runs HEXPIRE and its variants.
func (f *itemFamily) runExpire(c *command.Ctx, unit timeUnit) error {
	deadline, cond, items, err := f.parseExpire(c, unit)
	if err != nil {
		return wrongTypeFirst(c, f.kind, err)
	}
	return eachItem(c, items, func(visit func(int64)) error {
		return f.expire(c.Tx, c.Args[1], items, deadline, cond, func(code int) { visit(int64(code)) })
	})
}

// eachItem replies with an integer for each item; do calls visit with each of them.
func eachItem(c *command.Ctx, items [][]byte, do func(visit func(n int64)) error) error {
	if err := longFields(c, len(items)); err != nil {
		return err
	}

	answers := make([]int64, 0, len(items))
	if err := do(func(n int64) { answers = append(answers, n) }); err != nil {
		return err
	}

	c.Out.Array(len(answers))
	for _, n := range answers {
		c.Out.Int(n)
	}
	return nil
}

// parseExpire reads time [NX|XX|GT|LT] [JITTER percent] FIELDS numfields field ...
func (f *itemFamily) parseExpire(c *command.Ctx, unit timeUnit) (deadline int64, cond engine.Condition, items [][]byte, err error) {
	t := itemTime{unit: unit}
	if err := t.read(c, c.Args[2]); err != nil {
		return 0, 0, nil, err
	}
	i := 3
	n, _ := expireOption(&cond, c.Args[i])
	i += n
	if command.EqualFold(c.Args[i], "JITTER") {
		if i+2 >= len(c.Args) {
			return 0, 0, nil, command.ErrSyntax
		}
		if err := t.readJitter(c.Args[i+1]); err != nil {
			return 0, 0, nil, err
		}
		i += 2
	}
	items, err = f.list(c.Args, i, "ERR Parameter `num"+capital(f.items)+"` should be greater than 0")
	return t.resolve(c), cond, items, err
}

// list reads FIELDS numfields field ... from args[i] to the end. refused is the error for a count
// that is not a number.
func (f *itemFamily) list(args [][]byte, i int, refused string) ([][]byte, error) {
	if i >= len(args) || !command.EqualFold(args[i], f.word) {
		return nil, command.ReplyError("ERR Mandatory argument " + f.word + " is missing or not at the right position")
	}
	if i+1 >= len(args) {
		return nil, command.ReplyError("ERR The `num" + f.items + "` parameter must match the number of arguments")
	}
	switch n, ok := numeral.ParseInt(args[i+1]); {
	case !ok || n <= 0:
		return nil, command.ReplyError(refused)
	case n != int64(len(args)-i-2):
		return nil, command.ReplyError("ERR The `num" + f.items + "` parameter must match the number of arguments")
	}
	return args[i+2:], nil
}

// wrongTypeFirst returns ErrWrongType if the key does not hold a container of kind k, because Redis checks
// the key before it parses the rest; otherwise it returns err.
func wrongTypeFirst(c *command.Ctx, k engine.Kind, err error) error {
	if held := c.Tx.Type(c.Args[1]); held != k && held != engine.None {
		return command.ErrWrongType
	}
	return err
}

// itemTime is an expiration time of items. It first holds the time as the request gives it, and after resolve
// the deadline.
type itemTime struct {
	unit   timeUnit
	ms     int64 // since 1970
	jitter int64 // percent
}

const errNegativeTime = command.ReplyError("ERR invalid expire time, must be >= 0")

// read reads the time; JITTER may stand before or after it.
func (t *itemTime) read(c *command.Ctx, arg []byte) error {
	n, ok := numeral.ParseInt(arg)
	switch {
	case !ok:
		return command.ErrNotInteger
	case n < 0:
		return errNegativeTime
	}
	t.ms, ok = toDeadline(n, t.unit, c.Now()/1000)
	if !ok || t.ms > engine.MaxItemDeadline {
		return errExpireTime(c.Spec)
	}
	return nil
}

func (t *itemTime) readJitter(arg []byte) error {
	n, ok := numeral.ParseInt(arg)
	if !ok || n < 0 || n > 100 {
		return command.ReplyError("ERR JITTER must be a percentage from 0 to 100")
	}
	t.jitter = n
	return nil
}

// resolve returns the deadline in ms since 1970. For 1970 itself it returns -1, because 0 means
// that there is no deadline.
func (t *itemTime) resolve(c *command.Ctx) int64 {
	now := c.Now() / 1000
	if t.ms > now {
		return min(now+engine.Jitter(t.ms-now, t.jitter), engine.MaxItemDeadline)
	}
	if t.ms == 0 {
		return -1
	}
	return t.ms
}

// roundUp returns milliseconds as seconds, rounded up, so that an item that still lives never has 0
// seconds left.
func roundUp(ms int64) int64 { return (ms + 999) / 1000 }

// readSpec describes a command that reads deadlines. With left the command replies with the remaining time;
// unit, if not nil, converts ms to the unit of the reply.
func (f *itemFamily) readSpec(name, what string, unit func(int64) int64, left bool, example string) *command.Spec {
	s := &command.Spec{
		Name: f.letter + name, Group: f.group, Since: f.since, Complexity: f.complexity(),
		Summary: "Returns " + strings.ReplaceAll(what, "%s", f.items+" "+f.of) + ".",
		Flags:   command.ReadOnly | command.Fast | command.Blind,
		Args:    []command.Arg{command.Key("key", command.Read), f.listed()},
		Replies: "An array with an integer for each " + f.item + ": the time, -1 if the " + f.holder() +
			" has none, -2 if there is no such " + f.item +
			" or no such key. " +
			"Seconds are rounded up.",
		Errors:   f.refusals(f.notPositive() + ": the number is not an integer, or below 1"),
		Examples: f.example(example),
	}
	if left {
		s.Tips = []string{"nondeterministic_output"}
	}
	s.Run = func(c *command.Ctx) error { return f.runRead(c, unit, left) }
	return s
}

func (f *itemFamily) notPositive() string {
	return "ERR Number of " + f.items + " must be a positive integer"
}

// runRead runs HTTL and its variants.
func (f *itemFamily) runRead(c *command.Ctx, unit func(int64) int64, left bool) error {
	items, err := f.list(c.Args, 2, f.notPositive())
	if err != nil {
		return wrongTypeFirst(c, f.kind, err)
	}
	return eachItem(c, items, func(visit func(int64)) error {
		return f.deadlines(c.Tx, c.Args[1], items, func(d int64) { visit(shownAs(d, c.Tx.Millis(), unit, left)) })
	})
}

// shownAs converts a deadline to a reply; it returns NoDeadline and NoKey unchanged.
func shownAs(deadline, now int64, unit func(int64) int64, left bool) int64 {
	if deadline < 0 {
		return deadline
	}
	if left {
		deadline = max(0, deadline-now)
	}
	if unit != nil {
		deadline = unit(deadline)
	}
	return deadline
}

func (f *itemFamily) persistSpec() *command.Spec {
	return &command.Spec{
		Name: f.letter + "persist", Group: f.group, Since: f.since, Complexity: f.complexity(),
		Summary: "Removes the expiration time of " + f.items + " " + f.of + ".",
		Flags:   command.Write | command.Fast | command.Blind,
		Stream:  effectOf["persist"],
		Args:    []command.Arg{command.Key("key", command.Update), f.listed()},
		Replies: "An array with an integer for each " + f.item + ": 1 if the expiration time was removed, -1 if the " + f.holder() +
			" has none, -2 if there is no such " +
			f.item + " or no such key.",
		Errors: f.refusals(f.notPositive() + ": the number is not an integer, or below 1"),
		Examples: f.example("> %EXPIRE k 10 %W 1 %a\n1) (integer) 1\n> %PERSIST k %W 3 %a %b %z\n1) (integer) 1\n" +
			"2) (integer) -1\n3) (integer) -2\n" +
			"> %TTL k %W 1 %a\n1) (integer) -1\n"),
		Run: f.runPersist,
	}
}

func (f *itemFamily) runPersist(c *command.Ctx) error {
	items, err := f.list(c.Args, 2, f.notPositive())
	if err != nil {
		return wrongTypeFirst(c, f.kind, err)
	}
	return eachItem(c, items, func(visit func(int64)) error {
		return f.persist(c.Tx, c.Args[1], items, func(code int) { visit(int64(code)) })
	})
}
