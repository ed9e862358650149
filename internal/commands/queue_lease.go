package commands

import (
	"math"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

// These commands are for the consumer that has a lease on a job. Other clients get an error.

const jobTokenError = "ERR value is not an integer or out of range: of the token"

var specDQAck = command.Spec{
	Name: "dq.ack", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(log N) where N is the number of jobs in the queue.",
	Summary: "Acknowledges a job of a delay queue: it is done, and removed.",
	Flags:   command.Write | command.Fast | command.Timed | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete), command.Str("id"), command.Int("token")},
	Replies: "1 if the job was removed; 0 if the lease is over, or belongs to another consumer, or there is no such job.",
	Errors:  []string{jobTokenError},
	Examples: `
> DQ.ADD q a job
"a"
> DQ.POP q LEASE 100
1) 1) "a"
   2) "job"
   3) (integer) 1
   4) (integer) $token
   5) (integer) $due
> DQ.ACK q a 1
(integer) 0
> DQ.ACK q a $token
(integer) 1
> EXISTS q
(integer) 0
`,
	Run: runDQAck,
}

func runDQAck(c *command.Ctx) error {
	token, ok := numeral.ParseInt(c.Args[3])
	if !ok {
		return command.ErrNotInteger
	}
	done, err := c.Tx.QueueAck(c.Args[1], c.Args[2], token)
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(done))
	return nil
}

var specDQNack = command.Spec{
	Name: "dq.nack", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(log N) where N is the number of jobs in the queue.",
	Summary: "Returns a job to a delay queue before its lease is over, to be delivered again.",
	Flags:   command.Write | command.Fast | command.Timed | command.Blind,
	Args: []command.Arg{command.Key("key", command.Access|command.Update), command.Str("id"), command.Int("token"),
		command.Opt(command.TokenArg("DELAY", command.Int("delay")))},
	Replies: "1 on success: the job is due again DELAY ms from now, by default at once, after the jobs that were due " +
		"before; or, if it was delivered as often as DQ.CONFIG's MAXDELIVERIES, it is a dead letter now. " +
		"0 if the lease is over, or belongs to another consumer, or there is no such job.",
	Errors: []string{jobTokenError, "ERR the time must be in milliseconds and not negative: of DELAY"},
	Examples: `
> DQ.ADD q a job
"a"
> DQ.POP q
1) 1) "a"
   2) "job"
   3) (integer) 1
   4) (integer) $token
   5) (integer) $due
> DQ.NACK q a $token DELAY 500
(integer) 1
> DQ.POP q
(nil)
~ 500ms
> DQ.POP q
1) 1) "a"
   2) "job"
   3) (integer) 2
   4) (integer) $second > $token
   5) (integer) $again > $due
`,
	Run: runDQNack,
}

func runDQNack(c *command.Ctx) (err error) {
	token, ok := numeral.ParseInt(c.Args[3])
	if !ok {
		return command.ErrNotInteger
	}
	delay := int64(0)
	if rest := c.Args[4:]; len(rest) > 0 {
		if len(rest) != 2 || !command.EqualFold(rest[0], "DELAY") {
			return command.ErrSyntax
		}
		if delay, err = parseJobTime(rest[1]); err != nil {
			return err
		}
	}
	done, err := c.Tx.QueueNack(c.Args[1], c.Args[2], token, delay)
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(done))
	return nil
}

var specDQExtend = command.Spec{
	Name: "dq.extend", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(log N) where N is the number of jobs in the queue.",
	Summary: "Extends the lease of a job of a delay queue.",
	Flags:   command.Write | command.Fast | command.Timed | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Access|command.Update), command.Str("id"), command.Int("token"), command.Int("lease")},
	Replies: "1 on success: the lease ends that many ms from now, which may be earlier than before. 0 if the lease is over, or " +
		"belongs to another " +
		"consumer, or there is no such job.",
	Errors: []string{jobTokenError, "ERR the time must be in milliseconds and at least 1: of the lease"},
	Examples: `
> DQ.ADD q a job
"a"
> DQ.POP q LEASE 1000
1) 1) "a"
   2) "job"
   3) (integer) 1
   4) (integer) $token
   5) (integer) $due
~ 1000ms
> DQ.EXTEND q a $token 1000
(integer) 1
~ 1000ms
> DQ.ACK q a $token
(integer) 1
`,
	Run: runDQExtend,
}

func runDQExtend(c *command.Ctx) error {
	token, ok := numeral.ParseInt(c.Args[3])
	if !ok {
		return command.ErrNotInteger
	}
	lease, err := parseJobSpan(c.Args[4])
	if err != nil {
		return err
	}
	done, err := c.Tx.QueueExtend(c.Args[1], c.Args[2], token, lease)
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(done))
	return nil
}

var specDQCancel = command.Spec{
	Name: "dq.cancel", Group: command.GroupQueue, Since: "0.4.0",
	Complexity: "O(M*log N) where N is the number of jobs in the queue and M the number of ids.",
	Summary:    "Removes jobs from a delay queue, in any state.",
	Flags:      command.Write | command.Timed | command.Blind,
	Args:       []command.Arg{command.Key("key", command.Delete), command.Many("id")},
	Replies: "The number of jobs that existed. A consumer that has a lease on one loses it. UNIQUE still refuses the ids " +
		"and payloads that it refused.",
	Examples: `
> DQ.ADD q a job DELAY 60000
"a"
> DQ.CANCEL q a b
(integer) 1
> DQ.PEEK q
(empty array)
`,
	Run: runDQCancel,
}

func runDQCancel(c *command.Ctx) error {
	ids := c.Args[2:]
	if err := longFields(c, len(ids)); err != nil {
		return err
	}
	n, err := c.Tx.QueueCancel(c.Args[1], ids)
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specDQMove = command.Spec{
	Name: "dq.move", Group: command.GroupQueue, Since: "0.7.0",
	Complexity: "O(M*log N) where N is the number of jobs in the larger queue and M the number of jobs that are moved.",
	Summary:    "Moves jobs that wait from one delay queue to another, such as dead letters back to their queue.",
	Flags:      command.Write | command.DenyOOM | command.Timed | command.Blind,
	Args: []command.Arg{command.Key("source", command.Access|command.Delete), command.Key("destination", command.Insert),
		command.OneOf("jobs", command.TokenArg("COUNT", command.Int("count")), command.Block("IDS", command.Count("numids"), command.Many("id"))),
		command.Opt(command.TokenArg("DELAY", command.Int("delay")))},
	Replies: "The number of jobs that were moved: COUNT takes the first ones in the order of DQ.PEEK, IDS those with these ids.\n\n" +
		"* They keep their ids, payloads, priorities and EXPIRE, and count as not delivered.\n" +
		"* They are due DELAY ms from now; without DELAY, at the time at which they were due.\n" +
		"* Jobs stay in the source that are leased, whose id the destination has, or for which it has no room (MAXLEN).\n" +
		"* Both keys must have the same hash tag.",
	Errors: []string{"ERR DQ.MOVE needs another key with the hash tag of the source, as in {mail} and {mail}:dead: the key has " +
		"another tag, or is the source",
		"ERR the number must be at least 1: of COUNT or IDS", "FULL the queue holds as many jobs as MAXLEN allows: not one job could be moved"},
	Examples: `
> DQ.ADD {mail}:dead a job
"a"
> DQ.ADD {mail}:dead b job
"b"
> DQ.MOVE {mail}:dead {mail} IDS 2 b c
(integer) 1
> DQ.MOVE {mail}:dead {mail} COUNT 10 DELAY 60000
(integer) 1
> EXISTS {mail}:dead
(integer) 0
> DQ.PEEK {mail} COUNT 9
1) 1) "b"
   2) "job"
   3) (integer) 0
   4) "ready"
   5) (integer) $due
2) 1) "a"
   2) "job"
   3) (integer) 0
   4) "delayed"
   5) (integer) $then > $due
`,
	Run: runDQMove,
}

func runDQMove(c *command.Ctx) error {
	ids, count, delay, err := parseDQMove(c.Args[3:])
	if err != nil {
		return err
	}
	if ids != nil {
		err = longFields(c, len(ids))
	} else {
		err = longQueue(c, c.Args[1], count)
	}
	if err != nil {
		return err
	}
	n, err := c.Tx.QueueMove(c.Args[1], c.Args[2], ids, count, delay)
	if err != nil {
		return queueError(err)
	}
	c.Out.Int(int64(n))
	return nil
}

// parseDQMove reads <COUNT n | IDS n id [id ...]> [DELAY ms], in any order.
func parseDQMove(args [][]byte) (ids [][]byte, count int, delay int64, err error) {
	delay = engine.KeepDue
	for len(args) > 0 {
		if len(args) < 2 {
			return nil, 0, 0, command.ErrSyntax
		}
		word, value := args[0], args[1]
		args = args[2:]
		switch {
		case command.EqualFold(word, "DELAY") && delay == engine.KeepDue:
			if delay, err = parseJobTime(value); err != nil {
				return nil, 0, 0, err
			}
		case command.EqualFold(word, "COUNT") && count == 0:
			n, err := parseJobCount(value)
			if err != nil {
				return nil, 0, 0, err
			}
			count = int(min(n, math.MaxInt32))
		case command.EqualFold(word, "IDS") && count == 0:
			n, err := parseJobCount(value)
			if err != nil {
				return nil, 0, 0, err
			}
			if n > int64(len(args)) {
				return nil, 0, 0, command.ErrSyntax
			}
			count, ids, args = int(n), args[:n], args[n:]
		default:
			return nil, 0, 0, command.ErrSyntax
		}
	}
	if count == 0 {
		return nil, 0, 0, command.ErrSyntax
	}
	return ids, count, delay, nil
}
