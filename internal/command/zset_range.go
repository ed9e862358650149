package command

import (
	"math"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

const (
	errScoreRange = ReplyError("ERR min or max is not a float")
	errLexRange   = ReplyError("ERR min or max not valid string range item")
	errRankLimit  = ReplyError("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	errLexScores  = ReplyError("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
)

// limitArg is the grammar of LIMIT.
func limitArg() Arg {
	return Opt(TokenArg("LIMIT", Block("offset_count", Int("offset"), Int("count"))))
}

// sortBy is the grammar of the orders other than by rank.
func sortBy() Arg { return Opt(OneOf("sortby", Token("BYSCORE"), Token("BYLEX"))) }

var specZRange = Spec{
	Name: "zrange", Group: GroupSortedSet, Since: "1.2.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.",
	Summary:    "Returns members in a sorted set within a range of indexes, scores, or members.",
	Flags:      ReadOnly,
	Args: []Arg{Key("key", Read), Str("start"), Str("stop"), sortBy().Since("6.2.0"), Opt(Token("REV")).Since("6.2.0"),
		limitArg().Since("6.2.0"), Opt(Token("WITHSCORES")), Opt(Token("WITHTTL")).Since("0.4.0")},
	History: []Change{{"6.2.0", "Added the `REV`, `BYSCORE`, `BYLEX` and `LIMIT` options."}},
	Replies: "An array of members, each with its score where asked. With REV the first bound is the higher one. " +
		"WITHTTL makes each member an array of it, its score where asked, and how many ms it lives on, -1 for as long as the key.",
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
	Run: func(c *Ctx) error { return c.zrange(rangeOptions{auto: true}) },
}

var specZRangeByScore = Spec{
	Name: "zrangebyscore", Group: GroupSortedSet, Since: "1.0.5",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned.",
	Summary:    "Returns members in a sorted set within a range of scores.",
	Flags:      ReadOnly,
	Args:       []Arg{Key("key", Read), Double("min"), Double("max"), Opt(Token("WITHSCORES")).Since("2.0.0"), limitArg()},
	History:    []Change{{"2.0.0", "Added the `WITHSCORES` modifier."}},
	Deprecated: &Deprecation{"6.2.0", "`ZRANGE` with the `BYSCORE` argument"},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZRANGEBYSCORE z (1 +inf LIMIT 1 5
1) "c"
`,
	Run: func(c *Ctx) error { return c.zrange(rangeOptions{by: engine.ByScore}) },
}

var specZRangeByLex = Spec{
	Name: "zrangebylex", Group: GroupSortedSet, Since: "2.8.9",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned.",
	Summary:    "Returns members in a sorted set within a lexicographical range.",
	Flags:      ReadOnly,
	Args:       []Arg{Key("key", Read), Str("min"), Str("max"), limitArg()},
	Deprecated: &Deprecation{"6.2.0", "`ZRANGE` with the `BYLEX` argument"},
	Examples: `
> ZADD z 0 a 0 b 0 c
(integer) 3
> ZRANGEBYLEX z - [b
1) "a"
2) "b"
`,
	Run: func(c *Ctx) error { return c.zrange(rangeOptions{by: engine.ByLex}) },
}

var specZRevRange = Spec{
	Name: "zrevrange", Group: GroupSortedSet, Since: "1.2.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.",
	Summary:    "Returns members in a sorted set within a range of indexes in reverse order.",
	Flags:      ReadOnly,
	Args:       []Arg{Key("key", Read), Int("start"), Int("stop"), Opt(Token("WITHSCORES"))},
	Deprecated: &Deprecation{"6.2.0", "`ZRANGE` with the `REV` argument"},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZREVRANGE z 0 0 WITHSCORES
1) "c"
2) "3"
`,
	Run: func(c *Ctx) error { return c.zrange(rangeOptions{rev: true}) },
}

var specZRevRangeByScore = Spec{
	Name: "zrevrangebyscore", Group: GroupSortedSet, Since: "2.2.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned.",
	Summary:    "Returns members in a sorted set within a range of scores in reverse order.",
	Flags:      ReadOnly,
	Args:       []Arg{Key("key", Read), Double("max"), Double("min"), Opt(Token("WITHSCORES")), limitArg()},
	History:    []Change{{"2.1.6", "`min` and `max` can be exclusive."}},
	Deprecated: &Deprecation{"6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments"},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZREVRANGEBYSCORE z (3 -inf
1) "b"
2) "a"
`,
	Run: func(c *Ctx) error { return c.zrange(rangeOptions{by: engine.ByScore, rev: true}) },
}

var specZRevRangeByLex = Spec{
	Name: "zrevrangebylex", Group: GroupSortedSet, Since: "2.8.9",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned.",
	Summary:    "Returns members in a sorted set within a lexicographical range in reverse order.",
	Flags:      ReadOnly,
	Args:       []Arg{Key("key", Read), Str("max"), Str("min"), limitArg()},
	Deprecated: &Deprecation{"6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments"},
	Examples: `
> ZADD z 0 a 0 b 0 c
(integer) 3
> ZREVRANGEBYLEX z (c -
1) "b"
2) "a"
`,
	Run: func(c *Ctx) error { return c.zrange(rangeOptions{by: engine.ByLex, rev: true}) },
}

// rangeOptions are what a command's name says of its range: its options may say
// the rest if auto is set.
type rangeOptions struct {
	by     engine.ZOrder
	rev    bool
	auto   bool
	store  bool
	scores bool // WITHSCORES was given
	ttls   bool // WITHTTL was given
}

func (c *Ctx) zrange(o rangeOptions) error {
	var r engine.ZRange
	if err := o.parse(&r, c.Args[2:]); err != nil {
		return err
	}

	z, err := c.Tx.ZSet(c.Args[1], true)
	if err != nil {
		return err
	}
	w := z.Range(&r)
	if err := c.longMembers(w.Len()); err != nil {
		return err
	}

	switch {
	case o.ttls:
		c.membersWithTTL(&w, o.scores)
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

// membersWithTTL replies members with what they have left, each in an array.
func (c *Ctx) membersWithTTL(w *engine.ZWalk, scores bool) {
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
		c.Out.Int(c.ttlOf(d))
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
		case !o.store && EqualFold(a, "WITHSCORES"):
			o.scores = true
		case o.auto && !o.store && EqualFold(a, "WITHTTL"):
			o.ttls = true
		case EqualFold(a, "LIMIT") && i+2 < len(args):
			var err error
			if r.Offset, r.Count, err = parseTwo(args[i+1], args[i+2]); err != nil {
				return err
			}
			r.Limited = true
			i += 2
		case o.auto && !o.rev && EqualFold(a, "REV"):
			o.rev = true
		case !fixed && EqualFold(a, "BYLEX"):
			o.by, fixed = engine.ByLex, true
		case !fixed && EqualFold(a, "BYSCORE"):
			o.by, fixed = engine.ByScore, true
		default:
			return ErrSyntax
		}
	}
	return nil
}

// parseBounds reads the bounds of a range whose order is known.
func parseBounds(r *engine.ZRange, lo, hi []byte) (err error) {
	switch r.By {
	case engine.ByRank:
		r.Start, r.Stop, err = parseTwo(lo, hi)
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
	f, ok := resp.ParseDouble(a)
	if !ok {
		f, ok = looseDouble(string(a))
	}
	if b.Score = f; !ok {
		return b, errScoreRange
	}
	return b, nil
}

// looseDouble reads the numbers that bounds may be beyond those that scores may:
// spaces before them, none at all for 0, and ones that are out of range.
func looseDouble(s string) (f float64, ok bool) {
	s, _, _ = strings.Cut(s, "\x00") // a C string ends there
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	if s == "" {
		return 0, true
	}
	if f, ok = resp.ParseDouble(s); ok {
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

var specZRangeStore = Spec{
	Name: "zrangestore", Group: GroupSortedSet, Since: "6.2.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements stored into the destination key.",
	Summary:    "Stores a range of members from a sorted set in a key.",
	Flags:      Write | DenyOOM,
	Args:       []Arg{Key("dst", Overwrite), Key("src", Read), Str("min"), Str("max"), sortBy(), Opt(Token("REV")), limitArg()},
	Replies:    "The number of members stored. None at all deletes the destination.",
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

func runZRangeStore(c *Ctx) error {
	var r engine.ZRange
	o := rangeOptions{auto: true, store: true}
	if err := o.parse(&r, c.Args[3:]); err != nil {
		return err
	}
	z, err := c.Tx.ZSet(c.Args[2], true)
	if err != nil {
		return err
	}
	if err := c.longMembers(2 * z.Count(&r)); err != nil {
		return err
	}

	n, err := c.Tx.ZRangeStore(c.Args[1], c.Args[2], &r)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specZCount = Spec{
	Name: "zcount", Group: GroupSortedSet, Since: "2.0.0", Complexity: "O(log(N)) with N being the number of elements in the sorted set.",
	Summary: "Returns the count of members in a sorted set that have scores within a range.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Read), Double("min"), Double("max")},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZCOUNT z (1 +inf
(integer) 2
`,
	Run: func(c *Ctx) error { return c.zcount(engine.ByScore) },
}

var specZLexCount = Spec{
	Name: "zlexcount", Group: GroupSortedSet, Since: "2.8.9", Complexity: "O(log(N)) with N being the number of elements in the sorted set.",
	Summary: "Returns the number of members in a sorted set within a lexicographical range.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Read), Str("min"), Str("max")},
	Examples: `
> ZADD z 0 a 0 b 0 c
(integer) 3
> ZLEXCOUNT z [b +
(integer) 2
`,
	Run: func(c *Ctx) error { return c.zcount(engine.ByLex) },
}

func (c *Ctx) zcount(by engine.ZOrder) error {
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

var specZRemRangeByRank = Spec{
	Name: "zremrangebyrank", Group: GroupSortedSet, Since: "2.0.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
	Summary:    "Removes members in a sorted set within a range of indexes. Deletes the sorted set if all members were removed.",
	Flags:      Write,
	Args:       []Arg{Key("key", Delete), Int("start"), Int("stop")},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZREMRANGEBYRANK z 0 -2
(integer) 2
> ZRANGE z 0 -1
1) "c"
`,
	Run: func(c *Ctx) error { return c.zremRange(engine.ByRank) },
}

var specZRemRangeByScore = Spec{
	Name: "zremrangebyscore", Group: GroupSortedSet, Since: "1.2.0",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
	Summary:    "Removes members in a sorted set within a range of scores. Deletes the sorted set if all members were removed.",
	Flags:      Write,
	Args:       []Arg{Key("key", Delete), Double("min"), Double("max")},
	Examples: `
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZREMRANGEBYSCORE z -inf (3
(integer) 2
> ZRANGE z 0 -1
1) "c"
`,
	Run: func(c *Ctx) error { return c.zremRange(engine.ByScore) },
}

var specZRemRangeByLex = Spec{
	Name: "zremrangebylex", Group: GroupSortedSet, Since: "2.8.9",
	Complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
	Summary:    "Removes members in a sorted set within a lexicographical range. Deletes the sorted set if all members were removed.",
	Flags:      Write,
	Args:       []Arg{Key("key", Delete), Str("min"), Str("max")},
	Examples: `
> ZADD z 0 a 0 b 0 c
(integer) 3
> ZREMRANGEBYLEX z - (c
(integer) 2
> ZRANGE z 0 -1
1) "c"
`,
	Run: func(c *Ctx) error { return c.zremRange(engine.ByLex) },
}

func (c *Ctx) zremRange(by engine.ZOrder) error {
	r := engine.ZRange{By: by}
	if err := parseBounds(&r, c.Args[2], c.Args[3]); err != nil {
		return err
	}
	z, err := c.Tx.ZSet(c.Args[1], true)
	if err != nil {
		return err
	}
	if err := c.longMembers(2 * z.Count(&r)); err != nil {
		return err
	}

	n, err := c.Tx.ZRemRange(c.Args[1], &r)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}
