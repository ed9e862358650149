package promtext

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/system"
)

// runtimeMetric is a series that is the sum of metrics of package runtime/metrics.
type runtimeMetric struct {
	name string
	kind admin.MetricKind
	help string
	of   string // names in runtime/metrics, separated by blanks
}

// ofRuntime are the series of Go's runtime under the names that Prometheus's client library gives them, and five more whose names
// are those of VictoriaMetrics/metrics.
var ofRuntime = []runtimeMetric{
	{"go_goroutines", admin.Gauge, "Goroutines.", "/sched/goroutines:goroutines"},
	{"go_sched_gomaxprocs_threads", admin.Gauge, "GOMAXPROCS.", "/sched/gomaxprocs:threads"},
	{"go_gc_gogc_percent", admin.Gauge, "GOGC.", "/gc/gogc:percent"},
	{"go_gc_gomemlimit_bytes", admin.Gauge, "GOMEMLIMIT.", "/gc/gomemlimit:bytes"},
	{"go_memstats_alloc_bytes", admin.Gauge, "Bytes of objects in the heap.", "/memory/classes/heap/objects:bytes"},
	{"go_memstats_alloc_bytes_total", admin.Counter, "Bytes that were allocated in the heap.", "/gc/heap/allocs:bytes"},
	{"go_memstats_mallocs_total", admin.Counter, "Objects that were allocated in the heap.",
		"/gc/heap/allocs:objects /gc/heap/tiny/allocs:objects"},
	{"go_memstats_frees_total", admin.Counter, "Objects that were freed.", "/gc/heap/frees:objects /gc/heap/tiny/allocs:objects"},
	{"go_memstats_sys_bytes", admin.Gauge, "Bytes from the system.", "/memory/classes/total:bytes"},
	{"go_memstats_heap_alloc_bytes", admin.Gauge, "Bytes of objects in the heap.", "/memory/classes/heap/objects:bytes"},
	{"go_memstats_heap_sys_bytes", admin.Gauge, "Bytes of the heap from the system.", "/memory/classes/heap/objects:bytes " +
		"/memory/classes/heap/unused:bytes /memory/classes/heap/released:bytes /memory/classes/heap/free:bytes"},
	{"go_memstats_heap_idle_bytes", admin.Gauge, "Bytes of the heap without objects.",
		"/memory/classes/heap/released:bytes /memory/classes/heap/free:bytes"},
	{"go_memstats_heap_inuse_bytes", admin.Gauge, "Bytes of the heap's spans with objects.",
		"/memory/classes/heap/objects:bytes /memory/classes/heap/unused:bytes"},
	{"go_memstats_heap_released_bytes", admin.Gauge, "Bytes of the heap that the system has back.", "/memory/classes/heap/released:bytes"},
	{"go_memstats_heap_objects", admin.Gauge, "Objects in the heap.", "/gc/heap/objects:objects"},
	{"go_memstats_stack_inuse_bytes", admin.Gauge, "Bytes of goroutines' stacks.", "/memory/classes/heap/stacks:bytes"},
	{"go_memstats_stack_sys_bytes", admin.Gauge, "Bytes of stacks from the system.",
		"/memory/classes/heap/stacks:bytes /memory/classes/os-stacks:bytes"},
	{"go_memstats_mspan_inuse_bytes", admin.Gauge, "Bytes of mspan structures in use.", "/memory/classes/metadata/mspan/inuse:bytes"},
	{"go_memstats_mspan_sys_bytes", admin.Gauge, "Bytes of mspan structures.",
		"/memory/classes/metadata/mspan/inuse:bytes /memory/classes/metadata/mspan/free:bytes"},
	{"go_memstats_mcache_inuse_bytes", admin.Gauge, "Bytes of mcache structures in use.", "/memory/classes/metadata/mcache/inuse:bytes"},
	{"go_memstats_mcache_sys_bytes", admin.Gauge, "Bytes of mcache structures.",
		"/memory/classes/metadata/mcache/inuse:bytes /memory/classes/metadata/mcache/free:bytes"},
	{"go_memstats_buck_hash_sys_bytes", admin.Gauge, "Bytes of the profiler's table.", "/memory/classes/profiling/buckets:bytes"},
	{"go_memstats_gc_sys_bytes", admin.Gauge, "Bytes of the garbage collector's metadata.", "/memory/classes/metadata/other:bytes"},
	{"go_memstats_other_sys_bytes", admin.Gauge, "Bytes of the runtime's other memory.", "/memory/classes/other:bytes"},
	{"go_memstats_next_gc_bytes", admin.Gauge, "Size of the heap at which the next collection ends.", "/gc/heap/goal:bytes"},
	{"go_gc_cpu_seconds_total", admin.Counter, "Processor time of garbage collection.", "/cpu/classes/gc/total:cpu-seconds"},
	{"go_gc_mark_assist_cpu_seconds_total", admin.Counter, "Processor time that goroutines spent on helping it.",
		"/cpu/classes/gc/mark/assist:cpu-seconds"},
	{"go_scavenge_cpu_seconds_total", admin.Counter, "Processor time spent on giving memory back to the system.",
		"/cpu/classes/scavenge/total:cpu-seconds"},
	{"go_mutex_wait_seconds_total", admin.Counter, "Time that goroutines waited for mutexes.", "/sync/mutex/wait/total:seconds"},
	{"go_gc_pauses_seconds", admin.Distribution, "Pauses of all goroutines; the sum is an estimate.", "/sched/pauses/total/gc:seconds"},
	{"go_sched_latencies_seconds", admin.Distribution, "How long goroutines were ready before they ran; the sum is an estimate.",
		"/sched/latencies:seconds"},
}

// goMetrics emits the series of Go's runtime. It does not stop the program.
func goMetrics(emit func(admin.Metric)) {
	var samples []metrics.Sample
	for _, m := range ofRuntime {
		for name := range strings.FieldsSeq(m.of) {
			samples = append(samples, metrics.Sample{Name: name})
		}
	}
	metrics.Read(samples)
	for _, m := range ofRuntime {
		out := admin.Metric{Name: m.name, Kind: m.kind, Help: m.help}
		known := true
		for range strings.Fields(m.of) {
			switch v := samples[0].Value; v.Kind() {
			case metrics.KindUint64:
				out.Value += float64(v.Uint64())
			case metrics.KindFloat64:
				out.Value += v.Float64()
			case metrics.KindFloat64Histogram:
				distribute(&out, v.Float64Histogram())
			default: // not in this version of Go
				known = false
			}
			samples = samples[1:]
		}
		if known {
			emit(out)
		}
	}
	emit(admin.Metric{Name: "go_info", Help: "1, with the version of Go.", Value: 1, Labels: []string{"version", runtime.Version()}})
	threads, _ := runtime.ThreadCreateProfile(nil)
	emit(admin.Metric{Name: "go_threads", Help: "Threads of the system that were made.", Value: float64(threads)})
}

// mostBuckets bounds the buckets of a distribution of the runtime, which has hundreds; longest is the last bound.
const (
	mostBuckets = 30
	longest     = 1.0 // seconds
)

// distribute sets the buckets, the count and the estimated sum.
func distribute(out *admin.Metric, h *metrics.Float64Histogram) {
	out.Buckets = map[float64]uint64{}
	step := max(1, len(h.Counts)/mostBuckets)
	for i, n := range h.Counts {
		low, high := h.Buckets[i], h.Buckets[i+1]
		out.Count += n
		if n > 0 {
			out.Sum += float64(n) * cmp.Or(max(low, 0), min(high, longest)) // the first bound is -Inf
		}
		if i%step == 0 && high > 0 && high <= longest {
			out.Buckets[high] = out.Count
		}
	}
}

// appendPauses appends the summary of the garbage collector's pauses: the quantiles are those of the latest 256.
func appendPauses(out []byte) []byte {
	s := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&s)
	const name = "go_gc_duration_seconds"
	out = append(out, "# HELP "+name+" Pauses of garbage collections.\n# TYPE "+name+" summary\n"...)
	for i, q := range []string{"0", "0.25", "0.5", "0.75", "1"} {
		out = appendSeries(out, name, "", []string{"quantile", q}, "", s.PauseQuantiles[i].Seconds())
	}
	out = appendSeries(out, name, "_sum", nil, "", s.PauseTotal.Seconds())
	out = appendSeries(out, name, "_count", nil, "", float64(s.NumGC))
	last := 0.0
	if s.NumGC > 0 {
		last = float64(s.LastGC.UnixNano()) / 1e9
	}
	ended := admin.Metric{Name: "go_memstats_last_gc_time_seconds", Help: "When the last collection ended, since 1970.", Value: last}
	return Append(out, &ended, true)
}

// ofProcess are the series of the process from files below /proc/self, by their names there.
var ofProcess = []struct {
	field, name string
	kind        admin.MetricKind
	help        string
}{
	{"VmRSS", "process_resident_memory_bytes", admin.Gauge, "Bytes of the process in physical memory."},
	{"VmHWM", "process_resident_memory_peak_bytes", admin.Gauge, "The most that it was."},
	{"RssAnon", "process_resident_memory_anon_bytes", admin.Gauge, "Bytes of these without a file."},
	{"RssFile", "process_resident_memory_file_bytes", admin.Gauge, "Bytes of these of files."},
	{"RssShmem", "process_resident_memory_shared_bytes", admin.Gauge, "Bytes of these that are shared."},
	{"VmSize", "process_virtual_memory_bytes", admin.Gauge, "Bytes of addresses in use."},
	{"VmPeak", "process_virtual_memory_peak_bytes", admin.Gauge, "The most that it was."},
	{"Threads", "process_num_threads", admin.Gauge, "Threads of the process."},
	{"rchar", "process_io_read_bytes_total", admin.Counter, "Bytes that system calls have read."},
	{"wchar", "process_io_written_bytes_total", admin.Counter, "Bytes that system calls have written."},
	{"syscr", "process_io_read_syscalls_total", admin.Counter, "System calls that read."},
	{"syscw", "process_io_write_syscalls_total", admin.Counter, "System calls that wrote."},
	{"read_bytes", "process_io_storage_read_bytes_total", admin.Counter, "Bytes read from disks."},
	{"write_bytes", "process_io_storage_written_bytes_total", admin.Counter, "Bytes written to disks."},
}

// processMetrics emits the series of the process that the system knows.
func processMetrics(emit func(admin.Metric)) {
	emitKnown := func(name string, kind admin.MetricKind, help string, value float64) {
		if value >= 0 {
			emit(admin.Metric{Name: name, Kind: kind, Help: help, Value: value})
		}
	}
	if use, ok := system.ResourceUsage(); ok {
		emitKnown("process_cpu_seconds_total", admin.Counter, "Processor time of the process.", use.System.Seconds()+use.User.Seconds())
		emitKnown("process_cpu_seconds_system_total", admin.Counter, "Processor time of these in the kernel.", use.System.Seconds())
		emitKnown("process_cpu_seconds_user_total", admin.Counter, "Processor time of these outside of the kernel.", use.User.Seconds())
		emitKnown("process_major_pagefaults_total", admin.Counter, "Page faults that read from a disk.", use.MajorFaults)
		emitKnown("process_minor_pagefaults_total", admin.Counter, "Other page faults.", use.MinorFaults)
	}
	fields := system.ProcessFields()
	for _, m := range ofProcess {
		if value, ok := fields[m.field]; ok {
			emitKnown(m.name, m.kind, m.help, float64(value))
		}
	}
	emitKnown("process_start_time_seconds", admin.Gauge, "When the process began, since 1970.", system.ProcessBegan())
	emitKnown("process_open_fds", admin.Gauge, "Open files and sockets.", system.OpenFiles())
	emitKnown("process_max_fds", admin.Gauge, "The most that may be open.", system.FileLimit())
}
