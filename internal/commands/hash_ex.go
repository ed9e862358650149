package commands

import (
	"math"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

// These commands write or read fields together with their expiration times.

var hashExSpecs = []*command.Spec{&specHSetEx, &specHGetEx, &specHGetDel}

// itemTimes returns the options that set an item's expiration time; last is the option that keeps
// or removes it.
func itemTimes(last string) command.Arg {
	return command.OneOf("expiration", command.TokenArg("EX", command.Int("seconds")), command.TokenArg("PX", command.Int("milliseconds")),
		command.TokenArg("EXAT", command.UnixTime("unix-time-seconds")),
		command.TokenArg("PXAT", command.UnixTime("unix-time-milliseconds")), command.Token(last))
}

const itemTimeReplies = "A time that is not in the future deletes them at once. JITTER adds a random share, of at most the percentage."

var specHSetEx = command.Spec{
	Name: "hsetex", Group: command.GroupHash, Since: "8.0.0", Complexity: "O(N) where N is the number of fields being set.",
	Summary: "Sets the values of fields of a hash together with their expiration time.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args: []command.Arg{command.Key("key", command.Update),
		command.Opt(command.OneOf("condition", command.Token("FNX"), command.Token("FXX"))),
		command.Opt(itemTimes("KEEPTTL")),
		command.Opt(command.TokenArg("JITTER", command.Int("percent"))), command.Opt(command.TokenArg("MAXLEN", command.Int("count"))),
		command.Block("FIELDS", command.Count("numfields"), command.Repeat(command.Block("data", command.Str("field"), command.Str("value"))))},
	Replies: "1 if all fields were set, 0 if none was: FNX requires that none of them exists, FXX that all of them do. " +
		"Without an option fields lose the expiration " +
		"time that they have; with KEEPTTL they " +
		"keep it. " + itemTimeReplies + " With MAXLEN the command adds nothing if the hash would have more unexpired fields than that.",
	Errors: []string{"FULL: the hash would have more fields than MAXLEN allows",
		"ERR invalid number of fields: numfields is not a positive integer",
		"ERR unknown argument: X: HSETEX has no such option"},
	Examples: `
> HSETEX otp EX 30 FIELDS 1 ada 123456
(integer) 1
> HTTL otp FIELDS 1 ada
1) (integer) 30
> HSETEX otp FNX EX 30 FIELDS 1 ada 654321
(integer) 0
~ 30001ms
> HGET otp ada
(nil)
`,
	Run: runHSetEx,
}

func runHSetEx(c *command.Ctx) error {
	p := itemParser{c: c, f: &hashItems, onlyNew: "FNX", onlyOld: "FXX"}
	pairs, err := p.read(2, 2)
	if err != nil {
		return err
	}
	if err := longFields(c, len(pairs)); err != nil {
		return err
	}

	set, err := c.Tx.HSetEx(c.Args[1], pairs, p.ItemOptions)
	if err != nil {
		return err
	}

	c.Out.Int(command.BoolToInt(set))
	return nil
}

// itemParser reads the options of HSETEX and SADDEX, up to the items.
type itemParser struct {
	c                *command.Ctx
	f                *itemFamily
	onlyNew, onlyOld string // the words for these options

	engine.ItemOptions
	time itemTime
}

// read reads the options from argument i on, and then the items, each of which has width arguments.
// As in Redis it checks them in the order of the request.
func (p *itemParser) read(i, width int) ([][]byte, error) {
	args := p.c.Args
	for i < len(args) && !command.EqualFold(args[i], p.f.word) {
		n, err := p.option(args, i)
		if err != nil {
			return nil, err
		}
		i += n
	}
	if i+2 >= len(args) {
		return nil, command.WrongArity(p.c.Spec)
	}
	n, ok := numeral.ParseInt(args[i+1])
	if !ok || n <= 0 || n > math.MaxInt32 {
		return nil, command.ReplyError("ERR invalid number of " + p.f.items)
	}
	items := args[i+2:]
	if len(items)%width != 0 || n != int64(len(items)/width) {
		return nil, command.WrongArity(p.c.Spec)
	}
	if p.time.unit != noTime {
		p.Deadline = p.time.resolve(p.c)
	} else if p.time.jitter > 0 {
		return nil, command.ReplyError("ERR JITTER needs an expire time: EX, PX, EXAT or PXAT")
	}
	return items, nil
}

// option reads one option and returns how many arguments it takes.
func (p *itemParser) option(args [][]byte, i int) (int, error) {
	switch a := args[i]; {
	case command.EqualFold(a, p.onlyNew), command.EqualFold(a, p.onlyOld):
		if p.OnlyNew || p.OnlyOld {
			return 0, command.ReplyError("ERR Only one of " + p.onlyOld + " or " + p.onlyNew + " arguments can be specified")
		}
		p.OnlyNew = command.EqualFold(a, p.onlyNew)
		p.OnlyOld = !p.OnlyNew
		return 1, nil
	case command.EqualFold(a, "KEEPTTL"):
		if p.Keep || p.time.unit != noTime {
			return 0, errTwoTimes
		}
		p.Keep = true
		return 1, nil
	case unitOf(a) != noTime:
		if p.Keep || p.time.unit != noTime {
			return 0, errTwoTimes
		}
		if p.time.unit = unitOf(a); i+1 >= len(args) {
			return 0, command.ErrSyntax
		}
		return 2, p.time.read(p.c, args[i+1])
	case command.EqualFold(a, "JITTER") && i+1 < len(args):
		return 2, p.time.readJitter(args[i+1])
	case command.EqualFold(a, "MAXLEN") && i+1 < len(args):
		n, ok := numeral.ParseInt(args[i+1])
		if !ok || n <= 0 || n != int64(int(n)) {
			return 0, command.ReplyError("ERR MAXLEN must be a positive integer")
		}
		p.Max = int(n)
		return 2, nil
	}
	return 0, command.ReplyError(cleantext.Reply("ERR unknown argument: " + string(command.Clip(args[i], 128))))
}

const errTwoTimes = command.ReplyError("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")

// unitOf returns the unit of the time after an option; noTime if the option is not EX, PX, EXAT or
// PXAT.
func unitOf(option []byte) timeUnit {
	switch {
	case command.EqualFold(option, "EX"):
		return seconds
	case command.EqualFold(option, "PX"):
		return millis
	case command.EqualFold(option, "EXAT"):
		return unixSeconds
	case command.EqualFold(option, "PXAT"):
		return unixMillis
	}
	return noTime
}

var specHGetEx = command.Spec{
	Name: "hgetex", Group: command.GroupHash, Since: "8.0.0", Complexity: "O(N) where N is the number of specified fields",
	Summary: "Returns the values of fields of a hash and sets or removes their expiration time.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args: []command.Arg{command.Key("key", command.Access|command.Update).Note("RW and UPDATE because it changes the TTL"),
		command.Opt(itemTimes("PERSIST")),
		command.Opt(command.TokenArg("JITTER", command.Int("percent"))), hashItems.listed()},
	Replies: "The values in the order of the fields, nil for those that are not there. PERSIST removes the expiration time of " +
		"the fields. " + itemTimeReplies,
	Errors: []string{"ERR Mandatory argument FIELDS is missing or not at the right position: another word is there",
		"ERR Number of fields must be a positive integer: numfields is not an integer, or below 1"},
	Examples: `
> HSET session user ada
(integer) 1
> HGETEX session EX 60 FIELDS 2 user token
1) "ada"
2) (nil)
> HTTL session FIELDS 1 user
1) (integer) 60
> HGETEX session PERSIST FIELDS 1 user
1) "ada"
> HTTL session FIELDS 1 user
1) (integer) -1
`,
	Run: runHGetEx,
}

func runHGetEx(c *command.Ctx) error {
	o, fields, err := parseHGetEx(c)
	if err != nil {
		return wrongTypeFirst(c, engine.Hash, err)
	}
	if err := longFields(c, len(fields)); err != nil {
		return err
	}

	reply := values(c, len(fields))
	return c.Tx.HGetEx(c.Args[1], fields, o, reply)
}

// values returns a function that replies with n values one by one. The array begins with the first
// value, when the command can no longer fail.
func values(c *command.Ctx, n int) func(value []byte, ok bool) {
	begun := false
	return func(value []byte, ok bool) {
		if !begun {
			begun = true
			c.Out.Array(n)
		}
		bulkOrNull(c, value, ok)
	}
}

// parseHGetEx reads [EX t | ... | PERSIST] [JITTER percent] FIELDS numfields field ...
func parseHGetEx(c *command.Ctx) (o engine.ItemOptions, fields [][]byte, err error) {
	i, t := 2, itemTime{unit: unitOf(c.Args[2])}
	switch {
	case t.unit != noTime:
		if err := t.read(c, c.Args[3]); err != nil {
			return o, nil, err
		}
		if i = 4; command.EqualFold(c.Args[i], "JITTER") && i+1 < len(c.Args) {
			if err := t.readJitter(c.Args[i+1]); err != nil {
				return o, nil, err
			}
			i += 2
		}
		o.Deadline = t.resolve(c)
	case command.EqualFold(c.Args[2], "PERSIST"):
		i, o.Persist = 3, true
	}
	if i == len(c.Args)-1 && command.EqualFold(c.Args[i], "FIELDS") {
		return o, nil, command.WrongArity(c.Spec)
	}
	fields, err = hashItems.list(c.Args, i, hashItems.notPositive())
	return o, fields, err
}

var specHGetDel = command.Spec{
	Name: "hgetdel", Group: command.GroupHash, Since: "8.0.0", Complexity: "O(N) where N is the number of specified fields",
	Summary: "Returns the values of fields of a hash and deletes them. Deletes the hash if no fields remain.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete), hashItems.listed()},
	Replies: "The values in the order of the fields, nil for those that are not there.",
	Errors: []string{"ERR Mandatory argument FIELDS is missing or not at the right position: another word is there",
		"ERR Number of fields must be a positive integer: numfields is not an integer, or below 1"},
	Examples: `
> HSET otp ada 123456 eve 654321
(integer) 2
> HGETDEL otp FIELDS 2 ada bob
1) "123456"
2) (nil)
> HGETDEL otp FIELDS 1 ada
1) (nil)
`,
	Run: runHGetDel,
}

func runHGetDel(c *command.Ctx) error {
	fields, err := hashItems.list(c.Args, 2, hashItems.notPositive())
	if err != nil {
		return wrongTypeFirst(c, engine.Hash, err)
	}
	if err := longFields(c, len(fields)); err != nil {
		return err
	}

	reply := values(c, len(fields))
	return c.Tx.HGetDel(c.Args[1], fields, reply)
}
