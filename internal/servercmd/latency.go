package servercmd

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/session"
)

var specLatency = command.Spec{
	Name: "latency", Group: command.GroupServer, Since: "2.8.13", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about latency.",
	Sub: []*command.Spec{&specLatencyDoctor, &specLatencyGraph, &specLatencyHelp, &specLatencyHistogram, &specLatencyHistory,
		&specLatencyLatest, &specLatencyReset},
}

var specLatencyHelp = helpSince("latency", "2.8.13")

var latencyTips = []string{"nondeterministic_output", "request_policy:all_nodes", "response_policy:special"}

var specLatencyLatest = command.Spec{
	Name: "latency|latest", Group: command.GroupServer, Since: "2.8.13", Complexity: "O(1)",
	Summary: "Returns the latest sample of every event.",
	Flags:   adminFlags | command.Inert,
	FanOut:  command.FanOutOne,
	Tips:    latencyTips,
	Replies: "For each: its name, the time in seconds, the latency in milliseconds, and the largest latency. The " +
		"server records nothing while latency-monitor-threshold is 0.",
	Examples: `
> LATENCY LATEST
(empty array)
`,
	Run: runLatencyLatest,
}

func runLatencyLatest(c *command.Ctx) error {
	m := &session.ServiceOf(c).Admin().Latencies
	names := m.Names()
	l, n := c.Out.ArrayLater(), 0
	for _, name := range names {
		s := m.Get(name)
		if len(s.Samples) == 0 {
			continue // the event was reset meanwhile
		}
		n++
		c.Out.Array(4)
		c.Out.BulkString(name)
		c.Out.Int(s.Last().At)
		c.Out.Int(s.Last().Ms)
		c.Out.Int(s.Max)
	}
	c.Out.Patch(l, n)
	return nil
}

var specLatencyHistory = command.Spec{
	Name: "latency|history", Group: command.GroupServer, Since: "2.8.13", Complexity: "O(1)",
	Summary: "Returns an event's samples.",
	Flags:   adminFlags | command.Inert,
	FanOut:  command.FanOutOne,
	Tips:    latencyTips,
	Args:    []command.Arg{command.Str("event")},
	Replies: "Up to 160 pairs of time in seconds and milliseconds, the worst of each second.",
	Examples: `
> LATENCY HISTORY command
(empty array)
`,
	Run: runLatencyHistory,
}

func runLatencyHistory(c *command.Ctx) error {
	s := session.ServiceOf(c).Admin().Latencies.Get(string(c.Args[2]))
	c.Out.Array(len(s.Samples))
	for _, x := range s.Samples {
		c.Out.Array(2)
		c.Out.Int(x.At)
		c.Out.Int(x.Ms)
	}
	return nil
}

var specLatencyGraph = command.Spec{
	Name: "latency|graph", Group: command.GroupServer, Since: "2.8.13", Complexity: "O(1)",
	Summary: "Draws an event's samples.",
	Flags:   adminFlags | command.Inert,
	FanOut:  command.FanOutOne,
	Tips:    latencyTips,
	Args:    []command.Arg{command.Str("event")},
	Replies: "A text.",
	Examples: `
> LATENCY GRAPH command
(error) ERR No samples available for event 'command'
`,
	Run: runLatencyGraph,
}

func runLatencyGraph(c *command.Ctx) error {
	s := session.ServiceOf(c).Admin().Latencies.Get(string(c.Args[2]))
	if len(s.Samples) == 0 {
		return command.ReplyError(cleantext.Reply("ERR No samples available for event '" + string(c.Args[2]) + "'"))
	}
	lo, hi := s.Span()
	c.Out.Verbatim("txt", fmt.Sprintf("%s - high %d ms, low %d ms (all time high %d ms)\n%s\n%s",
		c.Args[2], hi, lo, s.Max, strings.Repeat("-", admin.GraphCols), s.Graph(c.Now()/1e6)))
	return nil
}

var specLatencyDoctor = command.Spec{
	Name: "latency|doctor", Group: command.GroupServer, Since: "2.8.13", Complexity: "O(1)",
	Summary: "Explains the slow events in words.",
	Flags:   adminFlags | command.Inert,
	FanOut:  command.FanOutOne,
	Tips:    latencyTips,
	Examples: `
> LATENCY DOCTOR
"Nothing is measured: set latency-monitor-threshold to the milliseconds from which on you want to know.\n"
> CONFIG SET latency-monitor-threshold 100
OK
> LATENCY DOCTOR
"Nothing has taken 100 ms so far.\n"
`,
	Run: runLatencyDoctor,
}

// latencyAdvice holds the advice of LATENCY DOCTOR for each event.
var latencyAdvice = map[string]string{
	"command": "SLOWLOG GET shows the calls; large collections are better read in parts (SCAN and its kin, ZRANGE with LIMIT).",
	"fast-command": "Such a command takes a microsecond: the machine or Go's scheduler kept it waiting. Look for a lack of processors, " +
		"swapping, or long commands beside it.",
	"expire-cycle":       "Slices of reclaiming end after 150 us by themselves: the machine is short of processors.",
	"command-unblocking": "A command that has waited is run by the one that serves it: see the advice on command.",
	"eviction-cycle":     "maxmemory is reached faster than keys are evicted: give it room, or write less.",
}

func runLatencyDoctor(c *command.Ctx) error {
	m, threshold := &session.ServiceOf(c).Admin().Latencies, session.ServiceOf(c).Config.LatencyMonitorThreshold()
	var b strings.Builder
	for _, name := range m.Names() {
		s := m.Get(name)
		if len(s.Samples) == 0 {
			continue
		}
		mean, deviation, period := s.Average(c.Now() / 1e6)
		fmt.Fprintf(&b, "* %s: %d times (average %d ms, mean deviation %d ms, every %.2f s). The worst of all took %d ms. %s\n",
			name, len(s.Samples), mean, deviation, period, s.Max, latencyAdvice[name])
	}
	switch {
	case b.Len() > 0:
	case threshold == 0:
		b.WriteString("Nothing is measured: set latency-monitor-threshold to the milliseconds from which on you want to know.\n")
	default:
		fmt.Fprintf(&b, "Nothing has taken %d ms so far.\n", threshold)
	}
	c.Out.Verbatim("txt", b.String())
	return nil
}

var specLatencyReset = command.Spec{
	Name: "latency|reset", Group: command.GroupServer, Since: "2.8.13", Complexity: "O(1)",
	Summary: "Deletes the samples of events, of all if none is named.",
	Flags:   adminFlags,
	FanOut:  command.FanOutOne,
	Tips:    []string{"request_policy:all_nodes", "response_policy:agg_sum"},
	Args:    []command.Arg{command.Opt(command.Many("event"))},
	Replies: "The number of events that had samples.",
	Examples: `
> LATENCY RESET
(integer) 0
`,
	Run: runLatencyReset,
}

func runLatencyReset(c *command.Ctx) error {
	m := &session.ServiceOf(c).Admin().Latencies
	names := texts(c.Args[2:])
	if len(names) == 0 {
		names = m.Names()
	}
	n := int64(0)
	for _, name := range names {
		n += command.BoolToInt(m.Reset(name))
	}
	c.Out.Int(n)
	return nil
}

var specLatencyHistogram = command.Spec{
	Name: "latency|histogram", Group: command.GroupServer, Since: "7.0.0",
	Complexity: "O(N) where N is the number of commands with latency information being retrieved.",
	Summary:    "Returns histograms of the latency of commands.",
	Flags:      adminFlags | command.Inert,
	FanOut:     command.FanOutOne,
	Tips:       latencyTips,
	Args:       []command.Arg{command.Opt(command.Many("command"))},
	Replies: "For each called command: `calls`, and `histogram_usec`, a map of microseconds to the number of calls that took no longer. " +
		"A container includes its subcommands. Without latency-tracking the server counts nothing.",
	Examples: `
> SET k v
OK
> LATENCY HISTOGRAM set get
1) "set"
2) 1) "calls"
   2) (integer) 1
   3) "histogram_usec"
   4) 1) (integer) 1
      2) (integer) 1
`,
	Run: runLatencyHistogram,
}

func runLatencyHistogram(c *command.Ctx) error {
	var specs []*command.Spec
	add := func(s *command.Spec) {
		specs = append(specs, s)
		specs = append(specs, s.Sub...)
	}
	if len(c.Args) == 2 {
		for _, s := range c.Table.Commands() {
			add(s)
		}
	}
	for _, name := range texts(c.Args[2:]) {
		if s := c.Table.LookupFull(name); s != nil {
			add(s)
		}
	}

	l, n := c.Out.MapLater(), 0
	for _, s := range specs {
		if t := session.ServiceOf(c).Admin().Tally(s.ID(), nil); t.Timed() > 0 {
			c.Out.BulkString(s.Name)
			writeHistogram(c, &t)
			n++
		}
	}
	c.Out.Patch(l, n)
	return nil
}

// histogramSteps is the number of powers of two of the histogram, which reaches up to a minute.
const histogramSteps = 26

// writeHistogram replies with a command's calls by powers of two.
func writeHistogram(c *command.Ctx, t *admin.Tally) {
	all := t.Timed()
	c.Out.Map(2)
	c.Out.BulkString("calls")
	c.Out.Int(all)
	c.Out.BulkString("histogram_usec")
	l, n := c.Out.MapLater(), 0
	bin, sum, last := 0, int64(0), int64(0)
	for k := range histogramSteps {
		for bin < admin.LatencyBins && admin.LatencyTop(bin) <= 1<<k {
			sum += t.Latency[bin]
			bin++
		}
		if k == histogramSteps-1 {
			sum = all
		}
		if sum > last {
			// The bounds are those that Redis prints: 33 means 32 and more.
			c.Out.Int((1032<<k - 1) / 1000)
			c.Out.Int(sum)
			n++
			last = sum
		}
	}
	c.Out.Patch(l, n)
}
