package commands

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/wire"
)

// parseStart reads the lower end of a range of ids: -, an id, or ( and an id.
func parseStart(a []byte) (id engine.StreamID, err error) {
	id, open, err := parseRangeEnd(a, 0)
	if err == nil && open {
		var ok bool
		if id, ok = id.Next(); !ok {
			err = errRangeStart
		}
	}
	return id, err
}

// parseStop reads the upper end of a range of ids: +, an id, or ( and an id.
func parseStop(a []byte) (id engine.StreamID, err error) {
	id, open, err := parseRangeEnd(a, math.MaxUint64)
	if err == nil && open {
		var ok bool
		if id, ok = id.Prev(); !ok {
			err = errRangeEnd
		}
	}
	return id, err
}

func parseRangeEnd(a []byte, seq uint64) (id engine.StreamID, open bool, err error) {
	switch {
	case len(a) == 1 && a[0] == '-':
		return id, false, nil
	case len(a) == 1 && a[0] == '+':
		return engine.MaxStreamID, false, nil
	case len(a) > 1 && a[0] == '(':
		a, open = a[1:], true
	}
	id, ok := parseStreamID(a, seq)
	if !ok {
		err = errStreamID
	}
	return id, open, err
}

var specXRange = command.Spec{
	Name: "xrange", Group: command.GroupStream, Since: "5.0.0",
	Complexity: "O(N) with N being the number of elements being returned. If N is constant (e.g. always asking for the " +
		"first 10 elements with COUNT), you can consider it O(1).",
	Summary: "Returns the messages from a stream within a range of IDs.",
	Flags:   command.ReadOnly | command.Blind,
	Args: []command.Arg{command.Key("key", command.Read), command.Str("start"), command.Str("end"),
		command.Opt(command.TokenArg("COUNT", command.Int("count")))},
	History: []command.Change{{Since: "6.2.0", Text: "Added exclusive ranges."}},
	Replies: "The entries, each with its id and its fields and values. `-` and `+` are the smallest and the largest id, `(` excludes one.",
	Examples: `
> XADD s 1-1 f a
"1-1"
> XADD s 2-1 f b
"2-1"
> XRANGE s - + COUNT 1
1) 1) "1-1"
   2) 1) "f"
      2) "a"
> XRANGE s (1-1 +
1) 1) "2-1"
   2) 1) "f"
      2) "b"
`,
	Run: func(c *command.Ctx) error { return xrange(c, c.Args[2], c.Args[3], false) },
}

var specXRevRange = command.Spec{
	Name: "xrevrange", Group: command.GroupStream, Since: "5.0.0",
	Complexity: "O(N) with N being the number of elements returned. If N is constant (e.g. always asking for the first " +
		"10 elements with COUNT), you can consider it O(1).",
	Summary: "Returns the messages from a stream within a range of IDs in reverse order.",
	Flags:   command.ReadOnly | command.Blind,
	Args: []command.Arg{command.Key("key", command.Read), command.Str("end"), command.Str("start"),
		command.Opt(command.TokenArg("COUNT", command.Int("count")))},
	History: []command.Change{{Since: "6.2.0", Text: "Added exclusive ranges."}},
	Replies: "The entries, the last one first, as XRANGE replies them.",
	Examples: `
> XADD s 1-1 f a
"1-1"
> XADD s 2-1 f b
"2-1"
> XREVRANGE s + - COUNT 1
1) 1) "2-1"
   2) 1) "f"
      2) "b"
`,
	Run: func(c *command.Ctx) error { return xrange(c, c.Args[3], c.Args[2], true) },
}

func xrange(c *command.Ctx, start, end []byte, reverse bool) (err error) {
	r := engine.XRange{Reverse: reverse}
	if r.First, err = parseStart(start); err != nil {
		return err
	}
	if r.Last, err = parseStop(end); err != nil {
		return err
	}
	count := int64(-1)
	for i := 4; i < len(c.Args); i += 2 {
		if !command.EqualFold(c.Args[i], "COUNT") || i+1 == len(c.Args) {
			return command.ErrSyntax
		}
		n, ok := numeral.ParseInt(c.Args[i+1])
		if !ok {
			return command.ErrNotInteger
		}
		count = max(n, 0)
	}
	if count == 0 {
		return xrangeNone(c)
	}
	r.Count = int(max(count, 0))
	if err := longRange(c, r.First, r.Last, r.Count); err != nil {
		return err
	}

	l, n := c.Out.ArrayLater(), 0
	_, err = c.Tx.XRange(c.Args[1], r, func(e *engine.StreamEntry) {
		streamEntry(c, e)
		n++
	})
	c.Out.Patch(l, n)
	return err
}

// xrangeNone replies to COUNT 0: with null, or with an empty array if there is no such key.
func xrangeNone(c *command.Ctx) error {
	ok, err := c.Tx.XRange(c.Args[1], engine.XRange{First: engine.MaxStreamID}, func(*engine.StreamEntry) {})
	switch {
	case err != nil:
		return err
	case ok:
		c.Out.NullArray()
	default:
		c.Out.Array(0)
	}
	return nil
}

const (
	errXReadGroupOption = command.ReplyError("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")
	errXReadNoAck       = command.ReplyError("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")
	errXReadUnbalanced  = command.ReplyError("ERR Unbalanced 'xread' list of streams: for each stream key an ID, " +
		"'+', or '$' must be specified.")
	errXGroupUnbalanced = command.ReplyError("ERR Unbalanced 'xreadgroup' list of streams: for each stream key an " +
		"ID or '>' must be specified.")
	errXReadNew = command.ReplyError("ERR The > ID can be specified only when calling XREADGROUP using the " +
		"GROUP <group> <consumer> option.")
	errXReadGroupLast = command.ReplyError("ERR The $ ID is meaningless in the context of XREADGROUP: you want to read " +
		"the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just " +
		"return an empty result set.")
	errXReadGroupNone = command.ReplyError("ERR Missing GROUP option for XREADGROUP")
)

// reading holds the arguments of XREAD and XREADGROUP.
type reading struct {
	keys, ids       [][]byte
	first           int // the position of the first key in the arguments
	count           int
	block           int64 // ms; -1: XREAD does not wait
	group, consumer []byte
	noAck           bool
}

// parseReading reads the arguments of XREAD or XREADGROUP.
func parseReading(c *command.Ctx, grouped bool) (r reading, err error) {
	r.block = -1
	i := 1
	for ; i < len(c.Args) && r.keys == nil; i++ {
		a, more := c.Args[i], len(c.Args)-1-i
		switch {
		case command.EqualFold(a, "BLOCK") && more > 0:
			i++
			if r.block, err = command.ParseBlock(c.Args[i]); err != nil {
				return r, err
			}
		case command.EqualFold(a, "COUNT") && more > 0:
			i++
			n, ok := numeral.ParseInt(c.Args[i])
			if !ok {
				return r, command.ErrNotInteger
			}
			r.count = int(max(n, 0))
		case command.EqualFold(a, "STREAMS") && more > 0:
			switch {
			case more%2 == 0:
			case grouped:
				return r, errXGroupUnbalanced
			default:
				return r, errXReadUnbalanced
			}
			r.first = i + 1
			r.keys, r.ids = c.Args[i+1:i+1+more/2], c.Args[i+1+more/2:]
		case command.EqualFold(a, "GROUP") && more > 1:
			if !grouped {
				return r, errXReadGroupOption
			}
			r.group, r.consumer = c.Args[i+1], c.Args[i+2]
			i += 2
		case command.EqualFold(a, "NOACK"):
			if !grouped {
				return r, errXReadNoAck
			}
			r.noAck = true
		default:
			return r, command.ErrSyntax
		}
	}
	switch {
	case r.keys == nil:
		return r, command.ErrSyntax
	case grouped && r.group == nil:
		return r, errXReadGroupNone
	}
	return r, nil
}

// candidates returns the range of the streams to read: all of them, or, if the command has waited, only the
// one that has changed.
func candidates(c *command.Ctx, keys [][]byte) (from, to int) {
	if c.Waited() {
		ready := c.Candidates(keys)[0]
		for i, k := range keys {
			if string(k) == string(ready) {
				return i, i + 1
			}
		}
	}
	return 0, len(keys)
}

var specXRead = command.Spec{
	Name: "xread", Group: command.GroupStream, Since: "5.0.0",
	Complexity: "For each stream mentioned: O(N) with N being the number of elements being returned, it means that " +
		"XREAD-ing with a fixed COUNT is O(1). Note that when the BLOCK option is used, XADD will pay O(M) time in order to serve the M " +
		"clients blocked on the stream getting new data.",
	Summary: "Returns messages from multiple streams with IDs greater than the ones requested. Blocks until a message is available otherwise.",
	Flags:   command.ReadOnly | command.Blocking | command.Blind,
	Args: []command.Arg{command.Opt(command.TokenArg("COUNT", command.Int("count"))),
		command.Opt(command.TokenArg("BLOCK", command.Int("milliseconds"))),
		command.Block("STREAMS", command.ManyKeys("key", command.Read), command.Many("id"))},
	Replies: "A map of the streams that have entries above the id; nil if none has, or the time is up. The id `$` is " +
		"the stream's last id, and `+` returns its last entry.",
	Examples: `
> XADD s 1-1 f a
"1-1"
> XREAD COUNT 2 STREAMS s 0
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "f"
            2) "a"
> XREAD STREAMS s $
(nil)
`,
	Run: runXRead,
}

// lastEntry stands for the id +, which asks for the last entry.
const lastEntry = '+'

func runXRead(c *command.Ctx) error {
	r, err := parseReading(c, false)
	if err != nil {
		return err
	}
	after := make([]engine.StreamID, len(r.keys))
	from, to := candidates(c, r.keys)
	for i := from; i < to; i++ {
		if after[i], err = afterID(c, r.keys[i], r.ids[i]); err != nil {
			return err
		}
	}
	if err := longReading(c, &r, func(i int) int { return c.Tx.XSpan(r.keys[i], after[i], engine.MaxStreamID) }); err != nil {
		return err
	}

	done, err := mapOf(c, &r, from, to, func(i int) (bool, error) {
		count := r.count
		if len(r.ids[i]) == 1 && r.ids[i][0] == lastEntry {
			count = 1
		}
		return xread(c, r.keys[i], after[i], count)
	})
	if done || err != nil {
		return err
	}
	if !c.Waited() {
		c.Args = slices.Clone(c.Args)
		for i := range after {
			c.Args[r.first+len(r.keys)+i] = engine.AppendStreamID(nil, after[i])
		}
	}
	return c.Block(command.Wait{Keys: r.keys, Kinds: engine.KindsOf(engine.Stream), Millis: r.block, Passable: true})
}

// afterID returns the id after which the command reads.
func afterID(c *command.Ctx, key, id []byte) (after engine.StreamID, err error) {
	if c.Waited() {
		after, _ = parseStreamID(id, 0)
		return after, nil
	}
	last, entry, err := c.Tx.XLast(key)
	if err != nil || len(id) == 1 && id[0] == '$' {
		return last, err
	}
	if len(id) == 1 && id[0] == '>' {
		return after, errXReadNew
	}
	if len(id) == 1 && id[0] == lastEntry {
		if entry.IsZero() {
			return last, nil
		}
		after, _ = entry.Prev()
		return after, nil
	}
	after, ok := parseStreamID(id, 0)
	if !ok {
		return after, errStreamID
	}
	return after, nil
}

// longReading is Ctx.Long for XREAD and XREADGROUP; ahead returns the largest number of entries that stream i
// may return.
func longReading(c *command.Ctx, r *reading, ahead func(i int) int) error {
	if c.Waited() || r.count > 0 && r.count*len(r.keys) <= command.LongBytes/entryBytes {
		return nil
	}
	n := 0
	for i := range r.keys {
		k := ahead(i)
		if r.count > 0 {
			k = min(k, r.count)
		}
		n += k
	}
	return c.Long(n * entryBytes)
}

// mapPlace is the position in the output where a map of streams begins: a map in RESP3, an array of pairs in
// RESP2.
type mapPlace struct {
	mark  wire.Mark
	later wire.Later
}

func mapLater(c *command.Ctx) (p mapPlace) {
	p.mark = c.Out.Mark()
	if c.Out.Proto == 3 {
		p.later = c.Out.MapLater()
	} else {
		p.later = c.Out.ArrayLater()
	}
	return p
}

// endMap ends the map of n streams that mapLater began. If n is 0, it removes the map from the output. It
// then replies with null, unless the command must wait; in that case it returns false.
func endMap(c *command.Ctx, p mapPlace, n int, wait bool) (done bool) {
	if n > 0 {
		c.Out.Patch(p.later, n)
		return true
	}
	c.Out.Rollback(p.mark)
	if !wait {
		c.Out.NullArray()
	}
	return !wait
}

// mapOf replies with a map of the streams from..to, without those for which read returns false. done reports
// that the command need not wait, as in endMap.
func mapOf(c *command.Ctx, r *reading, from, to int, read func(i int) (bool, error)) (done bool, err error) {
	p, n := mapLater(c), 0
	for i := from; i < to; i++ {
		served, err := read(i)
		if err != nil {
			return true, err
		}
		if served {
			n++
		}
	}
	return endMap(c, p, n, r.block >= 0), nil
}

// beginStream begins a stream in such a map.
func beginStream(c *command.Ctx, key []byte) wire.Later {
	if c.Out.Proto != 3 {
		c.Out.Array(2)
	}
	c.Out.Bulk(key)
	return c.Out.ArrayLater()
}

// xread replies with a stream's entries after an id, and reports whether there are any.
func xread(c *command.Ctx, key []byte, after engine.StreamID, count int) (bool, error) {
	var l wire.Later
	n := 0
	served, err := c.Tx.XRead(key, after, count, func() { l = beginStream(c, key) }, func(e *engine.StreamEntry) {
		streamEntry(c, e)
		n++
	})
	if served {
		c.Out.Patch(l, n)
	}
	return served, err
}

var specXReadGroup = command.Spec{
	Name: "xreadgroup", Group: command.GroupStream, Since: "5.0.0",
	Complexity: "For each stream mentioned: O(M) with M being the number of elements returned. If M is constant (e.g. " +
		"always asking for the first 10 elements with COUNT), you can consider it O(1). On the other side when XREADGROUP blocks, XADD " +
		"will pay the O(N) time in order to serve the N clients blocked on the stream getting new data.",
	Summary: "Returns new or historical messages from a stream for a consumer in a group. Blocks until a message is available otherwise.",
	Flags:   command.Write | command.Blocking | command.Blind,
	Args: []command.Arg{command.Block("GROUP", command.Str("group"), command.Str("consumer")).As("group_consumer"),
		command.Opt(command.TokenArg("COUNT", command.Int("count"))), command.Opt(command.TokenArg("BLOCK", command.Int("milliseconds"))),
		command.Opt(command.Token("NOACK")), command.Block("STREAMS", command.ManyKeys("key", command.Read), command.Many("id"))},
	Replies: "A map of the streams that have entries; nil if none has, or the time is up. The id `>` returns entries " +
		"that no consumer of the group has got, any other id those that are pending for this consumer.",
	Examples: `
> XADD s 1-1 f a
"1-1"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g me COUNT 1 STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "f"
            2) "a"
> XREADGROUP GROUP g me STREAMS s >
(nil)
> XACK s g 1-1
(integer) 1
`,
	Run: runXReadGroup,
}

func runXReadGroup(c *command.Ctx) error {
	r, err := parseReading(c, true)
	if err != nil {
		return err
	}
	from, to := candidates(c, r.keys)
	for i := from; i < to; i++ {
		if err := checkReading(c, &r, i); err != nil {
			return err
		}
	}
	if err := longReading(c, &r, func(i int) int { return c.Tx.XAhead(r.keys[i], r.group, isNew(r.ids[i])) }); err != nil {
		return err
	}

	if done, err := mapOf(c, &r, from, to, func(i int) (bool, error) { return xreadgroup(c, &r, i) }); done || err != nil {
		return err
	}
	return c.Block(command.Wait{Keys: r.keys, Kinds: engine.AnyKind, Millis: r.block, Passable: true})
}

func isNew(id []byte) bool { return len(id) == 1 && id[0] == '>' }

// checkReading checks a stream and its group before the command delivers any entries.
func checkReading(c *command.Ctx, r *reading, i int) error {
	err := c.Tx.XGroupCheck(r.keys[i], r.group)
	switch {
	case err == nil:
	case err == engine.ErrNoGroup:
		return noGroup(r.keys[i], r.group, " in XREADGROUP with GROUP option")
	default:
		return err
	}
	id := r.ids[i]
	if len(id) == 1 && id[0] == '$' {
		return errXReadGroupLast
	}
	if _, ok := parseStreamID(id, 0); !ok && !isNew(id) {
		return errStreamID
	}
	return nil
}

// noGroup returns the error about a group that does not exist.
func noGroup(key, group []byte, where string) error {
	return command.ReplyError("NOGROUP No such key '" + string(key) + "' or consumer group '" + string(group) + "'" + where)
}

// xreadgroup delivers entries of one stream and reports whether there were any.
func xreadgroup(c *command.Ctx, r *reading, i int) (bool, error) {
	var l wire.Later
	n := 0
	x := engine.XReadGroup{Group: r.group, Consumer: r.consumer, New: isNew(r.ids[i]), Count: r.count, NoAck: r.noAck,
		Begin: func() { l = beginStream(c, r.keys[i]) },
		Visit: func(e *engine.StreamEntry) {
			streamEntry(c, e)
			n++
		},
		Gone: func(id engine.StreamID) {
			c.Out.Array(2)
			streamID(c, id)
			c.Out.NullArray()
			n++
		},
	}
	if !x.New {
		x.After, _ = parseStreamID(r.ids[i], 0)
	}
	served, err := c.Tx.XReadGroup(r.keys[i], &x)
	if served {
		c.Out.Patch(l, n)
	}
	return served, err
}
