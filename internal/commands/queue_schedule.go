package commands

import (
	"errors"
	"strconv"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

const (
	errScheduleName = command.ReplyError("ERR the name of a schedule must have 1 to 255 bytes")
	errEvery        = command.ReplyError("ERR EVERY must be at least 10 milliseconds")
	errSchedules    = command.ReplyError("ERR the queue has 10000 schedules, and no more are allowed")
	errNoOccurrence = command.ReplyError("ERR the schedule would never be due: no time from now or FROM to UNTIL matches, within eight years")
	errZone         = command.ReplyError("ERR unknown time zone")
	errOneRule      = command.ReplyError("ERR a schedule needs either EVERY or CRON, and TZ goes with CRON")
)

var specDQSchedule = command.Spec{
	Name: "dq.schedule", Group: command.GroupQueue, Since: "0.7.0", Complexity: "O(log N) where N is the number of schedules of the queue.",
	Summary: "Adds a job to a delay queue again and again, at fixed spans or as a cron expression says.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Timed | command.Blind,
	Args: []command.Arg{command.Key("key", command.Update), command.Str("name"), command.Str("payload"),
		command.OneOf("rule", command.TokenArg("EVERY", command.Int("interval")),
			command.Block("CRON", command.Str("expression"), command.Opt(command.TokenArg("TZ", command.Str("zone"))))),
		command.Opt(command.TokenArg("FROM", command.UnixTime("from"))), command.Opt(command.TokenArg("UNTIL", command.UnixTime("until"))),
		command.Opt(command.TokenArg("LATE", command.Int("late"))), command.Opt(command.Token("OVERLAP")),
		command.Opt(command.TokenArg("PRIORITY", command.Int("priority"))), command.Opt(command.TokenArg("EXPIRE", command.Int("expire")))},
	Replies: "The time of the next occurrence, in ms since 1970. Each occurrence is a job with the id `name@time`, the payload, " +
		"PRIORITY and " +
		"EXPIRE, due at its time. The server adds it, exactly once, and no client has to be there.\n\n" +
		"* EVERY: the occurrences are FROM + k * EVERY, so they do not drift. Without FROM the first one is EVERY ms from now.\n" +
		"* CRON: five fields (minute, hour, day of month, month, day of week), six with the second in front, or @hourly, @daily, @weekly, " +
		"@monthly, @yearly. Fields have lists, ranges, steps and names, Sunday is 0, and if both days are restricted one of them has to " +
		"match.\n" +
		"* TZ: the IANA name of a time zone, by default UTC. A time that the clock skips runs at the first instant after the gap, a time that " +
		"comes twice runs the first time; an expression for every hour follows elapsed time.\n" +
		"* FROM, UNTIL: no occurrence is before or after it. A schedule without a further one, within eight years, is removed.\n" +
		"* OVERLAP: without it the next occurrence is skipped and counted while the job of the last one is in the queue.\n" +
		"* LATE: after a time without a server the last occurrence of that time runs, and the others count as skipped. With LATE it is " +
		"skipped too if it is older than that, in ms.\n\n" +
		"A schedule replaces the one with its name. If the times are the same ones, it goes on: a program can declare its schedules at each " +
		"start. A queue with schedules is kept when it is empty.",
	Errors: []string{"ERR CRON: ...: the expression is wrong; the text names the field and quotes it", "ERR unknown time zone: the table of " +
		"zones does not have TZ",
		"ERR EVERY must be at least 10 milliseconds", "ERR a schedule needs either EVERY or CRON, and TZ goes with CRON",
		"ERR the schedule would never be due: no time from now or FROM to UNTIL matches, within eight years",
		"ERR the queue has 10000 schedules, and no more are allowed", "ERR the name of a schedule must have 1 to 255 bytes",
		"ERR PRIORITY must be 0 to 9: the priority is outside of that", "ERR the time must be in milliseconds and at least 1: of LATE and EXPIRE",
		"ERR the time must be in milliseconds and not negative: of FROM and UNTIL"},
	Examples: `
> DQ.SCHEDULE reports nightly "all customers" CRON "0 3 * * *" TZ Europe/Berlin
(integer) $night
> DQ.SCHEDULE beats beat x EVERY 1000
(integer) $first
~ 1000ms
> DQ.POP beats
1) 1) "beat@$first"
   2) "x"
   3) (integer) 1
   4) (integer) $token
   5) (integer) $first
`,
	Run: runDQSchedule,
}

func runDQSchedule(c *command.Ctx) error {
	s, err := parseDQSchedule(c)
	if err != nil {
		return err
	}
	next, err := c.Tx.QueueSchedule(c.Args[1], s)
	if err != nil {
		return scheduleError(err)
	}
	c.Out.Int(next)
	return nil
}

// scheduleError returns the wire error for an error of Tx.QueueSchedule.
func scheduleError(err error) error {
	switch {
	case errors.Is(err, engine.ErrSchedules):
		return errSchedules
	case errors.Is(err, engine.ErrNoOccurrence):
		return errNoOccurrence
	case errors.Is(err, engine.ErrZone):
		return errZone
	case errors.Is(err, engine.ErrWrongType), errors.Is(err, engine.ErrFull):
		return queueError(err)
	}
	return command.ReplyError("ERR CRON: " + err.Error())
}

// parseDQSchedule reads the arguments of DQ.SCHEDULE.
func parseDQSchedule(c *command.Ctx) (*engine.QueueSchedule, error) {
	if n := len(c.Args[2]); n == 0 || n > engine.MaxScheduleName {
		return nil, errScheduleName
	}
	s := &engine.QueueSchedule{Name: append([]byte(nil), c.Args[2]...), Payload: append([]byte(nil), c.Args[3]...)}
	cron, zone := false, false
	for args := c.Args[4:]; len(args) > 0; {
		if command.EqualFold(args[0], "OVERLAP") {
			s.Overlap, args = true, args[1:]
			continue
		}
		if len(args) < 2 {
			return nil, command.ErrSyntax
		}
		var err error
		switch word, value := args[0], args[1]; {
		case command.EqualFold(word, "EVERY"):
			ms, ok := numeral.ParseInt(value)
			if !ok || ms < engine.MinScheduleSpan {
				return nil, errEvery
			}
			s.Every = min(ms, engine.MaxDeadline)
		case command.EqualFold(word, "CRON"):
			s.Cron, cron = string(value), true
		case command.EqualFold(word, "TZ"):
			s.Zone, zone = string(value), true
		case command.EqualFold(word, "FROM"):
			s.From, err = parseJobTime(value)
		case command.EqualFold(word, "UNTIL"):
			s.Until, err = parseJobTime(value)
		case command.EqualFold(word, "LATE"):
			s.Late, err = parseJobSpan(value)
		case command.EqualFold(word, "PRIORITY"):
			s.Priority, err = parsePriority(value)
		case command.EqualFold(word, "EXPIRE"):
			s.Expire, err = parseJobSpan(value)
		case command.EqualFold(word, "NEXT") && c.Host.Replaying():
			s.Next, err = parseJobTime(value)
		default:
			return nil, command.ErrSyntax
		}
		if err != nil {
			return nil, err
		}
		args = args[2:]
	}
	if cron == (s.Every > 0) || zone && !cron {
		return nil, errOneRule
	}
	return s, nil
}

var specDQUnschedule = command.Spec{
	Name: "dq.unschedule", Group: command.GroupQueue, Since: "0.7.0",
	Complexity: "O(M*log N) where N is the number of schedules of the queue and M how many are removed.",
	Summary:    "Removes schedules from a delay queue. Jobs that they have added stay.",
	Flags:      command.Write | command.Fast | command.Timed | command.Blind,
	Args:       []command.Arg{command.Key("key", command.Access|command.Delete), command.Many("name")},
	Replies:    "The number of schedules that were removed.",
	Examples: `
> DQ.SCHEDULE q beat x EVERY 1000
(integer) $next
> DQ.UNSCHEDULE q beat other
(integer) 1
> EXISTS q
(integer) 0
`,
	Run: runDQUnschedule,
}

func runDQUnschedule(c *command.Ctx) error {
	n, err := c.Tx.QueueUnschedule(c.Args[1], c.Args[2:])
	if err != nil {
		return queueError(err)
	}
	c.Out.Int(int64(n))
	return nil
}

var specDQSchedules = command.Spec{
	Name: "dq.schedules", Group: command.GroupQueue, Since: "0.7.0",
	Complexity: "O(N*log N) where N is the number of schedules of the queue; O(1) with a name.",
	Summary:    "Lists the schedules of a delay queue.",
	Flags:      command.ReadOnly | command.Blind,
	Args:       []command.Arg{command.Key("key", command.Access), command.Opt(command.Str("name"))},
	Replies: "An array of maps, by name, or of the one with the name. Times are in ms since 1970.\n\n" +
		"* `name`, and `payload`.\n" +
		"* `rule`: such as `EVERY 1000` or `CRON 0 3 * * *`; `zone`: the time zone of CRON.\n" +
		"* `next`: the time of the next occurrence; `last`: that of the last one that became a job, nil if there was none.\n" +
		"* `runs`: the number of occurrences that became jobs.\n" +
		"* `skipped`: the number that did not, because the job before was in the queue, the queue was full, or no server ran at the time.\n" +
		"* `late`: the number that did not because of LATE.",
	Examples: `
> DQ.SCHEDULE q beat x EVERY 1000
(integer) $next
> DQ.SCHEDULES q
1)  1) "name"
    2) "beat"
    3) "rule"
    4) "EVERY 1000"
    5) "zone"
    6) ""
    7) "next"
    8) (integer) $next
    9) "last"
   10) (nil)
   11) "runs"
   12) (integer) 0
   13) "skipped"
   14) (integer) 0
   15) "late"
   16) (integer) 0
   17) "payload"
   18) "x"
`,
	Run: runDQSchedules,
}

func runDQSchedules(c *command.Ctx) error {
	if len(c.Args) > 3 {
		return command.ErrSyntax
	}
	var all []*engine.QueueSchedule
	if len(c.Args) == 3 {
		s, err := c.Tx.QueueScheduleOf(c.Args[1], c.Args[2])
		if err != nil {
			return queueError(err)
		}
		if s != nil {
			all = append(all, s)
		}
	} else if err := c.Tx.QueueSchedules(c.Args[1], func(s *engine.QueueSchedule) { all = append(all, s) }); err != nil {
		return queueError(err)
	}

	c.Out.Array(len(all))
	for _, s := range all {
		putSchedule(c, s)
	}
	return nil
}

// putSchedule replies with one schedule.
func putSchedule(c *command.Ctx, s *engine.QueueSchedule) {
	c.Out.Map(9)
	text := func(name, value string) {
		c.Out.BulkString(name)
		c.Out.BulkString(value)
	}
	number := func(name string, n int64) {
		c.Out.BulkString(name)
		c.Out.Int(n)
	}
	c.Out.BulkString("name")
	c.Out.Bulk(s.Name)
	if s.Every > 0 {
		text("rule", "EVERY "+strconv.FormatInt(s.Every, 10))
	} else {
		text("rule", "CRON "+s.Cron)
	}
	text("zone", s.Zone)
	number("next", s.Next)
	if s.Last != 0 {
		number("last", s.Last)
	} else {
		c.Out.BulkString("last")
		c.Out.Null()
	}
	number("runs", s.Runs)
	number("skipped", s.Skipped)
	number("late", s.TooLate)
	c.Out.BulkString("payload")
	c.Out.Bulk(s.Payload)
}
