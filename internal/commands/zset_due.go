package commands

import (
	"math"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

// The scores of some sorted sets are times. These commands take the members whose times have come.
//
// A waiting client stands in line for each of its keys. It describes its request to the engine (engine.Want),
// and the engine wakes the line when the member with the lowest score is due. So a waiting client costs
// nothing until then.

const (
	errDueUnit = command.ReplyError("ERR UNIT must be s, ms, us or a positive number")
	errDueAge  = command.ReplyError("ERR AGE must be a number of milliseconds from 0 to 1125899906842623")
	errDueSpan = command.ReplyError("ERR SCORE must be a number of milliseconds from 0 to 1125899906842623")

	// maxDueSpan is the longest AGE and SCORE in ms, some 35,000 years. In microseconds it fits in 64 bits.
	maxDueSpan = 1<<50 - 1
)

// dueArgs returns the grammar that all these commands share.
func dueArgs() []command.Arg {
	return []command.Arg{
		command.Opt(command.TokenArg("COUNT", command.Int("count"))),
		command.Opt(command.TokenArg("UNIT", command.Str("unit"))),
		command.Opt(command.TokenArg("AGE", command.Int("age"))),
		command.Opt(command.TokenArg("BLOCK", command.Int("milliseconds"))),
	}
}

const (
	dueMeaning = "A member is due if its score, as a time since 1970, is no later than now minus AGE ms.\n\n" +
		"* UNIT says what the scores count: seconds (s, the default, with fractions), ms, us, or a number of units per ms: BullMQ's scores are " +
		"UNIT 4096.\n"
	dueWaiting = "* BLOCK waits for at most that many ms until a member is due, 0 for ever. It is served within 2 ms of that time, never " +
		"before it. The " +
		"client that has waited longest is served first. In transactions and scripts the command does not wait.\n"
	dueComplexity = "O(K) + O(M*log(N)) where K is the number of provided keys, N the number of members of a sorted set, and M the " +
		"number of members taken."
)

var dueErrors = []string{
	"ERR count should be greater than 0: of COUNT",
	string(errDueUnit) + ": of UNIT",
	string(errDueAge) + ": of AGE",
	"ERR timeout is negative: of BLOCK",
}

var specZPopDue = command.Spec{
	Name: "zpopdue", Group: command.GroupSortedSet, Since: "0.7.0", Complexity: dueComplexity,
	Summary: "Returns the members of a sorted set that are due after removing them: from the first set that has any. " +
		"With BLOCK it waits for one.",
	Flags: command.Write | command.Blocking,
	Args: append([]command.Arg{command.Count("numkeys"), command.ManyKeys("key", command.Access|command.Delete)},
		append(dueArgs(), command.Opt(command.Token("PEEK")))...),
	Replies: "* An array of the key and an array of at most COUNT members, by default one, lowest scores first, each in an array with " +
		"its score.\n" +
		"* nil if none is due, or when the BLOCK milliseconds are over.\n\n" +
		dueMeaning +
		dueWaiting +
		"* PEEK removes nothing, and every client that waits with it is served.",
	Errors: append([]string{"ERR numkeys should be greater than 0: numkeys is not a positive integer"}, dueErrors...),
	Examples: `
> ZADD jobs 1000 a 2000 b 99999999999 c
(integer) 3
> ZPOPDUE 1 jobs COUNT 10
1) "jobs"
2) 1) 1) "a"
      2) "1000"
   2) 1) "b"
      2) "2000"
> ZPOPDUE 1 jobs
(nil)
> EVAL "local t = redis.call('TIME') redis.call('ZADD', KEYS[1], t[1] + 1, 'soon')" 1 jobs
(nil)
2> ZPOPDUE 2 other jobs BLOCK 0
~ 1000ms
2< 1) "jobs"
2) 1) 1) "soon"
      2) $score
`,
	Run: runZPopDue,
}

// duePop holds the options of the commands about due members.
type duePop struct {
	engine.Due
	count int
	peek  bool
	waits bool
	block int64
}

func runZPopDue(c *command.Ctx) error {
	n, ok := numeral.ParseInt(c.Args[1])
	switch {
	case !ok || n < 1:
		return command.ErrNumKeys
	case n > int64(len(c.Args)-2):
		return command.ErrSyntax
	}
	p, err := parseDue(c.Args[2+n:], true)
	if err != nil {
		return err
	}
	return popDueOrWait(c, c.Args[2:2+n], p)
}

// parseDue reads "[COUNT n] [UNIT u] [AGE ms] [BLOCK ms] [PEEK]" in any order.
func parseDue(args [][]byte, peek bool) (p duePop, err error) {
	p.Unit, p.count = 1e6, 1
	for len(args) > 0 {
		if peek && command.EqualFold(args[0], "PEEK") {
			p.peek, args = true, args[1:]
			continue
		}
		if len(args) == 1 {
			return p, command.ErrSyntax
		}
		switch word, value := args[0], args[1]; {
		case command.EqualFold(word, "COUNT"):
			p.count, err = parseDueCount(value)
		case command.EqualFold(word, "UNIT"):
			p.Unit, err = parseDueUnit(value)
		case command.EqualFold(word, "AGE"):
			p.Age, err = parseDueSpan(value, errDueAge)
		case command.EqualFold(word, "BLOCK"):
			p.block, err = command.ParseBlock(value)
			p.waits = true
		default:
			return p, command.ErrSyntax
		}
		if err != nil {
			return p, err
		}
		args = args[2:]
	}
	return p, nil
}

func parseDueCount(b []byte) (int, error) {
	n, ok := numeral.ParseInt(b)
	if !ok || n < 1 {
		return 0, command.ErrCount
	}
	return command.CountTo(n), nil
}

// parseDueUnit returns the length of a unit of the scores in us. The score of every instant is finite, so a
// member with the score +inf never becomes due.
func parseDueUnit(b []byte) (us float64, err error) {
	switch {
	case command.EqualFold(b, "s"):
		return 1e6, nil
	case command.EqualFold(b, "ms"):
		return 1e3, nil
	case command.EqualFold(b, "us"):
		return 1, nil
	}
	n, ok := numeral.ParseDouble(b)
	if us = 1e3 / n; !ok || !(n > 0) || us == 0 || math.IsInf(us, 0) || math.IsInf((1<<62)/us, 0) {
		return 0, errDueUnit
	}
	return us, nil
}

// parseDueSpan reads milliseconds and returns microseconds.
func parseDueSpan(b []byte, wrong error) (us int64, err error) {
	ms, ok := numeral.ParseInt(b)
	if !ok || ms < 0 || ms > maxDueSpan {
		return 0, wrong
	}
	return ms * 1000, nil
}

// dueCandidates returns the command's keys from which it may take members now. It leaves out a key if its due
// members go to clients that have waited longer.
func dueCandidates(c *command.Ctx, keys [][]byte) [][]byte {
	keys = c.Candidates(keys)
	if c.Waiting != nil || c.NoWait || c.DB.Waiters() == 0 {
		return keys
	}
	mine := make([][]byte, 0, len(keys))
	for _, k := range keys {
		if !c.Tx.DueAwaited(k) {
			mine = append(mine, k)
		}
	}
	return mine
}

// longDue is Ctx.Long for a command that takes up to count due members of a set.
func longDue(c *command.Ctx, key []byte, count int) error {
	if count == 1 {
		return nil
	}
	z, err := c.Tx.ZSet(key, true)
	if err != nil {
		return err
	}
	return longMembers(c, 2*min(count, z.Len()))
}

func popDueOrWait(c *command.Ctx, keys [][]byte, p duePop) error {
	for _, key := range dueCandidates(c, keys) {
		n, err := popDue(c, key, p)
		if n > 0 || err != nil {
			return err
		}
	}
	return waitForDue(c, p, keys, nil)
}

// popDue replies with due members of a set, and returns how many there are.
func popDue(c *command.Ctx, key []byte, p duePop) (n int, err error) {
	if err := longDue(c, key, p.count); err != nil {
		return 0, err
	}
	begin := func(n int) {
		c.Out.Array(2)
		c.Out.Bulk(key)
		c.Out.Array(n)
	}
	if !p.peek {
		return c.Tx.ZPopDue(key, p.Due, p.count, begin, dueMember(c))
	}
	z, err := c.Tx.ZSet(key, true)
	if err != nil {
		return 0, err
	}
	w := z.Due(p.Due, p.count)
	if n = w.Len(); n > 0 {
		begin(n)
		for w.Next() {
			dueMember(c)(w.Member(), w.Score())
		}
	}
	return n, nil
}

// dueMember returns a function that replies with a member and its score.
func dueMember(c *command.Ctx) func(member []byte, score float64) {
	return func(member []byte, score float64) {
		c.Out.Array(2)
		scorePair(c, member, score)
	}
}

// waitForDue puts the command in line for keys, or replies that nothing is due.
func waitForDue(c *command.Ctx, p duePop, keys, also [][]byte) error {
	if !p.waits {
		c.Out.NullArray()
		return nil
	}
	return c.Block(command.Wait{Keys: keys, Also: also, Kinds: engine.KindsOf(engine.ZSet), Want: engine.Want{Due: p.Due}, Millis: p.block})
}

var specZMoveDue = command.Spec{
	Name: "zmovedue", Group: command.GroupSortedSet, Since: "0.7.0",
	Complexity: "O(M*log(N)) where N is the number of members of a sorted set, and M the number of members moved.",
	Summary: "Moves the members of a sorted set that are due to a list, or to a sorted set with a later score. " +
		"With BLOCK it waits for one.",
	Flags: command.Write | command.DenyOOM | command.Blocking,
	Args: append([]command.Arg{command.Key("source", command.Access|command.Delete), command.Key("destination", command.Insert),
		command.OneOf("target", command.Token("LEFT"), command.Token("RIGHT"), command.TokenArg("SCORE", command.Int("delay")))}, dueArgs()...),
	Replies: "* An array of at most COUNT members that were moved, by default one, lowest scores first, each in an array with the " +
		"score by which " +
		"it was due.\n" +
		"* nil if none is due, or when the BLOCK milliseconds are over.\n\n" +
		dueMeaning +
		dueWaiting +
		"* LEFT and RIGHT push the members one by one onto an end of a list.\n" +
		"* SCORE adds them to a sorted set with the score of now plus that many milliseconds, in UNIT: a working set, whose members are due " +
		"again when their lease is over. The destination of SCORE may be the source.\n" +
		"* Members keep their deadlines. All are moved, or none.",
	Errors: append([]string{string(errDueSpan) + ": of SCORE"}, dueErrors...),
	Examples: `
> ZADD schedule 1000 a 2000 b
(integer) 2
> ZMOVEDUE schedule queue LEFT
1) 1) "a"
   2) "1000"
> LRANGE queue 0 -1
1) "a"
> ZMOVEDUE schedule working SCORE 30000
1) 1) "b"
   2) "2000"
> ZMOVEDUE working working SCORE 30000
(nil)
~ 30s
> ZMOVEDUE working working SCORE 30000
1) 1) "b"
   2) $lease
`,
	Run: runZMoveDue,
}

// dueTarget is the destination of due members.
type dueTarget struct {
	set   bool
	delay int64 // us, for a set
	end   engine.End
}

func runZMoveDue(c *command.Ctx) error {
	rest := c.Args[3:]
	var t dueTarget
	if t.set = command.EqualFold(rest[0], "SCORE"); t.set {
		if len(rest) < 2 {
			return command.ErrSyntax
		}
		rest = rest[1:]
	}
	var err error
	if t.set {
		t.delay, err = parseDueSpan(rest[0], errDueSpan)
	} else {
		t.end, err = parseEnd(rest[0])
	}
	if err != nil {
		return err
	}
	p, err := parseDue(rest[1:], false)
	if err != nil {
		return err
	}
	return moveDueOrWait(c, t, p)
}

func moveDueOrWait(c *command.Ctx, t dueTarget, p duePop) error {
	from, to := c.Args[1], c.Args[2]
	for range dueCandidates(c, c.Args[1:2]) {
		if err := longDue(c, from, p.count); err != nil {
			return err
		}
		var n int
		var err error
		if t.set {
			n, err = c.Tx.ZPostponeDue(from, to, t.delay, p.Due, p.count, c.Out.Array, dueMember(c))
		} else {
			n, err = c.Tx.ZMoveDue(from, to, t.end, p.Due, p.count, c.Out.Array, dueMember(c))
		}
		if n > 0 || err != nil {
			return err
		}
	}
	return waitForDue(c, p, c.Args[1:2], c.Args[2:3])
}

var specBZTSPop = command.Spec{
	Name: "bztspop", Group: command.GroupSortedSet, Since: "0.7.0", Complexity: dueComplexity,
	Summary: "Does what ZPOPDUE 1 key COUNT count BLOCK timeout does, with the timeout in seconds.",
	Flags:   command.Write | command.Blocking,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete), command.Int("count"), command.Double("timeout")},
	Replies: "As ZPOPDUE; nil after timeout seconds, of which 0 is for ever. The name and the arguments are those of a proposal for Redis " +
		"(redis#14565). ebb will drop the command if Redis gives the name to another one.",
	Errors: []string{"ERR count should be greater than 0: of count"},
	Examples: `
> ZADD retry 1000 a 2000 b
(integer) 2
> BZTSPOP retry 10 0
1) "retry"
2) 1) 1) "a"
      2) "1000"
   2) 1) "b"
      2) "2000"
> BZTSPOP retry 10 0.5
~ 500ms
1< (nil)
`,
	Run: runBZTSPop,
}

func runBZTSPop(c *command.Ctx) error {
	p, err := parseTimed(c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	return popDueOrWait(c, c.Args[1:2], p)
}

// parseTimed reads the count and the timeout in seconds of the proposed forms.
func parseTimed(count, timeout []byte) (p duePop, err error) {
	p.Unit, p.waits = 1e6, true
	if p.count, err = parseDueCount(count); err == nil {
		p.block, err = command.ParseTimeout(timeout)
	}
	return p, err
}

var specBZTSMove = command.Spec{
	Name: "bztsmove", Group: command.GroupSortedSet, Since: "0.7.0",
	Complexity: "O(M*log(N)) where N is the number of members of the sorted set, and M the number of members moved.",
	Summary:    "Does what ZMOVEDUE source destination LEFT COUNT count BLOCK timeout does, with the timeout in seconds.",
	Flags:      command.Write | command.DenyOOM | command.Blocking,
	Args:       append(fromTo(), command.Int("count"), command.Double("timeout")),
	Replies: "As ZMOVEDUE; nil after timeout seconds, of which 0 is for ever. The name and the arguments are those of a proposal for Redis " +
		"(redis#14565). ebb will drop the command if Redis gives the name to another one.",
	Errors: []string{"ERR count should be greater than 0: of count"},
	Examples: `
> ZADD schedule 1000 a 2000 b
(integer) 2
> BZTSMOVE schedule queue 10 0
1) 1) "a"
   2) "1000"
2) 1) "b"
   2) "2000"
> LRANGE queue 0 -1
1) "b"
2) "a"
`,
	Run: runBZTSMove,
}

func runBZTSMove(c *command.Ctx) error {
	p, err := parseTimed(c.Args[3], c.Args[4])
	if err != nil {
		return err
	}
	return moveDueOrWait(c, dueTarget{end: engine.Head}, p)
}
