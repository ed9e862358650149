package command

import (
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

var sortedSetSpecs = []*Spec{&specZAdd, &specZIncrBy, &specZRem, &specZCard, &specZScore, &specZMScore, &specZRank, &specZRevRank,
	&specZRandMember, &specZScan,
	&specZRange, &specZRangeStore, &specZRangeByScore, &specZRangeByLex, &specZRevRange, &specZRevRangeByScore, &specZRevRangeByLex,
	&specZCount, &specZLexCount, &specZRemRangeByRank, &specZRemRangeByScore, &specZRemRangeByLex,
	&specZPopMin, &specZPopMax, &specZMPop, &specBZPopMin, &specBZPopMax, &specBZMPop,
	&specZUnion, &specZInter, &specZDiff, &specZInterCard, &specZUnionStore, &specZInterStore, &specZDiffStore}

const (
	errZAddNXXX   = ReplyError("ERR XX and NX options at the same time are not compatible")
	errZAddGTLTNX = ReplyError("ERR GT, LT, and/or NX options at the same time are not compatible")
	errZAddIncr   = ReplyError("ERR INCR option supports a single increment-element pair")
)

// memberBytes is what finding a member of a sorted set and replying it costs, in
// bytes of a walk over memory: two cache misses.
const memberBytes = 512

// longMembers is Long for a command that goes over n members.
func (c *Ctx) longMembers(n int) error { return c.Long(n * memberBytes) }

// scorePair replies a member and its score.
func scorePair(c *Ctx, member []byte, score float64) {
	c.Out.Bulk(member)
	c.Out.Double(score)
}

// scoreOrNull replies a score.
func scoreOrNull(c *Ctx, score float64, ok bool) {
	if ok {
		c.Out.Double(score)
	} else {
		c.Out.Null()
	}
}

var specZAdd = Spec{
	Name: "zadd", Group: GroupSortedSet, Since: "1.2.0",
	Complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
	Summary:    "Adds one or more members to a sorted set, or updates their scores. Creates the key if it doesn't exist.",
	Flags:      Write | DenyOOM | Fast,
	Args: []Arg{Key("key", Update),
		Opt(OneOf("condition", Token("NX"), Token("XX"))).Since("3.0.2"),
		Opt(OneOf("comparison", Token("GT"), Token("LT"))).Since("6.2.0"),
		Opt(Token("CH").As("change")).Since("3.0.2"),
		Opt(Token("INCR").As("increment")).Since("3.0.2"),
		Repeat(Block("score_member", Double("score"), Str("member")))},
	History: []Change{{"2.4.0", "Accepts multiple elements."}, {"3.0.2", "Added the `XX`, `NX`, `CH` and `INCR` options."},
		{"6.2.0", "Added the `GT` and `LT` options."}},
	Replies: "The number of members added, with CH of those added or changed. With INCR the new score, or nil if the options did not allow it. " +
		"A member that is there keeps its expiration time.",
	Examples: `
> ZADD z 1 one 2 two
(integer) 2
> ZADD z CH 1 one 3 two
(integer) 1
> ZADD z GT INCR 5 two
"8"
> ZRANGE z 0 -1 WITHSCORES
1) "one"
2) "1"
3) "two"
4) "8"
`,
	Keys: zaddKeys,
	Run:  runZAdd,
}

// zaddKeys finds the key of ZADD and GEOADD. The command reads it where its reply
// tells of scores that are there: INCR returns one, CH tells whether it was another.
func zaddKeys(dst []KeyRef, args [][]byte) ([]KeyRef, error) {
	use := Update
	var a zaddArgs
	for _, word := range args[2:] {
		if EqualFold(word, "INCR") {
			use |= Access
		} else if !a.condition(word) {
			break
		}
	}
	if a.ch {
		use |= Access
	}
	return append(dst, KeyRef{1, use}), nil
}

// zaddArgs are the arguments of ZADD.
type zaddArgs struct {
	o          engine.ZAddOptions
	incr, ch   bool
	scoresFrom int // index of the first score
}

func runZAdd(c *Ctx) error {
	a, err := parseZAdd(c.Args)
	if err != nil {
		return err
	}
	var few [8]engine.Scored // as many as fit on the stack
	items, err := scoredArgs(few[:0], c.Args[a.scoresFrom:])
	if err != nil {
		return err
	}
	if err := c.longMembers(len(items)); err != nil {
		return err
	}

	if a.incr {
		score, ok, err := c.Tx.ZIncrBy(c.Args[1], items[0].Member, items[0].Score, a.o)
		if err != nil {
			return err
		}
		scoreOrNull(c, score, ok)
		return nil
	}
	added, updated, err := c.Tx.ZAdd(c.Args[1], items, a.o)
	if err != nil {
		return err
	}

	if a.ch {
		added += updated
	}
	c.Out.Int(int64(added))
	return nil
}

func parseZAdd(args [][]byte) (a zaddArgs, err error) {
	i := 2
	for ; i < len(args); i++ {
		if EqualFold(args[i], "INCR") {
			a.incr = true
		} else if !a.condition(args[i]) {
			break
		}
	}
	a.scoresFrom = i
	n := len(args) - i
	if n == 0 || n%2 != 0 {
		return a, ErrSyntax
	}
	if err := a.compatible(); err != nil {
		return a, err
	}
	if a.incr && n > 2 {
		return a, errZAddIncr
	}
	return a, nil
}

// condition reads NX, XX, GT, LT or CH, and reports whether it is one of these.
func (a *zaddArgs) condition(w []byte) bool {
	switch {
	case EqualFold(w, "NX"):
		a.o.IfAbsent = true
	case EqualFold(w, "XX"):
		a.o.IfExists = true
	case EqualFold(w, "GT"):
		a.o.IfGreater = true
	case EqualFold(w, "LT"):
		a.o.IfLess = true
	case EqualFold(w, "CH"):
		a.ch = true
	default:
		return false
	}
	return true
}

// compatible refuses conditions that contradict each other.
func (a *zaddArgs) compatible() error {
	switch {
	case a.o.IfAbsent && a.o.IfExists:
		return errZAddNXXX
	case a.o.IfAbsent && (a.o.IfGreater || a.o.IfLess), a.o.IfGreater && a.o.IfLess:
		return errZAddGTLTNX
	}
	return nil
}

// scoredArgs reads "score member score member ...".
func scoredArgs(items []engine.Scored, args [][]byte) ([]engine.Scored, error) {
	if n := len(args) / 2; n > cap(items) {
		items = make([]engine.Scored, 0, n)
	}
	for i := 0; i < len(args); i += 2 {
		score, ok := resp.ParseDouble(args[i])
		if !ok {
			return nil, ErrNotFloat
		}
		items = append(items, engine.Scored{Score: score, Member: args[i+1]})
	}
	return items, nil
}

var specZIncrBy = Spec{
	Name: "zincrby", Group: GroupSortedSet, Since: "1.2.0",
	Complexity: "O(log(N)) where N is the number of elements in the sorted set.",
	Summary:    "Increments the score of a member in a sorted set. Creates the key and the member if they don't exist.",
	Flags:      Write | DenyOOM | Fast,
	Args:       []Arg{Key("key", Access|Update), Int("increment"), Str("member")},
	Replies:    "The new score. The member keeps its expiration time.",
	Examples: `
> ZINCRBY z 2.5 m
"2.5"
> ZINCRBY z -1 m
"1.5"
`,
	Run: runZIncrBy,
}

func runZIncrBy(c *Ctx) error {
	by, ok := resp.ParseDouble(c.Args[2])
	if !ok {
		return ErrNotFloat
	}
	score, _, err := c.Tx.ZIncrBy(c.Args[1], c.Args[3], by, engine.ZAddOptions{})
	if err != nil {
		return err
	}
	c.Out.Double(score)
	return nil
}

var specZRem = Spec{
	Name: "zrem", Group: GroupSortedSet, Since: "1.2.0",
	Complexity: "O(M*log(N)) with N being the number of elements in the sorted set and M the number of elements to be removed.",
	Summary:    "Removes one or more members from a sorted set. Deletes the sorted set if all members were removed.",
	Flags:      Write | Fast,
	Args:       []Arg{Key("key", Delete), Many("member")},
	History:    []Change{{"2.4.0", "Accepts multiple elements."}},
	Replies:    "How many of the members were there.",
	Examples: `
> ZADD z 1 a 2 b
(integer) 2
> ZREM z a x
(integer) 1
> ZREM z b
(integer) 1
> EXISTS z
(integer) 0
`,
	Run: runZRem,
}

func runZRem(c *Ctx) error {
	if err := c.longMembers(len(c.Args)); err != nil {
		return err
	}
	n, err := c.Tx.ZRem(c.Args[1], c.Args[2:])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specZCard = Spec{
	Name: "zcard", Group: GroupSortedSet, Since: "1.2.0", Complexity: "O(1)",
	Summary: "Returns the number of members in a sorted set.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Meta)},
	Examples: `
> ZADD z 1 a 2 b
(integer) 2
> ZCARD z
(integer) 2
> ZCARD other
(integer) 0
`,
	Run: runZCard,
}

func runZCard(c *Ctx) error {
	z, err := c.Tx.ZSet(c.Args[1], false)
	if err != nil {
		return err
	}
	c.Out.Int(int64(z.Len()))
	return nil
}

var specZScore = Spec{
	Name: "zscore", Group: GroupSortedSet, Since: "1.2.0", Complexity: "O(1)",
	Summary: "Returns the score of a member in a sorted set.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Read), Str("member")},
	Replies: "The score, or nil if there is no such member.",
	Examples: `
> ZADD z 1.5 a
(integer) 1
> ZSCORE z a
"1.5"
> ZSCORE z b
(nil)
`,
	Run: runZScore,
}

func runZScore(c *Ctx) error {
	z, err := c.Tx.ZSet(c.Args[1], false)
	if err != nil {
		return err
	}
	score, ok := z.Score(c.Args[2])
	scoreOrNull(c, score, ok)
	return nil
}

var specZMScore = Spec{
	Name: "zmscore", Group: GroupSortedSet, Since: "6.2.0", Complexity: "O(N) where N is the number of members being requested.",
	Summary: "Returns the score of one or more members in a sorted set.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Read), Many("member")},
	Replies: "An array with a score, or nil, for each member.",
	Examples: `
> ZADD z 1.5 a 2 b
(integer) 2
> ZMSCORE z a x b
1) "1.5"
2) (nil)
3) "2"
`,
	Run: runZMScore,
}

func runZMScore(c *Ctx) error {
	return c.eachMember(func(score float64, ok bool) { scoreOrNull(c, score, ok) })
}

// eachMember replies an array of what reply makes of the scores of the members
// in the arguments.
func (c *Ctx) eachMember(reply func(score float64, ok bool)) error {
	if err := c.longMembers(len(c.Args)); err != nil {
		return err
	}
	z, err := c.Tx.ZSet(c.Args[1], false)
	if err != nil {
		return err
	}
	c.Out.Array(len(c.Args) - 2)
	for _, m := range c.Args[2:] {
		reply(z.Score(m))
	}
	return nil
}

// withScore is the option of ZRANK and ZREVRANK.
func withScore() Arg { return Opt(Token("WITHSCORE")).Since("7.2.0") }

var specZRank = Spec{
	Name: "zrank", Group: GroupSortedSet, Since: "2.0.0", Complexity: "O(log(N))",
	Summary: "Returns the index of a member in a sorted set ordered by ascending scores.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Read), Str("member"), withScore()},
	History: []Change{{"7.2.0", "Added the optional `WITHSCORE` argument."}},
	Replies: "The rank, counted from 0, and with WITHSCORE an array of rank and score; nil if there is no such member.",
	Examples: `
> ZADD z 1 a 2.5 b
(integer) 2
> ZRANK z b
(integer) 1
> ZRANK z b WITHSCORE
1) (integer) 1
2) "2.5"
> ZRANK z x
(nil)
`,
	Run: func(c *Ctx) error { return c.zrank(false) },
}

var specZRevRank = Spec{
	Name: "zrevrank", Group: GroupSortedSet, Since: "2.0.0", Complexity: "O(log(N))",
	Summary: "Returns the index of a member in a sorted set ordered by descending scores.",
	Flags:   ReadOnly | Fast,
	Args:    []Arg{Key("key", Read), Str("member"), withScore()},
	History: []Change{{"7.2.0", "Added the optional `WITHSCORE` argument."}},
	Replies: "The rank, counted from 0, and with WITHSCORE an array of rank and score; nil if there is no such member.",
	Examples: `
> ZADD z 1 a 2.5 b
(integer) 2
> ZREVRANK z b
(integer) 0
> ZREVRANK z a WITHSCORE
1) (integer) 1
2) "1"
`,
	Run: func(c *Ctx) error { return c.zrank(true) },
}

func (c *Ctx) zrank(reverse bool) error {
	if len(c.Args) > 4 {
		return WrongArity(c.Spec)
	}
	score := len(c.Args) == 4
	if score && !EqualFold(c.Args[3], "WITHSCORE") {
		return ErrSyntax
	}

	z, err := c.Tx.ZSet(c.Args[1], true)
	if err != nil {
		return err
	}
	rank, s, ok := z.Rank(c.Args[2])
	if reverse {
		rank = z.Len() - 1 - rank
	}

	switch {
	case !ok && score:
		c.Out.NullArray()
	case !ok:
		c.Out.Null()
	case score:
		c.Out.Array(2)
		c.Out.Int(int64(rank))
		c.Out.Double(s)
	default:
		c.Out.Int(int64(rank))
	}
	return nil
}

var specZRandMember = Spec{
	Name: "zrandmember", Group: GroupSortedSet, Since: "6.2.0", Complexity: "O(N) where N is the number of elements returned",
	Summary: "Returns one or more random members from a sorted set.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read), Opt(Block("options", Int("count"), Opt(Token("WITHSCORES"))))},
	Tips:    []string{"nondeterministic_output"},
	Replies: "A member, or nil if there is no such key. With a count an array: of so many different members, or of all if there are not more; " +
		"of exactly so many, which may be the same, for a negative count.",
	Errors: drawErrors,
	Examples: `
> ZADD z 1 a
(integer) 1
> ZRANDMEMBER z
"a"
> ZRANDMEMBER z -2 WITHSCORES
1) "a"
2) "1"
3) "a"
4) "1"
> ZRANDMEMBER z 5
1) "a"
`,
	Run: runZRandMember,
}

func runZRandMember(c *Ctx) error {
	if len(c.Args) == 2 {
		z, err := c.Tx.ZSet(c.Args[1], true)
		if err != nil {
			return err
		}
		member, _, ok := z.Random()
		c.bulkOrNull(member, ok)
		return nil
	}
	n, scores, err := parseDraw(c.Args, "WITHSCORES")
	if err != nil {
		return err
	}

	z, err := c.Tx.ZSet(c.Args[1], true)
	if err != nil {
		return err
	}
	repeat := n < 0
	if n = max(n, -n); !repeat {
		n = min(n, int64(z.Len()))
	} else if z.Len() == 0 {
		n = 0
	}
	if err := c.longMembers(countTo(n)); err != nil {
		return err
	}

	reply := c.scoredArray(int(n), scores)
	if !repeat {
		z.Sample(int(n), reply)
		return nil
	}
	return c.draw(int(n), func(d *drawing, n int) {
		for ; n > 0; n-- {
			member, score, _ := z.Random()
			if d.room(len(member)) {
				reply(member, score)
			}
		}
	})
}

// scoredArray begins a reply of n members and returns what writes one: with its
// score, in an array of its own in RESP3, if scores is set.
func (c *Ctx) scoredArray(n int, scores bool) func(member []byte, score float64) {
	switch {
	case !scores:
		c.Out.Array(n)
		return func(member []byte, _ float64) { c.Out.Bulk(member) }
	case c.Out.Proto == 3:
		c.Out.Array(n)
		return func(member []byte, score float64) {
			c.Out.Array(2)
			scorePair(c, member, score)
		}
	}
	c.Out.Array(2 * n)
	return func(member []byte, score float64) { scorePair(c, member, score) }
}

var specZScan = Spec{
	Name: "zscan", Group: GroupSortedSet, Since: "2.8.0",
	Complexity: "O(1) for every call. O(N) for a complete iteration, where N is the number of elements inside the collection.",
	Summary:    "Iterates over members and scores of a sorted set.",
	Flags:      ReadOnly,
	Args: []Arg{Key("key", Read), Int("cursor"), Opt(TokenArg("MATCH", Pattern("pattern"))),
		Opt(TokenArg("COUNT", Int("count")))},
	Tips: []string{"nondeterministic_output"},
	Replies: "The cursor for the next call, 0 at the end, and an array of members, each followed by its score. A member that is there from the " +
		"first call to the last is returned at least once.",
	Examples: `
> ZADD z 1 apple 2 pear
(integer) 2
> ZSCAN z 0 MATCH a*
1) "0"
2) 1) "apple"
   2) "1"
`,
	Run: runZScan,
}

func runZScan(c *Ctx) error {
	cursor, err := parseCursor(c.Args[2])
	if err != nil {
		return err
	}
	z, err := c.Tx.ZSet(c.Args[1], false)
	if err != nil {
		return err
	}
	if z.Len() == 0 {
		c.scanned(0, &names{})
		return nil
	}
	var o scanOptions
	if err := o.parse(c.Args[3:], false); err != nil {
		return err
	}
	if err := c.longMembers(min(o.limit(), z.Len())); err != nil {
		return err
	}

	found := newNames()
	var text [32]byte
	cursor = z.Scan(cursor, o.limit(), func(member []byte, score float64) {
		if o.matches(member) {
			found.add(member)
			found.add(resp.AppendDouble(text[:0], score))
		}
	})

	c.scanned(cursor, &found)
	return nil
}
