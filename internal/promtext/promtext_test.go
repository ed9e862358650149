package promtext_test

import (
	"compress/gzip"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/promtext"
)

func TestTextIsThatOfTheFormat(t *testing.T) {
	all := []admin.Metric{
		{Name: "a", Help: "Two\nlines and a \\.", Value: 1.5},
		{Name: "b_total", Help: "B.", Kind: admin.Counter, Value: 1e21, Labels: []string{"db", "0", "name", "a \"b\"\\\n"}},
		{Name: "b_total", Help: "B.", Kind: admin.Counter, Value: math.Inf(1), Labels: []string{"db", "1", "name", "é"}},
		{Name: "c_seconds", Help: "C.", Kind: admin.Distribution, Labels: []string{"of", "x"}, Count: 7, Sum: 0.25,
			Buckets: map[float64]uint64{16: 6, 0.000128: 2, 1: 5}},
		{Name: "d", Help: "D.", Value: math.NaN()},
	}
	want := `# HELP a Two\nlines and a \\.
# TYPE a gauge
a 1.5
# HELP b_total B.
# TYPE b_total counter
b_total{db="0",name="a \"b\"\\_"} 1e+21
b_total{db="1",name="é"} +Inf
# HELP c_seconds C.
# TYPE c_seconds histogram
c_seconds_bucket{of="x",le="0.000128"} 2
c_seconds_bucket{of="x",le="1"} 5
c_seconds_bucket{of="x",le="16"} 6
c_seconds_bucket{of="x",le="+Inf"} 7
c_seconds_sum{of="x"} 0.25
c_seconds_count{of="x"} 7
# HELP d D.
# TYPE d gauge
d NaN
`
	h := promtext.Handler(func(emit func(admin.Metric)) {
		for _, m := range all {
			emit(m)
		}
	})
	for _, coding := range []string{"", "gzip"} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept-Encoding", coding)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); got != promtext.ContentType {
			t.Errorf("the type is %q", got)
		}
		body := io.Reader(w.Body)
		if coding == "gzip" {
			if got := w.Header().Get("Content-Encoding"); got != "gzip" {
				t.Fatalf("the encoding is %q", got)
			}
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		page, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		rest, ok := strings.CutPrefix(string(page), want)
		if !ok {
			t.Errorf("got\n%.900s\nwant\n%s", page, want)
		}
		for _, name := range []string{"# TYPE go_goroutines gauge\ngo_goroutines ", "\ngo_info{version=", "\ngo_memstats_heap_alloc_bytes ",
			"\nprocess_cpu_seconds_total "} {
			if !strings.Contains(rest, name) {
				t.Errorf("no %q in\n%s", name, rest)
			}
		}
	}
}

func TestOnlySoManyScrapesRunAtATime(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	h := promtext.Handler(func(func(admin.Metric)) {
		began <- struct{}{}
		<-end
	})
	get := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Code
	}
	codes := make(chan int)
	for range 4 {
		go func() { codes <- get() }()
		<-began
	}
	if got := get(); got != http.StatusServiceUnavailable {
		t.Errorf("the fifth scrape at a time got %d", got)
	}
	close(end)
	for range 4 {
		if got := <-codes; got != http.StatusOK {
			t.Errorf("%d", got)
		}
	}
	go func() { <-began }()
	if got := get(); got != http.StatusOK {
		t.Errorf("a scrape after the others got %d", got)
	}
}

// Dashboards name these series. Those of control groups, and of files that the process may not read, can be missing.
func TestThePageHasTheSeriesOfTheRuntimeAndTheProcess(t *testing.T) {
	names := strings.Fields(`go_gc_cpu_seconds_total go_gc_duration_seconds go_gc_duration_seconds_count
		go_gc_duration_seconds_sum go_gc_gogc_percent go_gc_gomemlimit_bytes go_gc_mark_assist_cpu_seconds_total go_gc_pauses_seconds_bucket
		go_goroutines go_info go_memstats_alloc_bytes go_memstats_alloc_bytes_total
		go_memstats_buck_hash_sys_bytes go_memstats_frees_total go_memstats_gc_sys_bytes
		go_memstats_heap_alloc_bytes go_memstats_heap_idle_bytes go_memstats_heap_inuse_bytes go_memstats_heap_objects
		go_memstats_heap_released_bytes go_memstats_heap_sys_bytes go_memstats_last_gc_time_seconds
		go_memstats_mallocs_total go_memstats_mcache_inuse_bytes go_memstats_mcache_sys_bytes go_memstats_mspan_inuse_bytes
		go_memstats_mspan_sys_bytes go_memstats_next_gc_bytes go_memstats_other_sys_bytes go_memstats_stack_inuse_bytes
		go_memstats_stack_sys_bytes go_memstats_sys_bytes go_mutex_wait_seconds_total go_sched_gomaxprocs_threads
		go_sched_latencies_seconds_bucket go_scavenge_cpu_seconds_total go_threads`)
	if runtime.GOOS != "windows" {
		names = append(names, "process_cpu_seconds_system_total", "process_cpu_seconds_total", "process_cpu_seconds_user_total")
	}
	if runtime.GOOS == "linux" {
		names = append(names, strings.Fields(`process_major_pagefaults_total process_max_fds process_minor_pagefaults_total
			process_num_threads process_open_fds process_resident_memory_anon_bytes process_resident_memory_bytes
			process_resident_memory_file_bytes process_resident_memory_peak_bytes process_resident_memory_shared_bytes
			process_start_time_seconds process_virtual_memory_bytes process_virtual_memory_peak_bytes`)...)
	}
	w := httptest.NewRecorder()
	promtext.Handler(func(func(admin.Metric)) {}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	values := map[string]float64{} // the last one of a name
	helps := map[string]bool{}
	for line := range strings.Lines(w.Body.String()) {
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			helps[help[:strings.IndexByte(help, ' ')]] = true
		}
		name, value := line[:strings.IndexAny(line, "{ ")], line[strings.LastIndexByte(line, ' ')+1:]
		number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if name != "#" && err != nil {
			t.Errorf("%q: %v", line, err)
		}
		values[name] = number
	}
	for _, name := range names {
		if _, ok := values[name]; !ok {
			t.Errorf("no %s in\n%s", name, w.Body.String())
		}
		if of := strings.NewReplacer("_bucket", "", "_sum", "", "_count", "").Replace(name); !helps[of] {
			t.Errorf("no help for %s", of)
		}
	}
	if got := values["process_start_time_seconds"]; runtime.GOOS == "linux" && (got < 1.7e9 || got > 1e10) {
		t.Errorf("this process began at %v", got)
	}
	if got := values["process_resident_memory_bytes"]; runtime.GOOS == "linux" && (got < 1<<20 || got > 1<<40) {
		t.Errorf("this process has %v bytes", got)
	}
}
