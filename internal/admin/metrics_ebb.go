package admin

import (
	"runtime"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
)

// ebb reads the metrics for which redis_exporter has no name.
func (r *scrape) ebb() {
	r.gauge("ebb_build_info", "1, with the version as labels.", 1, "version", Version, "go_version", runtime.Version(),
		"redis_version", RedisVersion)
	r.gauge("ebb_shards", "Parts of the keyspace with a lock each.", float64(r.svc.DB.Shards()))
	r.gauge("ebb_network_loops", "Event loops that serve connections.", float64(len(r.svc.Loops)-1))
	r.gauge("ebb_stale_shards", "Shards that were held during the whole scrape: their numbers are of an earlier one.", float64(r.v.Stale))
	r.gauge("ebb_waiting", "Places in lines for keys: a command that waits has one for each of its keys.", float64(r.v.Waiting))
	r.expiry()
	r.queues()
	r.clock()
	r.certificate()
	r.scripts()
	for _, c := range engineCounters {
		r.counter(c.name, c.help, c.value(&r.v.Counters), c.labels...)
	}
	r.waits()
	r.rules()
	r.group()
}

// group reads the numbers of the server's group.
func (r *scrape) group() {
	g, ok := r.svc.Host.Group()
	if !ok {
		return
	}
	r.gauge("ebb_group_epoch", "The epoch of the server's group: each promotion raises it.", float64(g.Epoch))
	r.gauge("ebb_group_insync", "Nodes of the group that hold all that was acknowledged.", float64(g.InSync))
	r.gauge("ebb_group_held_bytes", "Bytes of replies that wait until the group holds what they tell of.", float64(g.Held))
	counts, us := r.svc.held()
	r.distribution("ebb_group_wait_seconds", "For how long replies were held until the group had what they tell of.", counts, us)
	const help = "Changes of this server's role in its group: it was promoted, has handed the group over, or was replaced."
	r.counter("ebb_group_failovers_total", help, float64(g.Promoted), "result", "promoted")
	r.counter("ebb_group_failovers_total", help, float64(g.HandedOver), "result", "handed_over")
	r.counter("ebb_group_failovers_total", help, float64(g.Replaced), "result", "replaced")
}

// expiry reads the numbers of deadlines, and how late removals were.
func (r *scrape) expiry() {
	c := &r.v.Counters
	for l := range engine.Levels {
		r.counter("ebb_expired_total", "Removals of keys and items whose deadline had passed, by level.",
			float64(c.Lag[l].Count), "level", l.String())
	}
	for l := range engine.Levels {
		r.durations("ebb_expiry_lag_seconds", "How long after its deadline it was removed, by level; it is invisible from the "+
			"deadline on.", &c.Lag[l], "level",
			l.String())
	}
	all := []struct {
		of string
		d  *engine.DeadlineSurvey
	}{{"keys", &r.v.Keys}, {"containers", &r.v.Containers}}
	for _, x := range all {
		r.gauge("ebb_expiry_items", "Keys with a deadline, and containers in which something falls due.", float64(x.d.Entries), "of", x.of)
	}
	for _, x := range all {
		r.gauge("ebb_expiry_backlog", "Of these, the ones whose deadline has passed and that are not removed yet.", float64(x.d.Due), "of", x.of)
	}
	for _, x := range all {
		for i, n := range x.d.Ahead {
			within := shortTime(time.Duration(engine.Horizons[i]) * time.Millisecond)
			r.gauge("ebb_expiry_due", "Of these, the ones that fall due within a time from now, the backlog included.", float64(n),
				"of", x.of, "within", within)
		}
	}
}

// queues reads the numbers of delay queues.
func (r *scrape) queues() {
	q := &r.v.Queues
	r.gauge("ebb_queues", "Delay queues.", float64(q.Queues))
	const help = "Jobs in delay queues, by what they wait for: their time, a consumer, or the end of a lease."
	r.gauge("ebb_queue_jobs", help, float64(q.Jobs-q.Leased-q.Ready), "state", "delayed")
	r.gauge("ebb_queue_jobs", help, float64(q.Ready), "state", "ready")
	r.gauge("ebb_queue_jobs", help, float64(q.Leased), "state", "leased")
}

// shortTime returns a time as 1s, 1m, 1h or 1d.
func shortTime(d time.Duration) string {
	switch {
	case d >= 24*time.Hour:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	case d >= time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d >= time.Minute:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return strconv.Itoa(int(d/time.Second)) + "s"
}

const (
	helpLimiters  = "Decisions of limiters; questions are none."
	helpLocks     = "Requests for locks, by what came of them; those that wait count when they are granted."
	helpPermits   = "Requests for permits of semaphores, likewise."
	helpSchedules = "Occurrences of schedules of delay queues: run counts those that became jobs, skipped those that did not " +
		"because the job before was in the queue or no server ran at the time, late those that were noticed later than LATE allows."
	helpJobs = "What happened to jobs of delay queues: delivered counts each time, redelivered the second and further ones, " +
		"lapsed leases that were over; dead, dropped and expired are the ways out other than acked."
)

// engineCounters are the engine's counters that need a name only. Those of one name stand
// together.
var engineCounters = []struct {
	name, help string
	labels     []string
	value      func(*engine.Counters) float64
}{
	{"ebb_expired_lazily_total", "Keys that a command found expired before they were removed.", nil,
		func(c *engine.Counters) float64 { return float64(c.ExpiredLazily) }},
	{"ebb_reclaiming_seconds_total", "Time spent on removing what expired and on compaction.", nil,
		func(c *engine.Counters) float64 { return float64(c.Reclaiming) / 1e6 }},
	{"ebb_reclaiming_time_caps_total", "Slices of that which ended before the work did.", nil,
		func(c *engine.Counters) float64 { return float64(c.TimeCaps) }},

	{"ebb_limiter_decisions_total", helpLimiters, []string{"result", "allowed"},
		func(c *engine.Counters) float64 { return float64(c.LimiterAllowed) }},
	{"ebb_limiter_decisions_total", helpLimiters, []string{"result", "denied"},
		func(c *engine.Counters) float64 { return float64(c.LimiterDenied) }},

	{"ebb_lock_requests_total", helpLocks, []string{"result", "granted"}, func(c *engine.Counters) float64 { return float64(c.LocksGranted) }},
	{"ebb_lock_requests_total", helpLocks, []string{"result", "refused"}, func(c *engine.Counters) float64 { return float64(c.LocksRefused) }},
	{"ebb_semaphore_requests_total", helpPermits, []string{"result", "granted"},
		func(c *engine.Counters) float64 { return float64(c.PermitsGranted) }},
	{"ebb_semaphore_requests_total", helpPermits, []string{"result", "refused"},
		func(c *engine.Counters) float64 { return float64(c.PermitsRefused) }},
	{"ebb_leases_expired_total", "Holders of locks and semaphores whose leases were over.", nil,
		func(c *engine.Counters) float64 { return float64(c.LeasesExpired) }},

	{"ebb_queue_jobs_total", helpJobs, []string{"event", "added"}, func(c *engine.Counters) float64 { return float64(c.QueueAdded) }},
	{"ebb_queue_jobs_total", helpJobs, []string{"event", "delivered"}, func(c *engine.Counters) float64 { return float64(c.QueueDelivered) }},
	{"ebb_queue_jobs_total", helpJobs, []string{"event", "redelivered"},
		func(c *engine.Counters) float64 { return float64(c.QueueRedelivered) }},
	{"ebb_queue_jobs_total", helpJobs, []string{"event", "acked"}, func(c *engine.Counters) float64 { return float64(c.QueueAcked) }},
	{"ebb_queue_jobs_total", helpJobs, []string{"event", "lapsed"}, func(c *engine.Counters) float64 { return float64(c.QueueLapsed) }},
	{"ebb_queue_jobs_total", helpJobs, []string{"event", "dead"}, func(c *engine.Counters) float64 { return float64(c.QueueDead) }},
	{"ebb_queue_jobs_total", helpJobs, []string{"event", "dropped"}, func(c *engine.Counters) float64 { return float64(c.QueueDropped) }},
	{"ebb_queue_jobs_total", helpJobs, []string{"event", "expired"}, func(c *engine.Counters) float64 { return float64(c.QueueExpired) }},

	{"ebb_schedules_total", helpSchedules, []string{"result", "run"}, func(c *engine.Counters) float64 { return float64(c.ScheduleRuns) }},
	{"ebb_schedules_total", helpSchedules, []string{"result", "skipped"},
		func(c *engine.Counters) float64 { return float64(c.ScheduleSkipped) }},
	{"ebb_schedules_total", helpSchedules, []string{"result", "late"}, func(c *engine.Counters) float64 { return float64(c.ScheduleLate) }},
}

// waits reads how long clients waited for locks and permits, and how late jobs were taken.
func (r *scrape) waits() {
	c := &r.v.Counters
	r.durations("ebb_lock_wait_seconds", "How long requests waited that waited for a lock or for permits, and got them.", &c.Waits)
	r.durations("ebb_queue_lateness_seconds", "How long after they were due jobs of delay queues were taken.", &c.QueueLate)
}

// rules reads the counters of expiry rules.
func (r *scrape) rules() {
	const help = "Entries of rules on what expires: fired were written to the rule's stream, suspended are lost " +
		"because it could not take them."
	for i := range r.v.Rules {
		x := &r.v.Rules[i]
		db := "db" + strconv.Itoa(x.Database)
		r.counter("ebb_rule_events_total", help, float64(x.Fired), "db", db, "rule", x.Name, "result", "fired")
		r.counter("ebb_rule_events_total", help, float64(x.Suspended), "db", db, "rule", x.Name, "result", "suspended")
	}
}

// clock reads the difference between engine time and the wall clock.
func (r *scrape) clock() {
	if c, ok := r.svc.DB.Clock().(interface {
		Offset() (time.Duration, int64)
	}); ok {
		lead, steps := c.Offset()
		r.gauge("ebb_clock_offset_seconds", "The wall clock's lead over engine time.", lead.Seconds())
		r.counter("ebb_clock_steps_total", "Steps of the wall clock that engine time did not follow.", float64(steps))
	}
}

// certificate reads when the server's TLS certificate ends.
func (r *scrape) certificate() {
	if r.svc.CertificateEnd == nil {
		return
	}
	if end := r.svc.CertificateEnd(); !end.IsZero() {
		r.gauge("ebb_tls_certificate_expiry_timestamp_seconds", "When the TLS certificate ends that the server shows, since 1970.",
			float64(end.Unix()))
	}
}

// scripts reads the numbers of scripts, and whether one runs for long.
func (r *scrape) scripts() {
	s := r.svc.Scripts.Stats()
	r.gauge("ebb_scripts_cached", "Scripts that EVALSHA finds.", float64(s.Scripts))
	r.gauge("ebb_functions", "Functions that FCALL finds.", float64(s.Functions))
	var busy, took, overdue float64
	if began, late, running := r.svc.Host.RunningScript(); running {
		busy, took = 1, float64(max(0, r.now-began))/1e6
		overdue = number(late)
	}
	r.gauge("ebb_script_running", "Whether a script runs that has left its network loop, as those do that take long.", busy)
	r.gauge("ebb_script_running_seconds", "For how long it has run.", took)
	r.gauge("ebb_script_overdue", "Whether others hear BUSY because of it.", overdue)
}
