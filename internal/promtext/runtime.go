package promtext

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/admin"
)

// memSeries are the numbers of runtime.MemStats, as go_memstats_....
var memSeries = [...]struct {
	name, help string
	kind       admin.MetricKind
	of         func(*runtime.MemStats) uint64
}{
	{"alloc_bytes", "Bytes of allocated objects.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.Alloc }},
	{"alloc_bytes_total", "Bytes that were allocated, those freed since included.", admin.Counter, func(m *runtime.MemStats) uint64 { return m.TotalAlloc }},
	{"buck_hash_sys_bytes", "Bytes of the tables of profiles.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.BuckHashSys }},
	{"frees_total", "Objects that were freed.", admin.Counter, func(m *runtime.MemStats) uint64 { return m.Frees }},
	{"gc_sys_bytes", "Bytes that the garbage collector uses for itself.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.GCSys }},
	{"heap_alloc_bytes", "Bytes of allocated objects of the heap.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.HeapAlloc }},
	{"heap_idle_bytes", "Bytes of unused spans of the heap.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.HeapIdle }},
	{"heap_inuse_bytes", "Bytes of used spans of the heap.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.HeapInuse }},
	{"heap_objects", "Allocated objects of the heap.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.HeapObjects }},
	{"heap_released_bytes", "Bytes of the heap that the system has back.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.HeapReleased }},
	{"heap_sys_bytes", "Bytes of the heap that the system gave.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.HeapSys }},
	{"lookups_total", "Pointers that the runtime looked up.", admin.Counter, func(m *runtime.MemStats) uint64 { return m.Lookups }},
	{"mallocs_total", "Objects that were allocated.", admin.Counter, func(m *runtime.MemStats) uint64 { return m.Mallocs }},
	{"mcache_inuse_bytes", "Bytes of used mcache structures.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.MCacheInuse }},
	{"mcache_sys_bytes", "Bytes of mcache structures.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.MCacheSys }},
	{"mspan_inuse_bytes", "Bytes of used mspan structures.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.MSpanInuse }},
	{"mspan_sys_bytes", "Bytes of mspan structures.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.MSpanSys }},
	{"next_gc_bytes", "Size of the heap at which the next garbage collection begins.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.NextGC }},
	{"other_sys_bytes", "Bytes of other structures of the runtime.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.OtherSys }},
	{"stack_inuse_bytes", "Bytes of used spans of stacks.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.StackInuse }},
	{"stack_sys_bytes", "Bytes of stacks that the system gave.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.StackSys }},
	{"sys_bytes", "Bytes that the system gave.", admin.Gauge, func(m *runtime.MemStats) uint64 { return m.Sys }},
}

// readRuntime emits the numbers of Go's runtime. It stops the program for some ten microseconds, as runtime.ReadMemStats does.
func readRuntime(emit func(admin.Metric)) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for _, s := range memSeries {
		emit(admin.Metric{Name: "go_memstats_" + s.name, Help: s.help, Kind: s.kind, Value: float64(s.of(&m))})
	}
	threads, _ := runtime.ThreadCreateProfile(nil)
	for _, m := range []admin.Metric{
		{Name: "go_memstats_gc_cpu_fraction", Help: "Share of the processors' time that garbage collection took.", Value: m.GCCPUFraction},
		{Name: "go_memstats_last_gc_time_seconds", Help: "Unix time of the end of the last garbage collection.", Value: float64(m.LastGC) / 1e9},
		{Name: "go_cgo_calls_count", Help: "Calls of C.", Kind: admin.Counter, Value: float64(runtime.NumCgoCall())},
		{Name: "go_cpu_count", Help: "Processors that the process can use.", Value: float64(runtime.NumCPU())},
		{Name: "go_gc_forced_count", Help: "Garbage collections that the program asked for.", Kind: admin.Counter, Value: float64(m.NumForcedGC)},
		{Name: "go_gomaxprocs", Help: "Threads that run Go code at a time, at most.", Value: float64(runtime.GOMAXPROCS(0))},
		{Name: "go_goroutines", Help: "Goroutines.", Value: float64(runtime.NumGoroutine())},
		{Name: "go_threads", Help: "Threads that were created.", Value: float64(threads)},
		{Name: "go_info", Help: "1, with the version of Go as a label.", Value: 1, Labels: []string{"version", runtime.Version()}},
		{Name: "go_info_ext", Help: "1, with the compiler and the system as labels.", Value: 1,
			Labels: []string{"compiler", runtime.Compiler, "GOARCH", runtime.GOARCH, "GOOS", runtime.GOOS}},
	} {
		emit(m)
	}
}

// runtimeSeries are the numbers and histograms of package runtime/metrics.
var runtimeSeries = [...]struct {
	from, name, help string
	kind             admin.MetricKind
}{
	{"/sched/latencies:seconds", "go_sched_latencies_seconds", "How long goroutines waited for a thread.", admin.Distribution},
	{"/gc/pauses:seconds", "go_gc_pauses_seconds", "How long garbage collection stopped the program.", admin.Distribution},
	{"/sync/mutex/wait/total:seconds", "go_mutex_wait_seconds_total", "Time that goroutines waited for mutexes.", admin.Counter},
	{"/cpu/classes/gc/mark/assist:cpu-seconds", "go_gc_mark_assist_cpu_seconds_total", "Time of goroutines that helped garbage collection.",
		admin.Counter},
	{"/cpu/classes/gc/total:cpu-seconds", "go_gc_cpu_seconds_total", "Time of garbage collection.", admin.Counter},
	{"/cpu/classes/scavenge/total:cpu-seconds", "go_scavenge_cpu_seconds_total", "Time of returning memory to the system.", admin.Counter},
	{"/gc/gomemlimit:bytes", "go_memlimit_bytes", "Limit of memory, GOMEMLIMIT.", admin.Gauge},
}

// appendRuntime appends the series of package runtime/metrics, and the summary of pauses. A later Go may lack some.
func appendRuntime(out []byte) []byte {
	samples := make([]metrics.Sample, len(runtimeSeries))
	for i, s := range runtimeSeries {
		samples[i].Name = s.from
	}
	metrics.Read(samples)
	for i, s := range runtimeSeries {
		m := admin.Metric{Name: s.name, Help: s.help, Kind: s.kind}
		switch v := samples[i].Value; v.Kind() {
		case metrics.KindFloat64Histogram:
			out = appendHistogram(out, &m, v.Float64Histogram())
			continue
		case metrics.KindUint64:
			m.Value = float64(v.Uint64())
		case metrics.KindFloat64:
			m.Value = v.Float64()
		default:
			continue
		}
		out = Append(out, &m, true)
	}
	return appendPauses(out)
}

// appendHistogram appends some 30 of a histogram's buckets of up to a second. The runtime does not know the sum, so
// there is none, and no count.
func appendHistogram(out []byte, m *admin.Metric, h *metrics.Float64Histogram) []byte {
	out = appendHead(out, m.Name, m.Help, kinds[admin.Distribution])
	bounds := h.Buckets // of bucket i: from bounds[i] to bounds[i+1]
	for len(bounds) > 0 && bounds[len(bounds)-1] > 1 {
		bounds = bounds[:len(bounds)-1]
	}
	total, next := uint64(0), 0.0
	for i, n := range h.Counts {
		total += n
		if i+1 < len(bounds) && float64(i) >= next {
			next += float64(len(bounds)) / 30
			out = appendSeries(out, m.Name, "_bucket", nil, strconv.FormatFloat(bounds[i+1], 'g', -1, 64), float64(total))
		}
	}
	return appendSeries(out, m.Name, "_bucket", nil, "+Inf", float64(total))
}

// appendPauses appends the quantiles of the latest pauses of garbage collection, up to 256.
func appendPauses(out []byte) []byte {
	const name = "go_gc_duration_seconds"
	stats := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&stats)
	out = appendHead(out, name, "How long the latest garbage collections stopped the program.", "summary")
	for i, q := range []string{"0", "0.25", "0.5", "0.75", "1"} {
		out = appendSeries(out, name, "", []string{"quantile", q}, "", stats.PauseQuantiles[i].Seconds())
	}
	out = appendSeries(out, name, "_sum", nil, "", stats.PauseTotal.Seconds())
	return appendSeries(out, name, "_count", nil, "", float64(stats.NumGC))
}
