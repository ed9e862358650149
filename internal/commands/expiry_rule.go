package commands

import (
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var expirySpecs = []*command.Spec{&specExpiry}

var specExpiry = command.Spec{
	Name: "expiry", Group: command.GroupExpiry, Since: "0.4.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about expiration.",
	Sub: []*command.Spec{&specExpiryForecast, &specExpiryHelp, &specExpiryLag, &specExpiryNext, &specExpiryRule,
		&specExpirySoon, &specExpirySurvey},
}

var specExpiryHelp = func() command.Spec {
	s := command.HelpSpec("expiry", command.GroupExpiry, 0)
	s.Since = "0.4.0"
	return s
}()

var specExpiryRule = command.Spec{
	Name: "expiry|rule", Group: command.GroupExpiry, Since: "0.4.0",
	Complexity: "O(N) where N is the number of the database's rules. An expiry is matched with each of them.",
	Summary:    "Sets, removes or lists the rules that record expirations in a stream or a delay queue.",
	Flags:      command.Write | command.Admin | command.AllKeys | command.NoMandatoryKeys | command.Inert | command.Reveals,
	Lacks:      ruleLacks,
	Args: []command.Arg{command.OneOf("action",
		command.Block("SET", command.Str("name"), command.TokenArg("MATCH", command.Pattern("pattern")),
			command.Opt(command.Block("LEVEL",
				command.Repeat(command.OneOf("level", command.Token("KEY"), command.Token("FIELD"), command.Token("MEMBER"),
					command.Token("ELEMENT"), command.Token("LEASE"), command.Token("FRESH"))))),
			command.OneOf("target",
				command.Block("TO", command.Key("stream", command.Insert).Spec(0),
					command.Opt(command.Block("MAXLEN", command.Opt(command.Token("~").As("approximately")), command.Int("maxlen")))),
				command.Block("TO", command.Token("QUEUE"), command.Key("queue", command.Insert).Spec(0),
					command.Opt(command.TokenArg("DELAY", command.Int("delay"))), command.Opt(command.TokenArg("PRIORITY", command.Int("priority"))))),
			command.Opt(command.Block("WITHVALUE", command.Opt(command.Int("maxbytes"))))),
		command.Block("DEL", command.Str("name")),
		command.Token("LIST"))},
	KeySpecs: []command.KeySpec{{Flags: command.Insert, Begin: command.BeginKeyword, Keyword: "TO", Index: 6,
		Find: command.FindRange, Step: 1}},
	KeyOptions: &command.KeyOptions{Only: "SET", From: 6,
		Options: []command.KeyOption{{Word: "TO", Args: 1, Key: command.Insert, Before: "QUEUE"},
			{Word: "MAXLEN", Args: 1}, {Word: "WITHVALUE"}}, Take: command.TakeFirst},
	Replies: "* SET: OK; a rule of the same name is replaced.\n" +
		"* DEL: 1, or 0 if there is no such rule.\n" +
		"* LIST: for each rule a map of name, match, levels, stream, maxlen, approximate, maxbytes (-1 without WITHVALUE), fired, missed, " +
		"suspended, since, why, and, with TO QUEUE, whose stream is empty and whose maxlen is 0, queue, delay and priority.\n\n" +
		"Of these, fired counts the entries written. missed counts those that had to be written in a transaction of their own, right after " +
		"that of the expiration, as when MULTI has a RESTORE of an expired item and then a read of it; they count as the others do. suspended " +
		"counts the entries that are lost, because the target's key could not take them: it holds another type, or the queue is full. since " +
		"is the time in ms since 1970 from which on the rule is suspended, 0 if it is not, and why the reason.\n\n" +
		"Each matching expiration appends an entry to the stream in the transaction that removes the key or item: key, item (not of a key), " +
		"level, value, deadline, fired-at (ms since 1970) and rule.\n\n" +
		"* A rule and its target belong to a database: SWAPDB exchanges them, FLUSHDB and FLUSHALL keep the rules and cause no entries.\n" +
		"* The streams and queues of a database's rules match none of them.\n" +
		"* Without LEVEL all levels but FRESH match.\n" +
		"* Without MAXLEN about a million entries stay.\n" +
		"* WITHVALUE adds the values of strings, of hash fields, and the payloads of jobs, of up to 1024 bytes unless it says otherwise: the " +
		"entry leaves a longer value out.\n\n" +
		"LEVEL FRESH: an entry when the value of a string goes stale (SET FRESH, STALE), so that workers load the next value before readers " +
		"need it. Its deadline is the last ms in which the value was fresh. A value that a write replaces before the reclaimer comes has " +
		"none. A worker calls GETFRESH with LEASE, so that it and the readers elect one of them.\n\n" +
		"TO QUEUE makes each entry a job of a delay queue instead, which DQ.POP gives to one worker with a lease, retries and dead letters.\n\n" +
		"* The job is due DELAY ms after the expiration (default 0) and has a PRIORITY from 0 to 9 (default 0).\n" +
		"* Its id is `rule:key:item:deadline`; the item is empty if a key has expired, and a number follows if the queue has a job with the " +
		"id.\n" +
		"* Its payload is a JSON object of the fields of an entry, with deadline and fired-at as numbers. A key, an item or a value that is " +
		"not UTF-8 stands in base64 under its name and `-base64`.\n" +
		"* A queue named MAXLEN or WITHVALUE cannot be a target: `TO QUEUE MAXLEN 9` means a stream named QUEUE.",
	Errors: []string{
		"ERR a database has 128 expiry rules at most: the database has as many, and the name is a new one",
		"ERR MAXLEN must be positive: the bound is below 1",
		"ERR WITHVALUE must not be negative: the number of bytes is below 0",
		"ERR PRIORITY must be 0 to 9: the priority is outside of that",
		"ERR the time must be in milliseconds and not negative: of DELAY",
		"ERR EXPIRY RULE SET denied due to insufficient ACL permissions.: the user may not read all keys, whose names a rule reveals",
	},
	Examples: `
> EXPIRY RULE SET sessions MATCH session:* LEVEL KEY TO ended WITHVALUE
OK
> SET session:1 ann PX 1000
OK
~ 1001ms
> XRANGE ended - +
1) 1) "1700000001001-0"
   2)  1) "key"
       2) "session:1"
       3) "level"
       4) "key"
       5) "value"
       6) "ann"
       7) "deadline"
       8) "1700000001000"
       9) "fired-at"
      10) "1700000001001"
      11) "rule"
      12) "sessions"
> EXPIRY RULE SET sessions MATCH session:* LEVEL KEY TO QUEUE cleanup WITHVALUE
OK
> SET session:2 bob PX 1000
OK
~ 1001ms
> DQ.POP cleanup
1) 1) "sessions:session:2::1700000002001"
   2) "{\"key\":\"session:2\",\"level\":\"key\",\"value\":\"bob\",\"deadline\":1700000002001,\"fired-at\":1700000002002,\"rule\":\"sessions\"}"
   3) (integer) 1
   4) (integer) $token
   5) (integer) 1700000002002
> EXPIRY RULE DEL sessions
(integer) 1
> EXPIRY RULE LIST
(empty array)
`,
	Run: runExpiryRule,
}

// ruleLacks implements Spec.Lacks: EXPIRY RULE LIST writes nothing. A rule reveals values only with QUEUE, as
// the id of a job contains the expired element of a list.
func ruleLacks(args [][]byte) command.Flags {
	if len(args) == 3 && command.EqualFold(args[2], "list") {
		return command.Write | command.Reveals
	}
	return command.OnlyWith(command.Reveals, 5, "QUEUE")(args)
}

const (
	errRuleMaxLen = command.ReplyError("ERR MAXLEN must be positive")
	errRuleBytes  = command.ReplyError("ERR WITHVALUE must not be negative")
	// A rule copies names, items and values of keys that are not among the arguments.
	errRuleDenied = command.ReplyError("ERR EXPIRY RULE SET denied due to insufficient ACL permissions.")

	// ruleMaxLen is the number of entries that a rule's stream keeps by default: about a hundred
	// megabytes.
	ruleMaxLen = 1_000_000
	// ruleMaxValue is the longest value that an entry includes by default, in bytes.
	ruleMaxValue = 1024
)

func runExpiryRule(c *command.Ctx) error {
	args := c.Args[3:]
	switch verb := c.Args[2]; {
	case command.EqualFold(verb, "SET"):
		r, err := parseRule(args)
		if err == nil && !c.Host.MayReadEveryKey(c) {
			err = errRuleDenied
		}
		if err == nil {
			err = c.Tx.SetRule(r)
		}
		if err != nil {
			return err
		}
		c.Out.OK()
	case command.EqualFold(verb, "DEL") && len(args) == 1:
		c.Out.Int(command.BoolToInt(c.Tx.DelRule(string(args[0]))))
	case command.EqualFold(verb, "LIST") && len(args) == 0:
		listRules(c, c.Tx.Rules())
	default:
		return command.ErrSyntax
	}
	return nil
}

// parseRule reads the arguments after EXPIRY RULE SET.
func parseRule(args [][]byte) (r engine.Rule, err error) {
	r = engine.Rule{MaxLen: ruleMaxLen, MaxValue: -1}
	if len(args) < 5 || !command.EqualFold(args[1], "MATCH") {
		return r, command.ErrSyntax
	}
	r.Name, r.Match = string(args[0]), string(args[2])
	if args = args[3:]; command.EqualFold(args[0], "LEVEL") {
		if r.Levels, args = parseLevels(args[1:], engine.LevelFresh); r.Levels == 0 {
			return r, command.ErrSyntax
		}
	} else {
		r.Levels = engine.AllLevels
	}
	if len(args) < 2 || !command.EqualFold(args[0], "TO") {
		return r, command.ErrSyntax
	}
	args = args[1:]
	if len(args) > 1 && command.EqualFold(args[0], "QUEUE") && !command.EqualFold(args[1], "MAXLEN") &&
		!command.EqualFold(args[1], "WITHVALUE") {
		r.ToQueue, r.Queue, r.MaxLen = true, string(args[1]), 0
		return r, parseRuleOptions(&r, args[2:])
	}
	r.Stream = string(args[0])
	return r, parseRuleOptions(&r, args[1:])
}

// parseLevels reads the names of levels up to last, as many as there are.
func parseLevels(args [][]byte, last engine.Level) (levels engine.LevelSet, rest [][]byte) {
	for len(args) > 0 {
		l, ok := engine.LevelNamed(strings.ToLower(string(args[0])))
		if !ok || l > last {
			break
		}
		levels |= 1 << l
		args = args[1:]
	}
	return levels, args
}

func parseRuleOptions(r *engine.Rule, args [][]byte) (err error) {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case r.ToQueue && len(args) > 0 && command.EqualFold(word, "DELAY"):
			if r.Delay, err = parseJobTime(args[0]); err != nil {
				return err
			}
			args = args[1:]
		case r.ToQueue && len(args) > 0 && command.EqualFold(word, "PRIORITY"):
			if r.Priority, err = parsePriority(args[0]); err != nil {
				return err
			}
			args = args[1:]
		case !r.ToQueue && command.EqualFold(word, "MAXLEN"):
			if r.Exact = len(args) == 0 || string(args[0]) != "~"; !r.Exact {
				args = args[1:]
			}
			if len(args) == 0 {
				return command.ErrSyntax
			}
			n, ok := numeral.ParseInt(args[0])
			switch {
			case !ok:
				return command.ErrNotInteger
			case n < 1:
				return errRuleMaxLen
			}
			r.MaxLen, args = n, args[1:]
		case command.EqualFold(word, "WITHVALUE"):
			r.MaxValue = ruleMaxValue
			if len(args) == 0 || ruleOption(args[0]) {
				continue
			}
			n, ok := numeral.ParseInt(args[0])
			switch {
			case !ok:
				return command.ErrNotInteger
			case n < 0:
				return errRuleBytes
			}
			r.MaxValue, args = command.CountTo(n), args[1:]
		default:
			return command.ErrSyntax
		}
	}
	return nil
}

// ruleOption reports whether a word is an option of EXPIRY RULE SET.
func ruleOption(word []byte) bool {
	return command.EqualFold(word, "MAXLEN") || command.EqualFold(word, "DELAY") || command.EqualFold(word, "PRIORITY")
}

// listRules replies with rules and their state.
func listRules(c *command.Ctx, rules []engine.RuleState) {
	c.Out.Array(len(rules))
	for i := range rules {
		r := &rules[i]
		c.Out.Map(15)
		putText(c, "name", r.Name)
		putText(c, "match", r.Match)
		c.Out.BulkString("levels")
		l, n := c.Out.ArrayLater(), 0
		for level := range engine.LevelFresh + 1 {
			if r.Levels.Has(level) {
				c.Out.BulkString(level.String())
				n++
			}
		}
		c.Out.Patch(l, n)
		putText(c, "stream", r.Stream)
		putInt(c, "maxlen", r.MaxLen)
		putInt(c, "approximate", command.BoolToInt(!r.Exact && !r.ToQueue))
		putInt(c, "maxbytes", int64(r.MaxValue))
		putInt(c, "fired", r.Fired)
		putInt(c, "missed", r.Missed)
		putInt(c, "suspended", r.Suspended)
		putInt(c, "since", r.Since)
		putText(c, "why", r.Why)
		putText(c, "queue", r.Queue)
		putInt(c, "delay", r.Delay)
		putInt(c, "priority", int64(r.Priority))
	}
}

// putText and putInt write an entry of a map.
func putText(c *command.Ctx, name, value string) {
	c.Out.BulkString(name)
	c.Out.BulkString(value)
}

func putInt(c *command.Ctx, name string, n int64) {
	c.Out.BulkString(name)
	c.Out.Int(n)
}
