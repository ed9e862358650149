package command

import (
	"strings"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

var expiryCmdSpecs = []*Spec{&specExpiry}

var specExpiry = Spec{
	Name: "expiry", Group: GroupExpiry, Since: "0.4.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about what expires.",
	Sub:     []*Spec{&specExpiryForecast, &specExpiryHelp, &specExpiryLag, &specExpiryNext, &specExpiryRule},
}

var specExpiryHelp = func() Spec {
	s := HelpSpec("expiry", GroupExpiry, 0)
	s.Since = "0.4.0"
	return s
}()

var specExpiryRule = Spec{
	Name: "expiry|rule", Group: GroupExpiry, Since: "0.4.0",
	Complexity: "O(N) where N is the number of the database's rules. An expiry is matched with each of them.",
	Summary:    "Sets, removes or lists the rules that tell a stream what expires.",
	Flags:      Write | Admin | AllKeys | NoMandatoryKeys,
	Args: []Arg{OneOf("action",
		Block("SET", Str("name"), TokenArg("MATCH", Pattern("pattern")),
			Opt(Block("LEVEL", Repeat(OneOf("level", Token("KEY"), Token("FIELD"), Token("MEMBER"), Token("ELEMENT"), Token("LEASE"))))),
			TokenArg("TO", Key("stream", Insert)).Spec(0),
			Opt(Block("MAXLEN", Opt(Token("~").As("approximately")), Int("maxlen"))),
			Opt(Block("WITHVALUE", Opt(Int("maxbytes"))))),
		Block("DEL", Str("name")),
		Token("LIST"))},
	KeySpecs:   []KeySpec{{Flags: Insert, Begin: BeginKeyword, Keyword: "TO", Index: 6, Find: FindRange, Step: 1}},
	KeyOptions: &KeyOptions{Only: "SET", From: 6, Options: []KeyOption{{Word: "TO", Args: 1, Key: Insert}}, Take: TakeFirst},
	Replies: "SET: OK; a rule of the same name is replaced. DEL: 1, or 0 if there is no such rule. LIST: for each a map of name, match, levels, stream, " +
		"maxlen, approximate, maxbytes (-1 without WITHVALUE), fired (entries written), missed (entries that had to be written in a transaction of their own, right after that of the " +
		"expiry, as where MULTI holds a RESTORE of what is dead and then a look at it; they count as the others do), suspended (entries that are lost, because the " +
		"stream's key could not take them, which holds another type), since (ms since 1970 from which on the rule is suspended; 0: it is not) and why.\n\n" +
		"Each expiry that matches appends an entry to the stream in the transaction that removes what has expired: key, item (not of a key), level, value, " +
		"deadline, fired-at (ms since 1970) and rule. A rule and its stream belong to a database: SWAPDB exchanges them, FLUSHDB and FLUSHALL leave rules alone and " +
		"tell nothing of what they remove. The streams of a database's rules match none of them. Without LEVEL all levels match; without MAXLEN " +
		"about a million entries stay; WITHVALUE takes along the values of strings, of hash fields, and the payloads of jobs, of up to 1024 bytes unless it says otherwise: a longer value is left out.",
	Errors: []string{
		"ERR a database has 128 expiry rules at most: and the name is a new one",
		"ERR MAXLEN must be positive: the bound is below 1",
		"ERR WITHVALUE must not be negative: the bytes are below 0",
		"ERR EXPIRY RULE SET denied due to insufficient ACL permissions.: the user may not read all keys, of which a rule tells",
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
	errRuleMaxLen = ReplyError("ERR MAXLEN must be positive")
	errRuleBytes  = ReplyError("ERR WITHVALUE must not be negative")
	// A rule copies names, items and values of keys that are no arguments.
	errRuleDenied = ReplyError("ERR EXPIRY RULE SET denied due to insufficient ACL permissions.")

	// ruleMaxLen is how many entries a rule's stream keeps by default: about a
	// hundred megabytes.
	ruleMaxLen = 1_000_000
	// ruleMaxValue is the longest value that goes along by default.
	ruleMaxValue = 1024
)

func runExpiryRule(c *Ctx) error {
	args := c.Args[3:]
	switch verb := c.Args[2]; {
	case EqualFold(verb, "SET"):
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
	case EqualFold(verb, "DEL") && len(args) == 1:
		c.Out.Int(b2i(c.Tx.DelRule(string(args[0]))))
	case EqualFold(verb, "LIST") && len(args) == 0:
		c.listRules(c.Tx.Rules())
	default:
		return ErrSyntax
	}
	return nil
}

// parseRule reads what follows EXPIRY RULE SET.
func parseRule(args [][]byte) (r engine.Rule, err error) {
	r = engine.Rule{MaxLen: ruleMaxLen, MaxValue: -1}
	if len(args) < 5 || !EqualFold(args[1], "MATCH") {
		return r, ErrSyntax
	}
	r.Name, r.Match = string(args[0]), string(args[2])
	if args = args[3:]; EqualFold(args[0], "LEVEL") {
		if r.Levels, args = parseLevels(args[1:]); r.Levels == 0 {
			return r, ErrSyntax
		}
	} else {
		r.Levels = engine.AllLevels
	}
	if len(args) < 2 || !EqualFold(args[0], "TO") {
		return r, ErrSyntax
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
		case EqualFold(word, "MAXLEN"):
			if r.Exact = len(args) == 0 || string(args[0]) != "~"; !r.Exact {
				args = args[1:]
			}
			if len(args) == 0 {
				return ErrSyntax
			}
			n, ok := resp.ParseInt(args[0])
			switch {
			case !ok:
				return ErrNotInteger
			case n < 1:
				return errRuleMaxLen
			}
			r.MaxLen, args = n, args[1:]
		case EqualFold(word, "WITHVALUE"):
			r.MaxValue = ruleMaxValue
			if len(args) == 0 || EqualFold(args[0], "MAXLEN") {
				continue
			}
			n, ok := resp.ParseInt(args[0])
			switch {
			case !ok:
				return ErrNotInteger
			case n < 0:
				return errRuleBytes
			}
			r.MaxValue, args = countTo(n), args[1:]
		default:
			return ErrSyntax
		}
	}
	return nil
}

// listRules replies rules and what has become of them.
func (c *Ctx) listRules(rules []engine.RuleState) {
	c.Out.Array(len(rules))
	for i := range rules {
		r := &rules[i]
		c.Out.Map(12)
		c.putText("name", r.Name)
		c.putText("match", r.Match)
		c.Out.BulkString("levels")
		l, n := c.Out.ArrayLater(), 0
		for level := range engine.Levels {
			if r.Levels.Has(level) {
				c.Out.BulkString(level.String())
				n++
			}
		}
		c.Out.Patch(l, n)
		c.putText("stream", r.Stream)
		c.putInt("maxlen", r.MaxLen)
		c.putInt("approximate", b2i(!r.Exact))
		c.putInt("maxbytes", int64(r.MaxValue))
		c.putInt("fired", r.Fired)
		c.putInt("missed", r.Missed)
		c.putInt("suspended", r.Suspended)
		c.putInt("since", r.Since)
		c.putText("why", r.Why)
	}
}

// putText and putInt reply an entry of a map.
func (c *Ctx) putText(name, value string) {
	c.Out.BulkString(name)
	c.Out.BulkString(value)
}

func (c *Ctx) putInt(name string, n int64) {
	c.Out.BulkString(name)
	c.Out.Int(n)
}
