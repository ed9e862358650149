package command

import (
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

const (
	errXGroupNoKey       = ReplyError("ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.")
	errXGroupExists      = ReplyError("BUSYGROUP Consumer Group name already exists")
	errXGroupEntriesRead = ReplyError("ERR value for ENTRIESREAD must be positive or -1")
)

var specXGroup = Spec{
	Name: "xgroup", Group: GroupStream, Since: "5.0.0", Complexity: "Depends on subcommand.",
	Summary:  "A container for consumer groups commands.",
	Examples: "> XGROUP CREATE s g $ MKSTREAM\nOK\n> XGROUP CREATE s g $\n(error) " + string(errXGroupExists) + "\n> XGROUP DESTROY s g\n(integer) 1\n",
	Sub: []*Spec{&specXGroupCreate, &specXGroupCreateConsumer, &specXGroupDelConsumer, &specXGroupDestroy, &specXGroupHelp,
		&specXGroupSetID},
}

var specXGroupHelp = HelpSpec("xgroup", GroupStream, 0)

// groupID is the grammar of where a group begins.
func groupID() Arg { return OneOf("id", Str("id"), Token("$").As("new_id")) }

func entriesRead() Arg { return Opt(TokenArg("ENTRIESREAD", Int("entries_read"))) }

// groupError says what the engine's errors read in XGROUP.
func (c *Ctx) groupError(err error) error {
	switch err {
	case engine.ErrNoKey:
		return errXGroupNoKey
	case engine.ErrGroupExists:
		return errXGroupExists
	case engine.ErrNoGroup:
		if c.Tx.XCheck(c.Args[2]) == engine.ErrNoKey {
			return errXGroupNoKey
		}
		return ReplyError("NOGROUP No such consumer group '" + string(c.Args[3]) + "' for key name '" + string(c.Args[2]) + "'")
	}
	return err
}

// errXGroupArgs is the error of options that are not understood.
func (c *Ctx) errXGroupArgs() error {
	return ReplyError("ERR unknown subcommand or wrong number of arguments for '" + shortName(c.Args[1]) + "'. Try XGROUP HELP.")
}

// shortName shortens what is repeated in an error, as Redis does.
func shortName(b []byte) string {
	if len(b) > 128 {
		b = b[:128]
	}
	return string(b)
}

// parseGroup reads the options of XGROUP CREATE and SETID.
func (c *Ctx) parseGroup(create bool) (x engine.XGroup, err error) {
	x.Read = -1
	for i := 5; i < len(c.Args); i++ {
		switch a := c.Args[i]; {
		case create && EqualFold(a, "MKSTREAM"):
			x.Create = true
		case EqualFold(a, "ENTRIESREAD") && i+1 < len(c.Args):
			i++
			var ok bool
			if x.Read, ok = resp.ParseInt(c.Args[i]); !ok {
				return x, ErrNotInteger
			}
			if x.Read < -1 {
				return x, errXGroupEntriesRead
			}
		default:
			return x, c.errXGroupArgs()
		}
	}
	return x, nil
}

var specXGroupCreate = Spec{
	Name: "xgroup|create", Group: GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Creates a consumer group.",
	Flags:   Write | DenyOOM,
	Args:    []Arg{Key("key", Insert), Str("groupname"), groupID(), Opt(Token("MKSTREAM")), entriesRead()},
	History: []Change{{"7.0.0", "Added the `entries_read` named argument."}},
	Replies: "OK. The group's consumers get what is added after the id; `$` is the stream's last id.",
	Examples: `
> XADD s 1-1 f v
"1-1"
> XGROUP CREATE s all 0
OK
> XGROUP CREATE s new $
OK
> XGROUP CREATE other g $ MKSTREAM
OK
`,
	Run: runXGroupCreate,
}

func runXGroupCreate(c *Ctx) error {
	x, err := c.parseGroup(true)
	if err != nil {
		return err
	}
	if err := c.Tx.XCheck(c.Args[2]); err != nil && !(err == engine.ErrNoKey && x.Create) {
		return c.groupError(err)
	}
	if string(c.Args[4]) == "$" {
		x.Last = true
	} else if id, ok := parseStreamID(c.Args[4], 0); ok {
		x.ID = id
	} else {
		return errStreamID
	}

	if err := c.Tx.XGroupCreate(c.Args[2], c.Args[3], x); err != nil {
		return c.groupError(err)
	}
	c.Out.OK()
	return nil
}

var specXGroupSetID = Spec{
	Name: "xgroup|setid", Group: GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Sets the last-delivered ID of a consumer group.",
	Flags:   Write,
	Args:    []Arg{Key("key", Update), Str("groupname"), groupID(), entriesRead()},
	History: []Change{{"7.0.0", "Added the optional `entries_read` argument."}},
	Replies: "OK.",
	Examples: `
> XGROUP CREATE s g $ MKSTREAM
OK
> XGROUP SETID s g 0
OK
> XGROUP SETID s other 0
(error) NOGROUP No such consumer group 'other' for key name 's'
`,
	Run: runXGroupSetID,
}

func runXGroupSetID(c *Ctx) error {
	x, err := c.parseGroup(false)
	if err != nil {
		return err
	}
	if err := c.Tx.XGroupCheck(c.Args[2], c.Args[3]); err != nil {
		return c.groupError(err)
	}
	if string(c.Args[4]) == "$" {
		x.Last = true
	} else if x.ID, _, err = parseRangeEnd(c.Args[4], 0); err != nil || c.Args[4][0] == '(' {
		return errStreamID
	}

	if err := c.Tx.XGroupSetID(c.Args[2], c.Args[3], x); err != nil {
		return c.groupError(err)
	}
	c.Out.OK()
	return nil
}

var specXGroupDestroy = Spec{
	Name: "xgroup|destroy", Group: GroupStream, Since: "5.0.0",
	Complexity: "O(N) where N is the number of entries in the group's pending entries list (PEL).",
	Summary:    "Destroys a consumer group.",
	Flags:      Write,
	Args:       []Arg{Key("key", Delete), Str("groupname")},
	Replies:    "1 if there was such a group, else 0. Consumers that wait in it get an error.",
	Examples: `
> XGROUP CREATE s g $ MKSTREAM
OK
> XGROUP DESTROY s g
(integer) 1
> XGROUP DESTROY s g
(integer) 0
`,
	Run: runXGroupDestroy,
}

func runXGroupDestroy(c *Ctx) error {
	ok, err := c.Tx.XGroupDestroy(c.Args[2], c.Args[3])
	if err != nil {
		return c.groupError(err)
	}
	c.intBool(ok)
	return nil
}

// intBool replies 1 or 0.
func (c *Ctx) intBool(ok bool) {
	if ok {
		c.Out.Int(1)
	} else {
		c.Out.Int(0)
	}
}

var specXGroupCreateConsumer = Spec{
	Name: "xgroup|createconsumer", Group: GroupStream, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Creates a consumer in a consumer group.",
	Flags:   Write | DenyOOM,
	Args:    []Arg{Key("key", Insert), Str("groupname"), Str("consumername")},
	Replies: "1 if the consumer is new, else 0.",
	Examples: `
> XGROUP CREATE s g $ MKSTREAM
OK
> XGROUP CREATECONSUMER s g me
(integer) 1
> XGROUP CREATECONSUMER s g me
(integer) 0
`,
	Run: runXGroupCreateConsumer,
}

func runXGroupCreateConsumer(c *Ctx) error {
	ok, err := c.Tx.XGroupCreateConsumer(c.Args[2], c.Args[3], c.Args[4])
	if err != nil {
		return c.groupError(err)
	}
	c.intBool(ok)
	return nil
}

var specXGroupDelConsumer = Spec{
	Name: "xgroup|delconsumer", Group: GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Deletes a consumer from a consumer group.",
	Flags:   Write,
	Args:    []Arg{Key("key", Delete), Str("groupname"), Str("consumername")},
	Replies: "How many entries were pending for it: nobody gets them any more.",
	Examples: `
> XGROUP CREATE s g $ MKSTREAM
OK
> XGROUP CREATECONSUMER s g me
(integer) 1
> XGROUP DELCONSUMER s g me
(integer) 0
`,
	Run: runXGroupDelConsumer,
}

func runXGroupDelConsumer(c *Ctx) error {
	if err := c.longWalk(c.Args[2]); err != nil {
		return err
	}
	n, err := c.Tx.XGroupDelConsumer(c.Args[2], c.Args[3], c.Args[4])
	if err != nil {
		return c.groupError(err)
	}
	c.Out.Int(int64(n))
	return nil
}

var specXAck = Spec{
	Name: "xack", Group: GroupStream, Since: "5.0.0", Complexity: "O(1) for each message ID processed.",
	Summary: "Returns the number of messages that were successfully acknowledged by the consumer group member of a stream.",
	Flags:   Write | Fast,
	Args:    []Arg{Key("key", Update), Str("group"), Many("id")},
	Replies: "How many of the entries were pending.",
	Examples: `
> XADD s 1-1 f v
"1-1"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g me NOACK STREAMS s 0
1) 1) "s"
   2) (empty array)
> XACK s g 1-1
(integer) 0
`,
	Run: runXAck,
}

func runXAck(c *Ctx) error {
	if err := c.longFields(len(c.Args)); err != nil {
		return err
	}
	ids, err := c.ackIDs(c.Args[3:])
	if ids == nil {
		return err
	}
	n, err := c.Tx.XAck(c.Args[1], c.Args[2], ids)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

// ackIDs reads the ids of XACK. Where there is no such group it replies 0
// before it looks at them, as Redis does.
func (c *Ctx) ackIDs(args [][]byte) ([]engine.StreamID, error) {
	ids, err := parseStreamIDs(args)
	if err == nil {
		return ids, nil
	}
	switch e := c.Tx.XGroupCheck(c.Args[1], c.Args[2]); e {
	case nil:
		return nil, err
	case engine.ErrNoGroup:
		c.Out.Int(0)
		return nil, nil
	default:
		return nil, e
	}
}

// delArgs is the grammar of XDELEX and XACKDEL.
func delArgs() []Arg {
	return []Arg{Opt(OneOf("condition", Token("KEEPREF"), Token("DELREF"), Token("ACKED"))), Block("IDS", Count("numids"), Many("id"))}
}

func delMode(a []byte) (engine.XDelMode, bool) {
	switch {
	case EqualFold(a, "KEEPREF"):
		return engine.KeepRef, true
	case EqualFold(a, "DELREF"):
		return engine.DelRef, true
	case EqualFold(a, "ACKED"):
		return engine.Acked, true
	}
	return 0, false
}

// parseDel reads the mode and the ids of XDELEX and XACKDEL.
func parseDel(args [][]byte) (mode engine.XDelMode, ids []engine.StreamID, err error) {
	given := false
	for i := 0; i < len(args); i++ {
		m, ok := delMode(args[i])
		switch {
		case ok && !given:
			mode, given = m, true
		case EqualFold(args[i], "IDS") && i+1 < len(args) && ids == nil:
			n, ok := resp.ParseInt(args[i+1])
			if !ok || n < 1 {
				return mode, nil, errNumIDs
			}
			if i += 2; n > int64(len(args)-i) {
				return mode, nil, errNumIDsMatch
			}
			if ids, err = parseStreamIDs(args[i : i+int(n)]); err != nil {
				return mode, nil, err
			}
			i += int(n) - 1
		default:
			return mode, nil, ErrSyntax
		}
	}
	if ids == nil {
		return mode, nil, ErrSyntax
	}
	return mode, ids, nil
}

var specXDelEx = Spec{
	Name: "xdelex", Group: GroupStream, Since: "8.2.0",
	Complexity: "O(1) for each single item to delete in the stream, regardless of the stream size.",
	Summary:    "Deletes entries of a stream, with a choice of what becomes of the pending lists that refer to them.",
	Flags:      Write | Fast,
	Args:       append([]Arg{Key("key", Delete)}, delArgs()...),
	Replies: "For each id: 1 deleted, -1 no such entry, 2 not deleted because a group has not acknowledged it (ACKED). " +
		"KEEPREF leaves the pending lists alone, DELREF takes the entry out of all of them.",
	Examples: `
> XADD s 1-1 f v
"1-1"
> XGROUP CREATE s g 0
OK
> XDELEX s ACKED IDS 2 1-1 2-2
1) (integer) 2
2) (integer) -1
> XDELEX s DELREF IDS 1 1-1
1) (integer) 1
`,
	Run: runXDelEx,
}

func runXDelEx(c *Ctx) error {
	mode, ids, err := parseDel(c.Args[2:])
	if err != nil {
		return err
	}
	if err := c.longFields(len(ids)); err != nil {
		return err
	}
	c.Out.Array(len(ids))
	ok, err := c.Tx.XDelEx(c.Args[1], mode, ids, func(outcome int) { c.Out.Int(int64(outcome)) })
	c.notFound(len(ids), ok || err != nil)
	return err
}

// notFound replies -1 for each of n ids, unless they have been replied to.
func (c *Ctx) notFound(n int, replied bool) {
	for ; !replied && n > 0; n-- {
		c.Out.Int(engine.XNotFound)
	}
}

var specXAckDel = Spec{
	Name: "xackdel", Group: GroupStream, Since: "8.2.0", Complexity: "O(1) for each entry ID processed.",
	Summary: "Acknowledges entries in a consumer group and deletes them from the stream.",
	Flags:   Write | Fast,
	Args:    append([]Arg{Key("key", Delete), Str("group")}, delArgs()...),
	Replies: "For each id: 1 acknowledged and deleted, -1 not pending in the group, 2 acknowledged but not deleted because another group has not acknowledged it (ACKED). " +
		"KEEPREF leaves other groups' pending lists alone, DELREF takes the entry out of all of them.",
	Examples: `
> XADD s 1-1 f v
"1-1"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g me STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "f"
            2) "v"
> XACKDEL s g IDS 2 1-1 2-2
1) (integer) 1
2) (integer) -1
> XLEN s
(integer) 0
`,
	Run: runXAckDel,
}

func runXAckDel(c *Ctx) error {
	mode, ids, err := parseDel(c.Args[3:])
	if err != nil {
		return err
	}
	if err := c.longFields(len(ids)); err != nil {
		return err
	}
	c.Out.Array(len(ids))
	ok, err := c.Tx.XAckDel(c.Args[1], c.Args[2], mode, ids, func(outcome int) { c.Out.Int(int64(outcome)) })
	c.notFound(len(ids), ok || err != nil)
	return err
}
