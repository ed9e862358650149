package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

const (
	errXGroupNoKey = command.ReplyError("ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the " +
		"MKSTREAM option to create an empty stream automatically.")
	errXGroupExists      = command.ReplyError("BUSYGROUP Consumer Group name already exists")
	errXGroupEntriesRead = command.ReplyError("ERR value for ENTRIESREAD must be positive or -1")
)

var specXGroup = command.Spec{
	Name: "xgroup", Group: command.GroupStream, Since: "5.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for consumer groups commands.",
	Examples: "> XGROUP CREATE s g $ MKSTREAM\nOK\n> XGROUP CREATE s g $\n(error) " + string(errXGroupExists) +
		"\n> XGROUP DESTROY s g\n(integer) 1\n",
	Sub: []*command.Spec{&specXGroupCreate, &specXGroupCreateConsumer, &specXGroupDelConsumer, &specXGroupDestroy, &specXGroupHelp,
		&specXGroupSetID},
}

var specXGroupHelp = command.HelpSpec("xgroup", command.GroupStream, 0)

// groupID returns the grammar of the id at which a group begins.
func groupID() command.Arg {
	return command.OneOf("id", command.Str("id"), command.Token("$").As("new_id"))
}

func entriesRead() command.Arg {
	return command.Opt(command.TokenArg("ENTRIESREAD", command.Int("entries_read")))
}

// groupError returns the wire error of XGROUP for an error of the engine.
func groupError(c *command.Ctx, err error) error {
	switch err {
	case engine.ErrNoKey:
		return errXGroupNoKey
	case engine.ErrGroupExists:
		return errXGroupExists
	case engine.ErrNoGroup:
		if c.Tx.XCheck(c.Args[2]) == engine.ErrNoKey {
			return errXGroupNoKey
		}
		return command.ReplyError("NOGROUP No such consumer group '" + string(c.Args[3]) + "' for key name '" + string(c.Args[2]) + "'")
	}
	return err
}

// errXGroupArgs returns the error about unknown options.
func errXGroupArgs(c *command.Ctx) error {
	return command.ReplyError("ERR unknown subcommand or wrong number of arguments for '" + shortName(c.Args[1]) + "'. Try XGROUP HELP.")
}

// shortName shortens a name that an error repeats, as Redis does.
func shortName(b []byte) string {
	if len(b) > 128 {
		b = b[:128]
	}
	return string(b)
}

// parseGroup reads the options of XGROUP CREATE and SETID.
func parseGroup(c *command.Ctx, create bool) (x engine.XGroup, err error) {
	x.Read = -1
	for i := 5; i < len(c.Args); i++ {
		switch a := c.Args[i]; {
		case create && command.EqualFold(a, "MKSTREAM"):
			x.Create = true
		case command.EqualFold(a, "ENTRIESREAD") && i+1 < len(c.Args):
			i++
			var ok bool
			if x.Read, ok = numeral.ParseInt(c.Args[i]); !ok {
				return x, command.ErrNotInteger
			}
			if x.Read < -1 {
				return x, errXGroupEntriesRead
			}
		default:
			return x, errXGroupArgs(c)
		}
	}
	return x, nil
}

var specXGroupCreate = command.Spec{
	Name: "xgroup|create", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Creates a consumer group.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args: []command.Arg{command.Key("key", command.Insert), command.Str("groupname"), groupID(),
		command.Opt(command.Token("MKSTREAM")), entriesRead()},
	History: []command.Change{{Since: "7.0.0", Text: "Added the `entries_read` named argument."}},
	Replies: "OK. The group's consumers get the entries after the id; `$` is the stream's last id.",
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

func runXGroupCreate(c *command.Ctx) error {
	x, err := parseGroup(c, true)
	if err != nil {
		return err
	}
	if err := c.Tx.XCheck(c.Args[2]); err != nil && !(err == engine.ErrNoKey && x.Create) {
		return groupError(c, err)
	}
	if string(c.Args[4]) == "$" {
		x.Last = true
	} else if id, ok := parseStreamID(c.Args[4], 0); ok {
		x.ID = id
	} else {
		return errStreamID
	}

	if err := c.Tx.XGroupCreate(c.Args[2], c.Args[3], x); err != nil {
		return groupError(c, err)
	}
	c.Out.OK()
	return nil
}

var specXGroupSetID = command.Spec{
	Name: "xgroup|setid", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Sets the last-delivered ID of a consumer group.",
	Flags:   command.Write | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Update), command.Str("groupname"), groupID(), entriesRead()},
	History: []command.Change{{Since: "7.0.0", Text: "Added the optional `entries_read` argument."}},
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

func runXGroupSetID(c *command.Ctx) error {
	x, err := parseGroup(c, false)
	if err != nil {
		return err
	}
	if err := c.Tx.XGroupCheck(c.Args[2], c.Args[3]); err != nil {
		return groupError(c, err)
	}
	if string(c.Args[4]) == "$" {
		x.Last = true
	} else if x.ID, _, err = parseRangeEnd(c.Args[4], 0); err != nil || c.Args[4][0] == '(' {
		return errStreamID
	}

	if err := c.Tx.XGroupSetID(c.Args[2], c.Args[3], x); err != nil {
		return groupError(c, err)
	}
	c.Out.OK()
	return nil
}

var specXGroupDestroy = command.Spec{
	Name: "xgroup|destroy", Group: command.GroupStream, Since: "5.0.0",
	Complexity: "O(N) where N is the number of entries in the group's pending entries list (PEL).",
	Summary:    "Destroys a consumer group.",
	Flags:      command.Write | command.Blind,
	Args:       []command.Arg{command.Key("key", command.Delete), command.Str("groupname")},
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

func runXGroupDestroy(c *command.Ctx) error {
	ok, err := c.Tx.XGroupDestroy(c.Args[2], c.Args[3])
	if err != nil {
		return groupError(c, err)
	}
	intBool(c, ok)
	return nil
}

// intBool replies with 1 or 0.
func intBool(c *command.Ctx, ok bool) {
	if ok {
		c.Out.Int(1)
	} else {
		c.Out.Int(0)
	}
}

var specXGroupCreateConsumer = command.Spec{
	Name: "xgroup|createconsumer", Group: command.GroupStream, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Creates a consumer in a consumer group.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Insert), command.Str("groupname"), command.Str("consumername")},
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

func runXGroupCreateConsumer(c *command.Ctx) error {
	ok, err := c.Tx.XGroupCreateConsumer(c.Args[2], c.Args[3], c.Args[4])
	if err != nil {
		return groupError(c, err)
	}
	intBool(c, ok)
	return nil
}

var specXGroupDelConsumer = command.Spec{
	Name: "xgroup|delconsumer", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Deletes a consumer from a consumer group.",
	Flags:   command.Write | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Delete), command.Str("groupname"), command.Str("consumername")},
	Replies: "The number of entries that were pending for it: no consumer gets them now.",
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

func runXGroupDelConsumer(c *command.Ctx) error {
	if err := c.LongWalk(c.Args[2]); err != nil {
		return err
	}
	n, err := c.Tx.XGroupDelConsumer(c.Args[2], c.Args[3], c.Args[4])
	if err != nil {
		return groupError(c, err)
	}
	c.Out.Int(int64(n))
	return nil
}

var specXAck = command.Spec{
	Name: "xack", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1) for each message ID processed.",
	Summary: "Returns the number of messages that were successfully acknowledged by the consumer group member of a stream.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Update), command.Str("group"), command.Many("id")},
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

func runXAck(c *command.Ctx) error {
	if err := longFields(c, len(c.Args)); err != nil {
		return err
	}
	ids, err := ackIDs(c, c.Args[3:])
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

// ackIDs reads the ids of XACK. If there is no such group it replies with 0 before it checks them,
// as Redis does.
func ackIDs(c *command.Ctx, args [][]byte) ([]engine.StreamID, error) {
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
func delArgs() []command.Arg {
	return []command.Arg{command.Opt(command.OneOf("condition", command.Token("KEEPREF"), command.Token("DELREF"), command.Token("ACKED"))),
		command.Block("IDS", command.Count("numids"), command.Many("id"))}
}

func delMode(a []byte) (engine.XDelMode, bool) {
	switch {
	case command.EqualFold(a, "KEEPREF"):
		return engine.KeepRef, true
	case command.EqualFold(a, "DELREF"):
		return engine.DelRef, true
	case command.EqualFold(a, "ACKED"):
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
		case command.EqualFold(args[i], "IDS") && i+1 < len(args) && ids == nil:
			n, ok := numeral.ParseInt(args[i+1])
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
			return mode, nil, command.ErrSyntax
		}
	}
	if ids == nil {
		return mode, nil, command.ErrSyntax
	}
	return mode, ids, nil
}

var specXDelEx = command.Spec{
	Name: "xdelex", Group: command.GroupStream, Since: "8.2.0",
	Complexity: "O(1) for each single item to delete in the stream, regardless of the stream size.",
	Summary:    "Deletes entries of a stream, and optionally the references to them in pending lists.",
	Flags:      command.Write | command.Fast | command.Blind,
	Args:       append([]command.Arg{command.Key("key", command.Delete)}, delArgs()...),
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

func runXDelEx(c *command.Ctx) error {
	mode, ids, err := parseDel(c.Args[2:])
	if err != nil {
		return err
	}
	if err := longFields(c, len(ids)); err != nil {
		return err
	}
	c.Out.Array(len(ids))
	ok, err := c.Tx.XDelEx(c.Args[1], mode, ids, func(outcome int) { c.Out.Int(int64(outcome)) })
	notFound(c, len(ids), ok || err != nil)
	return err
}

// notFound replies with -1 for each of n ids, unless replied is set.
func notFound(c *command.Ctx, n int, replied bool) {
	for ; !replied && n > 0; n-- {
		c.Out.Int(engine.XNotFound)
	}
}

var specXAckDel = command.Spec{
	Name: "xackdel", Group: command.GroupStream, Since: "8.2.0", Complexity: "O(1) for each entry ID processed.",
	Summary: "Acknowledges entries in a consumer group and deletes them from the stream.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    append([]command.Arg{command.Key("key", command.Delete), command.Str("group")}, delArgs()...),
	Replies: "For each id: 1 acknowledged and deleted, -1 not pending in the group, 2 acknowledged but not deleted " +
		"because another group has not acknowledged it (ACKED). " +
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

func runXAckDel(c *command.Ctx) error {
	mode, ids, err := parseDel(c.Args[3:])
	if err != nil {
		return err
	}
	if err := longFields(c, len(ids)); err != nil {
		return err
	}
	c.Out.Array(len(ids))
	ok, err := c.Tx.XAckDel(c.Args[1], c.Args[2], mode, ids, func(outcome int) { c.Out.Int(int64(outcome)) })
	notFound(c, len(ids), ok || err != nil)
	return err
}
