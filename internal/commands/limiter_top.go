package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
)

var specRLTop = command.Spec{
	Name: "rl.top", Group: command.GroupLimiter, Since: "0.7.0", Complexity: "O(128 x S), where S is the number of shards.",
	Summary: "Returns the limiters that have denied most requests lately.",
	Flags:   command.ReadOnly | command.SelfLock,
	Lacks:   command.NotWith(command.ReadOnly, 1, "RESET"),
	FanOut:  command.FanOutOne,
	Args:    []command.Arg{command.Opt(command.TokenArg("COUNT", command.Int("count"))), command.Opt(command.Token("RESET"))},
	Tips:    []string{"nondeterministic_output", "request_policy:all_shards"},
	Replies: "An array of rows, most denials first. A row has five elements:\n\n" +
		"1. The key.\n" +
		"2. denied, the number of requests that were denied. It is never too low.\n" +
		"3. allowed, the number of requests that were allowed.\n" +
		"4. since, the denial since which the server counts the key, in ms since 1970.\n" +
		"5. error, by which denied may be too high.\n\n" +
		"COUNT is 10 by default. RESET removes the keys of the database that the user may read from the statistic after the reply.\n\n" +
		"The server keeps 128 keys for each shard and database, halves all counts each minute, and drops keys that deny no more. It counts " +
		"denials, and the allowed requests of the keys that it has.\n\n" +
		"* The statistic is neither in files nor on replicas.\n" +
		"* RL.RESET removes its key from it, CONFIG RESETSTAT and FLUSHDB empty it.\n" +
		"* It leaves out keys of more than 1,024 bytes, and the reply keys that the user may not read.",
	Errors: []string{"ERR COUNT must be between 1 and 10000: the number is outside of that"},
	Examples: `
> RL.TAKE ann 1 60000
1) (integer) 1
2) (integer) 1
3) (integer) 0
4) (integer) -1
5) (integer) 60000000
> RL.TOP
(empty array)
> RL.TAKE ann 1 60000
1) (integer) 0
2) (integer) 1
3) (integer) 0
4) (integer) 60000000
5) (integer) 60000000
> RL.TOP
1) 1) "ann"
   2) (integer) 1
   3) (integer) 0
   4) (integer) 1700000000000
   5) (integer) 0
`,
	Run: runRLTop,
}

const (
	errTopCount = command.ReplyError("ERR COUNT must be between 1 and 10000")

	maxTop = 10_000
)

func runRLTop(c *command.Ctx) error {
	count, reset := int64(someRows), false
	for args := c.Args[1:]; len(args) > 0; {
		switch {
		case command.EqualFold(args[0], "RESET"):
			reset = true
			args = args[1:]
		case command.EqualFold(args[0], "COUNT") && len(args) > 1:
			n, ok := numeral.ParseInt(args[1])
			switch {
			case !ok:
				return command.ErrNotInteger
			case n < 1 || n > maxTop:
				return errTopCount
			}
			count = n
			args = args[2:]
		default:
			return command.ErrSyntax
		}
	}

	mayRead := c.Host.MayReadKeys(c)
	rows := c.Tx.Throttled(int(count), mayRead)
	if reset {
		c.Tx.ForgetThrottled(mayRead)
	}

	c.Out.Array(len(rows))
	for i := range rows {
		x := &rows[i]
		c.Out.Array(5)
		c.Out.Bulk(x.Key)
		c.Out.Int(x.Denied)
		c.Out.Int(x.Allowed)
		c.Out.Int(x.Since)
		c.Out.Int(x.Error)
	}
	return nil
}
