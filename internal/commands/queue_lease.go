package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/resp"
)

// These commands are for the consumer that has a lease on a job; they refuse all others.

const jobTokenError = "ERR value is not an integer or out of range: of the token"

var specDQAck = command.Spec{
	Name: "dq.ack", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(log N) where N is the number of jobs in the queue.",
	Summary: "Acknowledges a job of a delay queue: it is done, and removed.",
	Flags:   command.Write | command.Fast | command.Timed,
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
	token, ok := resp.ParseInt(c.Args[3])
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
	Flags:   command.Write | command.Fast | command.Timed,
	Args: []command.Arg{command.Key("key", command.Access|command.Update), command.Str("id"), command.Int("token"),
		command.Opt(command.TokenArg("DELAY", command.Int("delay")))},
	Replies: "1 on success: the job is due again DELAY ms from now, by default at once, after the jobs that were due before; or, if it was delivered " +
		"as often as DQ.CONFIG's MAXDELIVERIES, it is a dead letter now. " +
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
	token, ok := resp.ParseInt(c.Args[3])
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
	Flags:   command.Write | command.Fast | command.Timed,
	Args:    []command.Arg{command.Key("key", command.Access|command.Update), command.Str("id"), command.Int("token"), command.Int("lease")},
	Replies: "1 on success: the lease ends so many ms from now, which may be earlier than before. 0 if the lease is over, or belongs to another " +
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
	token, ok := resp.ParseInt(c.Args[3])
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
	Name: "dq.cancel", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(M*log N) where N is the number of jobs in the queue and M the number of ids.",
	Summary: "Removes jobs from a delay queue, in any state.",
	Flags:   command.Write | command.Timed,
	Args:    []command.Arg{command.Key("key", command.Delete), command.Many("id")},
	Replies: "The number of jobs that existed. A consumer that has a lease on one loses it. UNIQUE still refuses the ids and payloads that it refused.",
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
