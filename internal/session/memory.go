package session

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/resp"
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

// memoryNumbers is where the memory is, in bytes.
type memoryNumbers struct {
	used      int64                  // living: records, values, tables, and what clients have the server keep
	peak      int64                  // the most that used was seen to be
	held      int64                  // slabs in use
	idle      int64                  // slabs kept for later
	overhead  int64                  // of used: tables, deadlines, all that is not data
	protected engine.ProtectedMemory // of used: what is never evicted, and limiters
	rss       int64                  // of the process; what Go took from the system where that is not known
	heap      int64                  // Go's own
	clients   int64
	keys      int64
	tables    []tableNumbers
}

// tableNumbers is the overhead of one database.
type tableNumbers struct{ db, tables, deadlines int64 }

// gaps is what the process would do without if slabs held living bytes alone.
func (m *memoryNumbers) gaps() int64 { return max(0, min(m.held+m.idle-m.used, m.rss-1)) }

func memory(c *command.Ctx) memoryNumbers {
	m := memoryNumbers{used: c.Tx.UsedMemory()}
	m.protected = c.Tx.ProtectedMemory()
	for db, k := range c.Tx.Keyspaces() {
		if k.Keys+k.Due == 0 {
			continue
		}
		tables, deadlines := c.Tx.TableMemory(db)
		m.count(int64(db), tables, deadlines, int64(k.Keys))
	}
	serviceOf(c).settleMemory(&m)
	return m
}

// count adds the overhead of a database, and its living keys.
func (m *memoryNumbers) count(db, tables, deadlines, keys int64) {
	m.tables = append(m.tables, tableNumbers{db, tables, deadlines})
	m.overhead += tables + deadlines
	m.keys += keys
}

// settleMemory fills in what is known without a look at the shards.
func (s *Service) settleMemory(m *memoryNumbers) {
	for {
		m.peak = s.peak.Load()
		if m.used <= m.peak || s.peak.CompareAndSwap(m.peak, m.used) {
			break
		}
	}
	m.peak = max(m.peak, m.used)
	m.overhead += s.DB.Charged()
	held, idle := s.DB.HeldMemory()
	m.held, m.idle = int64(held), int64(idle)
	for _, x := range s.clients.list() {
		m.clients += x.memory().total()
	}
	heap, total := goMemory()
	m.heap = heap
	if m.rss = admin.ResidentMemory(); m.rss == 0 {
		m.rss = total + m.held + m.idle
	}
}

// goMemory returns the bytes of Go's objects, and of all that Go took from the
// system. Unlike runtime.ReadMemStats it stops nobody.
func goMemory() (objects, total int64) {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	for i := range s {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return 0, 0
		}
	}
	return int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64())
}

var specMemoryUsage = command.Spec{
	Name: "memory|usage", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(1)",
	Summary: "Returns how many bytes a key and its value take up.",
	Flags:   command.ReadOnly,
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
		n, ok := resp.ParseInt(c.Args[i+1])
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

// memoryTips are the hints on commands that every shard answers for itself.
var memoryTips = []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"}

var specMemoryStats = command.Spec{
	Name: "memory|stats", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(N) where N is the number of clients",
	Summary: "Returns where the memory is.",
	Flags:   command.SelfLock,
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
	m := memory(c)
	w := c.Out
	l := w.MapLater()
	n := 0
	num := func(name string, v int64) { w.BulkString(name); w.Int(v); n++ }
	float := func(name string, v float64) { w.BulkString(name); w.Double(v); n++ }
	num("peak.allocated", m.peak)
	num("total.allocated", m.used)
	num("startup.allocated", 0)
	num("replication.backlog", 0)
	num("clients.slaves", 0)
	num("clients.normal", m.clients)
	num("cluster.links", 0)
	num("aof.buffer", 0)
	scripts := serviceOf(c).scripts.Stats()
	num("lua.caches", int64(scripts.ScriptBytes))
	num("functions.caches", int64(scripts.FunctionBytes))
	for _, t := range m.tables {
		w.BulkString(fmt.Sprintf("db.%d", t.db))
		w.Map(2)
		w.BulkString("overhead.hashtable.main")
		w.Int(t.tables)
		w.BulkString("overhead.hashtable.expires")
		w.Int(t.deadlines)
		n++
	}
	num("overhead.total", m.overhead)
	num("keys.count", m.keys)
	num("keys.bytes-per-key", m.used/max(m.keys, 1))
	num("dataset.bytes", m.used-m.overhead)
	float("dataset.percentage", 100*ratio(m.used-m.overhead, m.used))
	float("peak.percentage", 100*ratio(m.used, m.peak))
	num("allocator.allocated", m.used)
	num("allocator.active", m.held)
	num("allocator.resident", m.held+m.idle)
	float("allocator-fragmentation.ratio", ratio(m.held, m.used))
	num("allocator-fragmentation.bytes", m.held-m.used)
	float("allocator-rss.ratio", ratio(m.held+m.idle, m.held))
	num("allocator-rss.bytes", m.idle)
	float("rss-overhead.ratio", ratio(m.rss, m.held+m.idle))
	num("rss-overhead.bytes", m.rss-m.held-m.idle)
	float("fragmentation", ratio(m.rss, m.rss-m.gaps()))
	num("fragmentation.bytes", m.gaps())
	w.Patch(l, n)
	return nil
}

var specMemoryDoctor = command.Spec{
	Name: "memory|doctor", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(N) where N is the number of clients",
	Summary: "Says in words what is remarkable about the memory.",
	Flags:   command.SelfLock,
	FanOut:  command.FanOutOne,
	Tips:    memoryTips,
	Examples: `
> MEMORY DOCTOR
"There is so little data (0B) that nothing can be said about its memory.\n"
`,
	Run: runMemoryDoctor,
}

// doctorNeeds is how many bytes of data there must be for ratios to mean
// something: the process itself takes up some megabytes.
const doctorNeeds = 5 << 20

func runMemoryDoctor(c *command.Ctx) error {
	m := memory(c)
	if m.used < doctorNeeds {
		c.Out.Verbatim("txt", fmt.Sprintf("There is so little data (%s) that nothing can be said about its memory.\n", humanBytes(m.used)))
		return nil
	}
	var b strings.Builder
	say := func(when bool, format string, args ...any) {
		if when {
			fmt.Fprintf(&b, "* "+format+"\n", args...)
		}
	}
	limit := serviceOf(c).Config.MaxMemory()
	say(limit > 0 && m.used > limit/10*9, "Data takes up %s of the %s of maxmemory: at the limit writes are refused.", humanBytes(m.used), humanBytes(limit))
	say(m.used < m.peak/2, "Data takes up less than half of what it did at its peak (%s): the rest goes back to the system in slices.", humanBytes(m.peak))
	say(m.held > m.used*3/2, "Slabs hold %s for %s of data: deletes have left gaps, which compaction closes in slices.", humanBytes(m.held), humanBytes(m.used))
	say(m.clients > m.used/4, "Clients' buffers take up %s: look for large omem in CLIENT LIST.", humanBytes(m.clients))
	if b.Len() == 0 {
		b.WriteString("Nothing remarkable.\n")
	}
	c.Out.Verbatim("txt", b.String())
	return nil
}

var specMemoryPurge = command.Spec{
	Name: "memory|purge", Group: command.GroupServer, Since: "4.0.0", Complexity: "Depends on how much memory Go holds, could be slow",
	Summary: "Gives memory back to the system that Go holds and does not use. The data's is given back as it becomes idle.",
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
	Summary: "Returns what the allocators have counted, as text.",
	Flags:   command.SelfLock,
	FanOut:  command.FanOutOne,
	Tips:    memoryTips,
	Examples: `
> MEMORY MALLOC-STATS
"slabs in use $_"
`,
	Run: runMemoryMallocStats,
}

func runMemoryMallocStats(c *command.Ctx) error {
	m := memory(c)
	var g runtime.MemStats
	runtime.ReadMemStats(&g)
	c.Out.Verbatim("txt", fmt.Sprintf("slabs in use %d\nslabs idle %d\nliving bytes %d\ngo heap in use %d\ngo heap idle %d\ngo heap released %d\ngo stacks %d\ngo collections %d\n",
		m.held, m.idle, m.used, g.HeapInuse, g.HeapIdle, g.HeapReleased, g.StackInuse, g.NumGC))
	return nil
}
