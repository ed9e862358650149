package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/internal/numeral"
)

var specExpiryForecast = command.Spec{
	Name: "expiry|forecast", Group: command.GroupExpiry, Since: "0.4.0",
	Complexity: "O(1) for keys. O(N) with MATCH, or where containers have items with deadlines, where N is the number of keys. It " +
		"holds up no other client for longer than a slice of that.",
	Summary: "Returns the number of keys and items that expire in each coming interval.",
	Flags:   command.ReadOnly | command.SelfLock | command.Slow,
	FanOut:  command.FanOutOne,
	Args: []command.Arg{command.Opt(command.TokenArg("MATCH", command.Pattern("pattern"))),
		command.Opt(command.TokenArg("HORIZON", command.Int("milliseconds"))),
		command.Opt(command.TokenArg("BUCKETS", command.Int("count")))},
	Tips: []string{"nondeterministic_output", "request_policy:all_shards"},
	Replies: "For each interval an array: from and to, in ms from now on, and the number of deadlines from the one up " +
		"to, but not including, the other. HORIZON is a minute by " +
		"default, BUCKETS 10. The count leaves out expired keys and items, and items whose key expires first; of a lock, " +
		"a semaphore or a queue it includes only the next deadline. " +
		"With tens of thousands of keys with deadlines, counts beyond the next quarter of a second are estimates. Their error is " +
		"the content of one slot of the timing wheel (256 ms within a minute, 65 s within hours, 4.7 hours within weeks); with MATCH " +
		"the command checks each key. Writes during the command make the numbers approximate.",
	Errors: []string{
		"ERR HORIZON must be between 1 and 3153600000000: the span is not positive, or longer than a hundred years",
		"ERR BUCKETS must be between 1 and 1000: the number is outside of that",
	},
	Examples: `
> SET a 1 PX 500
OK
> SET b 1 PX 1500
OK
> HSET h f v g w
(integer) 2
> EXPIRY FORECAST HORIZON 2000 BUCKETS 2
1) 1) (integer) 0
   2) (integer) 1000
   3) (integer) 1
2) 1) (integer) 1000
   2) (integer) 2000
   3) (integer) 1
> EXPIRY FORECAST MATCH b* BUCKETS 1
1) 1) (integer) 0
   2) (integer) 60000
   3) (integer) 1
`,
	Run: runExpiryForecast,
}

const (
	errHorizon = command.ReplyError("ERR HORIZON must be between 1 and 3153600000000")
	errBuckets = command.ReplyError("ERR BUCKETS must be between 1 and 1000")

	maxHorizon  = 100 * 365 * 86400 * 1000 // ms
	maxBuckets  = 1000
	someHorizon = 60_000
	someBuckets = 10
)

func runExpiryForecast(c *command.Ctx) error {
	var match func([]byte) bool
	horizon, buckets := int64(someHorizon), int64(someBuckets)
	for args := c.Args[2:]; len(args) > 0; args = args[2:] {
		if len(args) < 2 {
			return command.ErrSyntax
		}
		n, ok := numeral.ParseInt(args[1])
		switch pattern := args[1]; {
		case command.EqualFold(args[0], "MATCH"):
			prepared := glob.New(pattern)
			match = prepared.Match
			continue
		case command.EqualFold(args[0], "HORIZON"):
			if horizon = n; ok && (n < 1 || n > maxHorizon) {
				return errHorizon
			}
		case command.EqualFold(args[0], "BUCKETS"):
			if buckets = n; ok && (n < 1 || n > maxBuckets) {
				return errBuckets
			}
		default:
			return command.ErrSyntax
		}
		if !ok {
			return command.ErrNotInteger
		}
	}

	f := c.Tx.Forecast(horizon, int(buckets), bothMatch(match, c.Host.MayReadKeys(c)))

	c.Out.Array(len(f.Counts))
	from := f.From
	for i, n := range f.Counts {
		c.Out.Array(3)
		c.Out.Int(from - f.From)
		c.Out.Int(f.Bounds[i] - f.From)
		c.Out.Int(int64(n))
		from = f.Bounds[i]
	}
	return nil
}

var specExpiryNext = command.Spec{
	Name: "expiry|next", Group: command.GroupExpiry, Since: "0.4.0",
	Complexity: "O(N) where N is the number of deadlines in the slots of the timing wheels that come next: few if they " +
		"are near, many if thousands lie in the same far hours.",
	Summary: "Returns the next deadline.",
	Flags:   command.ReadOnly | command.SelfLock | command.Slow,
	FanOut:  command.FanOutOne,
	Tips:    []string{"nondeterministic_output", "request_policy:all_shards"},
	Replies: "An array: the deadline in ms since 1970, the level (key, field, member, element or lease), and the key; or nil if nothing " +
		"that the user may read in the database has a deadline. Expired keys and items are skipped.",
	Examples: `
> EXPIRY NEXT
(nil)
> SET k v PX 1500
OK
> EXPIRY NEXT
1) (integer) 1700000001500
2) "key"
3) "k"
`,
	Run: runExpiryNext,
}

func runExpiryNext(c *command.Ctx) error {
	x, ok := nextDue(c)
	if !ok {
		c.Out.Null()
		return nil
	}
	c.Out.Array(3)
	c.Out.Int(x.Deadline)
	c.Out.BulkString(x.Level.String())
	c.Out.Bulk(x.Key)
	return nil
}

// nextDue returns the next key or item to expire among those that the user may read.
func nextDue(c *command.Ctx) (x engine.NextDue, ok bool) {
	may := c.Host.MayReadKeys(c)
	if may == nil {
		return c.Tx.NextDue()
	}
	rows, _ := c.Tx.Soon(engine.SoonOptions{Count: 1, Match: may})
	if len(rows) == 0 {
		return x, false
	}
	return engine.NextDue{Deadline: rows[0].Deadline, Level: rows[0].Level, Key: rows[0].Key}, true
}

var specExpiryLag = command.Spec{
	Name: "expiry|lag", Group: command.GroupExpiry, Since: "0.4.0", Complexity: "O(1)",
	Summary: "Returns how late expired keys and items were removed.",
	Flags:   command.ReadOnly | command.SelfLock,
	FanOut:  command.FanOutOne,
	Tips:    []string{"nondeterministic_output", "request_policy:all_nodes", "response_policy:special"},
	Replies: "A map: for each level (key, field, member, element, lease) and for all a map of count, p50-us, p99-us, " +
		"p99.9-us and max-us, since the start or CONFIG RESETSTAT; then " +
		"backlog, the number of keys, and of containers of items, that are due and not removed. Expired data is invisible, " +
		"however late it is removed.",
	Examples: `
> SET k v PX 1000
OK
~ 1001ms
> EXPIRY LAG
 1) "key"
 2)  1) "count"
     2) (integer) 1
     3) "p50-us"
     4) (integer) 1000
     5) "p99-us"
     6) (integer) 1000
     7) "p99.9-us"
     8) (integer) 1000
     9) "max-us"
    10) (integer) 1000
 3) "field"
 4)  1) "count"
     2) (integer) 0
     3) "p50-us"
     4) (integer) 0
     5) "p99-us"
     6) (integer) 0
     7) "p99.9-us"
     8) (integer) 0
     9) "max-us"
    10) (integer) 0
 5) "member"
 6)  1) "count"
     2) (integer) 0
     3) "p50-us"
     4) (integer) 0
     5) "p99-us"
     6) (integer) 0
     7) "p99.9-us"
     8) (integer) 0
     9) "max-us"
    10) (integer) 0
 7) "element"
 8)  1) "count"
     2) (integer) 0
     3) "p50-us"
     4) (integer) 0
     5) "p99-us"
     6) (integer) 0
     7) "p99.9-us"
     8) (integer) 0
     9) "max-us"
    10) (integer) 0
 9) "lease"
10)  1) "count"
     2) (integer) 0
     3) "p50-us"
     4) (integer) 0
     5) "p99-us"
     6) (integer) 0
     7) "p99.9-us"
     8) (integer) 0
     9) "max-us"
    10) (integer) 0
11) "all"
12)  1) "count"
     2) (integer) 1
     3) "p50-us"
     4) (integer) 1000
     5) "p99-us"
     6) (integer) 1000
     7) "p99.9-us"
     8) (integer) 1000
     9) "max-us"
    10) (integer) 1000
13) "backlog"
14) (integer) 0
`,
	Run: runExpiryLag,
}

func runExpiryLag(c *command.Ctx) error {
	stats := c.Tx.Stats()
	due, _ := c.Tx.Backlog()

	c.Out.Map(int(engine.Levels) + 2)
	for l := range engine.Levels {
		lag(c, l.String(), &stats.Lag[l])
	}
	all := stats.LagOf()
	lag(c, "all", &all)
	putInt(c, "backlog", due)
	return nil
}

// lag replies with a histogram.
func lag(c *command.Ctx, name string, h *engine.Histogram) {
	c.Out.BulkString(name)
	c.Out.Map(5)
	putInt(c, "count", h.Count)
	putInt(c, "p50-us", h.Quantile(0.50))
	putInt(c, "p99-us", h.Quantile(0.99))
	putInt(c, "p99.9-us", h.Quantile(0.999))
	putInt(c, "max-us", h.Max)
}
