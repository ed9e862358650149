package commands

import (
	"math"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

const (
	errScoreRange = command.ReplyError("ERR min or max is not a float")
	errLexRange   = command.ReplyError("ERR min or max not valid string range item")
	errRankLimit  = command.ReplyError("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	errLexScores  = command.ReplyError("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
)

// limitArg returns the grammar of LIMIT.
func limitArg() command.Arg {
	return command.Opt(command.TokenArg("LIMIT", command.Block("offset_count", command.Int("offset"), command.Int("count"))))
}

// sortBy returns the grammar of the orders other than by rank.
func sortBy() command.Arg {
	return command.Opt(command.OneOf("sortby", command.Token("BYSCORE"), command.Token("BYLEX")))
}

var specZRange = command.Spec{
	Name: "zrange", Group: command.GroupSortedSet, Since: "1.2.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.",
	Summary:    "Returns members in a sorted set within a range of indexes, scores, or members.",
	Flags:      command.ReadOnly,
	Args: []command.Arg{command.Key("key", command.Read), command.Str("start"), command.Str("stop"), sortBy().Since("6.2.0"),
		command.Opt(command.Token("REV")).Since("6.2.0"),
		limitArg().Since("6.2.0"), command.Opt(command.Token("WITHSCORES")), command.Opt(command.Token("WITHTTL")).Since("0.4.0")},
	History: []command.Change{{Since: "6.2.0", Text: "Added the `REV`, `BYSCORE`, `BYLEX` and `LIMIT` options."}},
	Replies: "An array of members, each with its score if requested. With REV the first bound is the higher one. " +
		"WITHTTL makes each member an array of it, its score if requested, and its time to live in ms, -1 for that of the key.",
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZRANGE z 0 1
1) "a"
2) "b"
> ZRANGE z +inf (1 BYSCORE REV LIMIT 0 1 WITHSCORES
1) "c"
2) "3"
> ZRANGE z [b + BYLEX
1) "b"
2) "c"
`,
	Run: func(c *command.Ctx) error { return zrange(c, rangeOptions{auto: true}) },
}

var specZRangeByScore = command.Spec{
	Name: "zrangebyscore", Group: command.GroupSortedSet, Since: "1.0.5",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned.",
	Summary:    "Returns members in a sorted set within a range of scores.",
	Flags:      command.ReadOnly,
	Args: []command.Arg{command.Key("key", command.Read), command.Double("min"), command.Double("max"),
		command.Opt(command.Token("WITHSCORES")).Since("2.0.0"), limitArg()},
	History:    []command.Change{{Since: "2.0.0", Text: "Added the `WITHSCORES` modifier."}},
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`ZRANGE` with the `BYSCORE` argument"},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZRANGEBYSCORE z (1 +inf LIMIT 1 5
1) "c"
`,
	Run: func(c *command.Ctx) error { return zrange(c, rangeOptions{by: engine.ByScore}) },
}

var specZRangeByLex = command.Spec{
	Name: "zrangebylex", Group: command.GroupSortedSet, Since: "2.8.9",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned.",
	Summary:    "Returns members in a sorted set within a lexicographical range.",
	Flags:      command.ReadOnly,
	Args:       []command.Arg{command.Key("key", command.Read), command.Str("min"), command.Str("max"), limitArg()},
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`ZRANGE` with the `BYLEX` argument"},
	Examples: `
> ZADD z 0 a 0 b 0 c
(integer) 3
> ZRANGEBYLEX z - [b
1) "a"
2) "b"
`,
	Run: func(c *command.Ctx) error { return zrange(c, rangeOptions{by: engine.ByLex}) },
}

var specZRevRange = command.Spec{
	Name: "zrevrange", Group: command.GroupSortedSet, Since: "1.2.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.",
	Summary:    "Returns members in a sorted set within a range of indexes in reverse order.",
	Flags:      command.ReadOnly,
	Args: []command.Arg{command.Key("key", command.Read), command.Int("start"), command.Int("stop"),
		command.Opt(command.Token("WITHSCORES"))},
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`ZRANGE` with the `REV` argument"},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZREVRANGE z 0 0 WITHSCORES
1) "c"
2) "3"
`,
	Run: func(c *command.Ctx) error { return zrange(c, rangeOptions{rev: true}) },
}

var specZRevRangeByScore = command.Spec{
	Name: "zrevrangebyscore", Group: command.GroupSortedSet, Since: "2.2.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned.",
	Summary:    "Returns members in a sorted set within a range of scores in reverse order.",
	Flags:      command.ReadOnly,
	Args: []command.Arg{command.Key("key", command.Read), command.Double("max"), command.Double("min"),
		command.Opt(command.Token("WITHSCORES")),
		limitArg()},
	History:    []command.Change{{Since: "2.1.6", Text: "`min` and `max` can be exclusive."}},
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`ZRANGE` with the `REV` and `BYSCORE` arguments"},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZREVRANGEBYSCORE z (3 -inf
1) "b"
2) "a"
`,
	Run: func(c *command.Ctx) error { return zrange(c, rangeOptions{by: engine.ByScore, rev: true}) },
}

var specZRevRangeByLex = command.Spec{
	Name: "zrevrangebylex", Group: command.GroupSortedSet, Since: "2.8.9",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned.",
	Summary:    "Returns members in a sorted set within a lexicographical range in reverse order.",
	Flags:      command.ReadOnly,
	Args:       []command.Arg{command.Key("key", command.Read), command.Str("max"), command.Str("min"), limitArg()},
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`ZRANGE` with the `REV` and `BYLEX` arguments"},
	Examples: `
> ZADD z 0 a 0 b 0 c
(integer) 3
> ZREVRANGEBYLEX z (c -
1) "b"
2) "a"
`,
	Run: func(c *command.Ctx) error { return zrange(c, rangeOptions{by: engine.ByLex, rev: true}) },
}

// rangeOptions describes the range of a command. The command's name sets the fields; if auto is set, the
// options set the others.
type rangeOptions struct {
	by     engine.ZOrder
	rev    bool
	auto   bool
	store  bool
	scores bool // WITHSCORES was given
	ttls   bool // WITHTTL was given
}

func zrange(c *command.Ctx, o rangeOptions) error {
	var r engine.ZRange
	if err := o.parse(&r, c.Args[2:]); err != nil {
		return err
	}

	z, err := c.Tx.ZSet(c.Args[1], true)
	if err != nil {
		return err
	}
	w := z.Range(&r)
	if err := longMembers(c, w.Len()); err != nil {
		return err
	}

	switch {
	case o.ttls:
		membersWithTTL(c, &w, o.scores)
	case !o.scores:
		c.Out.Array(w.Len())
		for w.Next() {
			c.Out.Bulk(w.Member())
		}
	case c.Out.Proto == 3:
		c.Out.Array(w.Len())
		for w.Next() {
			c.Out.Array(2)
			scorePair(c, w.Member(), w.Score())
		}
	default:
		c.Out.Array(2 * w.Len())
		for w.Next() {
			scorePair(c, w.Member(), w.Score())
		}
	}
	return nil
}

// membersWithTTL replies with members and their remaining time, each in an array.
func membersWithTTL(c *command.Ctx, w *engine.ZWalk, scores bool) {
	fields := 2
	if scores {
		fields = 3
	}
	c.Out.Array(w.Len())
	for w.Next() {
		c.Out.Array(fields)
		c.Out.Bulk(w.Member())
		if scores {
			c.Out.Double(w.Score())
		}
		d := w.Deadline()
		if d == 0 {
			d = engine.NoDeadline
		}
		c.Out.Int(ttlOf(c, d))
	}
}

// parse reads "start stop" and options.
func (o *rangeOptions) parse(r *engine.ZRange, args [][]byte) error {
	if err := o.parseOptions(r, args[2:]); err != nil {
		return err
	}
	r.By, r.Rev = o.by, o.rev
	switch {
	case r.Limited && r.Count != -1 && o.by == engine.ByRank:
		return errRankLimit
	case o.scores && o.by == engine.ByLex:
		return errLexScores
	}
	lo, hi := args[0], args[1]
	if o.rev && o.by != engine.ByRank {
		lo, hi = hi, lo
	}
	return parseBounds(r, lo, hi)
}

func (o *rangeOptions) parseOptions(r *engine.ZRange, args [][]byte) error {
	fixed := !o.auto || o.by != engine.ByRank
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case !o.store && command.EqualFold(a, "WITHSCORES"):
			o.scores = true
		case o.auto && !o.store && command.EqualFold(a, "WITHTTL"):
			o.ttls = true
		case command.EqualFold(a, "LIMIT") && i+2 < len(args):
			var err error
			if r.Offset, r.Count, err = command.ParseTwo(args[i+1], args[i+2]); err != nil {
				return err
			}
			r.Limited = true
			i += 2
		case o.auto && !o.rev && command.EqualFold(a, "REV"):
			o.rev = true
		case !fixed && command.EqualFold(a, "BYLEX"):
			o.by, fixed = engine.ByLex, true
		case !fixed && command.EqualFold(a, "BYSCORE"):
			o.by, fixed = engine.ByScore, true
		default:
			return command.ErrSyntax
		}
	}
	return nil
}

// parseBounds reads the bounds of a range in the order of r.
func parseBounds(r *engine.ZRange, lo, hi []byte) (err error) {
	switch r.By {
	case engine.ByRank:
		r.Start, r.Stop, err = command.ParseTwo(lo, hi)
	case engine.ByScore:
		if r.Min, err = scoreBound(lo); err == nil {
			r.Max, err = scoreBound(hi)
		}
	default:
		if r.MinLex, err = lexBound(lo); err == nil {
			r.MaxLex, err = lexBound(hi)
		}
	}
	return err
}

// scoreBound reads a score, or "(" and a score.
func scoreBound(a []byte) (b engine.ScoreBound, err error) {
	if len(a) > 0 && a[0] == '(' {
		b.Open, a = true, a[1:]
	}
	f, ok := numeral.ParseDouble(a)
	if !ok {
		f, ok = looseDouble(string(a))
	}
	if b.Score = f; !ok {
		return b, errScoreRange
	}
	return b, nil
}

// looseDouble parses numbers that are valid as bounds but not as scores: with spaces before them, an empty
// text for 0, and numbers out of range.
func looseDouble(s string) (f float64, ok bool) {
	s, _, _ = strings.Cut(s, "\x00") // a C string ends there
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	if s == "" {
		return 0, true
	}
	if f, ok = numeral.ParseDouble(s); ok {
		return f, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err == nil {
		return f, !math.IsNaN(f) && !strings.Contains(s, "_")
	}
	return f, math.IsInf(f, 0)
}

// lexBound reads -, +, [member or (member.
func lexBound(a []byte) (b engine.LexBound, err error) {
	switch {
	case string(a) == "-":
		b.Kind = engine.LexLowest
	case string(a) == "+":
		b.Kind = engine.LexHighest
	case len(a) > 0 && a[0] == '[':
		b = engine.LexBound{Member: a[1:], Kind: engine.LexClosed}
	case len(a) > 0 && a[0] == '(':
		b = engine.LexBound{Member: a[1:], Kind: engine.LexOpen}
	default:
		return b, errLexRange
	}
	return b, nil
}

var specZRangeStore = command.Spec{
	Name: "zrangestore", Group: command.GroupSortedSet, Since: "6.2.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements " +
		"stored into the destination key.",
	Summary: "Stores a range of members from a sorted set in a key.",
	Flags:   command.Write | command.DenyOOM,
	Args: []command.Arg{command.Key("dst", command.Overwrite), command.Key("src", command.Read), command.Str("min"),
		command.Str("max"), sortBy(),
		command.Opt(command.Token("REV")), limitArg()},
	Replies: "The number of members stored, which have no deadlines at the destination. None at all deletes the destination.",
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZRANGESTORE top z +inf -inf BYSCORE REV LIMIT 0 2
(integer) 2
> ZRANGE top 0 -1
1) "b"
2) "c"
`,
	Run: runZRangeStore,
}

func runZRangeStore(c *command.Ctx) error {
	var r engine.ZRange
	o := rangeOptions{auto: true, store: true}
	if err := o.parse(&r, c.Args[3:]); err != nil {
		return err
	}
	z, err := c.Tx.ZSet(c.Args[2], true)
	if err != nil {
		return err
	}
	if err := longZRange(c, &z, &r); err != nil {
		return err
	}

	n, err := c.Tx.ZRangeStore(c.Args[1], c.Args[2], &r)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specZCount = command.Spec{
	Name: "zcount", Group: command.GroupSortedSet, Since: "2.0.0",
	Complexity: "O(log(N)) with N being the number of elements in the sorted set.",
	Summary:    "Returns the count of members in a sorted set that have scores within a range.",
	Flags:      command.ReadOnly | command.Fast,
	Args:       []command.Arg{command.Key("key", command.Read), command.Double("min"), command.Double("max")},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZCOUNT z (1 +inf
(integer) 2
`,
	Run: func(c *command.Ctx) error { return zcount(c, engine.ByScore) },
}

var specZLexCount = command.Spec{
	Name: "zlexcount", Group: command.GroupSortedSet, Since: "2.8.9",
	Complexity: "O(log(N)) with N being the number of elements in the sorted set.",
	Summary:    "Returns the number of members in a sorted set within a lexicographical range.",
	Flags:      command.ReadOnly | command.Fast,
	Args:       []command.Arg{command.Key("key", command.Read), command.Str("min"), command.Str("max")},
	Examples: `
> ZADD z 0 a 0 b 0 c
(integer) 3
> ZLEXCOUNT z [b +
(integer) 2
`,
	Run: func(c *command.Ctx) error { return zcount(c, engine.ByLex) },
}

func zcount(c *command.Ctx, by engine.ZOrder) error {
	r := engine.ZRange{By: by}
	if err := parseBounds(&r, c.Args[2], c.Args[3]); err != nil {
		return err
	}
	z, err := c.Tx.ZSet(c.Args[1], false)
	if err != nil {
		return err
	}
	c.Out.Int(int64(z.Count(&r)))
	return nil
}

var specZRemRangeByRank = command.Spec{
	Name: "zremrangebyrank", Group: command.GroupSortedSet, Since: "2.0.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
	Summary:    "Removes members in a sorted set within a range of indexes. Deletes the sorted set if all members were removed.",
	Flags:      command.Write,
	Args:       []command.Arg{command.Key("key", command.Delete), command.Int("start"), command.Int("stop")},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZREMRANGEBYRANK z 0 -2
(integer) 2
> ZRANGE z 0 -1
1) "c"
`,
	Run: func(c *command.Ctx) error { return zremRange(c, engine.ByRank) },
}

var specZRemRangeByScore = command.Spec{
	Name: "zremrangebyscore", Group: command.GroupSortedSet, Since: "1.2.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
	Summary:    "Removes members in a sorted set within a range of scores. Deletes the sorted set if all members were removed.",
	Flags:      command.Write,
	Args:       []command.Arg{command.Key("key", command.Delete), command.Double("min"), command.Double("max")},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZREMRANGEBYSCORE z -inf (3
(integer) 2
> ZRANGE z 0 -1
1) "c"
`,
	Run: func(c *command.Ctx) error { return zremRange(c, engine.ByScore) },
}

var specZRemRangeByLex = command.Spec{
	Name: "zremrangebylex", Group: command.GroupSortedSet, Since: "2.8.9",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
	Summary:    "Removes members in a sorted set within a lexicographical range. Deletes the sorted set if all members were removed.",
	Flags:      command.Write,
	Args:       []command.Arg{command.Key("key", command.Delete), command.Str("min"), command.Str("max")},
	Examples: `
> ZADD z 0 a 0 b 0 c
(integer) 3
> ZREMRANGEBYLEX z - (c
(integer) 2
> ZRANGE z 0 -1
1) "c"
`,
	Run: func(c *command.Ctx) error { return zremRange(c, engine.ByLex) },
}

func zremRange(c *command.Ctx, by engine.ZOrder) error {
	r := engine.ZRange{By: by}
	if err := parseBounds(&r, c.Args[2], c.Args[3]); err != nil {
		return err
	}
	z, err := c.Tx.ZSet(c.Args[1], true)
	if err != nil {
		return err
	}
	if err := longZRange(c, &z, &r); err != nil {
		return err
	}

	n, err := c.Tx.ZRemRange(c.Args[1], &r)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}
