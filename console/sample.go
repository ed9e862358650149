package console

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/engine"
)

// The console keeps two series of samples, as float32: about 92 KiB for the last quarter of an hour, while a
// stream is open, and 37 KiB for the last hour. A sample takes 0.6 ms with 200,000 keys (go test ./console
// -bench ASample): one every ten seconds is less than a ten-thousandth of a core.
const (
	shortStep = time.Second
	shortKept = 900
	longStep  = 10 * time.Second
	longKept  = 360
)

// sample is the state of the server at one instant. Rates are per second since the previous sample.
type sample struct {
	At      int64    `json:"at"` // ms since 1970
	Keys    float64  `json:"keys"`
	KeysTTL float64  `json:"keysTTL"` // keys for which PTTL returns a time: those with a deadline, locks and semaphores
	Ops     float64  `json:"ops"`
	P50     *float64 `json:"p50"` // us; null: no command has run
	P99     *float64 `json:"p99"`
	Mem     float64  `json:"mem"`
	MemMax  float64  `json:"memMax"`
	RSS     float64  `json:"rss"`
	Lag50   *float64 `json:"lag50"` // ms; null: nothing has expired
	Lag99   *float64 `json:"lag99"`
	LagMax  *float64 `json:"lagMax"`
	Backlog float64  `json:"backlog"`
	Clients float64  `json:"clients"`
	Waiting float64  `json:"waiting"`

	Expired  map[string]float64 `json:"expired"` // by level
	Hits     float64            `json:"hits"`
	Misses   float64            `json:"misses"`
	In       float64            `json:"in"` // bytes
	Out      float64            `json:"out"`
	CPU      float64            `json:"cpu"`     // seconds of CPU
	Allowed  float64            `json:"allowed"` // by limiters
	Denied   float64            `json:"denied"`
	Added    float64            `json:"jobsAdded"` // to delay queues
	Taken    float64            `json:"jobsDelivered"`
	Acked    float64            `json:"jobsAcked"`
	Due      []int64            `json:"due"`     // for each of 60 seconds
	DueFrom  int64              `json:"dueFrom"` // ms since 1970: the current full second, with which Due begins
	Role     string             `json:"role"`
	Replicas float64            `json:"replicas"`
	Link     string             `json:"link"`    // of a replica: up or down
	ReplLag  float64            `json:"replLag"` // seconds

	Attention []attention `json:"attention"`
	filled    []int       // the databases that have keys
}

// attention is something that an operator should look at, or must act on.
type attention struct {
	Code   string `json:"code"`
	Level  string `json:"level"` // act or look
	N      int64  `json:"n"`
	Text   string `json:"text"`
	Screen string `json:"screen"`
}

// reading has the values of a meter at an instant. Counters have the names of /metrics, followed by the value
// of their label if there is one.
type reading struct {
	at     int64              // us
	value  map[string]float64 // of wanted
	labels map[string]string  // of redis_instance_info
	took   map[float64]uint64 // commands by the upper bounds of their durations, us
	late   map[float64]uint64 // expirations by the upper bounds of their lag, s
	filled []int              // the databases that have keys
	barred bool               // the server is the master of a group, and refuses writes
}

// The decisions of all limiters.
const limitsAllowed, limitsDenied = "ebb_limiter_decisions_total allowed", "ebb_limiter_decisions_total denied"

// The jobs of all delay queues.
const jobsAdded, jobsTaken, jobsAcked = "ebb_queue_jobs_total added", "ebb_queue_jobs_total delivered", "ebb_queue_jobs_total acked"

// wanted are the metrics that samples need. A reading leaves out the others.
var wanted = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range []string{"redis_db_keys", "redis_db_keys_expiring", "redis_commands_processed_total", "redis_memory_used_bytes", "redis_config_maxmemory",
		"redis_memory_used_rss_bytes", "ebb_expiry_backlog", "redis_connected_clients", "redis_blocked_clients", "redis_keyspace_hits_total",
		"redis_keyspace_misses_total", "redis_net_input_bytes_total", "redis_net_output_bytes_total", "redis_cpu_sys_seconds_total", "redis_cpu_user_seconds_total",
		"redis_connected_slaves", "redis_connected_slave_lag_seconds", "redis_master_last_io_seconds_ago", "redis_master_link_up", "redis_rdb_last_bgsave_status",
		"redis_aof_enabled", "redis_aof_last_write_status", "redis_mem_not_counted_for_eviction_bytes", "ebb_script_overdue", limitsAllowed,
		limitsDenied, jobsAdded, jobsTaken, jobsAcked} {
		all[name] = true
	}
	for _, l := range levels {
		all["ebb_expired_total "+l] = true
	}
	for _, name := range events {
		all[name] = true
	}
	return all
}()

// readMeter reads a meter at now, in us.
func readMeter(m *admin.Meter, now int64) *reading {
	r := &reading{at: now, value: make(map[string]float64, len(wanted)), labels: map[string]string{}, took: map[float64]uint64{},
		late: map[float64]uint64{}}
	m.Read(func(x admin.Metric) {
		name := x.Name
		switch {
		case name == "redis_commands_latencies_usec":
			addBuckets(r.took, x)
			return
		case name == "ebb_expiry_lag_seconds":
			addBuckets(r.late, x)
			return
		case name == "redis_instance_info":
			for i := 0; i+1 < len(x.Labels); i += 2 {
				r.labels[x.Labels[i]] = x.Labels[i+1]
			}
			return
		case wanted[name]: // summed over databases, replicas, and keys and containers
		case len(x.Labels) > 0:
			name += " " + x.Labels[len(x.Labels)-1]
		}
		if wanted[name] {
			r.value[name] += x.Value
		}
		if n, ok := databaseOf(x.Labels); ok && name == "redis_db_keys" && x.Value > 0 {
			r.filled = append(r.filled, n)
		}
	})
	return r
}

// readGroup reads the metrics of a member of a group.
func (r *reading) readGroup(h admin.Host) {
	h.InfoGroup(func(name string, value any) {
		if name == "group_writable" { // only a master has it
			writable, _ := value.(bool)
			r.barred = !writable
		}
	})
}

// databaseOf returns the number of the database in the labels of a metric: db, db7.
func databaseOf(labels []string) (int, bool) {
	if len(labels) < 2 || labels[0] != "db" {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimPrefix(labels[1], "db"))
	return n, err == nil
}

// addBuckets adds a distribution to another with the same bounds.
func addBuckets(to map[float64]uint64, x admin.Metric) {
	for bound, n := range x.Buckets {
		to[bound] += n
	}
	to[math.Inf(1)] += x.Count
}

// quantile returns the value below which a share of the distribution lies, counting only the values since
// before. It returns false if nothing was added. It interpolates within a bucket.
func quantile(now, before map[float64]uint64, share float64) (float64, bool) {
	bounds := slices.Sorted(maps.Keys(now))
	if len(bounds) == 0 {
		return 0, false
	}
	since := func(b float64) float64 { return float64(now[b]) - float64(before[b]) }
	all := since(bounds[len(bounds)-1])
	if all <= 0 {
		return 0, false
	}
	low, below := 0.0, 0.0
	for _, b := range bounds {
		n := since(b)
		if n >= share*all {
			switch {
			case math.IsInf(b, 1):
				return low, true
			case n == below:
				return b, true
			}
			return low + (b-low)*(share*all-below)/(n-below), true
		}
		low, below = b, n
	}
	return low, true
}

// levels are the labels of ebb_expired_total.
var levels = [...]string{"key", "field", "member", "element", "lease"}

// sampleOf returns the sample for a reading. before is an earlier reading.
func sampleOf(db *engine.DB, now, before *reading) *sample {
	span := math.Max(float64(now.at-before.at)/1e6, 1e-3)
	v := func(name string) float64 { return now.value[name] }
	rate := func(name string) float64 { return math.Max(0, (now.value[name]-before.value[name])/span) }
	s := &sample{At: now.at / 1000, Keys: v("redis_db_keys"), KeysTTL: v("redis_db_keys_expiring"), Ops: rate("redis_commands_processed_total"),
		Mem: v("redis_memory_used_bytes"), MemMax: v("redis_config_maxmemory"), RSS: v("redis_memory_used_rss_bytes"), Backlog: v("ebb_expiry_backlog"),
		Clients: v("redis_connected_clients"), Waiting: v("redis_blocked_clients"), Hits: rate("redis_keyspace_hits_total"),
		Misses: rate("redis_keyspace_misses_total"), In: rate("redis_net_input_bytes_total"), Out: rate("redis_net_output_bytes_total"),
		CPU:     rate("redis_cpu_sys_seconds_total") + rate("redis_cpu_user_seconds_total"),
		Allowed: rate(limitsAllowed), Denied: rate(limitsDenied),
		Added: rate(jobsAdded), Taken: rate(jobsTaken), Acked: rate(jobsAcked),
		Role: now.labels["role"], Replicas: v("redis_connected_slaves"), ReplLag: v("redis_connected_slave_lag_seconds"),
		Expired: map[string]float64{},
		filled:  now.filled}
	if s.Role == "slave" {
		s.Role, s.Link, s.ReplLag = "replica", "down", v("redis_master_last_io_seconds_ago")
		if v("redis_master_link_up") == 1 {
			s.Link = "up"
		}
	}
	for _, l := range levels {
		s.Expired[l] = rate("ebb_expired_total " + l)
	}
	at := func(d, was map[float64]uint64, share, unit float64) *float64 {
		x, ok := quantile(d, was, share)
		if !ok {
			return nil
		}
		x *= unit
		return &x
	}
	s.P50, s.P99 = at(now.took, before.took, 0.5, 1), at(now.took, before.took, 0.99, 1)
	s.Lag50, s.Lag99, s.LagMax = at(now.late, before.late, 0.5, 1000), at(now.late, before.late, 0.99, 1000), at(now.late, before.late, 1, 1000)
	if survey := db.TrySurveyDue(shortStep.Milliseconds()); survey != nil { // a script may run without end
		s.DueFrom = survey.At
		s.KeysTTL += float64(survey.Leased)
		for i, n := range survey.Keys.Seconds {
			s.Due = append(s.Due, n+survey.Containers.Seconds[i])
		}
	}
	return s
}

// events are the counters whose growth in the last minute is worth a look.
var events = [...]string{"ebb_leases_expired_total", "redis_acl_access_denied_auth_total", "redis_acl_access_denied_cmd_total",
	"redis_acl_access_denied_key_total"}

// tally has the counts of events at an instant, and whether expired data waited.
type tally struct {
	at      int64 // us
	count   [len(events)]float64
	backlog bool
}

func (r *reading) tally() tally {
	t := tally{at: r.at, backlog: r.value["ebb_expiry_backlog"] > 0}
	for i, name := range events {
		t.count[i] = r.value[name]
	}
	return t
}

// The spans, in us, that the console remembers for attend.
const (
	attendSpan = 60e6 // events of the last minute count
	lateSpan   = 5e6  // a backlog that lasts that long needs attention
)

// attend returns the concerns about the server as a whole; now.go has those about its data. minute has the
// tallies of the last minute, the last one at the end.
func attend(s *sample, now *reading, minute []tally) []attention {
	out := []attention{}
	add := func(is bool, code, level string, n float64, screen, text string) {
		if is {
			out = append(out, attention{code, level, int64(n), text, screen})
		}
	}
	v := func(name string) float64 { return now.value[name] }
	grown := func(name string) float64 {
		at := slices.Index(events[:], name)
		return math.Max(0, minute[len(minute)-1].count[at]-minute[0].count[at])
	}
	late := s.Backlog > 0 && now.at-minute[0].at >= lateSpan
	for _, t := range minute {
		late = late && (t.backlog || now.at-t.at > lateSpan)
	}
	add(late, "backlog", "act", s.Backlog, "expiry", "expired data waits to be removed")
	add(v("redis_rdb_last_bgsave_status") == 0, "save", "act", 1, "server", "the last snapshot could not be written")
	add(v("redis_aof_enabled") == 1 && v("redis_aof_last_write_status") == 0, "aof", "act", 1, "server", "the append-only file cannot be written")
	add(s.Role == "replica" && s.Link == "down", "replica", "act", s.ReplLag, "server", "the link to the master is down")
	add(now.barred, "group", "act", 1, "server", "the master of the group refuses writes: NOREPLICAS")
	data := s.Mem - v("redis_mem_not_counted_for_eviction_bytes") // the limit does not count the rest
	add(s.MemMax > 0 && data > 0.9*s.MemMax, "memory", "act", 100*data/math.Max(1, s.MemMax), "server", "memory is above 90 % of its limit")
	add(v("ebb_script_overdue") > 0, "script", "act", 1, "performance", "a script runs for longer than the server allows")
	add(grown("ebb_leases_expired_total") > 0, "leases", "look", grown("ebb_leases_expired_total"), "locks", "leases have ended without a release in "+
		"the last minute")
	denied := grown("redis_acl_access_denied_auth_total") + grown("redis_acl_access_denied_cmd_total") + grown("redis_acl_access_denied_key_total")
	add(denied > 0, "acl", "look", denied, "server", "requests were refused by the ACL in the last minute")
	return out
}
