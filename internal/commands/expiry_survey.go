package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
)

var specExpirySurvey = command.Spec{
	Name: "expiry|survey", Group: command.GroupExpiry, Since: "0.7.0",
	Complexity: "O(1): it adds up the slots of the timing wheels, at most some thousands in each shard.",
	Summary:    "Returns the number of keys and containers that expire in each coming second, minute, hour and day, in all databases.",
	Flags:      command.ReadOnly | command.SelfLock,
	FanOut:     command.FanOutOne,
	Tips:       []string{"nondeterministic_output", "request_policy:all_shards"},
	Replies: "A map of three:\n\n" +
		"* at: the instant in ms since 1970 from which on the command counts.\n" +
		"* keys: the keys, by when they fall due.\n" +
		"* containers: the containers, each by when the next of its items falls due.\n\n" +
		"The last two are maps of due (expired and not removed yet), seconds (60 counts, of the next minute), minutes (60, of the next hour), " +
		"hours (48), days (31) and later. Each series begins at the same instant: the first minute is the sum of the seconds.\n\n" +
		"The command visits no keys: with a million keys it takes less than a millisecond. The sum of all counts is exact. A count may be " +
		"wrong by the content of the wheel's slots that an end of its interval cuts (256 ms within a minute, 65 s within hours, 4.7 hours " +
		"within weeks); up to 64 deadlines in each shard and database it looks at one by one. A limiter counts up to an eighth of its time " +
		"early, and as a container while clients wait for it.",
	Examples: `
> SET a 1 PX 1500
OK
> SET b 1 EX 86400
OK
> EXPIRY SURVEY
1) "at"
2) (integer) 1700000000000
3) "keys"
4)  1) "due"
    2) (integer) 0
    3) "seconds"
    4)  1) (integer) 0
        2) (integer) 1
        3) (integer) 0
...
    9) "days"
   10)  1) (integer) 1
        2) (integer) 1
        3) (integer) 0
...
`,
	Run: runExpirySurvey,
}

func runExpirySurvey(c *command.Ctx) error {
	v := c.Tx.DueSurvey()

	c.Out.Map(3)
	putInt(c, "at", v.At)
	putDue(c, "keys", &v.Keys)
	putDue(c, "containers", &v.Containers)
	return nil
}

// putDue replies with the counts of keys, or of containers.
func putDue(c *command.Ctx, name string, d *engine.DueCounts) {
	c.Out.BulkString(name)
	c.Out.Map(6)
	putInt(c, "due", d.Due)
	for _, s := range [...]struct {
		name   string
		counts []int64
	}{{"seconds", d.Seconds[:]}, {"minutes", d.Minutes[:]}, {"hours", d.Hours[:]}, {"days", d.Days[:]}} {
		c.Out.BulkString(s.name)
		c.Out.Array(len(s.counts))
		for _, n := range s.counts {
			c.Out.Int(n)
		}
	}
	putInt(c, "later", d.Later)
}
