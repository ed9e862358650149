package commands

import (
	"math"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/resp"
)

var specDQPeek = command.Spec{
	Name: "dq.peek", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(log N + M) where N is the number of jobs in the queue and M how many are returned.",
	Summary: "Shows the next jobs of a delay queue and changes nothing.",
	Flags:   command.ReadOnly,
	Args:    []command.Arg{command.Key("key", command.Read), command.Opt(command.TokenArg("COUNT", command.Int("count")))},
	Replies: "An array of at most COUNT jobs, by default one: jobs that are due in the order of DQ.POP, then delayed ones by their time. Each is an " +
		"array of its id, its payload, the number of deliveries, `ready` or `delayed`, " +
		"and the time at which it is due, in ms since 1970. Leased jobs are not shown.",
	Errors: []string{"ERR the number must be at least 1: of COUNT"},
	Examples: `
> DQ.ADD q later b DELAY 100
"later"
> DQ.ADD q now a
"now"
> DQ.PEEK q COUNT 9
1) 1) "now"
   2) "a"
   3) (integer) 0
   4) "ready"
   5) (integer) $due
2) 1) "later"
   2) "b"
   3) (integer) 0
   4) "delayed"
   5) (integer) $then > $due
`,
	Run: runDQPeek,
}

func runDQPeek(c *command.Ctx) error {
	count := int64(1)
	if rest := c.Args[2:]; len(rest) > 0 {
		if len(rest) != 2 || !command.EqualFold(rest[0], "COUNT") {
			return command.ErrSyntax
		}
		var err error
		if count, err = parseJobCount(rest[1]); err != nil {
			return err
		}
	}
	if err := longQueue(c, c.Args[1], int(min(count, math.MaxInt32))); err != nil {
		return err
	}

	l, n := c.Out.ArrayLater(), 0
	err := c.Tx.QueuePeek(c.Args[1], int(min(count, math.MaxInt32)), func(j engine.Job) {
		n++
		c.Out.Array(5)
		c.Out.Bulk(j.ID)
		c.Out.Bulk(j.Payload)
		c.Out.Int(j.Deliveries)
		if j.Due <= c.Tx.Millis() {
			c.Out.BulkString("ready")
		} else {
			c.Out.BulkString("delayed")
		}
		c.Out.Int(j.Due)
	})
	c.Out.Patch(l, n)
	return err
}

var specDQInfo = command.Spec{
	Name: "dq.info", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(log N) where N is the number of jobs in the queue.",
	Summary: "Describes a delay queue.",
	Flags:   command.ReadOnly | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Replies: "A map: the numbers of jobs that are `delayed`, `ready` and `leased`; `unique`, the number of ids and payloads that UNIQUE refuses; " +
		"`oldest-due`, the time at which the oldest ready job was due, and `lateness`, how many ms ago that was; " +
		"`next-due`, the time at which the next delayed job is due (nil if there is none); `dead-letters`, the number of jobs that became dead letters, " +
		"`dropped`, the number that were delivered too often without a DEADLETTER, and `expired`, the number that no consumer took in time; " +
		"`line`, the waiters of DQ.POP in FIFO order: the client's id, the number of jobs that it wants, and for how many ms it has waited; " +
		"and `max-deliveries`, `dead-letter` and `max-len` as in the reply of DQ.CONFIG. Times are in ms since 1970.",
	Examples: `
> DQ.ADD q a job DELAY 100
"a"
> DQ.INFO q
 1) "delayed"
 2) (integer) 1
 3) "ready"
 4) (integer) 0
 5) "leased"
 6) (integer) 0
 7) "unique"
 8) (integer) 0
 9) "oldest-due"
10) (nil)
11) "lateness"
12) (nil)
13) "next-due"
14) (integer) $due
15) "dead-letters"
16) (integer) 0
17) "dropped"
18) (integer) 0
19) "expired"
20) (integer) 0
21) "line"
22) (empty array)
23) "max-deliveries"
24) (integer) 0
25) "dead-letter"
26) ""
27) "max-len"
28) (integer) 0
`,
	Run: runDQInfo,
}

func runDQInfo(c *command.Ctx) error {
	line := c.Queue(c.Args[1])
	i, ok, err := c.Tx.QueueInfo(c.Args[1])
	if err != nil {
		return err
	}
	if !ok && len(line) == 0 {
		c.Out.Null()
		return nil
	}
	c.Out.Map(14)
	number := func(name string, n int64) {
		c.Out.BulkString(name)
		c.Out.Int(n)
	}
	instant := func(name string, ms int64, there bool) {
		c.Out.BulkString(name)
		if there {
			c.Out.Int(ms)
		} else {
			c.Out.Null()
		}
	}
	number("delayed", int64(i.Delayed))
	number("ready", int64(i.Ready))
	number("leased", int64(i.Leased))
	number("unique", int64(i.Unique))
	instant("oldest-due", i.Oldest, i.Ready > 0)
	instant("lateness", c.Tx.Millis()-i.Oldest, i.Ready > 0)
	instant("next-due", i.Next, i.Delayed > 0)
	number("dead-letters", i.Dead)
	number("dropped", i.Dropped)
	number("expired", i.Expired)
	c.Out.BulkString("line")
	c.Out.Array(len(line))
	for _, w := range line {
		t, _ := parseDQPop(w.Args)
		c.Out.Array(3)
		c.Out.Int(w.Client)
		c.Out.Int(int64(t.count))
		c.Out.Int((c.Now() - w.Since) / 1000)
	}
	queueConfig(c, &i.QueueConfig)
	return nil
}

// queueConfig writes a configuration as pairs of a map.
func queueConfig(c *command.Ctx, q *engine.QueueConfig) {
	c.Out.BulkString("max-deliveries")
	c.Out.Int(q.MaxDeliveries)
	c.Out.BulkString("dead-letter")
	c.Out.Bulk(q.DeadLetter)
	c.Out.BulkString("max-len")
	c.Out.Int(q.MaxLen)
}

var specDQConfig = command.Spec{
	Name: "dq.config", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(1)",
	Summary: "Sets or returns the limits of a delay queue.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Timed,
	Args: []command.Arg{command.Key("key", command.Access|command.Update), command.Opt(command.TokenArg("MAXDELIVERIES", command.Int("maxdeliveries"))),
		command.Opt(command.TokenArg("DEADLETTER", command.Key("deadletter", command.Insert))),
		command.Opt(command.TokenArg("MAXLEN", command.Int("maxlen")))},
	Replies: "OK; without options a map of `max-deliveries`, `dead-letter` and `max-len`. MAXDELIVERIES: a job that was delivered so often, and whose " +
		"last lease is over or which a consumer returned, is not delivered again: " +
		"it becomes a job of the queue DEADLETTER, due at once, with its id (and, if that is taken, the time after it), payload, priority and " +
		"deliveries; without DEADLETTER the queue drops it. " +
		"The move is one step with its cause. If DEADLETTER is full, or not a queue, the job is due again, so that nothing is lost. " +
		"MAXLEN: the number of jobs up to which DQ.ADD adds jobs. 0, or an empty DEADLETTER, removes a limit. " +
		"A queue without jobs is kept while it has limits, or while UNIQUE refuses an id; otherwise it is removed with its last job.",
	Errors: []string{"ERR DEADLETTER must name another key with the queue's hash tag, as in {mail} and {mail}:dead: the key has another tag, or is the queue",
		"ERR value is out of range: MAXDELIVERIES is not 0 to 65535, or MAXLEN negative"},
	Examples: `
> DQ.CONFIG {mail} MAXDELIVERIES 1 DEADLETTER {mail}:dead
OK
> DQ.CONFIG {mail}
1) "max-deliveries"
2) (integer) 1
3) "dead-letter"
4) "{mail}:dead"
5) "max-len"
6) (integer) 0
> DQ.ADD {mail} a job
"a"
> DQ.POP {mail} LEASE 100
1) 1) "a"
   2) "job"
   3) (integer) 1
   4) (integer) $token
   5) (integer) $due
~ 101ms
> DQ.PEEK {mail}:dead
1) 1) "a"
   2) "job"
   3) (integer) 1
   4) "ready"
   5) (integer) $dead > $due
`,
	KeyOptions: &command.KeyOptions{First: command.KeyRef{Pos: 1, Flags: command.Access | command.Update}, From: 2,
		Options: []command.KeyOption{{Word: "DEADLETTER", Args: 1, Key: command.Insert}}, Pairs: true},
	Run: runDQConfig,
}

func runDQConfig(c *command.Ctx) error {
	i, _, err := c.Tx.QueueInfo(c.Args[1])
	if err != nil {
		return err
	}
	q := i.QueueConfig
	if len(c.Args) == 2 {
		c.Out.Map(3)
		queueConfig(c, &q)
		return nil
	}
	if err := parseQueueConfig(&q, c.Args[2:]); err != nil {
		return err
	}

	if err := c.Tx.QueueConfigure(c.Args[1], q); err != nil {
		return queueError(err)
	}
	c.Out.OK()
	return nil
}

// parseQueueConfig reads the options of DQ.CONFIG into a configuration.
func parseQueueConfig(q *engine.QueueConfig, args [][]byte) error {
	for ; len(args) > 0; args = args[2:] {
		if len(args) < 2 {
			return command.ErrSyntax
		}
		n, ok := resp.ParseInt(args[1])
		switch {
		case command.EqualFold(args[0], "DEADLETTER"):
			q.DeadLetter = args[1]
			continue
		case command.EqualFold(args[0], "MAXDELIVERIES"):
			q.MaxDeliveries = n
			if n > engine.MaxDeliveries {
				return command.ErrRange
			}
		case command.EqualFold(args[0], "MAXLEN"):
			q.MaxLen = n
		default:
			return command.ErrSyntax
		}
		if !ok {
			return command.ErrNotInteger
		}
		if n < 0 {
			return command.ErrRange
		}
	}
	return nil
}

var specDQStep = command.Spec{
	Name: "dq.step", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(log N) where N is the number of jobs in the queue.",
	Summary: "Records a change of a delay queue by time or by DQ.POP, in the log. Clients cannot call it.",
	Flags:   command.Write | command.Timed, SysCmd: true,
	Args: []command.Arg{command.Key("key", command.Access|command.Update), command.OneOf("step",
		command.Block("TAKE", command.Str("id"), command.Int("token"), command.Int("until")), command.Block("BACK", command.Str("id"), command.Int("token")),
		command.TokenArg("LAPSE", command.Str("id")), command.TokenArg("FORGET", command.Int("deadline")))},
	Replies: "OK, when a log is replayed. TAKE: a job was leased until a time in ms. BACK: it did not reach its consumer. LAPSE: its lease was over, " +
		"or no consumer took it in time; it is due again, a dead letter, or dropped, as the queue's limits say. " +
		"FORGET: the marks of UNIQUE up to a time are dropped.",
	Errors: []string{"ERR DQ.STEP is what the log says; it cannot be called: the caller is not a replay"},
	Examples: `
> DQ.STEP q LAPSE job
(error) ERR DQ.STEP is what the log says; it cannot be called
`,
	Run: runDQStep,
}

func runDQStep(c *command.Ctx) error {
	if !c.Host.Replaying() {
		return errStep
	}
	key, args := c.Args[1], c.Args[2:]
	step := func(name string, n int) bool { return command.EqualFold(args[0], name) && len(args) == n }
	var numbers [2]int64
	for i := 2; i < len(args) && i < 4; i++ {
		n, ok := resp.ParseInt(args[i])
		if !ok {
			return command.ErrNotInteger
		}
		numbers[i-2] = n
	}

	var err error
	switch {
	case step("TAKE", 4):
		if err = c.Tx.CheckToken(numbers[0]); err != nil {
			return err
		}
		_, err = c.Tx.QueueTook(key, args[1], numbers[0], numbers[1])
	case step("BACK", 3):
		_, err = c.Tx.QueueReturn(key, args[1], numbers[0])
	case step("LAPSE", 2):
		_, err = c.Tx.QueueLapsed(key, args[1])
	case step("FORGET", 2):
		n, _ := resp.ParseInt(args[1])
		_, err = c.Tx.QueueForgot(key, n)
	default:
		err = command.ErrSyntax
	}
	if err == nil {
		c.Out.OK()
	}
	return err
}
