package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/limiter"
	"github.com/ebbdb/ebb/internal/numeral"
)

// These are the commands that wait for a limiter, and those that make reservations.
//
// A client that waits for a limiter stands in line for its key. The server checks only the first client in
// line, at the instant at which the limiter can serve that client, because no other client may take before
// it. So each grant wakes one client, and each line needs one timer.

var specRLWait = command.Spec{
	Name: "rl.wait", Group: command.GroupLimiter, Since: "0.4.0", Complexity: "O(1); with ALGO log O(1) amortized",
	Summary: "Takes from a rate limiter, and waits until the limiter allows it.",
	Flags:   command.Write | command.DenyOOM | command.Blocking | command.Timed,
	Args:    limiterArgs(command.Int("timeout-ms"), burstArg(), costArg(), algoArg()),
	Replies: "As RL.TAKE: not allowed when the timeout is over; 0 waits for ever. Waiters are served first come, first served. " +
		"The limiter denies the first request in line at once if its instant is after its timeout, and every request " +
		"for more than the burst. In a transaction or a script the command does not wait.",
	Errors: append([]string{
		"ERR COST must be from 1 to 1125899906842624 here: COST is 0",
		"ERR timeout is negative: the timeout is below 0",
	}, takeErrors...),
	Examples: `
> RL.WAIT api 1 1000 0
1) (integer) 1
2) (integer) 1
3) (integer) 0
4) (integer) -1
5) (integer) 1000000
2> RL.WAIT api 1 1000 5000
~ 1000ms
2< 1) (integer) 1
2) (integer) 1
3) (integer) 0
4) (integer) -1
5) (integer) 1000000
`,
	Run: runRLWait,
}

func runRLWait(c *command.Ctx) error {
	o, err := parseTake(c, 5)
	if err != nil {
		return err
	}
	ms, err := command.ParseBlock(c.Args[4])
	switch {
	case err != nil:
		return err
	case o.Cost == 0:
		return engine.ErrNoCost
	}

	key := c.Args[1]
	o.Behind = c.Behind(key, engine.Limiter)
	t, err := c.Tx.Take(key, o.TakeOptions)
	if err != nil {
		return err
	}
	if !t.Allowed && t.Retry > 0 && !c.NoWait && (o.Behind || ms == 0 || t.Retry <= waitMicros(c, ms)) {
		if !o.Behind {
			c.Tx.WakeAt(key, c.Now()+t.Retry)
		}
		return waitForTurn(c, t, ms)
	}

	if c.Waiting != nil {
		c.Waiting.Memo = t.Grant
	}
	replyTaken(c, t)
	return nil
}

// waitMicros returns how many us a command with a timeout of ms may still wait.
func waitMicros(c *command.Ctx, ms int64) int64 {
	if c.Waiting != nil {
		return c.Waiting.Until*1000 - c.Now()
	}
	return ms * 1000
}

// waitForTurn puts the command in line. If its time ends before its turn comes, it replies with the figures
// of this moment: later ones could include grants to other clients before it.
func waitForTurn(c *command.Ctx, t engine.Taken, ms int64) error {
	turn, full := c.Now()+t.Retry, c.Now()+t.Reset
	return c.Block(command.Wait{
		Keys: c.Args[1:2], Kinds: engine.KindsOf(engine.None, engine.Limiter), Millis: ms, Relook: true,
		Undo: giveBack,
		Expired: func(c *command.Ctx) {
			t.Retry, t.Reset = max(1, turn-c.Now()), max(0, full-c.Now())
			replyTaken(c, t)
		},
	})
}

// giveBack undoes a grant of a client whose connection has closed.
func giveBack(c *command.Ctx) {
	if g, ok := c.Waiting.Memo.(limiter.Grant); ok && g.Cost > 0 {
		_, _ = c.Tx.GiveBack(c.Args[1], g) // the key has another type: it holds no limiter
	}
}

var specRLReserve = command.Spec{
	Name: "rl.reserve", Group: command.GroupLimiter, Since: "0.4.0",
	Complexity: "O(N) where N is the number of outstanding reservations of the key",
	Summary:    "Reserves a future request of a rate limiter.",
	Flags:      command.Write | command.DenyOOM | command.Timed,
	Args:       limiterArgs(burstArg(), costArg(), command.Opt(command.TokenArg("MAXWAIT", command.Int("milliseconds")))),
	Replies: "Three integers: an id for RL.CANCEL; the time until the reserved instant in us, 0 for now; and the instant, in us since 1970. " +
		"nil if the instant would be later than MAXWAIT, or if clients wait in RL.WAIT. Only for ALGO gcra. At most 1,000 " +
		"reservations of a key are outstanding.",
	Errors: append([]string{
		"ERR COST must be from 1 to 1125899906842624 here: COST is 0",
		"ERR COST is above the burst, it can never be served: COST is above BURST",
		"ERR MAXWAIT must not be negative: MAXWAIT is below 0",
		"ERR 1000 reservations of this key are outstanding, which is all it can hold: there are too many",
		takeErrors[6], takeErrors[8],
	}, takeErrors[:4]...),
	Examples: `
> RL.TAKE api 1 1000
1) (integer) 1
2) (integer) 1
3) (integer) 0
4) (integer) -1
5) (integer) 1000000
> RL.RESERVE api 1 1000
1) (integer) $id
2) (integer) 1000000
3) (integer) $due
> RL.RESERVE api 1 1000 MAXWAIT 1500
(nil)
> RL.CANCEL api $id
(integer) 1
`,
	Run: runRLReserve,
}

func runRLReserve(c *command.Ctx) error {
	o, err := parseTake(c, 4)
	if err != nil {
		return err
	}

	o.Behind = c.Behind(c.Args[1], engine.Limiter)
	r, ok, err := c.Tx.Reserve(c.Args[1], o)
	if err != nil {
		return err
	}

	if !ok {
		c.Out.NullArray()
		return nil
	}
	c.Out.Array(3)
	c.Out.Int(r.ID)
	c.Out.Int(r.Due - c.Tx.Now())
	c.Out.Int(r.Due)
	return nil
}

var specRLCancel = command.Spec{
	Name: "rl.cancel", Group: command.GroupLimiter, Since: "0.4.0",
	Complexity: "O(N) where N is the number of outstanding reservations of the key",
	Summary:    "Cancels a reservation that is not yet due.",
	Flags:      command.Write,
	Args:       []command.Arg{command.Key("key", command.Update|command.Access|command.Delete), command.Int("id")},
	Replies: "1 if it was cancelled, 0 if it is due, cancelled already, or unknown. The other reservations keep their " +
		"instants; a later request or reservation may use the place.",
	Examples: `
> RL.RESERVE api 1 1000
1) (integer) $first
2) (integer) 0
3) (integer) $now
> RL.RESERVE api 1 1000
1) (integer) $id > $first
2) (integer) 1000000
3) (integer) $due > $now
> RL.CANCEL api $first
(integer) 0
> RL.CANCEL api $id
(integer) 1
> RL.CANCEL api $id
(integer) 0
`,
	Run: runRLCancel,
}

func runRLCancel(c *command.Ctx) error {
	id, ok := numeral.ParseInt(c.Args[2])
	if !ok {
		return command.ErrNotInteger
	}

	ok, err := c.Tx.CancelReservation(c.Args[1], id)
	if err != nil {
		return err
	}

	c.Out.Int(oneIf(ok))
	return nil
}

var specRLReset = command.Spec{
	Name: "rl.reset", Group: command.GroupLimiter, Since: "0.4.0", Complexity: "O(N) where N is the number of keys",
	Summary: "Makes rate limiters full, and drops their reservations, by deleting them.",
	Flags:   command.Write,
	Args:    []command.Arg{command.ManyKeys("key", command.Remove|command.Delete)},
	Replies: "The number of limiters that existed. If one of the keys holds another type nothing is deleted.",
	Examples: `
> RL.TAKE api 1 1000
1) (integer) 1
2) (integer) 1
3) (integer) 0
4) (integer) -1
5) (integer) 1000000
> RL.RESET api other
(integer) 1
> EXISTS api
(integer) 0
`,
	Run: runRLReset,
}

func runRLReset(c *command.Ctx) error {
	n, err := c.Tx.ResetLimiters(c.Args[1:])
	if err == nil {
		c.Out.Int(int64(n))
	}
	return err
}

var specRLInfo = command.Spec{
	Name: "rl.info", Group: command.GroupLimiter, Since: "0.4.0",
	Complexity: "O(N+M) where N is the number of outstanding reservations and M that of the waiting calls",
	Summary:    "Describes a rate limiter, its reservations and its waiting calls.",
	Flags:      command.ReadOnly,
	Args:       []command.Arg{command.Key("key", command.Access)},
	Replies: "A map, nil if there is no such limiter: algo, limit, period in ms and burst of the last request; remaining; " +
		"retry-after-us, until one can be taken, 0 for now; " +
		"reset-after-us; reservations, an array of [id, cost, us until it is due]; waiting, the number of clients in " +
		"RL.WAIT; and line, an array of [client id, cost] of each of them, in order.",
	Examples: `
> RL.TAKE api 5 1000 COST 2
1) (integer) 1
2) (integer) 5
3) (integer) 3
4) (integer) -1
5) (integer) 400000
> RL.INFO api
 1) "algo"
 2) "gcra"
 3) "limit"
 4) (integer) 5
 5) "period"
 6) (integer) 1000
 7) "burst"
 8) (integer) 5
 9) "remaining"
10) (integer) 3
11) "retry-after-us"
12) (integer) 0
13) "reset-after-us"
14) (integer) 400000
15) "reservations"
16) (empty array)
17) "waiting"
18) (integer) 0
19) "line"
20) (empty array)
`,
	Run: runRLInfo,
}

func runRLInfo(c *command.Ctx) error {
	i, ok, err := c.Tx.LimiterInfo(c.Args[1])
	if err != nil {
		return err
	}

	if !ok {
		c.Out.Null()
		return nil
	}
	c.Out.Map(10)
	c.Out.BulkString("algo")
	c.Out.BulkString(i.Algo.String())
	for _, f := range [...]struct {
		name string
		n    int64
	}{
		{"limit", i.Limit}, {"period", i.Period / 1000}, {"burst", i.Burst}, {"remaining", i.Remaining},
		{"retry-after-us", i.Retry}, {"reset-after-us", i.Reset},
	} {
		c.Out.BulkString(f.name)
		c.Out.Int(f.n)
	}
	replyReservations(c, i.Reservations)
	replyLine(c)
	return nil
}

func replyReservations(c *command.Ctx, all []limiter.Reservation) {
	c.Out.BulkString("reservations")
	c.Out.Array(len(all))
	for _, r := range all {
		c.Out.Array(3)
		c.Out.Int(r.ID)
		c.Out.Int(r.Cost)
		c.Out.Int(r.Due - c.Tx.Now())
	}
}

// replyLine replies with the waiting clients and the cost that each of them wants.
func replyLine(c *command.Ctx) {
	line := c.Queue(c.Args[1])
	c.Out.BulkString("waiting")
	c.Out.Int(int64(len(line)))
	c.Out.BulkString("line")
	c.Out.Array(len(line))
	for _, q := range line {
		cost := int64(1)
		for i := 5; i+1 < len(q.Args); i += 2 {
			if command.EqualFold(q.Args[i], "COST") {
				cost, _ = numeral.ParseInt(q.Args[i+1])
			}
		}
		c.Out.Array(2)
		c.Out.Int(q.Client)
		c.Out.Int(cost)
	}
}
