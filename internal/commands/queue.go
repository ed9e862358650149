package commands

import (
	"errors"
	"math"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var queueSpecs = []*command.Spec{&specDQAdd, &specDQPop, &specDQAck, &specDQNack, &specDQExtend, &specDQCancel, &specDQMove, &specDQPeek,
	&specDQGet, &specDQInfo, &specDQConfig, &specDQSchedule, &specDQUnschedule, &specDQSchedules, &specDQStep}

const (
	errQueueFull  = command.ReplyError("FULL the queue holds as many jobs as MAXLEN allows")
	errDeadLetter = command.ReplyError("ERR DEADLETTER must name another key with the queue's hash tag, as in {mail} and {mail}:dead")
	errDeliver    = command.ReplyError("ERR DELIVER must name another key with the queue's hash tag, as in {mail} and {mail}:stream")
	errDelivers   = command.ReplyError("ERR the queue delivers to a stream")
	errPriority   = command.ReplyError("ERR PRIORITY must be 0 to 9")
	errJobTime    = command.ReplyError("ERR the time must be in milliseconds and not negative")
	errJobSpan    = command.ReplyError("ERR the time must be in milliseconds and at least 1")
	errJobNumber  = command.ReplyError("ERR the number must be at least 1")
	errOneTime    = command.ReplyError("ERR DELAY and AT exclude each other")
	errMove       = command.ReplyError("ERR DQ.MOVE needs another key with the hash tag of the source, as in {mail} and {mail}:dead")
	errPause      = command.ReplyError("ERR PAUSED must be yes, no, or a number of milliseconds")
	errNoJob      = command.ReplyError("ERR the queue has no job with the id")
	errStep       = command.ReplyError("ERR DQ.STEP is an effect in the log; clients cannot call it")
)

// defaultLease is the length of a lease in ms if DQ.POP gives none; other queues use the same. With a longer
// lease, the jobs of a crashed consumer wait longer. With a shorter one, a slow consumer loses its jobs.
const defaultLease = 30_000

// parseJobTime reads milliseconds that are not negative.
func parseJobTime(b []byte) (int64, error) {
	ms, ok := numeral.ParseInt(b)
	if !ok || ms < 0 {
		return 0, errJobTime
	}
	return min(ms, engine.MaxDeadline), nil
}

// parseJobSpan reads a number of milliseconds that is at least one.
func parseJobSpan(b []byte) (int64, error) {
	ms, ok := numeral.ParseInt(b)
	if !ok || ms < 1 {
		return 0, errJobSpan
	}
	return min(ms, engine.MaxDeadline), nil
}

// parseJobCount reads a number of jobs.
func parseJobCount(b []byte) (int64, error) {
	n, ok := numeral.ParseInt(b)
	if !ok || n < 1 {
		return 0, errJobNumber
	}
	return n, nil
}

// queueError returns the wire error for an error of the engine's queues.
func queueError(err error) error {
	switch {
	case errors.Is(err, engine.ErrQueueFull):
		return errQueueFull
	case errors.Is(err, engine.ErrDeadLetter):
		return errDeadLetter
	case errors.Is(err, engine.ErrDeliver):
		return errDeliver
	case errors.Is(err, engine.ErrDelivers):
		return errDelivers
	case errors.Is(err, engine.ErrMove):
		return errMove
	case errors.Is(err, engine.ErrNoJob):
		return errNoJob
	}
	return err
}

var specDQAdd = command.Spec{
	Name: "dq.add", Group: command.GroupQueue, Since: "0.4.0", Complexity: "O(log N) where N is the number of jobs in the queue.",
	Summary: "Adds a job to a delay queue, to be delivered from a certain millisecond on.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Timed | command.Reveals,
	Lacks:   command.OnlyWith(command.Reveals, 4, "UNIQUE"), // with the id * the command compares payloads
	Args: []command.Arg{command.Key("key", command.Update), command.Str("id"), command.Str("payload"),
		command.Opt(command.OneOf("when", command.TokenArg("DELAY", command.Int("delay")), command.TokenArg("AT", command.UnixTime("at")))),
		command.Opt(command.TokenArg("MAXLEN", command.Int("maxlen"))), command.Opt(command.TokenArg("EXPIRE", command.Int("expire"))),
		command.Opt(command.TokenArg("PRIORITY", command.Int("priority"))), command.Opt(command.TokenArg("UNIQUE", command.Int("unique"))),
		command.Opt(command.Token("REPLACE"))},
	Replies: "* The job's id. For the id `*` the queue makes one.\n" +
		"* nil if the queue did not add the job, because a job with the id is in the queue, or because of UNIQUE.\n\n" +
		"The job is due DELAY ms from now, by default at once, or AT a time in ms since 1970, which may be past.\n\n" +
		"* PRIORITY: of the jobs that are due those of the highest priority (default 0) go first, of one priority the one that is due first, " +
		"of one millisecond the one that was added first.\n" +
		"* EXPIRE: the queue drops the job if no consumer took it within that many ms after it was due.\n" +
		"* UNIQUE: the queue does not add the job if one with the same id (with `*`: the same payload) was added with UNIQUE within its time, " +
		"that many ms, even if that job is done.\n" +
		"* MAXLEN overrides that of DQ.CONFIG; jobs in every state count.\n" +
		"* REPLACE: a waiting job with the id gets the payload, the time, PRIORITY and EXPIRE of this command, and counts as not delivered, " +
		"whatever UNIQUE and MAXLEN say. So a job that is added again and again runs once, DELAY after the last time. A leased job stays as " +
		"it is.",
	Errors: []string{"FULL the queue holds as many jobs as MAXLEN allows: nothing was added",
		"ERR DELAY and AT exclude each other: both are given", "ERR PRIORITY must be 0 to 9: the priority is outside of that",
		"ERR the time must be in milliseconds and not negative: of DELAY and AT",
		"ERR the time must be in milliseconds and at least 1: of EXPIRE and UNIQUE",
		"ERR the number must be at least 1: of MAXLEN"},
	Examples: `
> DQ.ADD mail welcome-7 "Hello, Ada" DELAY 1500
"welcome-7"
> DQ.POP mail
(nil)
~ 1500ms
> DQ.POP mail
1) 1) "welcome-7"
   2) "Hello, Ada"
   3) (integer) 1
   4) (integer) $token
   5) (integer) $due
> DQ.ACK mail welcome-7 $token
(integer) 1
`,
	Run: runDQAdd,
}

func runDQAdd(c *command.Ctx) error {
	a, err := parseDQAdd(c)
	if err != nil {
		return err
	}
	id, added, err := c.Tx.QueueAdd(c.Args[1], &a)
	if err != nil {
		return queueError(err)
	}
	bulkOrNull(c, id, added)
	return nil
}

// parseDQAdd reads the arguments of DQ.ADD.
func parseDQAdd(c *command.Ctx) (a engine.QueueAdd, err error) {
	a = engine.QueueAdd{ID: c.Args[2], Payload: c.Args[3], Due: c.Tx.Millis()}
	if len(a.ID) == 1 && a.ID[0] == '*' {
		a.ID = nil
	}
	timed := false
	for i := 4; i < len(c.Args); i += 2 {
		if command.EqualFold(c.Args[i], "REPLACE") {
			a.Replace = true
			i--
			continue
		}
		if i+1 == len(c.Args) {
			return a, command.ErrSyntax
		}
		word, value := c.Args[i], c.Args[i+1]
		switch {
		case command.EqualFold(word, "DELAY") || command.EqualFold(word, "AT"):
			if timed {
				return a, errOneTime
			}
			timed = true
			a.Due, err = parseJobTime(value)
			if command.EqualFold(word, "DELAY") {
				a.Due = c.Tx.DeadlineAfter(a.Due)
			}
		case command.EqualFold(word, "MAXLEN"):
			a.MaxLen, err = parseJobCount(value)
		case command.EqualFold(word, "EXPIRE"):
			a.Expire, err = parseJobSpan(value)
		case command.EqualFold(word, "PRIORITY"):
			a.Priority, err = parsePriority(value)
		case command.EqualFold(word, "UNIQUE"):
			a.Unique, err = parseJobSpan(value)
		case command.EqualFold(word, "TOKEN") && c.Host.Replaying():
			a.Token, err = parseReplayed(c, value)
		default:
			return a, command.ErrSyntax
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

func parsePriority(b []byte) (uint8, error) {
	n, ok := numeral.ParseInt(b)
	if !ok || n < 0 || n > engine.MaxPriority {
		return 0, errPriority
	}
	return uint8(n), nil
}

var specDQPop = command.Spec{
	Name: "dq.pop", Group: command.GroupQueue, Since: "0.4.0",
	Complexity: "O(M*log N) where N is the number of jobs in the queue and M how many are returned.",
	Summary:    "Takes jobs that are due from a delay queue, under a lease. With BLOCK it waits for a job.",
	Flags:      command.Write | command.Blocking | command.Timed | command.Blind,
	Args: []command.Arg{command.Key("key", command.Access|command.Update), command.Opt(command.TokenArg("COUNT", command.Int("count"))),
		command.Opt(command.TokenArg("LEASE", command.Int("lease"))),
		command.Opt(command.TokenArg("BLOCK", command.Int("milliseconds")))},
	Replies: "* An array of at most COUNT jobs, by default one. Each is an array of its id, its payload, the number of deliveries, the " +
		"token of " +
		"the lease, and the time at which it was due, in ms since 1970.\n" +
		"* nil if none is due, or when the BLOCK milliseconds are over; BLOCK 0 waits for ever.\n\n" +
		"A job can be taken from the millisecond on at which it is due. No other consumer gets it for LEASE ms, by default 30000. Then it is " +
		"due again, in the millisecond after the last one of the lease, unless DQ.ACK has acknowledged it.\n\n" +
		"* The longest waiter is served first. While consumers wait, a DQ.POP without BLOCK gets nothing. In transactions and scripts the " +
		"command does not wait.\n" +
		"* If the connection of a waiter is gone, the job goes back as it was, and the delivery does not count.\n" +
		"* If more than 256 leases end or jobs expire at one moment, the last of them are due again a little later than the first.",
	Errors: []string{"ERR the queue delivers to a stream: DQ.CONFIG DELIVER names one, and waiting clients get this error when it is set",
		"ERR the number must be at least 1: of COUNT", "ERR the time must be in milliseconds and at least 1: of LEASE",
		"ERR timeout is negative: of BLOCK"},
	Examples: `
> DQ.ADD q low a
"low"
> DQ.ADD q high b PRIORITY 9
"high"
> DQ.POP q COUNT 2 LEASE 1000
1) 1) "high"
   2) "b"
   3) (integer) 1
   4) (integer) $h
   5) (integer) $due
2) 1) "low"
   2) "a"
   3) (integer) 1
   4) (integer) $l > $h
   5) (integer) $due
> DQ.ACK q high $h
(integer) 1
~ 1001ms
> DQ.ACK q low $l
(integer) 0
> DQ.POP q
1) 1) "low"
   2) "a"
   3) (integer) 2
   4) (integer) $again > $l
   5) (integer) $later > $due
2> DQ.POP q BLOCK 0
> DQ.ADD q next c DELAY 250
"next"
~ 250ms
2< 1) 1) "next"
   2) "c"
   3) (integer) 1
   4) (integer) $n
   5) (integer) $at
`,
	Run: runDQPop,
}

// taking holds the arguments of DQ.POP.
type taking struct {
	count int
	lease int64
	waits bool
	block int64
}

func runDQPop(c *command.Ctx) error {
	t, err := parseDQPop(c.Args)
	if err != nil {
		return err
	}
	key := c.Args[1]
	if err := longQueue(c, key, t.count); err != nil {
		return err
	}

	if !c.Behind(key, engine.DelayQueue) {
		n, err := popJobs(c, key, t)
		if n > 0 || err != nil {
			return err
		}
	}

	if !t.waits {
		c.Out.NullArray()
		return nil
	}
	return c.Block(command.Wait{Keys: c.Args[1:2], Kinds: engine.KindsOf(engine.DelayQueue), Millis: t.block, Undo: returnJobs})
}

// parseDQPop reads a request of DQ.POP.
func parseDQPop(args [][]byte) (t taking, err error) {
	t = taking{count: 1, lease: defaultLease}
	for i := 2; i < len(args); i += 2 {
		if i+1 == len(args) {
			return t, command.ErrSyntax
		}
		word, value := args[i], args[i+1]
		switch {
		case command.EqualFold(word, "COUNT"):
			var n int64
			n, err = parseJobCount(value)
			t.count = int(min(n, math.MaxInt32))
		case command.EqualFold(word, "LEASE"):
			t.lease, err = parseJobSpan(value)
		case command.EqualFold(word, "BLOCK"):
			t.block, err = command.ParseBlock(value)
			t.waits = true
		default:
			return t, command.ErrSyntax
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// longQueue is Ctx.Long for a command that touches up to count jobs of a queue.
func longQueue(c *command.Ctx, key []byte, count int) error {
	if count <= command.LongBytes/fieldBytes {
		return nil
	}
	n, err := c.Tx.QueueLen(key)
	if err != nil {
		return err
	}
	return longFields(c, min(n, count))
}

// lent is a job that the command has given to a client that waited.
type lent struct {
	id    []byte
	token int64
}

// popJobs replies with jobs that are due. It writes no reply if none is due.
func popJobs(c *command.Ctx, key []byte, t taking) (n int, err error) {
	var jobs []lent
	mark := c.Out.Mark()
	l := c.Out.ArrayLater()
	n, err = c.Tx.QueuePop(key, t.count, t.lease, func(j engine.Job) {
		c.Out.Array(5)
		c.Out.Bulk(j.ID)
		c.Out.Bulk(j.Payload)
		c.Out.Int(j.Deliveries)
		c.Out.Int(j.Token)
		c.Out.Int(j.Due)
		if c.Waiting != nil {
			jobs = append(jobs, lent{append([]byte(nil), j.ID...), j.Token})
		}
	})
	if c.Out.Patch(l, n); n == 0 {
		c.Out.Rollback(mark)
	}
	if c.Waiting != nil {
		c.Waiting.Memo = jobs
	}
	return n, err
}

// returnJobs returns the jobs of a connection that has ended to the queue.
func returnJobs(c *command.Ctx) {
	jobs, _ := c.Waiting.Memo.([]lent)
	for _, j := range jobs {
		_, _ = c.Tx.QueueReturn(c.Args[1], j.id, j.token) // the key has another type: it holds no queue
	}
}
