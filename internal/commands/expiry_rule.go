package commands

import (
	"strings"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/resp"
)

var expiryCmdSpecs = []*command.Spec{&specExpiry}

var specExpiry = command.Spec{
	Name: "expiry", Group: command.GroupExpiry, Since: "0.4.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about expiration.",
	Sub:     []*command.Spec{&specExpiryForecast, &specExpiryHelp, &specExpiryLag, &specExpiryNext, &specExpiryRule, &specExpirySoon, &specExpirySurvey},
}

var specExpiryHelp = func() command.Spec {
	s := command.HelpSpec("expiry", command.GroupExpiry, 0)
	s.Since = "0.4.0"
	return s
}()

var specExpiryRule = command.Spec{
	Name: "expiry|rule", Group: command.GroupExpiry, Since: "0.4.0",
	Complexity: "O(N) where N is the number of the database's rules. An expiry is matched with each of them.",
	Summary:    "Sets, removes or lists the rules that record expirations in a stream.",
	Flags:      command.Write | command.Admin | command.AllKeys | command.NoMandatoryKeys,
	Args: []command.Arg{command.OneOf("action",
		command.Block("SET", command.Str("name"), command.TokenArg("MATCH", command.Pattern("pattern")),
			command.Opt(command.Block("LEVEL", command.Repeat(command.OneOf("level", command.Token("KEY"), command.Token("FIELD"), command.Token("MEMBER"),
				command.Token("ELEMENT"), command.Token("LEASE"))))),
			command.TokenArg("TO", command.Key("stream", command.Insert)).Spec(0),
			command.Opt(command.Block("MAXLEN", command.Opt(command.Token("~").As("approximately")), command.Int("maxlen"))),
			command.Opt(command.Block("WITHVALUE", command.Opt(command.Int("maxbytes"))))),
		command.Block("DEL", command.Str("name")),
		command.Token("LIST"))},
	KeySpecs:   []command.KeySpec{{Flags: command.Insert, Begin: command.BeginKeyword, Keyword: "TO", Index: 6, Find: command.FindRange, Step: 1}},
	KeyOptions: &command.KeyOptions{Only: "SET", From: 6, Options: []command.KeyOption{{Word: "TO", Args: 1, Key: command.Insert}}, Take: command.TakeFirst},
	Replies: "SET: OK; a rule of the same name is replaced. DEL: 1, or 0 if there is no such rule. LIST: for each a map of name, match, levels, stream, " +
		"maxlen, approximate, maxbytes (-1 without WITHVALUE), fired (entries written), missed (entries that had to be written in a transaction of their " +
		"own, right after that of the " +
		"expiration, as when MULTI has a RESTORE of an expired item and then a read of it; they count as the others do), suspended (entries that are " +
		"lost, because the " +
		"stream's key could not take them, which holds another type), since (ms since 1970 from which on the rule is suspended; 0: it is not) and why.\n\n" +
		"Each matching expiration appends an entry to the stream in the transaction that removes the key or item: key, item (not of a key), level, value, " +
		"deadline, fired-at (ms since 1970) and rule. A rule and its stream belong to a database: SWAPDB exchanges them, FLUSHDB and FLUSHALL keep the rules and " +
		"cause no entries. The streams of a database's rules match none of them. Without LEVEL all levels match; without MAXLEN " +
		"about a million entries stay; WITHVALUE adds the values of strings, of hash fields, and the payloads of jobs, of up to 1024 bytes unless it " +
		"says otherwise: the entry leaves a longer value out.",
	Errors: []string{
		"ERR a database has 128 expiry rules at most: the database has as many, and the name is a new one",
		"ERR MAXLEN must be positive: the bound is below 1",
		"ERR WITHVALUE must not be negative: the number of bytes is below 0",
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
> EXPIRY RULE DEL sessions
(integer) 1
> EXPIRY RULE LIST
(empty array)
`,
	Run: runExpiryRule,
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
		if r.Levels, args = parseLevels(args[1:]); r.Levels == 0 {
			return r, command.ErrSyntax
		}
	} else {
		r.Levels = engine.AllLevels
	}
	if len(args) < 2 || !command.EqualFold(args[0], "TO") {
		return r, command.ErrSyntax
	}
	r.Stream = string(args[1])
	return r, parseRuleOptions(&r, args[2:])
}

// parseLevels reads the names of levels, as many as there are.
func parseLevels(args [][]byte) (levels engine.LevelSet, rest [][]byte) {
	for len(args) > 0 {
		l, ok := engine.LevelNamed(strings.ToLower(string(args[0])))
		if !ok {
			break
		}
		levels |= 1 << l
		args = args[1:]
	}
	return levels, args
}

func parseRuleOptions(r *engine.Rule, args [][]byte) error {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case command.EqualFold(word, "MAXLEN"):
			if r.Exact = len(args) == 0 || string(args[0]) != "~"; !r.Exact {
				args = args[1:]
			}
			if len(args) == 0 {
				return command.ErrSyntax
			}
			n, ok := resp.ParseInt(args[0])
			switch {
			case !ok:
				return command.ErrNotInteger
			case n < 1:
				return errRuleMaxLen
			}
			r.MaxLen, args = n, args[1:]
		case command.EqualFold(word, "WITHVALUE"):
			r.MaxValue = ruleMaxValue
			if len(args) == 0 || command.EqualFold(args[0], "MAXLEN") {
				continue
			}
			n, ok := resp.ParseInt(args[0])
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

// listRules replies with rules and their state.
func listRules(c *command.Ctx, rules []engine.RuleState) {
	c.Out.Array(len(rules))
	for i := range rules {
		r := &rules[i]
		c.Out.Map(12)
		putText(c, "name", r.Name)
		putText(c, "match", r.Match)
		c.Out.BulkString("levels")
		l, n := c.Out.ArrayLater(), 0
		for level := range engine.Levels {
			if r.Levels.Has(level) {
				c.Out.BulkString(level.String())
				n++
			}
		}
		c.Out.Patch(l, n)
		putText(c, "stream", r.Stream)
		putInt(c, "maxlen", r.MaxLen)
		putInt(c, "approximate", command.BoolToInt(!r.Exact))
		putInt(c, "maxbytes", int64(r.MaxValue))
		putInt(c, "fired", r.Fired)
		putInt(c, "missed", r.Missed)
		putInt(c, "suspended", r.Suspended)
		putInt(c, "since", r.Since)
		putText(c, "why", r.Why)
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
