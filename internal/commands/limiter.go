package commands

import (
	"math"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/limiter"
	"github.com/ebbdb/ebb/internal/numeral"
)

// These are the rate limiters. RL.TAKE and its variants reply in microseconds, with 1 for allowed.
// CL.THROTTLE and GCRA reply as redis-cell does: in seconds, with 1 for limited. They can use the
// same keys, with ALGO gcra.

var limiterSpecs = []*command.Spec{&specRLTake, &specRLTakeAll, &specRLWait, &specRLReserve, &specRLCancel, &specRLReset,
	&specRLInfo, &specCLThrottle,
	&specGCRA, &specRLTop}

var takeErrors = []string{
	"ERR the limit must be from 1 to 1125899906842624: the limit is out of range",
	"ERR the period must be from 1 ms to 35 years: the period is out of range",
	"ERR BURST must be from 1 to 1125899906842624: BURST is out of range",
	"ERR COST must be from 0 to 1125899906842624: COST is out of range",
	"ERR BURST needs ALGO gcra: the others allow the limit at once: BURST with another ALGO",
	"ERR ALGO log keeps every grant: its limit is at most 1000000: the limit of a log is larger",
	"ERR BURST x period / limit is more than 1,000 years: the time in which an empty limiter fills",
	"ERR ALGO must be gcra, window, log or fixed: ALGO is something else",
	"WRONGTYPE Operation against a key holding the wrong kind of value: the key holds another type, or a limiter of another ALGO",
}

// throttleErrors are the errors of CL.THROTTLE and GCRA.
var throttleErrors = []string{
	"ERR max_burst must be from 0 to 1125899906842623: the burst is out of range",
	"ERR the limit must be from 1 to 1125899906842624: the rate is out of range",
	"ERR the period must be from 0.001 seconds to 35 years: the period is out of range",
	"ERR COST must be from 0 to 1125899906842624: the number to take is out of range",
	takeErrors[6], takeErrors[8],
}

const (
	errAlgo       = command.ReplyError("ERR ALGO must be gcra, window, log or fixed")
	errBurst      = command.ReplyError("ERR BURST must be from 1 to 1125899906842624")
	errSameKey    = command.ReplyError("ERR the same key is named twice")
	errLimitPairs = command.ReplyError("ERR a limit and a period are needed for each key")
	errMaxWait    = command.ReplyError("ERR MAXWAIT must not be negative")
	errMaxBurst   = command.ReplyError("ERR max_burst must be from 0 to 1125899906842623")
	errSeconds    = command.ReplyError("ERR the period must be from 0.001 seconds to 35 years")
)

func algoArg() command.Arg {
	return command.Opt(command.TokenArg("ALGO", command.OneOf("algorithm", command.Token("gcra"),
		command.Token("window"), command.Token("log"),
		command.Token("fixed"))))
}

func burstArg() command.Arg { return command.Opt(command.TokenArg("BURST", command.Int("burst"))) }
func costArg() command.Arg  { return command.Opt(command.TokenArg("COST", command.Int("cost"))) }

// limiterArgs returns the grammar of "key limit period-ms" and of the arguments after it.
func limiterArgs(more ...command.Arg) []command.Arg {
	return append([]command.Arg{command.Key("key", command.Update|command.Access), command.Int("limit"), command.Int("period-ms")}, more...)
}

var specRLTake = command.Spec{
	Name: "rl.take", Group: command.GroupLimiter, Since: "0.4.0", Complexity: "O(1); with ALGO log O(1) amortized",
	Summary: "Takes from a rate limiter, if the limiter allows it: at most limit in a period.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Timed,
	Args:    limiterArgs(burstArg(), costArg(), algoArg(), command.Opt(command.Token("PEEK"))),
	Replies: "Five integers:\n\n" +
		"1. 1 if the request is allowed, 0 if it is denied.\n" +
		"2. The most that a full limiter allows at once: BURST, or the limit.\n" +
		"3. What can be taken now, after this request.\n" +
		"4. The time in us until the limiter would allow the same request, if no other client takes; -1 if it is allowed, or if it never will " +
		"be because COST is above the burst.\n" +
		"5. The time in us until the limiter is full.\n\n" +
		"A denied request changes nothing. The key expires when the limiter is full again.\n\n" +
		"* While clients wait in RL.WAIT the limiter denies RL.TAKE: waiters are served in FIFO order.\n" +
		"* COST 0 asks whether no more was taken than is allowed, PEEK what the reply would be. Both change nothing.\n" +
		"* The parameters may differ from call to call: gcra keeps its debt as time, the other algorithms what they have counted.\n" +
		"* gcra allows at most BURST + t x limit / period in any span t.\n" +
		"* log allows at most the limit in any period.\n" +
		"* fixed allows at most the limit in each period, aligned to 1970.\n" +
		"* window allows the same as fixed, and less than 2 x limit in any period.",
	Errors: takeErrors,
	Examples: `
> RL.TAKE api 2 1000
1) (integer) 1
2) (integer) 2
3) (integer) 1
4) (integer) -1
5) (integer) 500000
> RL.TAKE api 2 1000 COST 2
1) (integer) 0
2) (integer) 2
3) (integer) 1
4) (integer) 500000
5) (integer) 500000
~ 500ms
> RL.TAKE api 2 1000 COST 2
1) (integer) 1
2) (integer) 2
3) (integer) 0
4) (integer) -1
5) (integer) 1000000
`,
	Run: runRLTake,
}

func runRLTake(c *command.Ctx) error {
	o, err := parseTake(c, 4)
	if err != nil {
		return err
	}

	o.Behind = c.Behind(c.Args[1], engine.Limiter)
	t, err := c.Tx.Take(c.Args[1], o.TakeOptions)
	if err != nil {
		return err
	}

	replyTaken(c, t)
	return nil
}

// replyTaken replies with the five integers of RL.TAKE.
func replyTaken(c *command.Ctx, t engine.Taken) {
	c.Out.Array(5)
	for _, n := range [...]int64{oneIf(t.Allowed), t.Limit, t.Remaining, t.Retry, t.Reset} {
		c.Out.Int(n)
	}
}

// oneIf returns 1 for true and 0 for false.
func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// parseTake reads "limit period-ms" after the key, and the options, which begin at an argument.
func parseTake(c *command.Ctx, options int) (o engine.ReserveOptions, err error) {
	if o.TakeOptions, err = parseRate(c.Args[2], c.Args[3]); err != nil {
		return o, err
	}
	return o, parseTakeOptions(c, &o, c.Args[options:])
}

// parseRate reads a limit and a period in ms.
func parseRate(limit, period []byte) (o engine.TakeOptions, err error) {
	n, ms, err := command.ParseTwo(limit, period)
	if ms < 1 || ms > limiter.MaxPeriod/1000 {
		ms = 0 // the engine rejects 0, after the checks that come first
	}
	return engine.TakeOptions{Limit: n, Period: ms * 1000, Cost: 1}, err
}

// parseTakeOptions reads the options that the grammar of the command has.
func parseTakeOptions(c *command.Ctx, o *engine.ReserveOptions, args [][]byte) error {
	o.MaxWait = -1
	for len(args) > 0 {
		word, n := args[0], int64(0)
		if command.EqualFold(word, "PEEK") && takes(c, "PEEK") {
			o.Peek = true
			args = args[1:]
			continue
		}
		if len(args) < 2 {
			return command.ErrSyntax
		}
		if command.EqualFold(word, "ALGO") && takes(c, "ALGO") {
			if !parseAlgo(args[1], &o.Algo) {
				return errAlgo
			}
			args = args[2:]
			continue
		}
		n, ok := numeral.ParseInt(args[1])
		switch {
		case command.EqualFold(word, "COST") && takes(c, "COST"):
			o.Cost = n
		case command.EqualFold(word, "BURST") && takes(c, "BURST"):
			if o.Burst = n; ok && n < 1 {
				return errBurst
			}
		case command.EqualFold(word, "MAXWAIT") && takes(c, "MAXWAIT"):
			if ok && n < 0 {
				return errMaxWait
			}
			o.MaxWait = min(n, math.MaxInt64/1000) * 1000
		case command.EqualFold(word, "TOKEN") && c.Host.Replaying():
			if err := c.Tx.CheckToken(n); ok && err != nil {
				return err
			}
			o.ID = n
		default:
			return command.ErrSyntax
		}
		if !ok {
			return command.ErrNotInteger
		}
		args = args[2:]
	}
	return nil
}

// takes reports whether the command's grammar has an optional word.
func takes(c *command.Ctx, word string) bool {
	for i := range c.Spec.Args {
		if c.Spec.Args[i].Token == word {
			return true
		}
	}
	return false
}

func parseAlgo(b []byte, a *limiter.Algo) bool {
	for x := range limiter.Algos {
		if command.EqualFold(b, x.String()) {
			*a = x
			return true
		}
	}
	return false
}

var specRLTakeAll = command.Spec{
	Name: "rl.takeall", Group: command.GroupLimiter, Since: "0.4.0", Complexity: "O(N) where N is the number of limiters",
	Summary: "Takes from several rate limiters: from all of them, or from none.",
	Flags:   command.Write | command.DenyOOM | command.Timed,
	Args: []command.Arg{command.Count("numkeys"), command.ManyKeys("key", command.Update|command.Access),
		command.Repeat(command.Block("rate", command.Int("limit"), command.Int("period-ms"))), costArg(), algoArg(),
		command.Opt(command.Token("PEEK"))},
	Replies: "An array: 1 if all allow it, else 0; and for each key, in order, the five integers of RL.TAKE: the state after " +
		"taking if the reply is 1, else the reply of each limiter alone. There is a limit and a period for each key.",
	Errors: append([]string{
		"ERR the same key is named twice: two of the keys are equal",
		"ERR a limit and a period are needed for each key: the numbers are not twice as many as the keys",
		"ERR numkeys should be greater than 0: numkeys is not a positive number",
	}, takeErrors...),
	Examples: `
> RL.TAKEALL 2 user:1 all 1 1000 100 1000
1) (integer) 1
2) 1) (integer) 1
   2) (integer) 1
   3) (integer) 0
   4) (integer) -1
   5) (integer) 1000000
3) 1) (integer) 1
   2) (integer) 100
   3) (integer) 99
   4) (integer) -1
   5) (integer) 10000
`,
	Run: runRLTakeAll,
}

func runRLTakeAll(c *command.Ctx) error {
	keys, all, err := parseTakeAll(c)
	if err != nil {
		return err
	}

	for i := range all {
		all[i].Behind = c.Behind(keys[i], engine.Limiter)
	}
	answers := make([]engine.Taken, 0, len(keys))
	allowed, err := c.Tx.TakeAll(keys, all, func(t engine.Taken) { answers = append(answers, t) })
	if err != nil {
		return err
	}

	c.Out.Array(1 + len(keys))
	c.Out.Int(oneIf(allowed))
	for _, t := range answers {
		replyTaken(c, t)
	}
	return nil
}

// parseTakeAll reads the request of RL.TAKEALL.
func parseTakeAll(c *command.Ctx) (keys [][]byte, all []engine.TakeOptions, err error) {
	n, ok := numeral.ParseInt(c.Args[1])
	switch {
	case !ok || n < 1:
		return nil, nil, command.ErrNumKeys
	case n > int64(len(c.Args)-2)/3:
		return nil, nil, errLimitPairs
	}
	keys = c.Args[2 : 2+n]
	if twice(keys) {
		return nil, nil, errSameKey
	}
	all = make([]engine.TakeOptions, n)
	for i := range all {
		p := c.Args[2+int(n)+2*i:]
		if all[i], err = parseRate(p[0], p[1]); err != nil {
			return nil, nil, err
		}
	}
	rest := c.Args[2+3*n:]
	if len(rest) > 0 {
		if _, more := numeral.ParseInt(rest[0]); more {
			return nil, nil, errLimitPairs
		}
	}
	o := engine.ReserveOptions{TakeOptions: engine.TakeOptions{Cost: 1}}
	if err := parseTakeOptions(c, &o, rest); err != nil {
		return nil, nil, err
	}
	for i := range all {
		all[i].Algo, all[i].Cost, all[i].Peek = o.Algo, o.Cost, o.Peek
	}
	return keys, all, nil
}

// twice reports whether a key occurs twice.
func twice(keys [][]byte) bool {
	seen := make(map[string]bool, len(keys))
	for _, k := range keys {
		if seen[string(k)] {
			return true
		}
		seen[string(k)] = true
	}
	return false
}

var specCLThrottle = command.Spec{
	Name: "cl.throttle", Group: command.GroupLimiter, Since: "0.4.0", Complexity: "O(1)",
	Summary: "Takes from a rate limiter, in the form of the module redis-cell.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Timed,
	Args: []command.Arg{command.Key("key", command.Update|command.Access), command.Int("max_burst"),
		command.Int("count"), command.Int("period"),
		command.Opt(command.Int("quantity"))},
	Replies: "Five integers: 0 if allowed, 1 if limited; max_burst + 1; the remaining requests; retry-after in seconds, " +
		"-1 if it is allowed, or never will be; reset-after in seconds. Seconds are rounded up, so that a client that waits " +
		"that long is not limited. The rate is count in period seconds, by default one is taken. The same as RL.TAKE key count " +
		"period x 1000 BURST max_burst + 1 COST quantity.",
	Errors: throttleErrors,
	Examples: `
> CL.THROTTLE user123 15 30 60 1
1) (integer) 0
2) (integer) 16
3) (integer) 15
4) (integer) -1
5) (integer) 2
> CL.THROTTLE user123 15 30 60 16
1) (integer) 1
2) (integer) 16
3) (integer) 15
4) (integer) 2
5) (integer) 2
`,
	Run: runCLThrottle,
}

func runCLThrottle(c *command.Ctx) error {
	period, ok := numeral.ParseInt(c.Args[4])
	if !ok {
		return command.ErrNotInteger
	}
	if period < 1 || period > limiter.MaxPeriod/1_000_000 {
		return errSeconds
	}
	o, err := parseThrottle(c, period*1000)
	if err != nil {
		return err
	}
	if len(c.Args) == 6 {
		if o.Cost, ok = numeral.ParseInt(c.Args[5]); !ok {
			return command.ErrNotInteger
		}
	} else if len(c.Args) > 6 {
		return command.ErrSyntax
	}

	return throttle(c, o)
}

var specGCRA = command.Spec{
	Name: "gcra", Group: command.GroupLimiter, Since: "0.4.0", Complexity: "O(1)",
	Summary: "Takes from a rate limiter: a burst, and then tokens-per-period evenly.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Timed,
	Args: []command.Arg{command.Key("key", command.Update|command.Access), command.Int("max-burst"), command.Int("tokens-per-period"),
		command.Double("period"),
		command.Opt(command.TokenArg("TOKENS", command.Int("count")))},
	Replies: "Five integers: 0 if allowed, 1 if limited; max-burst + 1; the remaining requests; retry-after in seconds, " +
		"-1 if it is allowed, or never will be; reset-after in seconds. Seconds are rounded up. The period is in seconds " +
		"and may have a fraction, down to a millisecond.",
	Errors: throttleErrors,
	Examples: `
> GCRA user:1 4 10 1 TOKENS 5
1) (integer) 0
2) (integer) 5
3) (integer) 0
4) (integer) -1
5) (integer) 1
> GCRA user:1 4 10 1
1) (integer) 1
2) (integer) 5
3) (integer) 0
4) (integer) 1
5) (integer) 1
`,
	Run: runGCRA,
}

func runGCRA(c *command.Ctx) error {
	seconds, ok := numeral.ParseDouble(c.Args[4])
	switch {
	case !ok:
		return command.ErrNotFloat
	case !(seconds >= 0.001 && seconds <= limiter.MaxPeriod/1e6):
		return errSeconds
	}
	o, err := parseThrottle(c, int64(math.Round(seconds*1000)))
	if err != nil {
		return err
	}
	if len(c.Args) > 5 {
		if len(c.Args) != 7 || !command.EqualFold(c.Args[5], "TOKENS") {
			return command.ErrSyntax
		}
		if o.Cost, ok = numeral.ParseInt(c.Args[6]); !ok {
			return command.ErrNotInteger
		}
	}

	return throttle(c, o)
}

// parseThrottle reads "max-burst count" for a period in ms.
func parseThrottle(c *command.Ctx, ms int64) (o engine.TakeOptions, err error) {
	burst, count, err := command.ParseTwo(c.Args[2], c.Args[3])
	switch {
	case err != nil:
		return o, err
	case burst < 0 || burst >= limiter.MaxTokens:
		return o, errMaxBurst
	}
	return engine.TakeOptions{Limit: count, Period: ms * 1000, Burst: burst + 1, Cost: 1}, nil
}

// throttle takes from the limiter, and replies as redis-cell does.
func throttle(c *command.Ctx, o engine.TakeOptions) error {
	o.Behind = c.Behind(c.Args[1], engine.Limiter)
	t, err := c.Tx.Take(c.Args[1], o)
	if err != nil {
		return err
	}
	c.Out.Array(5)
	for _, n := range [...]int64{oneIf(!t.Allowed), t.Limit, t.Remaining, ceilSeconds(t.Retry), ceilSeconds(t.Reset)} {
		c.Out.Int(n)
	}
	return nil
}

// ceilSeconds rounds us up to seconds; it returns -1 unchanged.
func ceilSeconds(us int64) int64 {
	if us < 0 {
		return us
	}
	return (us + 999999) / 1000000
}
