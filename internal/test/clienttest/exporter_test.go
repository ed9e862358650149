package clienttest

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// exporter is Debian's package of the program that most dashboards are fed by.
const exporter = "prometheus-redis-exporter"

// onlyRedis are the metrics that redis-server has and ebb has not, each with a
// reason. Those that ebb alone has need none: more does no harm.
var onlyRedis = map[string]string{}

// onlyLabels are label values that must be there as well: dashboards select by
// them.
var onlyLabels = []string{`redis_commands_total{cmd="get"}`, `redis_db_keys{db="db0"}`, `redis_errors_total{err="WRONGTYPE"}`,
	`redis_exporter_last_scrape_error{err=""} 0`, "redis_up 1", "redis_connected_clients 2", "redis_blocked_clients 0",
	"redis_slowlog_length 1",
	`redis_commands_latencies_usec_count{cmd="get"}`}

// exactly are the metrics, with labels, whose values follow from what was done.
var exactly = regexp.MustCompile(`^redis_(key_size|key_value|stream_\w+|keys_count|db_keys|` +
	`db_keys_expiring|keyspace_misses_total|pubsub_\w+|blocked_clients|connected_clients|config_maxclients|slowlog_length|` +
	`commands_(failed_calls_|rejected_calls_|)total|errors_total|evicted_keys_total|expired_keys_total)\b`)

// unlike are metrics that exactly would match, each with a reason.
var unlike = map[string]string{
	`redis_commands_failed_calls_total{cmd="ping"}`:   "only redis-server is waited for with PING",
	`redis_commands_rejected_calls_total{cmd="ping"}`: "as above",
	`redis_commands_total{cmd="ping"}`:                "as above",
	`redis_errors_total{err="ERR"}`:                   "go-redis sends CLIENT SETINFO, which 7.0 does not know",
}

// duration are the metrics that count time, which may be too short to count.
var duration = regexp.MustCompile(`_(seconds|usec)(_|$)`)

// zero are metrics that are positive on redis-server for a reason that ebb does
// not have.
var zero = map[string]string{
	"redis_allocator_rss_bytes":                   "no memory is idle after so little work",
	"redis_client_recent_max_input_buffer_bytes":  "connections read into a buffer that they share",
	"redis_client_recent_max_output_buffer_bytes": "and write from one",
	"redis_config_io_threads":                     "0 stands for as many as processors call for",
	"redis_config_value":                          "as above: the only ones that differ",
	"redis_memory_used_lua_bytes":                 "there is no interpreter",
	"redis_memory_used_scripts_bytes":             "as above",
	"redis_memory_used_startup_bytes":             "what is counted are data",
	"redis_rdb_changes_since_last_save":           "there are no files",
}

func TestTheExporterFindsOnEbbWhatItFindsOnRedis(t *testing.T) {
	program := realserver.Program(t, exporter)
	scrape := startExporter(t, program)
	real := realserver.Start(t, "redis-server", "--enable-debug-command", "yes")
	ours := startEbb(t)
	busy(t, real)
	busy(t, ours)
	want, got := scrape(real), scrape(ours)
	if len(names(want)) < 100 {
		t.Fatalf("of redis-server there are only %d metrics:\n%s", len(names(want)), want)
	}
	found := names(got)
	for _, name := range names(want) {
		switch missing := !slices.Contains(found, name); {
		case strings.HasPrefix(name, "redis_latency_spike_"): // only where something happened to be slow
		case missing && onlyRedis[name] == "":
			t.Errorf("%s is missing", name)
		case !missing && onlyRedis[name] != "":
			t.Errorf("%s is there; take it off the list", name)
		}
	}
	checkValues(t, values(want), values(got))
	for _, line := range onlyLabels {
		if strings.Contains(want, "\n"+line) && !strings.Contains(got, "\n"+line) {
			t.Errorf("redis-server has %s, ebb has\n%s", line, linesLike(got, line))
		}
	}
}

// busy has a server count something of everything. The client stays until the test ends:
// when a server has noticed that one is gone is not the same on all.
func busy(t *testing.T, addr string) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, ReadTimeout: patience, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	for _, args := range [][]any{{"CONFIG", "SET", "slowlog-log-slower-than", "0", "latency-monitor-threshold", "1"}, {"SLOWLOG", "RESET"},
		{"CONFIG", "SET", "slowlog-log-slower-than", "-1"}, {"SET", "k", "v", "EX", "1000"}, {"GET", "k"},
		{"GET", "nothing"}, {"APPEND", "k", "w"}, {"PUBLISH", "channel", "message"}, {"INCR", "k"}, {"HGET", "k", "f"},
		{"RPUSH", "typed:list", "a", "b", "c"}, {"HSET", "typed:hash", "f", "v", "g", "w"}, {"SADD", "typed:set", "x", "y", "z", "1"},
		{"ZADD", "typed:zset", "1", "a"},
		{"PFADD", "typed:hll", "a", "b"}, {"SET", "typed:number", "42.5"}, {"XADD", "stream:1", "5-1", "k", "v"},
		{"XADD", "stream:1", "6-1", "k", "v"},
		{"XADD", "stream:1", "7-1", "k", "v"}, {"XGROUP", "CREATE", "stream:1", "workers", "0"},
		{"XREADGROUP", "GROUP", "workers", "ann", "COUNT", "2", "STREAMS", "stream:1", ">"},
		{"XACK", "stream:1", "workers", "5-1"}, {"XDEL", "stream:1", "5-1"}} {
		if err := c.Do(t.Context(), args...).Err(); err != nil && args[0] != "INCR" && args[0] != "HGET" && err != redis.Nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
}

// startExporter runs the exporter until the test ends, and returns what scrapes a
// server with it.
func startExporter(t *testing.T, program string) func(addr string) string {
	t.Helper()
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(realserver.FreePort(t)))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := realserver.CommandContext(ctx, program, "-redis.addr", "", "-include-system-metrics", "-redis-only-metrics",
		"-check-keys", "typed:*", "-check-single-keys", "stream:1,k,nothing", "-check-streams", "stream:*", "-count-keys", "db0=typed:*",
		"-export-client-list", "-include-config-metrics", "-web.listen-address", at)
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	scrape := func(addr string) string {
		t.Helper()
		return fetch(t, "http://"+at+"/scrape?target="+url.QueryEscape("redis://"+addr))
	}
	fetch(t, "http://"+at+"/health")
	return scrape
}

// fetch requests a page, and waits until a server listens there.
func fetch(t *testing.T, page string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := http.DefaultClient.Do(req); err == nil {
			body, err := io.ReadAll(reply.Body)
			_ = reply.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", page, ctx.Err())
		case <-again.C:
		}
	}
}

// names lists the metrics of a page, in order, once each.
func names(page string) (all []string) {
	for s := bufio.NewScanner(strings.NewReader(page)); s.Scan(); {
		if name, _, _ := strings.Cut(s.Text(), "{"); !strings.HasPrefix(name, "#") {
			name, _, _ = strings.Cut(name, " ")
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// values maps a page's metrics, labels included, to their values.
func values(page string) map[string]float64 {
	all := map[string]float64{}
	for s := range strings.Lines(page) {
		if i := strings.LastIndexByte(s, ' '); i > 0 && s[0] != '#' {
			all[s[:i]], _ = strconv.ParseFloat(strings.TrimSpace(s[i:]), 64)
		}
	}
	return all
}

// checkValues checks that what has the same reason on both servers has the same
// value, and that nothing is 0 or below it on ebb alone.
func checkValues(t *testing.T, want, got map[string]float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		v, there := got[name]
		plain, _, _ := strings.Cut(name, "{")
		switch w := want[name]; {
		case unlike[name] != "" || duration.MatchString(plain):
		case exactly.MatchString(name):
			if !there || v != w {
				t.Errorf("%s is %v (%v), on redis-server %v", name, v, there, w)
			}
		case there && (v < 0 || v == 0 && w > 0) && v != w && zero[plain] == "":
			t.Errorf("%s is %v, on redis-server %v", name, v, w)
		}
	}
}

// linesLike returns a page's lines of the metric that a line is of.
func linesLike(page, line string) string {
	name, _, _ := strings.Cut(line, "{")
	name, _, _ = strings.Cut(name, " ")
	var out []string
	for s := range strings.Lines(page) {
		if strings.HasPrefix(s, name) {
			out = append(out, s)
		}
	}
	return strings.Join(out, "")
}
