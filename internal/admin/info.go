package admin

import (
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/pubsub"
	"github.com/ebbdb/ebb/internal/system"
)

// multiplexing is the way in which the server waits for connections, as INFO names it.
var multiplexing = map[bool]string{true: "epoll", false: "go"}[runtime.GOOS == "linux"]

// Info returns the sections of INFO whose names, in lower case, wanted has: "all" and
// "everything" stand for all, "default" and an empty set for all but the long ones. tx locks
// the shards that it reads by itself; now is in us.
func (s *Server) Info(tx *engine.Tx, now int64, wanted map[string]bool) string {
	all := wanted["all"] || wanted["everything"]
	def := wanted["default"] || len(wanted) == 0
	x, _ := s.scratch.Get().(*infoScratch)
	if x == nil {
		x = &infoScratch{text: make([]byte, 0, infoBytes)}
	}
	defer s.scratch.Put(x)
	i := info{tx: tx, svc: s, now: now, b: x.text[:0], scratch: x}
	for _, s := range infoSections {
		if !wanted[s.name] && !all && (s.extra || !def) {
			continue
		}
		if len(i.b) > 0 {
			i.b = append(i.b, "\r\n"...)
		}
		i.b = append(append(append(i.b, "# "...), infoTitle(s.name)...), "\r\n"...)
		s.write(&i)
	}
	if cap(i.b) <= maxInfoText*8 {
		x.text = i.b
	}
	return string(i.b)
}

// infoScratch is memory that the next INFO uses again.
type infoScratch struct {
	text     []byte
	counters engine.Counters
}

// infoBytes is the length of INFO by default, without commands and errors, rounded up.
const infoBytes = 8 << 10

// infoSections are the sections in the order in which they are shown.
var infoSections = []struct {
	name  string
	extra bool // not by default
	write func(*info)
}{
	{"server", false, (*info).server}, {"clients", false, (*info).clients}, {"memory", false, (*info).memory},
	{"persistence", false, (*info).persistence}, {"stats", false, (*info).stats}, {"expiry", false, (*info).expiry},
	{"time", false, (*info).time}, {"replication", false, (*info).replication}, {"cpu", false, (*info).cpu},
	{"modules", false, (*info).modules},
	{"commandstats", true, (*info).commandstats}, {"errorstats", false, (*info).errorstats},
	{"latencystats", true, (*info).latencystats}, {"cluster", false, (*info).cluster}, {"keyspace", false, (*info).keyspace},
}

func (i *info) replication() {
	i.svc.Replication.Info(i.put)
	i.svc.Host.InfoGroup(i.put)
}

func infoTitle(section string) string {
	if section == "cpu" {
		return "CPU"
	}
	return strings.ToUpper(section[:1]) + section[1:]
}

// info writes the sections of one INFO. What several of them need is counted
// once.
type info struct {
	tx  *engine.Tx // nil if the numbers of the engine come from survey
	svc *Server
	now int64 // us
	b   []byte

	survey *engine.Survey
	visit  func(name string, value any) // if not nil, called for each line instead of writing it

	scratch  *infoScratch // nil if counters has them already
	counters *engine.Counters
	spaces   []engine.KeyspaceStats
}

// maxInfoText is the number of bytes of a text that INFO shows. A line of a command, of which each number has a name, and a path
// are shorter.
const maxInfoText = 8 << 10

// put writes a line. Values of other types than string are written as INFO has
// them: floats with two decimals, true as 1. A text becomes one clean line.
func (i *info) put(name string, value any) {
	if i.visit != nil {
		i.visit(name, value)
		return
	}
	b := append(append(i.b, name...), ':')
	switch v := value.(type) {
	case string:
		b = append(b, cleantext.Line(v, maxInfoText)...)
	case int:
		b = strconv.AppendInt(b, int64(v), 10)
	case int64:
		b = strconv.AppendInt(b, v, 10)
	case float64:
		b = strconv.AppendFloat(b, v, 'f', 2, 64)
	case bool:
		b = strconv.AppendInt(b, int64(number(v)), 10)
	}
	i.b = append(b, "\r\n"...)
}

// zeros writes lines of fields that are always 0 in ebb.
func (i *info) zeros(names ...string) {
	for _, n := range names {
		i.put(n, 0)
	}
}

// bytes writes a number of bytes, and again for humans.
func (i *info) bytes(name string, n int64) {
	i.put(name, n)
	i.put(name+"_human", HumanBytes(n))
}

// HumanBytes returns a size with a unit, as INFO writes it.
func HumanBytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + "B"
	}
	e := min((bits.Len64(uint64(n))-1)/10, 5)
	return strconv.FormatFloat(float64(n)/float64(int64(1)<<(10*e)), 'f', 2, 64) + "KMGTP"[e-1:e]
}

func (i *info) engine() *engine.Counters {
	if i.counters == nil {
		i.counters = &i.scratch.counters
		i.tx.StatsTo(i.counters)
	}
	return i.counters
}

func (i *info) keyspaces() []engine.KeyspaceStats {
	if i.spaces == nil {
		i.spaces = i.tx.Keyspaces()
	}
	return i.spaces
}

func (i *info) numbers() (m Memory) {
	if i.survey == nil {
		return i.svc.memory(i.tx, i.keyspaces())
	}
	m.Used, m.Protected = i.survey.Used, i.survey.Protected
	for db, k := range i.survey.Databases {
		if k.Keys+k.Due > 0 {
			m.count(int64(db), k.Tables, k.Deadlines, int64(k.Keys))
		}
	}
	i.svc.settle(&m)
	return m
}

func (i *info) server() {
	up := (i.now - i.svc.Started) / 1e6
	i.svc.named.Do(func() {
		i.svc.program, _ = os.Executable()
		i.svc.system = system.OSName()
	})
	i.put("redis_version", RedisVersion)
	i.put("server_name", "ebb")
	i.put("ebb_version", Version)
	i.put("redis_git_sha1", "00000000")
	i.put("redis_git_dirty", 0)
	i.put("redis_build_id", "0")
	i.put("redis_mode", i.svc.Host.Mode())
	i.put("os", i.svc.system)
	i.put("arch_bits", strconv.IntSize)
	i.put("monotonic_clock", "Go "+runtime.Version())
	i.put("multiplexing_api", multiplexing)
	i.put("atomicvar_api", "sync/atomic")
	i.put("gcc_version", "0.0.0")
	i.put("process_id", os.Getpid())
	by := "no"
	if s := i.svc.Config.String("supervised"); (s == "systemd" || s == "auto") && os.Getenv("NOTIFY_SOCKET") != "" {
		by = "systemd"
	}
	i.put("process_supervised", by)
	i.put("run_id", i.svc.RunID)
	i.put("tcp_port", i.svc.Host.Port())
	i.put("server_time_usec", i.now)
	i.put("uptime_in_seconds", up)
	i.put("uptime_in_days", up/86400)
	i.put("hz", i.svc.Config.Int("hz"))
	i.put("configured_hz", i.svc.Config.Int("hz"))
	i.put("lru_clock", i.now/1e6&(1<<24-1))
	i.put("executable", i.svc.program)
	i.put("config_file", i.svc.Config.Path())
	i.put("io_threads_active", len(i.svc.Loops) > 2)
	i.put("availability_zone", i.svc.Config.String("availability-zone"))
	i.listeners()
	i.put("network_loops", len(i.svc.Loops)-1)
	i.put("shards", i.svc.DB.Shards())
}

// listeners writes the lines of the listeners, from the configuration.
func (i *info) listeners() {
	c, n := i.svc.Config, 0
	line := func(kind, where string) {
		i.put(fmt.Sprintf("listener%d", n), "name="+kind+where)
		n++
	}
	binds := ""
	for _, b := range c.Bind() {
		binds += ",bind=" + b
	}
	for _, l := range []struct{ kind, directive string }{{"tcp", "port"}, {"tls", "tls-port"}} {
		if port := c.Int(l.directive); port != 0 && i.svc.Host.Listening() {
			line(l.kind, fmt.Sprintf("%s,port=%d", binds, port))
		}
	}
	if path := c.String("unixsocket"); path != "" && i.svc.Host.Listening() {
		line("unix", ",bind="+path)
	}
}

func (i *info) clients() {
	n, subscribed, watching := i.svc.Host.Clients()
	i.put("connected_clients", n)
	i.put("cluster_connections", 0)
	i.put("maxclients", i.svc.Config.MaxClients())
	i.zeros("client_recent_max_input_buffer", "client_recent_max_output_buffer")
	i.put("blocked_clients", i.svc.Host.Blocked())
	if i.svc.HTTP != nil {
		open, closed := i.svc.HTTP()
		i.put("http_connections", open)
		i.put("http_closed_connections", closed)
	}
	tracking, _, _, _ := i.svc.Tracker.Sizes()
	i.put("tracking_clients", tracking)
	i.put("pubsub_clients", subscribed)
	i.put("watching_clients", watching)
	i.put("clients_in_timeout_table", i.svc.Host.BlockedWithTimeout())
	awaited, whatever := i.svc.DB.AwaitedKeys()
	if i.tx != nil {
		i.put("total_watched_keys", i.tx.WatchedKeys())
	}
	i.put("total_blocking_keys", awaited)
	i.put("total_blocking_keys_on_nokey", whatever)
	reason, actions, ms := i.svc.Host.Paused()
	i.put("paused_reason", reason)
	i.put("paused_actions", actions)
	i.put("paused_timeout_milliseconds", ms)
}

func (i *info) memory() {
	m := i.numbers()
	i.bytes("used_memory", m.Used)
	i.bytes("used_memory_rss", m.RSS)
	i.bytes("used_memory_peak", m.Peak)
	i.put("used_memory_peak_perc", percent(m.Used, m.Peak))
	i.put("used_memory_overhead", m.Overhead)
	i.put("used_memory_startup", 0)
	i.put("used_memory_dataset", m.Used-m.Overhead)
	i.put("used_memory_dataset_perc", percent(m.Used-m.Overhead, m.Used))
	i.put("allocator_allocated", m.Used)
	i.put("allocator_active", m.Held)
	i.put("allocator_resident", m.Held+m.Idle)
	i.bytes("total_system_memory", i.svc.process.read(i.svc.DB.Clock().Micros()).machine)
	scripts := i.svc.Scripts.Stats()
	i.put("used_memory_lua", scripts.ScriptHeap)
	i.put("used_memory_vm_eval", scripts.ScriptHeap)
	i.put("used_memory_lua_human", HumanBytes(int64(scripts.ScriptHeap)))
	i.put("used_memory_scripts_eval", scripts.ScriptBytes)
	i.put("number_of_cached_scripts", scripts.Scripts)
	i.put("number_of_functions", scripts.Functions)
	i.put("number_of_libraries", scripts.Libraries)
	i.put("used_memory_vm_functions", scripts.FunctionHeap)
	i.bytes("used_memory_vm_total", int64(scripts.ScriptHeap+scripts.FunctionHeap))
	i.put("used_memory_functions", scripts.FunctionBytes)
	i.bytes("used_memory_scripts", int64(scripts.ScriptBytes+scripts.FunctionBytes))
	i.bytes("maxmemory", i.svc.Config.MaxMemory())
	i.put("maxmemory_policy", i.svc.Config.String("maxmemory-policy"))
	i.put("protected_bytes", m.Protected.Protected)
	i.put("protected_limiter_bytes", m.Protected.Limiters)
	i.put("allocator_frag_ratio", Ratio(m.Held, m.Used))
	i.put("allocator_frag_bytes", m.Held-m.Used)
	i.put("allocator_rss_ratio", Ratio(m.Held+m.Idle, m.Held))
	i.put("allocator_rss_bytes", m.Idle)
	i.put("rss_overhead_ratio", Ratio(m.RSS, m.Held+m.Idle))
	i.put("rss_overhead_bytes", m.RSS-m.Held-m.Idle)
	i.put("mem_fragmentation_ratio", Ratio(m.RSS, m.RSS-m.Gaps()))
	i.put("mem_fragmentation_bytes", m.Gaps())
	i.put("mem_not_counted_for_evict", i.svc.DB.Apart())
	i.zeros("mem_replication_backlog", "mem_total_replication_buffers", "mem_clients_slaves")
	i.put("mem_clients_normal", m.Clients)
	i.zeros("mem_cluster_links", "mem_aof_buffer")
	i.put("mem_allocator", "ebb-arena")
	i.put("mem_go_heap", m.Heap)
	i.zeros("active_defrag_running", "lazyfree_pending_objects", "lazyfreed_objects")
}

func percent(part, whole int64) string {
	if whole <= 0 {
		return "0.00%"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 2, 64) + "%"
}

// Ratio returns a/b, 0 if b is not above 0.
func Ratio(a, b int64) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (i *info) stats() {
	t, total, e := &i.svc.Totals, i.svc.traffic(), i.engine()
	per := i.svc.Rates.Get()
	subs := i.svc.Broker.Sizes()
	i.put("total_connections_received", t.Connections.Load())
	for _, n := range e.Direct {
		total[0] += n
	}
	i.put("total_commands_processed", total[0])
	i.put("instantaneous_ops_per_sec", int64(per[0]))
	i.put("total_net_input_bytes", total[1])
	i.put("total_net_output_bytes", total[2])
	i.put("total_net_repl_input_bytes", i.svc.Replication.Received())
	i.put("total_net_repl_output_bytes", i.svc.Replication.Sent())
	i.put("instantaneous_input_kbps", per[1]/1024)
	i.put("instantaneous_output_kbps", per[2]/1024)
	i.put("instantaneous_input_repl_kbps", 0.0)
	i.put("instantaneous_output_repl_kbps", 0.0)
	i.put("rejected_connections", t.Rejected.Load()+i.svc.Host.Refused())
	i.svc.Replication.InfoSyncs(i.put)
	i.put("expired_fields", e.Lag[engine.LevelField].Count)
	i.put("expired_subkeys", e.Lag[engine.LevelField].Count+e.Lag[engine.LevelMember].Count+e.Lag[engine.LevelElement].Count)
	i.put("expired_keys", e.Expired)
	i.put("expired_stale_perc", i.stale())
	i.put("expired_time_cap_reached_count", e.TimeCaps)
	i.put("expire_cycle_cpu_milliseconds", e.Reclaiming/1000)
	i.put("evicted_keys", e.Evicted)
	i.put("evicted_clients", t.Evicted.Load())
	i.put("evicted_scripts", i.svc.Scripts.Stats().Evicted)
	i.zeros("total_eviction_exceeded_time", "current_eviction_exceeded_time")
	i.put("keyspace_hits", e.Hits)
	i.put("keyspace_misses", e.Misses)
	i.put("pubsub_channels", subs[pubsub.Channel])
	i.put("pubsub_patterns", subs[pubsub.Pattern])
	i.put("pubsubshard_channels", subs[pubsub.Shard])
	i.zeros("latest_fork_usec", "total_forks", "migrate_cached_sockets", "slave_expires_tracked_keys", "active_defrag_hits",
		"active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses", "total_active_defrag_time",
		"current_active_defrag_time")
	_, keys, items, prefixes := i.svc.Tracker.Sizes()
	i.put("tracking_total_keys", keys)
	i.put("tracking_total_items", items)
	i.put("tracking_total_prefixes", prefixes)
	i.zeros("unexpected_error_replies")
	i.put("total_error_replies", t.Errors.Load())
	reads, writes := i.svc.batches()
	i.zeros("dump_payload_sanitizations")
	i.put("total_reads_processed", reads)
	i.put("total_writes_processed", writes)
	i.zeros("io_threaded_reads_processed", "io_threaded_writes_processed")
	i.put("client_query_buffer_limit_disconnections", t.InputLimit.Load())
	i.put("client_output_buffer_limit_disconnections", t.OutputLimit.Load())
	i.zeros("reply_buffer_shrinks", "reply_buffer_expands")
	i.put("protocol_errors", t.ProtocolErrors.Load())
	i.put("acl_access_denied_auth", t.Denied[acl.DeniedAuth].Load())
	i.put("acl_access_denied_cmd", t.Denied[acl.DeniedCommand].Load())
	i.put("acl_access_denied_key", t.Denied[acl.DeniedKey].Load())
	i.put("acl_access_denied_channel", t.Denied[acl.DeniedChannel].Load())
}

// stale returns the percentage of keys with a deadline that are expired and not yet
// removed. ebb counts it; Redis estimates it.
func (i *info) stale() float64 {
	due, all := i.backlog()
	return 100 * Ratio(due, all)
}

// backlog returns how many keys are expired and not yet removed, and how many
// have a deadline.
func (i *info) backlog() (due, all int64) {
	if v := i.survey; v != nil {
		return v.Keys.Due + v.Containers.Due, v.Keys.Entries + v.Containers.Entries
	}
	return i.tx.Backlog()
}

// expiry writes a section that only ebb has: how late the reclaimers remove expired data.
func (i *info) expiry() {
	e := i.engine()
	due, all := i.backlog()
	i.put("expiry_items", all)
	i.put("expiry_backlog", due)
	i.put("expiry_removed", e.Expired)
	i.put("expiry_removed_lazily", e.ExpiredLazily)
	i.put("expiry_removed_items", e.ExpiredItems)
	lag := e.LagOf()
	i.put("expiry_lag_count", lag.Count)
	i.put("expiry_lag_p50_us", lag.Quantile(0.50))
	i.put("expiry_lag_p99_us", lag.Quantile(0.99))
	i.put("expiry_lag_p99.9_us", lag.Quantile(0.999))
	i.put("expiry_lag_max_us", lag.Max)
	i.put("expiry_lag_histogram_us", lagHistogram(&lag))
	var lead time.Duration
	var steps int64
	if clock, ok := i.svc.DB.Clock().(interface {
		Offset() (time.Duration, int64)
	}); ok {
		lead, steps = clock.Offset()
	}
	i.put("clock_offset_us", lead.Microseconds())
	i.put("clock_steps", steps)
}

// time writes a section that only ebb has: counters of limiters, locks, semaphores, delay
// queues and expiry rules.
func (i *info) time() {
	e := i.engine()
	i.put("limiter_allowed", e.LimiterAllowed)
	i.put("limiter_denied", e.LimiterDenied)
	i.put("locks_granted", e.LocksGranted)
	i.put("locks_refused", e.LocksRefused)
	i.put("permits_granted", e.PermitsGranted)
	i.put("permits_refused", e.PermitsRefused)
	i.put("leases_expired", e.LeasesExpired)
	i.put("lock_waits", e.Waits.Count)
	i.put("lock_wait_p50_us", e.Waits.Quantile(0.50))
	i.put("lock_wait_p99_us", e.Waits.Quantile(0.99))
	i.put("lock_wait_max_us", e.Waits.Max)
	i.put("queue_jobs_added", e.QueueAdded)
	i.put("queue_jobs_delivered", e.QueueDelivered)
	i.put("queue_jobs_redelivered", e.QueueRedelivered)
	i.put("queue_jobs_acked", e.QueueAcked)
	i.put("queue_jobs_lapsed", e.QueueLapsed)
	i.put("queue_jobs_dead", e.QueueDead)
	i.put("queue_jobs_dropped", e.QueueDropped)
	i.put("queue_jobs_expired", e.QueueExpired)
	i.put("schedules_run", e.ScheduleRuns)
	i.put("schedules_skipped", e.ScheduleSkipped)
	i.put("schedules_late", e.ScheduleLate)
	i.put("queue_lateness_p50_us", e.QueueLate.Quantile(0.50))
	i.put("queue_lateness_p99_us", e.QueueLate.Quantile(0.99))
	i.put("queue_lateness_max_us", e.QueueLate.Max)
	i.put("rule_events_fired", e.RuleFired)
	i.put("rule_events_suspended", e.RuleSuspended)
}

// lagHistogram writes counts by powers of two: "<1024=12,<2048=3" are twelve
// below 1,024 us and three from there to 2,048.
func lagHistogram(h *engine.Histogram) string {
	var counts [64]int64
	h.Each(func(lo, _, n int64) { counts[bits.Len64(uint64(lo))] += n })
	var parts []string
	for i, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("<%d=%d", int64(1)<<i, n))
		}
	}
	return strings.Join(parts, ",")
}

func (i *info) cpu() {
	sysTime, userTime := system.CPUTime()
	sys, user := strconv.FormatFloat(sysTime.Seconds(), 'f', 6, 64), strconv.FormatFloat(userTime.Seconds(), 'f', 6, 64)
	i.put("used_cpu_sys", sys)
	i.put("used_cpu_user", user)
	i.put("used_cpu_sys_children", "0.000000")
	i.put("used_cpu_user_children", "0.000000")
	// ebb has no main thread: the field has the time of all threads.
	i.put("used_cpu_sys_main_thread", sys)
	i.put("used_cpu_user_main_thread", user)
}

func (i *info) modules() {}

func (i *info) cluster() { i.put("cluster_enabled", i.svc.Host.Clustered()) }

func (i *info) keyspace() {
	for n, s := range i.keyspaces() {
		if s.Keys > 0 {
			text := fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", s.Keys, s.Expires, s.AvgTTL.Milliseconds())
			if s.Inner > 0 { // exporters for Redis before 7.4 read three numbers
				text += fmt.Sprintf(",subexpiry=%d", s.Inner)
			}
			i.put(fmt.Sprintf("db%d", n), text)
		}
	}
}
