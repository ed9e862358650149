package servercmd

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/session"
)

var specMemory = command.Spec{
	Name: "memory", Group: command.GroupServer, Since: "4.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about memory.",
	Sub:     []*command.Spec{&specMemoryDoctor, &specMemoryHelp, &specMemoryMallocStats, &specMemoryPurge, &specMemoryStats, &specMemoryUsage},
}

var specMemoryHelp = memoryHelp()

func memoryHelp() command.Spec {
	s := command.HelpSpec("memory", command.GroupServer, 0)
	s.Since = "4.0.0"
	return s
}

var specMemoryUsage = command.Spec{
	Name: "memory|usage", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(1)",
	Summary: "Returns the number of bytes that a key and its value take.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta), command.Opt(command.TokenArg("SAMPLES", command.Int("count")))},
	Replies: "Bytes, counted and not estimated, whatever SAMPLES says; nil if there is no such key.",
	Examples: `
> SET k v
OK
> MEMORY USAGE k
(integer) $bytes > 1
> MEMORY USAGE nothing
(nil)
`,
	Run: runMemoryUsage,
}

func runMemoryUsage(c *command.Ctx) error {
	for i := 3; i < len(c.Args); i += 2 {
		if !command.EqualFold(c.Args[i], "SAMPLES") || i+1 == len(c.Args) {
			return command.ErrSyntax
		}
		n, ok := numeral.ParseInt(c.Args[i+1])
		switch {
		case !ok:
			return command.ErrNotInteger
		case n < 0:
			return command.ErrSyntax
		}
	}
	if n, ok := c.Tx.MemoryUsage(c.Args[2]); ok {
		c.Out.Int(n)
	} else {
		c.Out.Null()
	}
	return nil
}

// memoryTips are the tips of commands for which every shard has a reply of its own.
var memoryTips = []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"}

var specMemoryStats = command.Spec{
	Name: "memory|stats", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(N) where N is the number of clients",
	Summary: "Returns how the memory is used.",
	Flags:   command.SelfLock | command.Inert,
	FanOut:  command.FanOutOne,
	Tips:    memoryTips,
	Replies: "A map of names and numbers: bytes, and ratios.",
	Examples: `
> MEMORY STATS
 1) "peak.allocated"
$_
...
`,
	Run: runMemoryStats,
}

func runMemoryStats(c *command.Ctx) error {
	m := session.ServiceOf(c).Admin().Memory(c.Tx)
	w := c.Out
	l := w.MapLater()
	n := 0
	num := func(name string, v int64) { w.BulkString(name); w.Int(v); n++ }
	float := func(name string, v float64) { w.BulkString(name); w.Double(v); n++ }
	num("peak.allocated", m.Peak)
	num("total.allocated", m.Used)
	num("startup.allocated", 0)
	num("replication.backlog", 0)
	num("clients.slaves", 0)
	num("clients.normal", m.Clients)
	num("cluster.links", 0)
	num("aof.buffer", 0)
	scripts := session.ServiceOf(c).Scripts().Stats()
	num("lua.caches", int64(scripts.ScriptBytes))
	num("functions.caches", int64(scripts.FunctionBytes))
	for _, t := range m.Tables {
		w.BulkString(fmt.Sprintf("db.%d", t.DB))
		w.Map(2)
		w.BulkString("overhead.hashtable.main")
		w.Int(t.Tables)
		w.BulkString("overhead.hashtable.expires")
		w.Int(t.Deadlines)
		n++
	}
	num("overhead.total", m.Overhead)
	num("keys.count", m.Keys)
	num("keys.bytes-per-key", m.Used/max(m.Keys, 1))
	num("dataset.bytes", m.Used-m.Overhead)
	float("dataset.percentage", 100*admin.Ratio(m.Used-m.Overhead, m.Used))
	float("peak.percentage", 100*admin.Ratio(m.Used, m.Peak))
	num("allocator.allocated", m.Used)
	num("allocator.active", m.Held)
	num("allocator.resident", m.Held+m.Idle)
	float("allocator-fragmentation.ratio", admin.Ratio(m.Held, m.Used))
	num("allocator-fragmentation.bytes", m.Held-m.Used)
	float("allocator-rss.ratio", admin.Ratio(m.Held+m.Idle, m.Held))
	num("allocator-rss.bytes", m.Idle)
	float("rss-overhead.ratio", admin.Ratio(m.RSS, m.Held+m.Idle))
	num("rss-overhead.bytes", m.RSS-m.Held-m.Idle)
	float("fragmentation", admin.Ratio(m.RSS, m.RSS-m.Gaps()))
	num("fragmentation.bytes", m.Gaps())
	w.Patch(l, n)
	return nil
}

var specMemoryDoctor = command.Spec{
	Name: "memory|doctor", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(N) where N is the number of clients",
	Summary: "Reports problems of memory use in words.",
	Flags:   command.SelfLock | command.Inert,
	FanOut:  command.FanOutOne,
	Tips:    memoryTips,
	Examples: `
> MEMORY DOCTOR
"There is so little data (0B) that nothing can be said about its memory.\n"
`,
	Run: runMemoryDoctor,
}

// doctorNeeds is the size of the data, in bytes, below which ratios mean nothing: the process
// itself takes up some megabytes.
const doctorNeeds = 5 << 20

func runMemoryDoctor(c *command.Ctx) error {
	m := session.ServiceOf(c).Admin().Memory(c.Tx)
	if m.Used < doctorNeeds {
		c.Out.Verbatim("txt", fmt.Sprintf("There is so little data (%s) that nothing can be said about its memory.\n", admin.HumanBytes(m.Used)))
		return nil
	}
	var b strings.Builder
	say := func(when bool, format string, args ...any) {
		if when {
			fmt.Fprintf(&b, "* "+format+"\n", args...)
		}
	}
	limit := session.ServiceOf(c).Config.MaxMemory()
	data := m.Used - session.ServiceOf(c).DB.Apart()
	say(limit > 0 && data > limit/10*9, "Data takes up %s of the %s of maxmemory: at the limit writes "+
		"are refused.", admin.HumanBytes(data), admin.HumanBytes(limit))
	say(m.Used < m.Peak/2, "Data takes up less than half of what it did at its peak (%s): the rest goes back to the system in slices.",
		admin.HumanBytes(m.Peak))
	say(m.Held > m.Used*3/2, "Slabs hold %s for %s of data: deletes have left gaps, which compaction closes "+
		"in slices.", admin.HumanBytes(m.Held), admin.HumanBytes(m.Used))
	say(m.Clients > m.Used/4, "Clients' buffers take up %s: look for large omem in CLIENT LIST.", admin.HumanBytes(m.Clients))
	if b.Len() == 0 {
		b.WriteString("Nothing remarkable.\n")
	}
	c.Out.Verbatim("txt", b.String())
	return nil
}

var specMemoryPurge = command.Spec{
	Name: "memory|purge", Group: command.GroupServer, Since: "4.0.0", Complexity: "Depends on how much memory Go holds, could be slow",
	Summary: "Returns memory that Go holds and does not use to the system. Idle memory of the data is returned without this command.",
	Flags:   command.Slow,
	FanOut:  command.FanOutOne,
	Tips:    []string{"request_policy:all_shards", "response_policy:all_succeeded"},
	Examples: `
> MEMORY PURGE
OK
`,
	Run: runMemoryPurge,
}

func runMemoryPurge(c *command.Ctx) error {
	debug.FreeOSMemory()
	c.Out.OK()
	return nil
}

var specMemoryMallocStats = command.Spec{
	Name: "memory|malloc-stats", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(N) where N is the number of clients",
	Summary: "Returns statistics of the allocators, as text.",
	Flags:   command.SelfLock | command.Inert,
	FanOut:  command.FanOutOne,
	Tips:    memoryTips,
	Examples: `
> MEMORY MALLOC-STATS
"slabs in use $_"
`,
	Run: runMemoryMallocStats,
}

func runMemoryMallocStats(c *command.Ctx) error {
	m := session.ServiceOf(c).Admin().Memory(c.Tx)
	var g runtime.MemStats
	runtime.ReadMemStats(&g)
	c.Out.Verbatim("txt", fmt.Sprintf("slabs in use %d\nslabs idle %d\nliving bytes %d\ngo heap in use %d\ngo heap idle "+
		"%d\ngo heap released %d\ngo stacks %d\ngo collections %d\n",
		m.Held, m.Idle, m.Used, g.HeapInuse, g.HeapIdle, g.HeapReleased, g.StackInuse, g.NumGC))
	return nil
}
