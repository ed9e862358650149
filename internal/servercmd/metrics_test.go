package servercmd_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

// metered is a service on a manual clock, with a session and a meter.
func metered(t *testing.T) (*session.Session, *clock.Manual, *admin.Meter) {
	t.Helper()
	var hooks session.Hooks
	clock := clock.NewManual(transcript.Start)
	db := engine.Open(engine.Options{Clock: clock, Hooks: &hooks, Shards: 4})
	t.Cleanup(db.Close)
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return newSession(t, s), clock, admin.NewMeter(s.Admin())
}

// read returns the metrics by name and labels, in the form of Prometheus.
func read(m *admin.Meter) map[string]admin.Metric {
	all := map[string]admin.Metric{}
	m.Read(func(x admin.Metric) { all[series(x)] = x })
	return all
}

func series(x admin.Metric) string {
	var labels []string
	for i := 0; i < len(x.Labels); i += 2 {
		labels = append(labels, x.Labels[i]+"="+strconv.Quote(x.Labels[i+1]))
	}
	if len(labels) == 0 {
		return x.Name
	}
	slices.Sort(labels)
	return x.Name + "{" + strings.Join(labels, ",") + "}"
}

// wantMetrics checks values, given as "series value".
func wantMetrics(t *testing.T, m *admin.Meter, want ...string) {
	t.Helper()
	all := read(m)
	for _, line := range want {
		name, value, _ := strings.Cut(line, " ")
		x, ok := all[name]
		if got := fmt.Sprint(x.Value); !ok || got != value {
			t.Errorf("%s is %s (%v), want %s", name, got, ok, value)
		}
	}
}

func TestMetricsCountWhatWasDone(t *testing.T) {
	c, clock, m := metered(t)
	for i := range 30 {
		do(c, "SET", fmt.Sprint("k", i), "v", "PX", strconv.Itoa(100+i))
	}
	do(c, "SET", "k", "v")
	do(c, "GET", "k")
	do(c, "GET", "nothing")
	do(c, "LPOP", "k")
	do(c, "NOSUCH")
	wantMetrics(t, m, `redis_up 1`, `redis_commands_total{cmd="set"} 31`, `redis_commands_total{cmd="get"} 2`,
		`redis_commands_failed_calls_total{cmd="lpop"} 1`,
		`redis_errors_total{err="WRONGTYPE"} 1`, `redis_errors_total{err="ERR"} 1`, `redis_keyspace_misses_total 1`,
		`redis_db_keys{db="db0"} 31`, `redis_db_keys_expiring{db="db0"} 30`, `ebb_expiry_items{of="keys"} 30`, `ebb_expiry_backlog{of="keys"} 0`,
		`ebb_expiry_due{of="keys",within="1s"} 30`, `ebb_expired_total{level="key"} 0`, `redis_expired_keys_total 0`, `ebb_stale_shards 0`)
	clock.Advance(115 * time.Millisecond)
	wantMetrics(t, m, `redis_db_keys{db="db0"} 16`, `redis_db_keys_expiring{db="db0"} 15`, `ebb_expiry_due{of="keys",within="1s"} 15`,
		`ebb_expired_total{level="key"} 15`, `redis_expired_keys_total 15`)
	lag := read(m)[`ebb_expiry_lag_seconds{level="key"}`]
	if lag.Count != 15 || lag.Sum != 0.015 || lag.Buckets[0.000512] != 0 || lag.Buckets[0.001024] != 15 {
		t.Errorf("each was removed a millisecond after its deadline: %+v", lag)
	}
	do(c, "CONFIG", "RESETSTAT")
	wantMetrics(t, m, `ebb_expired_total{level="key"} 0`, `redis_expired_keys_total 0`, `redis_db_keys{db="db0"} 16`)
}

func TestMetricsOfItemsAndLeases(t *testing.T) {
	c, clock, m := metered(t)
	do(c, "HSET", "h", "f", "v", "g", "v")
	do(c, "HPEXPIRE", "h", "500", "FIELDS", "1", "f")
	do(c, "LOCK.ACQUIRE", "report", "ann", "30000")
	do(c, "LOCK.ACQUIRE", "report", "bob", "30000")
	wantMetrics(t, m, `ebb_expiry_items{of="containers"} 2`, `ebb_expiry_due{of="containers",within="1s"} 1`,
		`ebb_expiry_due{of="containers",within="1m"} 2`,
		`ebb_lock_requests_total{result="granted"} 1`, `ebb_lock_requests_total{result="refused"} 1`, `ebb_leases_expired_total 0`)
	clock.Advance(31 * time.Second)
	wantMetrics(t, m, `ebb_expiry_items{of="containers"} 0`, `ebb_expired_total{level="field"} 1`, `ebb_expired_total{level="lease"} 1`,
		`ebb_leases_expired_total 1`,
		`redis_db_keys{db="db0"} 1`)
}

// Each expiration is counted once: as a key or as an item, and as an entry of a rule, written or lost.
func TestMetricsOfRules(t *testing.T) {
	c, clock, m := metered(t)
	do(c, "EXPIRY", "RULE", "SET", "told", "MATCH", "*", "TO", "events")
	do(c, "SELECT", "3")
	do(c, "EXPIRY", "RULE", "SET", "told", "MATCH", "*", "TO", "busy")
	do(c, "SET", "busy", "no stream")
	do(c, "SET", "k", "v", "PX", "10")
	do(c, "SELECT", "0")
	do(c, "SET", "k", "v", "PX", "10")
	do(c, "HSET", "h", "f", "v", "g", "v")
	do(c, "HPEXPIRE", "h", "20", "FIELDS", "1", "f")
	wantMetrics(t, m, `ebb_rule_events_total{db="db0",result="fired",rule="told"} 0`,
		`ebb_rule_events_total{db="db3",result="suspended",rule="told"} 0`)
	clock.Advance(30 * time.Millisecond)
	wantMetrics(t, m, `ebb_rule_events_total{db="db0",result="fired",rule="told"} 2`,
		`ebb_rule_events_total{db="db0",result="suspended",rule="told"} 0`,
		`ebb_rule_events_total{db="db3",result="fired",rule="told"} 0`, `ebb_rule_events_total{db="db3",result="suspended",rule="told"} 1`)
	info := do(c, "INFO", "expiry", "time")
	for _, field := range []string{"expiry_removed:2", "expiry_removed_items:1", "expiry_lag_count:3", "rule_events_fired:2",
		"rule_events_suspended:1"} {
		if !strings.Contains(info, field+`\r\n`) {
			t.Errorf("INFO has no %s: %s", field, info)
		}
	}
	do(c, "EXPIRY", "RULE", "DEL", "told")
	if x, ok := read(m)[`ebb_rule_events_total{db="db0",result="fired",rule="told"}`]; ok {
		t.Errorf("the rule is gone: %v", x)
	}
}

// TestMetricsAreWhatInfoSays compares every metric that is a field of INFO.
func TestMetricsAreWhatInfoSays(t *testing.T) {
	c, clock, m := metered(t)
	for i := range 50 {
		do(c, "SET", fmt.Sprint("k", i), "v", "PX", strconv.Itoa(10*i+1))
	}
	clock.Advance(205 * time.Millisecond)
	do(c, "GET", "k49")
	all := read(m)
	fields := map[string]string{}
	reply := strings.Trim(do(c, "INFO", "everything"), `"`)
	for line := range strings.SplitSeq(reply, `\r\n`) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	checked := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		field, ok := strings.CutPrefix(all[name].Help, "INFO's field ")
		if field = strings.TrimSuffix(field, "."); !ok || moving(field) {
			continue
		}
		text, there := fields[field]
		want, err := strconv.ParseFloat(text, 64)
		if text == "ok" {
			want, err = 1, nil
		}
		if got := all[name].Value; !there || err != nil || fmt.Sprintf("%.2f", got) != fmt.Sprintf("%.2f", want) {
			t.Errorf("%s is %v, INFO has %s:%s", name, got, field, text)
		}
		checked++
	}
	if checked < 90 {
		t.Errorf("only %d fields were compared", checked)
	}
}

// moving reports whether a field changes between two reads.
func moving(field string) bool {
	for _, word := range []string{"cpu", "rss", "fragmentation", "frag_", "total_reads", "total_writes", "commands_processed",
		"mem_clients", "allocator",
		"total_net"} {
		if strings.Contains(field, word) {
			return true
		}
	}
	return false
}

func TestEveryMetricIsSound(t *testing.T) {
	c, _, m := metered(t)
	do(c, "SET", "k", "v", "EX", "10")
	do(c, "CONFIG", "SET", "slowlog-log-slower-than", "0", "latency-monitor-threshold", "1")
	do(c, "GET", "k")
	seen := map[string]bool{}
	shape := map[string]admin.Metric{}
	m.Read(func(x admin.Metric) {
		if s := series(x); seen[s] {
			t.Errorf("%s comes twice", s)
		} else {
			seen[s] = true
		}
		if first, ok := shape[x.Name]; ok && (first.Help != x.Help || first.Kind != x.Kind || !slices.Equal(names(first), names(x))) {
			t.Errorf("%s: %q and %q", x.Name, first.Help, x.Help)
		}
		shape[x.Name] = x
		if !strings.HasSuffix(x.Help, ".") {
			t.Errorf("%s: %q is not a sentence", x.Name, x.Help)
		}
		if strings.HasPrefix(x.Name, "ebb_") && strings.HasSuffix(x.Name, "_total") != (x.Kind == admin.Counter) {
			t.Errorf("%s: counters, and nothing else, end in _total", x.Name)
		}
		last := uint64(0)
		for _, bound := range slices.Sorted(maps.Keys(x.Buckets)) {
			if n := x.Buckets[bound]; n < last || n > x.Count {
				t.Errorf("%s: %d not above %v, of %d", x.Name, n, bound, x.Count)
			}
			last = x.Buckets[bound]
		}
	})
	if len(shape) < 150 {
		t.Errorf("only %d metrics", len(shape))
	}
}

// names are the names of a metric's labels.
func names(x admin.Metric) (all []string) {
	for i := 0; i < len(x.Labels); i += 2 {
		all = append(all, x.Labels[i])
	}
	return all
}

// TestTheUsualBoardFindsItsMetrics lists the metrics that redis_exporter's Grafana board (763) requests.
func TestTheUsualBoardFindsItsMetrics(t *testing.T) {
	c, _, m := metered(t)
	do(c, "SET", "k", "v", "EX", "10")
	found := map[string]bool{}
	m.Read(func(x admin.Metric) { found[x.Name] = true })
	for _, name := range strings.Fields(`redis_up redis_uptime_in_seconds
		redis_connected_clients redis_memory_used_bytes redis_memory_max_bytes redis_commands_processed_total
		redis_keyspace_hits_total redis_keyspace_misses_total redis_net_input_bytes_total redis_net_output_bytes_total
		redis_db_keys redis_db_keys_expiring
		redis_expired_keys_total redis_evicted_keys_total redis_commands_total redis_commands_duration_seconds_total
		redis_blocked_clients redis_instance_info`) {
		if !found[name] {
			t.Errorf("no %s", name)
		}
	}
}

func TestMetricsAnswerWhileAScriptHoldsEverything(t *testing.T) {
	var hooks session.Hooks
	db := engine.Open(engine.Options{Hooks: &hooks, Shards: 4})
	defer db.Close()
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, m := newSession(t, s), admin.NewMeter(s.Admin())
	do(c, "SET", "k", "v")
	wantMetrics(t, m, `ebb_stale_shards 0`, `redis_db_keys{db="db0"} 1`)
	var script sync.WaitGroup
	script.Go(func() { do(newSession(t, s), "EVAL", "while true do redis.call('GET', 'k') end", "0") })
	for {
		if all := read(m); all["ebb_script_running"].Value == 1 {
			if keys := all[`redis_db_keys{db="db0"}`].Value; keys != 1 {
				t.Errorf("%v keys", keys)
			}
			break
		}
	}
	if got := do(newSession(t, s), "SCRIPT", "KILL"); got != "OK" {
		t.Error(got)
	}
	script.Wait()
	wantMetrics(t, m, `ebb_stale_shards 0`, `ebb_script_running 0`)
}

func TestMetricsWhileCommandsRun(t *testing.T) {
	c, _, m := metered(t)
	var work sync.WaitGroup
	work.Go(func() {
		for i := range 500 {
			do(c, "SET", fmt.Sprint("k", i%50), "v", "PX", "5")
		}
	})
	for range 50 {
		read(m)
	}
	work.Wait()
	wantMetrics(t, m, `redis_commands_total{cmd="set"} 500`)
}

func BenchmarkMeter(b *testing.B) {
	var hooks session.Hooks
	db := engine.Open(engine.Options{Hooks: &hooks, Shards: 16})
	defer db.Close()
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	m := admin.NewMeter(s.Admin())
	for b.Loop() {
		m.Read(func(admin.Metric) {})
	}
}
