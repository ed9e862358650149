package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var sortedSetSpecs = []*command.Spec{&specZAdd, &specZIncrBy, &specZRem, &specZCard, &specZScore, &specZMScore, &specZRank, &specZRevRank,
	&specZRandMember, &specZScan,
	&specZRange, &specZRangeStore, &specZRangeByScore, &specZRangeByLex, &specZRevRange, &specZRevRangeByScore, &specZRevRangeByLex,
	&specZCount, &specZLexCount, &specZRemRangeByRank, &specZRemRangeByScore, &specZRemRangeByLex,
	&specZPopMin, &specZPopMax, &specZMPop, &specBZPopMin, &specBZPopMax, &specBZMPop,
	&specZPopDue, &specZMoveDue, &specBZTSPop, &specBZTSMove,
	&specZUnion, &specZInter, &specZDiff, &specZInterCard, &specZUnionStore, &specZInterStore, &specZDiffStore}

const (
	errZAddNXXX   = command.ReplyError("ERR XX and NX options at the same time are not compatible")
	errZAddGTLTNX = command.ReplyError("ERR GT, LT, and/or NX options at the same time are not compatible")
	errZAddIncr   = command.ReplyError("ERR INCR option supports a single increment-element pair")
)

// memberBytes is the cost of finding a member of a sorted set and writing it, two cache misses, in bytes read
// sequentially.
const memberBytes = 512

// longMembers is Ctx.Long for a command that visits n members.
func longMembers(c *command.Ctx, n int) error { return c.Long(n * memberBytes) }

// longZRange is longMembers for a command that visits the members of a range twice. It counts them, which takes two searches, only in a
// set that is long itself.
func longZRange(c *command.Ctx, z *engine.ZSetView, r *engine.ZRange) error {
	if longMembers(c, 2*z.Len()) == nil {
		return nil
	}
	return longMembers(c, 2*z.Count(r))
}

// scorePair replies with a member and its score.
func scorePair(c *command.Ctx, member []byte, score float64) {
	c.Out.Bulk(member)
	c.Out.Double(score)
}

// scoreOrNull replies with a score, or with null if ok is false.
func scoreOrNull(c *command.Ctx, score float64, ok bool) {
	if ok {
		c.Out.Double(score)
	} else {
		c.Out.Null()
	}
}

var specZAdd = command.Spec{
	Name: "zadd", Group: command.GroupSortedSet, Since: "1.2.0",
	Complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
	Summary:    "Adds one or more members to a sorted set, or updates their scores. Creates the key if it doesn't exist.",
	Flags:      command.Write | command.DenyOOM | command.Fast,
	Args: []command.Arg{command.Key("key", command.Update),
		command.Opt(command.OneOf("condition", command.Token("NX"), command.Token("XX"))).Since("3.0.2"),
		command.Opt(command.OneOf("comparison", command.Token("GT"), command.Token("LT"))).Since("6.2.0"),
		command.Opt(command.Token("CH").As("change")).Since("3.0.2"),
		command.Opt(command.Token("INCR").As("increment")).Since("3.0.2"),
		command.Repeat(command.Block("score_member", command.Double("score"), command.Str("member")))},
	History: []command.Change{{Since: "2.4.0", Text: "Accepts multiple elements."},
		{Since: "3.0.2", Text: "Added the `XX`, `NX`, `CH` and `INCR` options."},
		{Since: "6.2.0", Text: "Added the `GT` and `LT` options."}},
	Replies: "The number of members added, with CH of those added or changed. With INCR the new score, or nil if " +
		"the options did not allow it. An existing member keeps its expiration time.",
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

// zaddKeys finds the key of ZADD and GEOADD. The command also reads the key if its reply depends on existing
// scores: with INCR it returns a score, and with CH it reports whether a score has changed.
func zaddKeys(dst []command.KeyRef, args [][]byte) ([]command.KeyRef, error) {
	use := command.Update
	var a zaddArgs
	for _, word := range args[2:] {
		if command.EqualFold(word, "INCR") {
			use |= command.Access
		} else if !a.condition(word) {
			break
		}
	}
	if a.ch {
		use |= command.Access
	}
	return append(dst, command.KeyRef{Pos: 1, Flags: use}), nil
}

// zaddArgs holds the arguments of ZADD.
type zaddArgs struct {
	o          engine.ZAddOptions
	incr, ch   bool
	scoresFrom int // index of the first score
}

func runZAdd(c *command.Ctx) error {
	a, err := parseZAdd(c.Args)
	if err != nil {
		return err
	}
	var few [8]engine.Scored // the number that fits on the stack
	items, err := scoredArgs(few[:0], c.Args[a.scoresFrom:])
	if err != nil {
		return err
	}
	if err := longMembers(c, len(items)); err != nil {
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
		if command.EqualFold(args[i], "INCR") {
			a.incr = true
		} else if !a.condition(args[i]) {
			break
		}
	}
	a.scoresFrom = i
	n := len(args) - i
	if n == 0 || n%2 != 0 {
		return a, command.ErrSyntax
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
	case command.EqualFold(w, "NX"):
		a.o.IfAbsent = true
	case command.EqualFold(w, "XX"):
		a.o.IfExists = true
	case command.EqualFold(w, "GT"):
		a.o.IfGreater = true
	case command.EqualFold(w, "LT"):
		a.o.IfLess = true
	case command.EqualFold(w, "CH"):
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
		score, ok := numeral.ParseDouble(args[i])
		if !ok {
			return nil, command.ErrNotFloat
		}
		items = append(items, engine.Scored{Score: score, Member: args[i+1]})
	}
	return items, nil
}

var specZIncrBy = command.Spec{
	Name: "zincrby", Group: command.GroupSortedSet, Since: "1.2.0",
	Complexity: "O(log(N)) where N is the number of elements in the sorted set.",
	Summary:    "Increments the score of a member in a sorted set. Creates the key and the member if they don't exist.",
	Flags:      command.Write | command.DenyOOM | command.Fast,
	Args:       []command.Arg{command.Key("key", command.Access|command.Update), command.Int("increment"), command.Str("member")},
	Replies:    "The new score. The member keeps its expiration time.",
	Examples: `
> ZINCRBY z 2.5 m
"2.5"
> ZINCRBY z -1 m
"1.5"
`,
	Run: runZIncrBy,
}

func runZIncrBy(c *command.Ctx) error {
	by, ok := numeral.ParseDouble(c.Args[2])
	if !ok {
		return command.ErrNotFloat
	}
	score, _, err := c.Tx.ZIncrBy(c.Args[1], c.Args[3], by, engine.ZAddOptions{})
	if err != nil {
		return err
	}
	c.Out.Double(score)
	return nil
}

var specZRem = command.Spec{
	Name: "zrem", Group: command.GroupSortedSet, Since: "1.2.0",
	Complexity: "O(M*log(N)) with N being the number of elements in the sorted set and M the number of elements to be removed.",
	Summary:    "Removes one or more members from a sorted set. Deletes the sorted set if all members were removed.",
	Flags:      command.Write | command.Fast,
	Args:       []command.Arg{command.Key("key", command.Delete), command.Many("member")},
	History:    []command.Change{{Since: "2.4.0", Text: "Accepts multiple elements."}},
	Replies:    "The number of members that existed.",
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

func runZRem(c *command.Ctx) error {
	if err := longMembers(c, len(c.Args)); err != nil {
		return err
	}
	n, err := c.Tx.ZRem(c.Args[1], c.Args[2:])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specZCard = command.Spec{
	Name: "zcard", Group: command.GroupSortedSet, Since: "1.2.0", Complexity: "O(1)",
	Summary: "Returns the number of members in a sorted set.",
	Flags:   command.ReadOnly | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Meta)},
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

func runZCard(c *command.Ctx) error {
	z, err := c.Tx.ZSet(c.Args[1], false)
	if err != nil {
		return err
	}
	c.Out.Int(int64(z.Len()))
	return nil
}

var specZScore = command.Spec{
	Name: "zscore", Group: command.GroupSortedSet, Since: "1.2.0", Complexity: "O(1)",
	Summary: "Returns the score of a member in a sorted set.",
	Flags:   command.ReadOnly | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Read), command.Str("member")},
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

func runZScore(c *command.Ctx) error {
	z, err := c.Tx.ZSet(c.Args[1], false)
	if err != nil {
		return err
	}
	score, ok := z.Score(c.Args[2])
	scoreOrNull(c, score, ok)
	return nil
}

var specZMScore = command.Spec{
	Name: "zmscore", Group: command.GroupSortedSet, Since: "6.2.0", Complexity: "O(N) where N is the number of members being requested.",
	Summary: "Returns the score of one or more members in a sorted set.",
	Flags:   command.ReadOnly | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Read), command.Many("member")},
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

func runZMScore(c *command.Ctx) error {
	return eachMember(c, func(score float64, ok bool) { scoreOrNull(c, score, ok) })
}

// eachMember replies with an array. For each member of the arguments, reply writes an element that depends on
// its score.
func eachMember(c *command.Ctx, reply func(score float64, ok bool)) error {
	if err := longMembers(c, len(c.Args)); err != nil {
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

// withScore returns the grammar of the option of ZRANK and ZREVRANK.
func withScore() command.Arg { return command.Opt(command.Token("WITHSCORE")).Since("7.2.0") }

var specZRank = command.Spec{
	Name: "zrank", Group: command.GroupSortedSet, Since: "2.0.0", Complexity: "O(log(N))",
	Summary: "Returns the index of a member in a sorted set ordered by ascending scores.",
	Flags:   command.ReadOnly | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Read), command.Str("member"), withScore()},
	History: []command.Change{{Since: "7.2.0", Text: "Added the optional `WITHSCORE` argument."}},
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
	Run: func(c *command.Ctx) error { return zrank(c, false) },
}

var specZRevRank = command.Spec{
	Name: "zrevrank", Group: command.GroupSortedSet, Since: "2.0.0", Complexity: "O(log(N))",
	Summary: "Returns the index of a member in a sorted set ordered by descending scores.",
	Flags:   command.ReadOnly | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Read), command.Str("member"), withScore()},
	History: []command.Change{{Since: "7.2.0", Text: "Added the optional `WITHSCORE` argument."}},
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
	Run: func(c *command.Ctx) error { return zrank(c, true) },
}

func zrank(c *command.Ctx, reverse bool) error {
	if len(c.Args) > 4 {
		return command.WrongArity(c.Spec)
	}
	score := len(c.Args) == 4
	if score && !command.EqualFold(c.Args[3], "WITHSCORE") {
		return command.ErrSyntax
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

var specZRandMember = command.Spec{
	Name: "zrandmember", Group: command.GroupSortedSet, Since: "6.2.0", Complexity: "O(N) where N is the number of elements returned",
	Summary: "Returns one or more random members from a sorted set.",
	Flags:   command.ReadOnly,
	Args: []command.Arg{command.Key("key", command.Read),
		command.Opt(command.Block("options", command.Int("count"), command.Opt(command.Token("WITHSCORES"))))},
	Tips: []string{"nondeterministic_output"},
	Replies: "A member, or nil if there is no such key. With a count an array: of that many different members, or " +
		"of all if there are fewer; of exactly that many, with repetitions, for a negative count.",
	Errors: command.DrawErrors,
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

func runZRandMember(c *command.Ctx) error {
	if len(c.Args) == 2 {
		z, err := c.Tx.ZSet(c.Args[1], true)
		if err != nil {
			return err
		}
		member, _, ok := z.Random()
		bulkOrNull(c, member, ok)
		return nil
	}
	n, scores, err := command.ParseDraw(c.Args, "WITHSCORES")
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
	if err := longMembers(c, command.CountTo(n)); err != nil {
		return err
	}

	reply := scoredArray(c, int(n), scores)
	if !repeat {
		z.Sample(int(n), reply)
		return nil
	}
	return c.Draw(int(n), func(d *command.Drawing, n int) {
		for ; n > 0; n-- {
			member, score, _ := z.Random()
			if d.More(len(member)) {
				reply(member, score)
			}
		}
	})
}

// scoredArray begins a reply of n members and returns the function that writes one member. With scores the
// function also writes the score; in RESP3 it writes the two as an array.
func scoredArray(c *command.Ctx, n int, scores bool) func(member []byte, score float64) {
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

var specZScan = command.Spec{
	Name: "zscan", Group: command.GroupSortedSet, Since: "2.8.0",
	Complexity: "O(1) for every call. O(N) for a complete iteration, where N is the number of elements inside the collection.",
	Summary:    "Iterates over members and scores of a sorted set.",
	Flags:      command.ReadOnly,
	Args: []command.Arg{command.Key("key", command.Read), command.Int("cursor"),
		command.Opt(command.TokenArg("MATCH", command.Pattern("pattern"))),
		command.Opt(command.TokenArg("COUNT", command.Int("count")))},
	Tips: []string{"nondeterministic_output"},
	Replies: "The cursor for the next call, 0 at the end, and an array of members, each followed by its score. A " +
		"member that is there from the first call to the last is returned at least once.",
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

func runZScan(c *command.Ctx) error {
	cursor, err := parseCursor(c.Args[2])
	if err != nil {
		return err
	}
	z, err := c.Tx.ZSet(c.Args[1], false)
	if err != nil {
		return err
	}
	if z.Len() == 0 {
		scanned(c, 0, &names{})
		return nil
	}
	var o scanOptions
	if err := o.parse(c.Args[3:], false); err != nil {
		return err
	}
	if err := longMembers(c, min(o.limit(), z.Len())); err != nil {
		return err
	}

	found := newNames(c)
	var text [32]byte
	cursor = z.Scan(cursor, o.limit(), func(member []byte, score float64) {
		if o.matches(member) {
			found.add(member)
			found.add(numeral.AppendDouble(text[:0], score))
		}
	})

	scanned(c, cursor, &found)
	return nil
}
