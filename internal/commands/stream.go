package commands

import (
	"math"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var streamSpecs = []*command.Spec{&specXAck, &specXAckDel, &specXAdd, &specXAutoClaim, &specXClaim, &specXDel, &specXDelEx,
	&specXGroup, &specXInfo, &specXLen, &specXPending, &specXRange, &specXRead, &specXReadGroup, &specXRevRange, &specXSetID, &specXTrim}

// These are the errors of the stream commands.
const (
	errStreamID        = command.ReplyError("ERR Invalid stream ID specified as stream command argument")
	errStreamZero      = command.ReplyError("ERR The ID specified in XADD must be greater than 0-0")
	errStreamOrder     = command.ReplyError("ERR The ID specified in XADD is equal or smaller than the target stream top item")
	errStreamExhausted = command.ReplyError("ERR The stream has exhausted the last possible ID, unable to add more items")
	errMaxLen          = command.ReplyError("ERR The MAXLEN argument must be >= 0.")
	errTrimLimit       = command.ReplyError("ERR The LIMIT argument must be >= 0.")
	errLimitAlone      = command.ReplyError("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
	errLimitExact      = command.ReplyError("ERR syntax error, LIMIT cannot be used without the special ~ option")
	errNoStrategy      = command.ReplyError("ERR syntax error, XTRIM must be called with a trimming strategy")
	errTwoStrategies   = command.ReplyError("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
	errRangeStart      = command.ReplyError("ERR invalid start ID for the interval")
	errRangeEnd        = command.ReplyError("ERR invalid end ID for the interval")
	errEntriesAdded    = command.ReplyError("ERR entries_added must be positive")
	errStreamBehind    = command.ReplyError("ERR The ID specified in XSETID is smaller than the target stream top item")
	errStreamDeleted   = command.ReplyError("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
	errBelowDeleted    = command.ReplyError("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
	errStreamAdded     = command.ReplyError("ERR The entries_added specified in XSETID is smaller than the target stream length")
	errNumIDs          = command.ReplyError("ERR Number of IDs must be a positive integer")
	errNumIDsMatch     = command.ReplyError("ERR The `numids` parameter must match the number of arguments")
)

// streamError returns the wire error that a stream command replies for an error of the engine.
func streamError(err error) error {
	switch err {
	case engine.ErrStreamOrder:
		return errStreamOrder
	case engine.ErrStreamExhausted:
		return errStreamExhausted
	case engine.ErrStreamBehind:
		return errStreamBehind
	case engine.ErrStreamDeleted:
		return errStreamDeleted
	case engine.ErrStreamAdded:
		return errStreamAdded
	}
	return err
}

// parseStreamID reads ms or ms-seq; seq replaces a missing number.
func parseStreamID(b []byte, seq uint64) (id engine.StreamID, ok bool) {
	i := 0
	for i < len(b) && b[i] != '-' {
		i++
	}
	id.Seq = seq
	if id.Ms, ok = parseUint64(b[:i]); ok && i < len(b) {
		id.Seq, ok = parseUint64(b[i+1:])
	}
	return id, ok && len(b) < 128
}

// parseUint64 reads a number as C's strtoull does, but refuses a minus.
func parseUint64(b []byte) (n uint64, ok bool) {
	for len(b) > 0 && (b[0] == ' ' || b[0] >= '\t' && b[0] <= '\r') {
		b = b[1:]
	}
	if len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	for _, c := range b {
		c -= '0'
		if c > 9 || n > math.MaxUint64/10 || n == math.MaxUint64/10 && c > math.MaxUint64%10 {
			return 0, false
		}
		n = n*10 + uint64(c)
	}
	return n, len(b) > 0
}

// parseStreamIDs parses the ids of entries.
func parseStreamIDs(args [][]byte) ([]engine.StreamID, error) {
	ids := make([]engine.StreamID, len(args))
	for i, a := range args {
		id, ok := parseStreamID(a, 0)
		if !ok {
			return nil, errStreamID
		}
		ids[i] = id
	}
	return ids, nil
}

// streamID replies with an id.
func streamID(c *command.Ctx, id engine.StreamID) {
	var buf [48]byte
	c.Out.Bulk(engine.AppendStreamID(buf[:0], id))
}

// streamEntry replies with an entry: its id, and its fields and values in turn.
func streamEntry(c *command.Ctx, e *engine.StreamEntry) {
	c.Out.Array(2)
	streamID(c, e.ID())
	n := e.Fields()
	c.Out.Array(2 * n)
	for range n {
		name, value := e.Field()
		c.Out.Bulk(name)
		if value.IsInt() {
			c.Out.BulkInt(value.N)
		} else {
			c.Out.Bulk(value.B)
		}
	}
}

// streamTrimArgs is the grammar of a trimming.
func streamTrimArgs() command.Arg {
	return command.Block("trim", command.OneOf("strategy", command.Token("MAXLEN"), command.Token("MINID").Since("6.2.0")),
		command.Opt(command.OneOf("operator", command.Token("=").As("equal"), command.Token("~").As("approximately"))), command.Str("threshold"),
		command.Opt(command.TokenArg("LIMIT", command.Int("count"))).Since("6.2.0"))
}

// trimming holds the options MAXLEN, MINID and LIMIT.
type trimming struct {
	engine.StreamTrim
	given   bool
	limited bool
}

// option reads the option at the start of args and returns its length, 0 if it is not an option of
// a trimming.
func (t *trimming) option(args [][]byte) (n int, err error) {
	if len(args) < 2 {
		return 0, nil
	}
	switch {
	case command.EqualFold(args[0], "MAXLEN"), command.EqualFold(args[0], "MINID"):
		byID := len(args[0]) == len("MINID")
		if t.given && byID != t.ByID {
			return 0, errTwoStrategies
		}
		t.given, t.ByID, t.Approx = true, byID, false
		n = 2
		if len(args) > 2 && (string(args[1]) == "~" || string(args[1]) == "=") {
			t.Approx = args[1][0] == '~'
			n = 3
		}
		return n, t.threshold(args[n-1])
	case command.EqualFold(args[0], "LIMIT"):
		k, ok := numeral.ParseInt(args[1])
		if !ok {
			return 0, command.ErrNotInteger
		}
		if k < 0 {
			return 0, errTrimLimit
		}
		t.limited, t.Limit = true, int(min(k, math.MaxInt))
		return 2, nil
	}
	return 0, nil
}

func (t *trimming) threshold(a []byte) error {
	if t.ByID {
		id, ok := parseStreamID(a, 0)
		if !ok {
			return errStreamID
		}
		t.MinID = id
		return nil
	}
	k, ok := numeral.ParseInt(a)
	if !ok {
		return command.ErrNotInteger
	}
	if k < 0 {
		return errMaxLen
	}
	t.Len = uint64(k)
	return nil
}

// An approximate trimming without LIMIT removes the entries of at most trimNodes nodes, and at most trimMost
// entries.
const (
	trimNodes = 100
	trimMost  = 1_000_000
)

// finish checks the options together. An approximate trimming without LIMIT may remove as many entries as 100
// nodes of a stream hold in Redis.
func (t *trimming) finish(c *command.Ctx) error {
	switch {
	case t.limited && t.Limit > 0 && !t.given:
		return errLimitAlone
	case !t.given && c.Spec.Name == "xtrim":
		return errNoStrategy
	case t.limited && !t.Approx:
		return errLimitExact
	case t.Approx && !t.limited:
		if t.Limit = trimNodes * c.DB.Layout().StreamEntries; t.Limit <= 0 {
			t.Limit = 10000
		}
		t.Limit = min(t.Limit, trimMost)
	}
	return nil
}

var specXAdd = command.Spec{
	Name: "xadd", Group: command.GroupStream, Since: "5.0.0",
	Complexity: "O(1) when adding a new entry, O(N) when trimming where N being the number of entries evicted.",
	Summary:    "Appends a new message to a stream. Creates the key if it doesn't exist.",
	Flags:      command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args: []command.Arg{command.Key("key", command.Update).Note("UPDATE instead of INSERT because of the optional trimming feature"),
		command.Opt(command.Token("NOMKSTREAM")).Since("6.2.0"), command.Opt(streamTrimArgs()),
		command.OneOf("id_or_auto", command.Token("*").As("auto_id"), command.Str("id")),
		command.Repeat(command.Block("field_value", command.Str("field"), command.Str("value")))},
	Tips: []string{"nondeterministic_output"},
	History: []command.Change{{Since: "6.2.0", Text: "Added the `NOMKSTREAM` option, `MINID` trimming strategy and the `LIMIT` option."},
		{Since: "7.0.0", Text: "Added support for the `<ms>-*` explicit ID form."}},
	Replies: "The id of the entry, or nil if NOMKSTREAM is given and there is no such key.",
	Examples: `
> XADD orders * item tea
"1700000000000-0"
> XADD orders * item milk
"1700000000000-1"
> XADD orders 1700000000001-* item jam
"1700000000001-0"
> XLEN orders
(integer) 3
`,
	Run: runXAdd,
}

func runXAdd(c *command.Ctx) error {
	x := engine.XAdd{}
	if err := parseXAdd(c, &x); err != nil {
		return err
	}

	id, ok, err := c.Tx.XAdd(c.Args[1], &x)
	if err != nil {
		return streamError(err)
	}

	if ok {
		streamID(c, id)
	} else {
		c.Out.Null()
	}
	return nil
}

// parseXAdd reads the arguments of XADD after the key.
func parseXAdd(c *command.Ctx, x *engine.XAdd) error {
	var t trimming
	i, found := 2, false
	for i < len(c.Args) && !found {
		n, err := 0, error(nil)
		switch a := c.Args[i]; {
		case len(a) == 1 && a[0] == '*':
			x.Auto, found = true, true
			n = 1
		case command.EqualFold(a, "NOMKSTREAM"):
			x.NoNew = true
			n = 1
		default:
			if n, err = t.option(c.Args[i:]); err != nil {
				return err
			}
			if n == 0 {
				if err = parseNewID(x, a); err != nil {
					return err
				}
				found, n = true, 1
			}
		}
		i += n
	}
	if err := t.finish(c); err != nil {
		return err
	}
	if x.Pairs = c.Args[i:]; !found || len(x.Pairs) == 0 || len(x.Pairs)%2 != 0 {
		return command.WrongArity(c.Spec)
	}
	if !x.Auto && !x.Seq && x.ID.IsZero() {
		return errStreamZero
	}
	x.Trim, x.Bounds = t.given, t.StreamTrim
	return nil
}

// parseNewID reads the id of a new entry: ms, ms-seq or ms-*.
func parseNewID(x *engine.XAdd, a []byte) error {
	if n := len(a); n > 2 && a[n-1] == '*' && a[n-2] == '-' {
		x.Seq = true
		a = a[:n-2]
		if _, ok := parseUint64(a); !ok {
			return errStreamID
		}
	}
	id, ok := parseStreamID(a, 0)
	if !ok {
		return errStreamID
	}
	x.ID = id
	return nil
}

var specXLen = command.Spec{
	Name: "xlen", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Returns the number of messages in a stream.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Replies: "The number of entries, 0 if there is no such key.",
	Examples: `
> XADD s 1-1 f v
"1-1"
> XLEN s
(integer) 1
> XLEN nothing
(integer) 0
`,
	Run: runXLen,
}

func runXLen(c *command.Ctx) error {
	n, err := c.Tx.XLen(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specXDel = command.Spec{
	Name: "xdel", Group: command.GroupStream, Since: "5.0.0",
	Complexity: "O(1) for each single item to delete in the stream, regardless of the stream size.",
	Summary:    "Returns the number of messages after removing them from a stream.",
	Flags:      command.Write | command.Fast | command.Blind,
	Args:       []command.Arg{command.Key("key", command.Delete), command.Many("id")},
	Replies:    "The number of entries that existed. The key stays when the last one goes.",
	Examples: `
> XADD s 1-1 f v
"1-1"
> XDEL s 1-1 2-2
(integer) 1
> XLEN s
(integer) 0
> EXISTS s
(integer) 1
`,
	Run: runXDel,
}

func runXDel(c *command.Ctx) error {
	if err := longFields(c, len(c.Args)); err != nil {
		return err
	}
	ids, err := parseStreamIDs(c.Args[2:])
	if err != nil {
		return unlessNoStream(c, err)
	}
	n, err := c.Tx.XDel(c.Args[1], ids)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

// unlessNoStream returns err. If there is no such stream it replies with 0 instead, as Redis does
// before it checks the ids.
func unlessNoStream(c *command.Ctx, err error) error {
	switch e := c.Tx.XCheck(c.Args[1]); e {
	case nil:
		return err
	case engine.ErrNoKey:
		c.Out.Int(0)
		return nil
	default:
		return e
	}
}

var specXTrim = command.Spec{
	Name: "xtrim", Group: command.GroupStream, Since: "5.0.0",
	Complexity: "O(N), with N being the number of evicted entries. Constant times are very small however, since entries " +
		"are organized in macro nodes containing multiple entries that can be released with a single deallocation.",
	Summary: "Deletes messages from the beginning of a stream.",
	Flags:   command.Write | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Delete), streamTrimArgs()},
	Tips:    []string{"nondeterministic_output"},
	History: []command.Change{{Since: "6.2.0", Text: "Added the `MINID` trimming strategy and the `LIMIT` option."}},
	Replies: "The number of entries removed. With `~` only whole nodes of stream-node-max-entries are removed, fewer than requested.",
	Examples: `
> XADD s 1-1 f a
"1-1"
> XADD s 2-1 f b
"2-1"
> XADD s 3-1 f c
"3-1"
> XTRIM s MAXLEN 2
(integer) 1
> XTRIM s MINID 3
(integer) 1
> XTRIM s MAXLEN ~ 0 LIMIT 10
(integer) 1
`,
	Run: runXTrim,
}

func runXTrim(c *command.Ctx) error {
	var t trimming
	for i := 2; i < len(c.Args); {
		n, err := t.option(c.Args[i:])
		if err != nil {
			return err
		}
		if n == 0 {
			return command.ErrSyntax
		}
		i += n
	}
	if err := t.finish(c); err != nil {
		return err
	}
	if err := c.Long(c.Tx.ValueSize(c.Args[1]) / 16); err != nil { // most of the work is per node
		return err
	}

	n, err := c.Tx.XTrim(c.Args[1], t.StreamTrim)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

// entryBytes is the cost of an entry, in bytes read sequentially.
const entryBytes = 256

// longRange is Ctx.Long for a command that walks over a range of entries; if count is not 0, over at most
// count of them.
func longRange(c *command.Ctx, first, last engine.StreamID, count int) error {
	if count > 0 && count <= command.LongBytes/entryBytes {
		return nil
	}
	n := c.Tx.XSpan(c.Args[1], first, last)
	if count > 0 {
		n = min(n, count)
	}
	return c.Long(n * entryBytes)
}

var specXSetID = command.Spec{
	Name: "xsetid", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "An internal command for replicating stream values.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blind,
	Args: []command.Arg{command.Key("key", command.Update), command.Str("last-id"),
		command.Opt(command.TokenArg("ENTRIESADDED", command.Int("entries_added"))).Since("7.0.0"),
		command.Opt(command.TokenArg("MAXDELETEDID", command.Str("max_deleted_entry_id"))).Since("7.0.0")},
	History:  []command.Change{{Since: "7.0.0", Text: "Added the `entries_added` and `max_deleted_entry_id` arguments."}},
	Replies:  "OK.",
	Examples: "> XADD s 1-1 f v\n\"1-1\"\n> XSETID s 5-0\nOK\n> XADD s 4-0 f v\n(error) " + string(errStreamOrder) + "\n",
	Run:      runXSetID,
}

func runXSetID(c *command.Ctx) error {
	x := engine.XSetID{Added: -1}
	var ok bool
	if x.Last, ok = parseStreamID(c.Args[2], 0); !ok {
		return errStreamID
	}
	for i := 3; i < len(c.Args); i += 2 {
		switch a := c.Args[i]; {
		case command.EqualFold(a, "ENTRIESADDED") && i+1 < len(c.Args):
			if x.Added, ok = numeral.ParseInt(c.Args[i+1]); !ok {
				return command.ErrNotInteger
			}
			if x.Added < 0 {
				return errEntriesAdded
			}
		case command.EqualFold(a, "MAXDELETEDID") && i+1 < len(c.Args):
			if x.MaxDeleted, ok = parseStreamID(c.Args[i+1], 0); !ok {
				return errStreamID
			}
			if x.Last.Less(x.MaxDeleted) {
				return errBelowDeleted
			}
		default:
			return command.ErrSyntax
		}
	}

	if err := c.Tx.XSetID(c.Args[1], x); err != nil {
		return streamError(err)
	}
	c.Out.OK()
	return nil
}
