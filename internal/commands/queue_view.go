package commands

import (
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var specDQPeek = command.Spec{
	Name: "dq.peek", Group: command.GroupQueue, Since: "0.4.0",
	Complexity: "O(log N + M) where N is the number of jobs in the queue and M how many are returned. " +
		"Leased jobs also cost O(1) for each waiting job that expires before their leases end.",
	Summary: "Shows jobs of a delay queue and changes nothing.",
	Flags:   command.ReadOnly | command.Blind,
	Args: []command.Arg{command.Key("key", command.Read),
		command.Opt(command.TokenArg("STATE", command.OneOf("state", command.Token("READY"), command.Token("DELAYED"), command.Token("LEASED"),
			command.Token("ALL")))),
		command.Opt(command.TokenArg("FROM", command.Str("id"))), command.Opt(command.TokenArg("COUNT", command.Int("count")))},
	Replies: "An array of at most COUNT jobs, by default one: jobs that are due in the order of DQ.POP, then delayed ones by their " +
		"time. Each is " +
		"an array of its id, its payload, the number of deliveries, `ready` or `delayed`, and the time at which it is due, in ms since 1970. " +
		"A leased job also has its token, and the time in ms at which its lease ends.\n\n" +
		"* Without STATE leased jobs are not shown.\n" +
		"* STATE READY and DELAYED show the jobs of that state alone.\n" +
		"* STATE LEASED shows those that a consumer has, by the end of their leases.\n" +
		"* STATE ALL shows first the jobs that wait, then the leased ones.\n" +
		"* FROM shows the jobs behind the one with this id, so that a client reads page by page.",
	Errors: []string{"ERR the number must be at least 1: of COUNT",
		"ERR the queue has no job with the id: FROM names a job that is no longer there"},
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
> DQ.POP q LEASE 1000
1) 1) "now"
   2) "a"
   3) (integer) 1
   4) (integer) $token
   5) (integer) $due
> DQ.PEEK q STATE LEASED
1) 1) "now"
   2) "a"
   3) (integer) 1
   4) "leased"
   5) (integer) $due
   6) (integer) $token
   7) (integer) $until > $due
`,
	Run: runDQPeek,
}

// jobStates are the words of STATE.
var jobStates = map[string]engine.JobState{"READY": engine.JobsReady, "DELAYED": engine.JobsDelayed, "LEASED": engine.JobsLeased,
	"ALL": engine.JobsAll}

// parseDQPeek reads the options of DQ.PEEK.
func parseDQPeek(args [][]byte) (p engine.JobPage, err error) {
	count := int64(1)
	for ; len(args) > 0; args = args[2:] {
		if len(args) < 2 {
			return p, command.ErrSyntax
		}
		switch {
		case command.EqualFold(args[0], "COUNT"):
			if count, err = parseJobCount(args[1]); err != nil {
				return p, err
			}
		case command.EqualFold(args[0], "FROM"):
			p.After = args[1]
		case command.EqualFold(args[0], "STATE"):
			state, ok := jobStates[strings.ToUpper(string(args[1]))]
			if !ok {
				return p, command.ErrSyntax
			}
			p.State = state
		default:
			return p, command.ErrSyntax
		}
	}
	p.Count = int(min(count, math.MaxInt32))
	return p, nil
}

// jobState returns the state of a job as replies name it.
func jobState(c *command.Ctx, j *engine.Job) string {
	switch {
	case j.Leased:
		return "leased"
	case j.Due <= c.Tx.Millis():
		return "ready"
	}
	return "delayed"
}

func runDQPeek(c *command.Ctx) error {
	p, err := parseDQPeek(c.Args[2:])
	if err != nil {
		return err
	}
	if err := longQueue(c, c.Args[1], p.Count); err != nil {
		return err
	}

	l, n := c.Out.ArrayLater(), 0
	err = c.Tx.QueuePeek(c.Args[1], p, func(j engine.Job) {
		n++
		if j.Leased {
			c.Out.Array(7)
		} else {
			c.Out.Array(5)
		}
		c.Out.Bulk(j.ID)
		c.Out.Bulk(j.Payload)
		c.Out.Int(j.Deliveries)
		c.Out.BulkString(jobState(c, &j))
		c.Out.Int(j.Due)
		if j.Leased {
			c.Out.Int(j.Token)
			c.Out.Int(j.Until)
		}
	})
	c.Out.Patch(l, n)
	return queueError(err)
}

var specDQGet = command.Spec{
	Name: "dq.get", Group: command.GroupQueue, Since: "0.7.0", Complexity: "O(1)",
	Summary: "Describes one job of a delay queue.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read), command.Str("id")},
	Replies: "A map: `id`, `payload`, `state` (`ready`, `delayed` or `leased`), `priority`, `deliveries`, `due`, the time at which the " +
		"job is or was due, " +
		"`expires`, the last time at which a consumer can take it (nil if it waits for ever), and of a leased job `token` and `until`, " +
		"the end of its lease (else nil). Times are in ms since 1970. nil if the queue has no such job.",
	Examples: `
> DQ.ADD q a job PRIORITY 3
"a"
> DQ.GET q a
 1) "id"
 2) "a"
 3) "payload"
 4) "job"
 5) "state"
 6) "ready"
 7) "priority"
 8) (integer) 3
 9) "deliveries"
10) (integer) 0
11) "due"
12) (integer) $due
13) "expires"
14) (nil)
15) "token"
16) (nil)
17) "until"
18) (nil)
> DQ.GET q b
(nil)
`,
	Run: runDQGet,
}

func runDQGet(c *command.Ctx) error {
	j, ok, err := c.Tx.QueueGet(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	if !ok {
		c.Out.Null()
		return nil
	}
	number := func(name string, n int64, there bool) {
		c.Out.BulkString(name)
		if there {
			c.Out.Int(n)
		} else {
			c.Out.Null()
		}
	}
	c.Out.Map(9)
	c.Out.BulkString("id")
	c.Out.Bulk(j.ID)
	c.Out.BulkString("payload")
	c.Out.Bulk(j.Payload)
	c.Out.BulkString("state")
	c.Out.BulkString(jobState(c, &j))
	number("priority", int64(j.Priority), true)
	number("deliveries", j.Deliveries, true)
	number("due", j.Due, true)
	number("expires", j.Expires(), j.Expire != 0 && !j.Leased)
	number("token", j.Token, j.Leased)
	number("until", j.Until, j.Leased)
	return nil
}

var specDQInfo = command.Spec{
	Name: "dq.info", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(log N) where N is the number of jobs in the queue.",
	Summary: "Describes a delay queue.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Replies: "A map, with times in ms since 1970:\n\n" +
		"* `delayed`, `ready` and `leased`: the numbers of such jobs.\n" +
		"* `unique`: the number of ids and payloads that UNIQUE refuses.\n" +
		"* `oldest-due`: the time at which the oldest ready job was due; `lateness`: how many ms ago that was.\n" +
		"* `next-due`: the time at which the next delayed job is due, nil if there is none.\n" +
		"* `dead-letters`: the number of jobs that became dead letters.\n" +
		"* `dropped`: the number that were delivered too often without a DEADLETTER.\n" +
		"* `expired`: the number that no consumer took in time.\n" +
		"* `line`: the waiters of DQ.POP in FIFO order: the client's id, the number of jobs that it wants, and the ms that it has waited.\n" +
		"* `max-deliveries`, `dead-letter`, `max-len`, `paused`, `paused-until` and `deliver`: as in the reply of DQ.CONFIG.\n" +
		"* `schedules`: the number of schedules; `next-schedule`: the time of the next occurrence, nil if there is none.\n" +
		"* `deliver-error`: the reason for which the stream of DELIVER takes no jobs at present, nil if it does.",
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
29) "paused"
30) (integer) 0
31) "paused-until"
32) (nil)
33) "deliver"
34) ""
35) "schedules"
36) (integer) 0
37) "next-schedule"
38) (nil)
39) "deliver-error"
40) (nil)
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
	c.Out.Map(20)
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
	number("schedules", int64(i.Schedules))
	instant("next-schedule", i.NextSchedule, i.Schedules > 0)
	c.Out.BulkString("deliver-error")
	if i.Suspended == "" {
		c.Out.Null()
	} else {
		c.Out.BulkString(i.Suspended)
	}
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
	c.Out.BulkString("paused")
	c.Out.Int(command.BoolToInt(q.PausedUntil != 0))
	c.Out.BulkString("paused-until")
	if q.PausedUntil == 0 || q.PausedUntil == engine.PausedForGood {
		c.Out.Null()
	} else {
		c.Out.Int(q.PausedUntil)
	}
	c.Out.BulkString("deliver")
	c.Out.Bulk(q.Deliver)
}

var specDQConfig = command.Spec{
	Name: "dq.config", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(1)",
	Summary: "Sets or returns the limits of a delay queue.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Timed | command.Blind,
	Lacks:   checksMemoryItself,
	Args: []command.Arg{command.Key("key", command.Access|command.Update),
		command.Opt(command.TokenArg("MAXDELIVERIES", command.Int("maxdeliveries"))),
		command.Opt(command.TokenArg("DEADLETTER", command.Key("deadletter", command.Insert))),
		command.Opt(command.TokenArg("MAXLEN", command.Int("maxlen"))), command.Opt(command.TokenArg("PAUSED", command.Str("paused"))),
		command.Opt(command.TokenArg("DELIVER", command.Key("stream", command.Insert)))},
	Replies: "OK. Without options, a map of `max-deliveries`, `dead-letter`, `max-len`, `paused` (1 or 0), `paused-until` (nil without " +
		"an end) and " +
		"`deliver` (empty without a stream).\n\n" +
		"* MAXDELIVERIES: a job that was delivered that number of times, and whose last lease is over or which a consumer returned, is not " +
		"delivered again. In one step with that it becomes a job of the queue DEADLETTER, due at once, with its id (and, if that " +
		"is taken, the time " +
		"after it), payload, priority and deliveries. Without DEADLETTER the queue drops it. If DEADLETTER is full, or not a queue, the job " +
		"is due again, so that nothing is lost.\n" +
		"* MAXLEN: the number of jobs up to which DQ.ADD adds jobs.\n" +
		"* 0, or an empty DEADLETTER, removes a limit.\n" +
		"* PAUSED: while a queue is paused, DQ.POP gives nothing and BLOCK waits; adding, acknowledging, leases, EXPIRE and dead letters go " +
		"on. yes pauses it until PAUSED no; a number pauses it for that many ms, and then it continues.\n" +
		"* DELIVER: a job that is due becomes an entry of this stream, with the fields id, payload and due (ms since 1970), in one step; " +
		"DQ.POP is refused. An empty DELIVER ends it.\n\n" +
		"Of a queue with DELIVER:\n\n" +
		"* Jobs that are due together are added in the order of DQ.POP; a job that is due when it is added goes at once.\n" +
		"* A pause holds jobs back, and EXPIRE drops one that was held back too long.\n" +
		"* Of jobs that workers have on lease, those that come back go to the stream; MAXDELIVERIES counts leases only.\n" +
		"* While the stream's key holds another type the jobs wait, and DQ.INFO says so.\n\n" +
		"A queue without jobs is kept while it has limits or is paused, or while UNIQUE refuses an id. Otherwise it is removed with its last " +
		"job.\n\n" +
		"Where memory is used up, the server refuses DQ.CONFIG only if there is no queue: workers that set its limits can drain a full one.",
	Errors: []string{"ERR DEADLETTER must name another key with the queue's hash tag, as in {mail} and {mail}:dead: the key has " +
		"another tag, or is the queue",
		"ERR value is out of range: MAXDELIVERIES is not 0 to 65535, or MAXLEN negative",
		"ERR PAUSED must be yes, no, or a number of milliseconds",
		"ERR DELIVER must name another key with the queue's hash tag, as in {mail} and {mail}:stream: the key has another tag, or is the queue"},
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
 7) "paused"
 8) (integer) 0
 9) "paused-until"
10) (nil)
11) "deliver"
12) ""
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
> DQ.CONFIG {news} DELIVER {news}:stream
OK
> DQ.ADD {news} b story DELAY 1000
"b"
~ 1000ms
> XRANGE {news}:stream - +
1) 1) "$id"
   2) 1) "id"
      2) "b"
      3) "payload"
      4) "story"
      5) "due"
      6) "$then"
`,
	KeyOptions: &command.KeyOptions{First: command.KeyRef{Pos: 1, Flags: command.Access | command.Update}, From: 2,
		Options: []command.KeyOption{{Word: "DEADLETTER", Args: 1, Key: command.Insert},
			{Word: "DELIVER", Args: 1, Key: command.Insert}}, Pairs: true},
	Run: runDQConfig,
}

// checksMemoryItself implements Spec.Lacks: DQ.CONFIG needs more memory only if it creates the queue, and
// checks that itself.
func checksMemoryItself([][]byte) command.Flags { return command.DenyOOM }

func runDQConfig(c *command.Ctx) error {
	i, found, err := c.Tx.QueueInfo(c.Args[1])
	if err != nil {
		return err
	}
	q := i.QueueConfig
	if len(c.Args) == 2 {
		c.Out.Map(6)
		queueConfig(c, &q)
		return nil
	}
	if err := parseQueueConfig(&q, c.Args[2:], c.Tx.Millis()); err != nil {
		return err
	}
	if !found && c.DB.OverLimit() && !c.Host.Replaying() {
		return command.ErrOOM
	}

	if err := c.Tx.QueueConfigure(c.Args[1], q); err != nil {
		return queueError(err)
	}
	c.Out.OK()
	return nil
}

// parseQueueConfig reads the options of DQ.CONFIG into a configuration. now is the time in ms.
func parseQueueConfig(q *engine.QueueConfig, args [][]byte, now int64) error {
	for ; len(args) > 0; args = args[2:] {
		if len(args) < 2 {
			return command.ErrSyntax
		}
		n, ok := numeral.ParseInt(args[1])
		switch {
		case command.EqualFold(args[0], "DEADLETTER"):
			q.DeadLetter = args[1]
			continue
		case command.EqualFold(args[0], "DELIVER"):
			q.Deliver = args[1]
			continue
		case command.EqualFold(args[0], "PAUSED"):
			until, err := parsePause(args[1], now)
			if err != nil {
				return err
			}
			q.PausedUntil = until
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

// parsePause reads yes, no or a number of ms, and returns the last ms of the pause.
func parsePause(b []byte, now int64) (until int64, err error) {
	switch {
	case command.EqualFold(b, "yes"):
		return engine.PausedForGood, nil
	case command.EqualFold(b, "no"):
		return 0, nil
	}
	ms, ok := numeral.ParseInt(b)
	if !ok || ms < 1 {
		return 0, errPause
	}
	return now + min(ms, engine.PausedForGood-1-now), nil
}

var specDQStep = command.Spec{
	Name: "dq.step", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(log N) where N is the number of jobs in the queue.",
	Summary: "Records a change of a delay queue by time or by DQ.POP, in the log. Clients cannot call it.",
	Flags:   command.Write | command.Timed, SysCmd: true,
	Args: []command.Arg{command.Key("key", command.Access|command.Update), command.OneOf("step",
		command.Block("TAKE", command.Str("id"), command.Int("token"), command.Int("until")),
		command.Block("BACK", command.Str("id"), command.Int("token")),
		command.TokenArg("LAPSE", command.Str("id")), command.TokenArg("DELIVER", command.Str("id")),
		command.TokenArg("FORGET", command.Int("deadline")), command.Token("RESUME"),
		command.Block("TICK", command.Str("name"), command.Int("due"), command.Int("next"), command.Int("skipped"), command.Int("late")))},
	Replies: "OK, when a log is replayed:\n\n" +
		"* TAKE: a job was leased until a time in ms.\n" +
		"* BACK: it did not reach its consumer.\n" +
		"* LAPSE: its lease was over, or no consumer took it in time; it is due again, a dead letter, or dropped, as the queue's limits say.\n" +
		"* DELIVER: it has become an entry of the queue's stream.\n" +
		"* FORGET: the marks of UNIQUE up to a time are dropped.\n" +
		"* RESUME: the time of a pause is over.\n" +
		"* TICK: an occurrence of a schedule became a job, or was skipped (0), and the next one has a time (0: there is none).",
	Errors: []string{"ERR DQ.STEP is an effect in the log; clients cannot call it: the caller is not a replay"},
	Examples: `
> DQ.STEP q LAPSE job
(error) ERR DQ.STEP is an effect in the log; clients cannot call it
`,
	Run: runDQStep,
}

func runDQStep(c *command.Ctx) error {
	if !c.Host.Replaying() {
		return errStep
	}
	key, args := c.Args[1], c.Args[2:]
	step := func(name string, n int) bool { return command.EqualFold(args[0], name) && len(args) == n }
	var numbers [4]int64
	for i := 2; i < len(args) && i < 6; i++ {
		n, ok := numeral.ParseInt(args[i])
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
	case step("DELIVER", 2):
		_, err = c.Tx.QueueDelivered(key, args[1])
	case step("TICK", 6):
		_, err = c.Tx.QueueTicked(key, args[1], numbers[0], numbers[1], numbers[2], numbers[3])
	case step("RESUME", 1):
		_, err = c.Tx.QueueResumed(key)
	case step("FORGET", 2):
		n, _ := numeral.ParseInt(args[1])
		_, err = c.Tx.QueueForgot(key, n)
	default:
		err = command.ErrSyntax
	}
	if err == nil {
		c.Out.OK()
	}
	return err
}
