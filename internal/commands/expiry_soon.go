package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/internal/numeral"
)

var specExpirySoon = command.Spec{
	Name: "expiry|soon", Group: command.GroupExpiry, Since: "0.7.0",
	Complexity: "O(S + N log N) where N is COUNT and S the number of entries in the timing wheels' slots that the " +
		"rows are in; with MATCH or LEVEL, of all entries before the last row, at most 65,536.",
	Summary: "Returns the keys and items that expire next.",
	Flags:   command.ReadOnly | command.SelfLock | command.Slow,
	FanOut:  command.FanOutOne,
	Args: []command.Arg{command.Opt(command.TokenArg("COUNT", command.Int("count"))),
		command.Opt(command.TokenArg("WITHIN", command.Int("milliseconds"))),
		command.Opt(command.TokenArg("MATCH", command.Pattern("pattern"))),
		command.Opt(command.Block("LEVEL",
			command.Repeat(command.OneOf("level", command.Token("KEY"), command.Token("FIELD"), command.Token("MEMBER"),
				command.Token("ELEMENT"), command.Token("LEASE")))))},
	Tips: []string{"nondeterministic_output", "request_policy:all_shards"},
	Replies: "An array of whole and the rows, earliest first. A row is the deadline in ms since 1970, the level (key, field, member, " +
		"element or " +
		"lease), the key, and the item.\n\n" +
		"* The item of a key is nil, that of a lease is the name of the holder or the id of the job.\n" +
		"* COUNT is 10 by default, at most 1,000; WITHIN leaves out later deadlines.\n" +
		"* The reply leaves out expired keys and items, items whose key expires first, and keys that the user may not read.\n" +
		"* whole is 1 if these are the next ones, and 0 if the command stopped before it had seen all that might be earlier. It looks at " +
		"65,536 entries in all with MATCH or LEVEL, or if the user may not read all keys; otherwise at 65,536 entries of each shard.",
	Errors: []string{
		"ERR COUNT must be between 1 and 1000: the number is outside of that",
		"ERR WITHIN must be between 1 and 3153600000000: the span is not positive, or longer than a hundred years",
	},
	Examples: `
> SET session:1 ann PX 1500
OK
> HSET h f v g w
(integer) 2
> HPEXPIRE h 500 FIELDS 1 f
1) (integer) 1
> EXPIRY SOON
1) (integer) 1
2) 1) 1) (integer) 1700000000500
      2) "field"
      3) "h"
      4) "f"
   2) 1) (integer) 1700000001500
      2) "key"
      3) "session:1"
      4) (nil)
> EXPIRY SOON COUNT 1 MATCH session:* LEVEL KEY
1) (integer) 1
2) 1) 1) (integer) 1700000001500
      2) "key"
      3) "session:1"
      4) (nil)
`,
	Run: runExpirySoon,
}

const (
	errSoonCount = command.ReplyError("ERR COUNT must be between 1 and 1000")
	errWithin    = command.ReplyError("ERR WITHIN must be between 1 and 3153600000000")

	someRows = 10
)

func runExpirySoon(c *command.Ctx) error {
	o := engine.SoonOptions{Count: someRows}
	for args := c.Args[2:]; len(args) > 0; {
		if command.EqualFold(args[0], "LEVEL") {
			n := len(args)
			if o.Levels, args = parseLevels(args[1:], engine.LevelLease); len(args) == n-1 {
				return command.ErrSyntax
			}
			continue
		}
		if len(args) < 2 {
			return command.ErrSyntax
		}
		n, ok := numeral.ParseInt(args[1])
		switch {
		case command.EqualFold(args[0], "MATCH"):
			prepared := glob.New(args[1])
			o.Match, ok = prepared.Match, true
		case command.EqualFold(args[0], "COUNT"):
			if o.Count = command.CountTo(n); ok && (n < 1 || n > engine.MaxSoon) {
				return errSoonCount
			}
		case command.EqualFold(args[0], "WITHIN"):
			if o.Within = n; ok && (n < 1 || n > maxHorizon) {
				return errWithin
			}
		default:
			return command.ErrSyntax
		}
		if !ok {
			return command.ErrNotInteger
		}
		args = args[2:]
	}
	o.Match = bothMatch(o.Match, c.Host.MayReadKeys(c))

	rows, whole := c.Tx.Soon(o)

	c.Out.Array(2)
	c.Out.Int(command.BoolToInt(whole))
	c.Out.Array(len(rows))
	for i := range rows {
		x := &rows[i]
		c.Out.Array(4)
		c.Out.Int(x.Deadline)
		c.Out.BulkString(x.Level.String())
		c.Out.Bulk(x.Key)
		bulkOrNull(c, x.Item, x.Level != engine.LevelKey)
	}
	return nil
}

// bothMatch returns a filter that accepts a name if both filters do; nil is a filter that accepts
// all names.
func bothMatch(a, b func([]byte) bool) func([]byte) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(key []byte) bool { return a(key) && b(key) }
}
