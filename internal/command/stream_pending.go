package command

import (
	"math"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

var specXPending = Spec{
	Name: "xpending", Group: GroupStream, Since: "5.0.0",
	Complexity: "O(N) with N being the number of elements returned, so asking for a small fixed number of entries per call is O(1). O(M), where M is the total number of entries scanned when used with the IDLE filter. When the command returns just the summary and the list of consumers is small, it runs in O(1) time; otherwise, an additional O(N) time for iterating every consumer.",
	Summary:    "Returns the information and entries from a stream consumer group's pending entries list.",
	Flags:      ReadOnly,
	Args: []Arg{Key("key", Read), Str("group"), Opt(Block("filters", Opt(TokenArg("IDLE", Int("min-idle-time"))).Since("6.2.0"),
		Str("start"), Str("end"), Int("count"), Opt(Str("consumer"))))},
	Tips:    []string{"nondeterministic_output"},
	History: []Change{{"6.2.0", "Added the `IDLE` option and exclusive range intervals."}},
	Replies: "Without a range: how many are pending, the smallest and the largest id, and how many each consumer has. With one: id, consumer, milliseconds since the last delivery, and deliveries of each.",
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

func runXPending(c *Ctx) error {
	if len(c.Args) == 3 {
		return c.xpendingSum()
	}
	r, err := c.parsePending()
	if err != nil {
		return err
	}
	if err := c.longPending(&r); err != nil {
		return err
	}

	l, n, now := c.Out.ArrayLater(), 0, c.Now()/1000
	err = c.Tx.XPending(c.Args[1], c.Args[2], &r, func(p engine.XPending) {
		n++
		c.Out.Array(4)
		c.streamID(p.ID)
		c.Out.BulkString(p.Consumer)
		c.Out.Int(max(now-p.Time, 0))
		c.Out.Int(p.Count)
	})
	c.Out.Patch(l, n)
	return c.pendingError(err)
}

// longPending is Long for XPENDING, which with IDLE may have to look at many
// entries to show a few.
func (c *Ctx) longPending(r *engine.XPendingRange) error {
	if r.MinIdle <= 0 && r.Count <= LongBytes/entryBytes {
		return nil
	}
	return c.Long(c.Tx.ValueSize(c.Args[1]))
}

// pendingError says what the engine's errors read where a group is needed.
func (c *Ctx) pendingError(err error) error {
	if err == engine.ErrNoGroup {
		return noGroup(c.Args[1], c.Args[2], "")
	}
	return err
}

// parsePending reads the range of XPENDING.
func (c *Ctx) parsePending() (r engine.XPendingRange, err error) {
	if len(c.Args) < 6 || len(c.Args) > 9 {
		return r, ErrSyntax
	}
	i, ok := 3, false
	if EqualFold(c.Args[3], "IDLE") {
		if r.MinIdle, ok = resp.ParseInt(c.Args[4]); !ok {
			return r, ErrNotInteger
		}
		if len(c.Args) < 8 {
			return r, ErrSyntax
		}
		i = 5
	}
	count, ok := resp.ParseInt(c.Args[i+2])
	if !ok {
		return r, ErrNotInteger
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

func (c *Ctx) xpendingSum() error {
	sum, err := c.Tx.XPendingSum(c.Args[1], c.Args[2])
	if err != nil {
		return c.pendingError(err)
	}
	c.Out.Array(4)
	c.Out.Int(int64(sum.Count))
	if sum.Count == 0 {
		c.Out.Null()
		c.Out.Null()
		c.Out.NullArray()
		return nil
	}
	c.streamID(sum.First)
	c.streamID(sum.Last)
	c.Out.Array(len(sum.Consumers))
	for _, x := range sum.Consumers {
		c.Out.Array(2)
		c.Out.BulkString(x.Name)
		c.Out.BulkInt(int64(x.Pending))
	}
	return nil
}

var specXClaim = Spec{
	Name: "xclaim", Group: GroupStream, Since: "5.0.0",
	Complexity: "O(log N) with N being the number of messages in the PEL of the consumer group.",
	Summary:    "Changes, or acquires, ownership of a message in a consumer group, as if the message was delivered a consumer group member.",
	Flags:      Write | Fast,
	Args: []Arg{Key("key", Update), Str("group"), Str("consumer"), Str("min-idle-time"), Many("id"), Opt(TokenArg("IDLE", Int("ms"))),
		Opt(TokenArg("TIME", UnixTime("unix-time-milliseconds"))), Opt(TokenArg("RETRYCOUNT", Int("count"))), Opt(Token("FORCE")),
		Opt(Token("JUSTID")), Opt(TokenArg("LASTID", Str("id")))},
	Tips:    []string{"nondeterministic_output"},
	Replies: "The entries that changed hands; with JUSTID their ids. Those that were deleted are not pending any more.",
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
	Keys: claimKeys(Update, 5),
	Run:  runXClaim,
}

// claimKeys returns what finds the key of XCLAIM and XAUTOCLAIM, which use it so. The
// command reads it too unless its options, which begin at a place, have JUSTID: it
// returns the entries.
func claimKeys(use KeyFlags, from int) func([]KeyRef, [][]byte) ([]KeyRef, error) {
	return func(dst []KeyRef, args [][]byte) ([]KeyRef, error) {
		for _, a := range args[from:] {
			if EqualFold(a, "JUSTID") {
				return append(dst, KeyRef{1, use}), nil
			}
		}
		return append(dst, KeyRef{1, use | Access}), nil
	}
}

func runXClaim(c *Ctx) error {
	if err := c.Tx.XGroupCheck(c.Args[1], c.Args[2]); err != nil {
		return c.pendingError(err)
	}
	x, err := c.parseClaim()
	if err != nil {
		return err
	}
	if err := c.longFields(2 * len(x.IDs)); err != nil {
		return err
	}

	l, n := c.Out.ArrayLater(), 0
	err = c.Tx.XClaim(c.Args[1], &x, func(e *engine.StreamEntry) {
		n++
		c.claimed(e, x.JustID)
	})
	c.Out.Patch(l, n)
	return c.pendingError(err)
}

func (c *Ctx) claimed(e *engine.StreamEntry, justID bool) {
	if justID {
		c.streamID(e.ID())
	} else {
		streamEntry(c, e)
	}
}

// parseClaim reads the arguments of XCLAIM behind the group.
func (c *Ctx) parseClaim() (x engine.XClaim, err error) {
	x = engine.XClaim{Group: c.Args[2], Consumer: c.Args[3], Time: -1, Count: -1}
	var ok bool
	if x.MinIdle, ok = resp.ParseInt(c.Args[4]); !ok {
		return x, ReplyError("ERR Invalid min-idle-time argument for XCLAIM")
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
		case EqualFold(a, "FORCE"):
			x.Force = true
		case EqualFold(a, "JUSTID"):
			x.JustID = true
		case EqualFold(a, "IDLE") && more:
			i++
			if x.Time, err = claimNumber(c.Args[i], "IDLE"); err == nil {
				if x.Time = c.Now()/1000 - x.Time; x.Time == -1 {
					x.Time = 0
				}
			}
		case EqualFold(a, "TIME") && more:
			i++
			x.Time, err = claimNumber(c.Args[i], "TIME")
		case EqualFold(a, "RETRYCOUNT") && more:
			i++
			x.Count, err = claimNumber(c.Args[i], "RETRYCOUNT")
		case EqualFold(a, "LASTID") && more:
			i++
			if x.Last, ok = parseStreamID(c.Args[i], 0); !ok {
				err = errStreamID
			}
		default:
			err = ReplyError("ERR Unrecognized XCLAIM option '" + string(a) + "'")
		}
		if err != nil {
			return x, err
		}
	}
	return x, nil
}

func claimNumber(a []byte, option string) (int64, error) {
	n, ok := resp.ParseInt(a)
	if !ok {
		return 0, ReplyError("ERR Invalid " + option + " option argument for XCLAIM")
	}
	return n, nil
}

var specXAutoClaim = Spec{
	Name: "xautoclaim", Group: GroupStream, Since: "6.2.0", Complexity: "O(1) if COUNT is small.",
	Summary: "Changes, or acquires, ownership of messages in a consumer group, as if the messages were delivered to as consumer group member.",
	Flags:   Write | Fast,
	Args: []Arg{Key("key", Delete), Str("group"), Str("consumer"), Str("min-idle-time"), Str("start"), Opt(TokenArg("COUNT", Int("count"))),
		Opt(Token("JUSTID"))},
	Tips:    []string{"nondeterministic_output"},
	History: []Change{{"7.0.0", "Added an element to the reply array, containing deleted entries the command cleared from the PEL"}},
	Replies: "Where to go on (0-0: at the end), the entries that changed hands or with JUSTID their ids, and the ids that are not pending any more because they were deleted.",
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
	Keys: claimKeys(Delete, 6),
	Run:  runXAutoClaim,
}

func runXAutoClaim(c *Ctx) error {
	x, err := c.parseAutoClaim()
	if err != nil {
		return err
	}
	if err := c.Tx.XGroupCheck(c.Args[1], c.Args[2]); err != nil {
		return c.pendingError(err)
	}
	if err := c.longClaim(x.Count); err != nil {
		return err
	}

	// The reply begins with what is known last: the entries are written aside.
	out := c.Out
	aside := resp.Writer{Proto: out.Proto}
	c.Out = &aside
	l, n := aside.ArrayLater(), 0
	next, gone, err := c.Tx.XAutoClaim(c.Args[1], &x, func(e *engine.StreamEntry) {
		n++
		c.claimed(e, x.JustID)
	})
	aside.Patch(l, n)
	c.Out = out
	if err != nil {
		return c.pendingError(err)
	}

	c.Out.Array(3)
	c.streamID(next)
	c.Out.Raw(aside.Buf)
	c.Out.Array(len(gone))
	for _, id := range gone {
		c.streamID(id)
	}
	return nil
}

func (c *Ctx) longClaim(count int) error {
	return c.Long(min(count, c.Tx.ValueSize(c.Args[1])/fieldBytes) * fieldBytes)
}

// parseAutoClaim reads the arguments of XAUTOCLAIM behind the group.
func (c *Ctx) parseAutoClaim() (x engine.XAutoClaim, err error) {
	x = engine.XAutoClaim{Group: c.Args[2], Consumer: c.Args[3], Count: 100}
	var ok bool
	if x.MinIdle, ok = resp.ParseInt(c.Args[4]); !ok {
		return x, ReplyError("ERR Invalid min-idle-time argument for XAUTOCLAIM")
	}
	x.MinIdle = max(x.MinIdle, 0)
	if x.From, err = parseStart(c.Args[5]); err != nil {
		return x, err
	}
	for i := 6; i < len(c.Args); i++ {
		switch {
		case EqualFold(c.Args[i], "COUNT") && i+1 < len(c.Args):
			i++
			n, ok := resp.ParseInt(c.Args[i])
			if !ok || n < 1 || n > math.MaxInt64/16 {
				return x, ReplyError("ERR COUNT must be > 0")
			}
			x.Count = int(n)
		case EqualFold(c.Args[i], "JUSTID"):
			x.JustID = true
		default:
			return x, ErrSyntax
		}
	}
	return x, nil
}
