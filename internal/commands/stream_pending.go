package commands

import (
	"math"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/wire"
)

var specXPending = command.Spec{
	Name: "xpending", Group: command.GroupStream, Since: "5.0.0",
	Complexity: "O(N) with N being the number of elements returned, so asking for a small fixed number of entries per call " +
		"is O(1). O(M), where M is the total number of entries scanned when used with the IDLE filter. When the command returns just the " +
		"summary and the list of consumers is small, it runs in O(1) time; otherwise, an additional O(N) time for iterating every consumer.",
	Summary: "Returns the information and entries from a stream consumer group's pending entries list.",
	Flags:   command.ReadOnly | command.Blind,
	Args: []command.Arg{command.Key("key", command.Read), command.Str("group"),
		command.Opt(command.Block("filters", command.Opt(command.TokenArg("IDLE", command.Int("min-idle-time"))).Since("6.2.0"),
			command.Str("start"), command.Str("end"), command.Int("count"), command.Opt(command.Str("consumer"))))},
	Tips:    []string{"nondeterministic_output"},
	History: []command.Change{{Since: "6.2.0", Text: "Added the `IDLE` option and exclusive range intervals."}},
	Replies: "Without a range: the number of pending entries, the smallest and the largest id, and the number of each " +
		"consumer. With a range: id, consumer, milliseconds since the last delivery, and deliveries of each.",
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
> XPENDING s g
1) (integer) 1
2) "1-1"
3) "1-1"
4) 1) 1) "me"
      2) "1"
~ 100ms
> XPENDING s g IDLE 100 - + 10 me
1) 1) "1-1"
   2) "me"
   3) (integer) 100
   4) (integer) 1
`,
	Run: runXPending,
}

func runXPending(c *command.Ctx) error {
	if len(c.Args) == 3 {
		return xpendingSum(c)
	}
	r, err := parsePending(c)
	if err != nil {
		return err
	}
	if err := longPending(c, &r); err != nil {
		return err
	}

	l, n, now := c.Out.ArrayLater(), 0, c.Now()/1000
	err = c.Tx.XPending(c.Args[1], c.Args[2], &r, func(p engine.XPending) {
		n++
		c.Out.Array(4)
		streamID(c, p.ID)
		c.Out.BulkString(p.Consumer)
		c.Out.Int(max(now-p.Time, 0))
		c.Out.Int(p.Count)
	})
	c.Out.Patch(l, n)
	return pendingError(c, err)
}

// longPending is Ctx.Long for XPENDING. With IDLE the command may have to check many entries for a short
// reply.
func longPending(c *command.Ctx, r *engine.XPendingRange) error {
	if r.MinIdle <= 0 && r.Count <= command.LongBytes/entryBytes {
		return nil
	}
	return c.Long(c.Tx.ValueSize(c.Args[1]))
}

// pendingError returns the wire error, for an error of the engine, of commands that need a group.
func pendingError(c *command.Ctx, err error) error {
	if err == engine.ErrNoGroup {
		return noGroup(c.Args[1], c.Args[2], "")
	}
	return err
}

// parsePending reads the range of XPENDING.
func parsePending(c *command.Ctx) (r engine.XPendingRange, err error) {
	if len(c.Args) < 6 || len(c.Args) > 9 {
		return r, command.ErrSyntax
	}
	i, ok := 3, false
	if command.EqualFold(c.Args[3], "IDLE") {
		if r.MinIdle, ok = numeral.ParseInt(c.Args[4]); !ok {
			return r, command.ErrNotInteger
		}
		if len(c.Args) < 8 {
			return r, command.ErrSyntax
		}
		i = 5
	}
	count, ok := numeral.ParseInt(c.Args[i+2])
	if !ok {
		return r, command.ErrNotInteger
	}
	r.Count = int(min(max(count, 0), math.MaxInt))
	if r.First, err = parseStart(c.Args[i]); err != nil {
		return r, err
	}
	if r.Last, err = parseStop(c.Args[i+1]); err != nil {
		return r, err
	}
	if i+3 < len(c.Args) {
		r.Of, r.Consumer = true, c.Args[i+3]
	}
	return r, nil
}

func xpendingSum(c *command.Ctx) error {
	sum, err := c.Tx.XPendingSum(c.Args[1], c.Args[2])
	if err != nil {
		return pendingError(c, err)
	}
	c.Out.Array(4)
	c.Out.Int(int64(sum.Count))
	if sum.Count == 0 {
		c.Out.Null()
		c.Out.Null()
		c.Out.NullArray()
		return nil
	}
	streamID(c, sum.First)
	streamID(c, sum.Last)
	c.Out.Array(len(sum.Consumers))
	for _, x := range sum.Consumers {
		c.Out.Array(2)
		c.Out.BulkString(x.Name)
		c.Out.BulkInt(int64(x.Pending))
	}
	return nil
}

var specXClaim = command.Spec{
	Name: "xclaim", Group: command.GroupStream, Since: "5.0.0",
	Complexity: "O(log N) with N being the number of messages in the PEL of the consumer group.",
	Summary:    "Changes, or acquires, ownership of a message in a consumer group, as if the message was delivered a consumer group member.",
	Flags:      command.Write | command.Fast | command.Blind,
	Args: []command.Arg{command.Key("key", command.Update), command.Str("group"), command.Str("consumer"),
		command.Str("min-idle-time"), command.Many("id"),
		command.Opt(command.TokenArg("IDLE", command.Int("ms"))),
		command.Opt(command.TokenArg("TIME", command.UnixTime("unix-time-milliseconds"))),
		command.Opt(command.TokenArg("RETRYCOUNT", command.Int("count"))),
		command.Opt(command.Token("FORCE")),
		command.Opt(command.Token("JUSTID")), command.Opt(command.TokenArg("LASTID", command.Str("id")))},
	Tips:    []string{"nondeterministic_output"},
	Replies: "The claimed entries; with JUSTID their ids. Deleted entries are no longer pending.",
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
> XCLAIM s g you 1000 1-1
(empty array)
~ 1000ms
> XCLAIM s g you 1000 1-1
1) 1) "1-1"
   2) 1) "f"
      2) "v"
`,
	Keys: claimKeys(command.Update, 5),
	Run:  runXClaim,
}

// claimKeys returns a function that finds the key of XCLAIM and XAUTOCLAIM, with the flags use. The commands
// return the entries, and so read the key, unless their options contain JUSTID; the options begin at from.
func claimKeys(use command.KeyFlags, from int) func([]command.KeyRef, [][]byte) ([]command.KeyRef, error) {
	return func(dst []command.KeyRef, args [][]byte) ([]command.KeyRef, error) {
		for _, a := range args[from:] {
			if command.EqualFold(a, "JUSTID") {
				return append(dst, command.KeyRef{Pos: 1, Flags: use}), nil
			}
		}
		return append(dst, command.KeyRef{Pos: 1, Flags: use | command.Access}), nil
	}
}

func runXClaim(c *command.Ctx) error {
	if err := c.Tx.XGroupCheck(c.Args[1], c.Args[2]); err != nil {
		return pendingError(c, err)
	}
	x, err := parseClaim(c)
	if err != nil {
		return err
	}
	if err := longFields(c, 2*len(x.IDs)); err != nil {
		return err
	}

	l, n := c.Out.ArrayLater(), 0
	err = c.Tx.XClaim(c.Args[1], &x, func(e *engine.StreamEntry) {
		n++
		claimed(c, e, x.JustID)
	})
	c.Out.Patch(l, n)
	return pendingError(c, err)
}

func claimed(c *command.Ctx, e *engine.StreamEntry, justID bool) {
	if justID {
		streamID(c, e.ID())
	} else {
		streamEntry(c, e)
	}
}

// parseClaim reads the arguments of XCLAIM after the group.
func parseClaim(c *command.Ctx) (x engine.XClaim, err error) {
	x = engine.XClaim{Group: c.Args[2], Consumer: c.Args[3], Time: -1, Count: -1}
	var ok bool
	if x.MinIdle, ok = numeral.ParseInt(c.Args[4]); !ok {
		return x, command.ReplyError("ERR Invalid min-idle-time argument for XCLAIM")
	}
	i := 5
	for ; i < len(c.Args); i++ {
		id, ok := parseStreamID(c.Args[i], 0)
		if !ok {
			break
		}
		x.IDs = append(x.IDs, id)
	}
	for ; i < len(c.Args); i++ {
		a, more := c.Args[i], i+1 < len(c.Args)
		switch {
		case command.EqualFold(a, "FORCE"):
			x.Force = true
		case command.EqualFold(a, "JUSTID"):
			x.JustID = true
		case command.EqualFold(a, "IDLE") && more:
			i++
			if x.Time, err = claimNumber(c.Args[i], "IDLE"); err == nil {
				if x.Time = c.Now()/1000 - x.Time; x.Time == -1 {
					x.Time = 0
				}
			}
		case command.EqualFold(a, "TIME") && more:
			i++
			x.Time, err = claimNumber(c.Args[i], "TIME")
		case command.EqualFold(a, "RETRYCOUNT") && more:
			i++
			x.Count, err = claimNumber(c.Args[i], "RETRYCOUNT")
		case command.EqualFold(a, "LASTID") && more:
			i++
			if x.Last, ok = parseStreamID(c.Args[i], 0); !ok {
				err = errStreamID
			}
		default:
			err = command.ReplyError("ERR Unrecognized XCLAIM option '" + string(a) + "'")
		}
		if err != nil {
			return x, err
		}
	}
	return x, nil
}

func claimNumber(a []byte, option string) (int64, error) {
	n, ok := numeral.ParseInt(a)
	if !ok {
		return 0, command.ReplyError("ERR Invalid " + option + " option argument for XCLAIM")
	}
	return n, nil
}

var specXAutoClaim = command.Spec{
	Name: "xautoclaim", Group: command.GroupStream, Since: "6.2.0", Complexity: "O(1) if COUNT is small.",
	Summary: "Changes, or acquires, ownership of messages in a consumer group, as if the messages were delivered to as consumer group member.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args: []command.Arg{command.Key("key", command.Delete), command.Str("group"), command.Str("consumer"),
		command.Str("min-idle-time"), command.Str("start"),
		command.Opt(command.TokenArg("COUNT", command.Int("count"))),
		command.Opt(command.Token("JUSTID"))},
	Tips: []string{"nondeterministic_output"},
	History: []command.Change{{Since: "7.0.0", Text: "Added an element to the reply array, containing deleted entries the " +
		"command cleared from the PEL"}},
	Replies: "The start of the next call (0-0: at the end), the claimed entries or with JUSTID their ids, and the ids that are " +
		"no longer pending " +
		"because they were deleted.",
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
~ 1000ms
> XAUTOCLAIM s g you 1000 0 COUNT 10 JUSTID
1) "0-0"
2) 1) "1-1"
3) (empty array)
`,
	Keys: claimKeys(command.Delete, 6),
	Run:  runXAutoClaim,
}

func runXAutoClaim(c *command.Ctx) error {
	x, err := parseAutoClaim(c)
	if err != nil {
		return err
	}
	if err := c.Tx.XGroupCheck(c.Args[1], c.Args[2]); err != nil {
		return pendingError(c, err)
	}
	if err := longClaim(c, x.Count); err != nil {
		return err
	}

	// The first part of the reply is known last, so the entries go to a separate buffer.
	out := c.Out
	aside := wire.Writer{Proto: out.Proto}
	c.Out = &aside
	l, n := aside.ArrayLater(), 0
	next, gone, err := c.Tx.XAutoClaim(c.Args[1], &x, func(e *engine.StreamEntry) {
		n++
		claimed(c, e, x.JustID)
	})
	aside.Patch(l, n)
	c.Out = out
	if err != nil {
		return pendingError(c, err)
	}

	c.Out.Array(3)
	streamID(c, next)
	c.Out.Raw(aside.Buf)
	c.Out.Array(len(gone))
	for _, id := range gone {
		streamID(c, id)
	}
	return nil
}

func longClaim(c *command.Ctx, count int) error {
	return c.Long(min(count, c.Tx.ValueSize(c.Args[1])/fieldBytes) * fieldBytes)
}

// parseAutoClaim reads the arguments of XAUTOCLAIM after the group.
func parseAutoClaim(c *command.Ctx) (x engine.XAutoClaim, err error) {
	x = engine.XAutoClaim{Group: c.Args[2], Consumer: c.Args[3], Count: 100}
	var ok bool
	if x.MinIdle, ok = numeral.ParseInt(c.Args[4]); !ok {
		return x, command.ReplyError("ERR Invalid min-idle-time argument for XAUTOCLAIM")
	}
	x.MinIdle = max(x.MinIdle, 0)
	if x.From, err = parseStart(c.Args[5]); err != nil {
		return x, err
	}
	for i := 6; i < len(c.Args); i++ {
		switch {
		case command.EqualFold(c.Args[i], "COUNT") && i+1 < len(c.Args):
			i++
			n, ok := numeral.ParseInt(c.Args[i])
			if !ok || n < 1 || n > math.MaxInt64/16 {
				return x, command.ReplyError("ERR COUNT must be > 0")
			}
			x.Count = int(n)
		case command.EqualFold(c.Args[i], "JUSTID"):
			x.JustID = true
		default:
			return x, command.ErrSyntax
		}
	}
	return x, nil
}
