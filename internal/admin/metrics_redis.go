package admin

import (
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/engine"
)

// infoGauges and infoCounters are the fields of INFO that redis_exporter shows,
// with the names that it gives them, redis_ left out.
var infoGauges = map[string]string{
	"uptime_in_seconds": "uptime_in_seconds", "process_id": "process_id", "hz": "hz", "configured_hz": "configured_hz",

	"connected_clients": "connected_clients", "blocked_clients": "blocked_clients", "tracking_clients": "tracking_clients",
	"client_recent_max_input_buffer":  "client_recent_max_input_buffer_bytes",
	"client_recent_max_output_buffer": "client_recent_max_output_buffer_bytes",
	"cluster_connections":             "cluster_connections", "maxclients": "max_clients", "pubsub_clients": "pubsub_clients",
	"watching_clients":         "watching_clients",
	"clients_in_timeout_table": "clients_in_timeout_table",

	"used_memory": "memory_used_bytes", "used_memory_rss": "memory_used_rss_bytes", "used_memory_peak": "memory_used_peak_bytes",
	"used_memory_overhead": "memory_used_overhead_bytes", "used_memory_startup": "memory_used_startup_bytes",
	"used_memory_dataset": "memory_used_dataset_bytes",
	"used_memory_lua":     "memory_used_lua_bytes", "used_memory_vm_eval": "memory_used_vm_eval_bytes",
	"used_memory_scripts_eval": "memory_used_scripts_eval_bytes",
	"used_memory_vm_functions": "memory_used_vm_functions_bytes", "used_memory_vm_total": "memory_used_vm_total_bytes",
	"used_memory_functions": "memory_used_functions_bytes", "used_memory_scripts": "memory_used_scripts_bytes",
	"number_of_cached_scripts": "number_of_cached_scripts", "number_of_functions": "number_of_functions",
	"number_of_libraries": "number_of_libraries",
	"maxmemory":           "memory_max_bytes", "total_system_memory": "total_system_memory_bytes",
	"allocator_allocated": "allocator_allocated_bytes", "allocator_active": "allocator_active_bytes",
	"allocator_resident": "allocator_resident_bytes", "allocator_frag_ratio": "allocator_frag_ratio",
	"allocator_frag_bytes": "allocator_frag_bytes", "allocator_rss_ratio": "allocator_rss_ratio",
	"allocator_rss_bytes": "allocator_rss_bytes", "rss_overhead_ratio": "rss_overhead_ratio", "rss_overhead_bytes": "rss_overhead_bytes",
	"mem_fragmentation_ratio": "mem_fragmentation_ratio", "mem_fragmentation_bytes": "mem_fragmentation_bytes",
	"mem_clients_slaves": "mem_clients_slaves", "mem_clients_normal": "mem_clients_normal", "mem_cluster_links": "mem_cluster_links_bytes",
	"mem_aof_buffer":                "mem_aof_buffer_bytes",
	"mem_total_replication_buffers": "mem_total_replication_buffers_bytes", "mem_replication_backlog": "mem_replication_backlog_bytes",
	"mem_not_counted_for_evict": "mem_not_counted_for_eviction_bytes",
	"lazyfree_pending_objects":  "lazyfree_pending_objects", "lazyfreed_objects": "lazyfreed_objects",
	"active_defrag_running": "active_defrag_running",

	"loading": "loading_dump_file", "async_loading": "async_loading", "rdb_changes_since_last_save": "rdb_changes_since_last_save",
	"rdb_bgsave_in_progress": "rdb_bgsave_in_progress", "rdb_last_save_time": "rdb_last_save_timestamp_seconds",
	"rdb_last_bgsave_status":   "rdb_last_bgsave_status",
	"rdb_last_bgsave_time_sec": "rdb_last_bgsave_duration_sec", "rdb_current_bgsave_time_sec": "rdb_current_bgsave_duration_sec",
	"rdb_saves":         "rdb_saves_total",
	"rdb_last_cow_size": "rdb_last_cow_size_bytes", "rdb_last_load_keys_expired": "rdb_last_load_expired_keys",
	"rdb_last_load_keys_loaded": "rdb_last_load_loaded_keys",
	"aof_enabled":               "aof_enabled", "aof_rewrite_in_progress": "aof_rewrite_in_progress",
	"aof_rewrite_scheduled":     "aof_rewrite_scheduled",
	"aof_last_rewrite_time_sec": "aof_last_rewrite_duration_sec", "aof_current_rewrite_time_sec": "aof_current_rewrite_duration_sec",
	"aof_last_cow_size": "aof_last_cow_size_bytes", "aof_last_bgrewrite_status": "aof_last_bgrewrite_status",
	"aof_last_write_status": "aof_last_write_status", "aof_current_size": "aof_current_size_bytes",
	"aof_base_size": "aof_base_size_bytes", "aof_pending_rewrite": "aof_pending_rewrite",
	"aof_buffer_length": "aof_buffer_length", "aof_pending_bio_fsync": "aof_pending_bio_fsync", "aof_delayed_fsync": "aof_delayed_fsync",
	"module_fork_in_progress": "module_fork_in_progress", "module_fork_last_cow_size": "module_fork_last_cow_size",
	"current_eviction_exceeded_time": "current_eviction_exceeded_time_ms",

	"pubsub_channels": "pubsub_channels", "pubsub_patterns": "pubsub_patterns", "pubsubshard_channels": "pubsubshard_channels",
	"latest_fork_usec": "latest_fork_usec", "expired_stale_perc": "expired_stale_percentage",
	"expired_time_cap_reached_count": "expired_time_cap_reached_total",
	"migrate_cached_sockets":         "migrate_cached_sockets_total", "slave_expires_tracked_keys": "slave_expires_tracked_keys",
	"active_defrag_hits": "defrag_hits", "active_defrag_misses": "defrag_misses", "active_defrag_key_hits": "defrag_key_hits",
	"active_defrag_key_misses": "defrag_key_misses",
	"tracking_total_keys":      "tracking_total_keys", "tracking_total_items": "tracking_total_items",
	"tracking_total_prefixes": "tracking_total_prefixes",

	"connected_slaves": "connected_slaves", "master_repl_offset": "master_repl_offset", "second_repl_offset": "second_repl_offset",
	"repl_backlog_size": "replication_backlog_bytes", "repl_backlog_active": "repl_backlog_is_active",
	"repl_backlog_first_byte_offset": "repl_backlog_first_byte_offset", "repl_backlog_histlen": "repl_backlog_history_bytes",
	"sync_full": "replica_resyncs_full", "sync_partial_ok": "replica_partial_resync_accepted",
	"sync_partial_err": "replica_partial_resync_denied",
	"cluster_enabled":  "cluster_enabled", "io_threads_active": "io_threads_active",
}

var infoCounters = map[string]string{
	"total_connections_received": "connections_received_total", "rejected_connections": "rejected_connections_total",
	"total_commands_processed": "commands_processed_total", "total_error_replies": "total_error_replies",
	"unexpected_error_replies": "unexpected_error_replies",
	"total_net_input_bytes":    "net_input_bytes_total", "total_net_output_bytes": "net_output_bytes_total",
	"total_net_repl_input_bytes": "net_repl_input_bytes_total", "total_net_repl_output_bytes": "net_repl_output_bytes_total",
	"total_reads_processed": "total_reads_processed", "total_writes_processed": "total_writes_processed",
	"io_threaded_reads_processed": "io_threaded_reads_processed", "io_threaded_writes_processed": "io_threaded_writes_processed",
	"expired_keys": "expired_keys_total", "evicted_keys": "evicted_keys_total", "evicted_clients": "evicted_clients_total",
	"expire_cycle_cpu_milliseconds": "expire_cycle_cpu_time_ms_total", "total_eviction_exceeded_time": "eviction_exceeded_time_ms_total",
	"keyspace_hits": "keyspace_hits_total", "keyspace_misses": "keyspace_misses_total",
	"dump_payload_sanitizations": "dump_payload_sanitizations",
	"acl_access_denied_auth":     "acl_access_denied_auth_total", "acl_access_denied_cmd": "acl_access_denied_cmd_total",
	"acl_access_denied_key": "acl_access_denied_key_total", "acl_access_denied_channel": "acl_access_denied_channel_total",
	"used_cpu_sys": "cpu_sys_seconds_total", "used_cpu_user": "cpu_user_seconds_total",
	"used_cpu_sys_children": "cpu_sys_children_seconds_total", "used_cpu_user_children": "cpu_user_children_seconds_total",
	"used_cpu_sys_main_thread": "cpu_sys_main_thread_seconds_total", "used_cpu_user_main_thread": "cpu_user_main_thread_seconds_total",
}

// redis reads the metrics that redis_exporter has.
func (r *scrape) redis() {
	r.gauge("redis_up", "Whether the server answers: it does, or there were no answer here.", 1)
	r.info()
	r.commands()
	codes := r.svc.Totals.ErrorCodes()
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		r.counter("redis_errors_total", "Error replies, by their first word.", float64(codes[code]), "err", code)
	}
	r.databases()
	r.replication()
	r.gauge("redis_slowlog_length", "Entries of SLOWLOG.", float64(r.svc.Slowlog.Len()))
	id, took := 0.0, 0.0
	if last := r.svc.Slowlog.Latest(1); len(last) > 0 {
		id, took = float64(last[0].ID), float64(last[0].Micros)/1e6
	}
	r.gauge("redis_slowlog_last_id", "The latest entry of SLOWLOG.", id)
	r.gauge("redis_last_slow_execution_duration_seconds", "How long the latest entry of SLOWLOG took.", took)
	r.spikes()
}

// info reads the fields of INFO.
func (r *scrape) info() {
	spaces := make([]engine.KeyspaceStats, len(r.v.Databases))
	for i := range spaces {
		spaces[i] = r.v.Databases[i].KeyspaceStats
	}
	i := info{svc: r.svc, now: r.now, survey: r.v, counters: &r.v.Counters, spaces: spaces}
	words := map[string]string{}
	i.visit = func(field string, value any) {
		if s, ok := value.(string); ok {
			words[field] = s
		}
		if name, ok := infoGauges[field]; ok {
			r.gauge("redis_"+name, "INFO's field "+field+".", number(value))
		} else if name, ok := infoCounters[field]; ok {
			r.counter("redis_"+name, "INFO's field "+field+".", number(value))
		}
	}
	for _, section := range []func(*info){(*info).server, (*info).clients, (*info).memory, (*info).persistence, (*info).stats,
		(*info).replication, (*info).cpu, (*info).cluster} {
		section(&i)
	}
	r.gauge("redis_start_time_seconds", "When the server started, in seconds since 1970.", float64(r.svc.Started/1e6))
	r.gauge("redis_config_maxclients", "The directive maxclients.", float64(r.svc.Config.MaxClients()))
	r.gauge("redis_config_maxmemory", "The directive maxmemory.", float64(r.svc.Config.MaxMemory()))
	labels := []string{"process_id", strconv.Itoa(os.Getpid()), "tcp_port", strconv.Itoa(r.svc.Host.Port())}
	for _, field := range []string{"role", "redis_version", "redis_build_id", "redis_mode", "os", "maxmemory_policy",
		"run_id", "master_replid"} {
		labels = append(labels, field, words[field])
	}
	r.gauge("redis_instance_info", "1, with the server's properties as labels.", 1, labels...)
}

// replication reads the links: to the master, and from replicas.
func (r *scrape) replication() {
	offset := float64(r.svc.DB.Log().End())
	if l, replica := r.svc.Replication.Link(); replica {
		at := []string{"master_host", l.Host, "master_port", strconv.Itoa(l.Port)}
		r.gauge("redis_master_link_up", "Whether the stream of the master is being followed.", number(l.Up), at...)
		r.gauge("redis_master_last_io_seconds_ago", "Seconds since the master was last heard of; -1 while the link is down.",
			float64(l.Idle), at...)
		r.gauge("redis_master_sync_in_progress", "Whether the master sends all its data.", number(l.Syncing), at...)
		r.gauge("redis_slave_repl_offset", "The offset in the master's stream.", offset, at...)
	}
	for _, f := range r.svc.Replication.Replicas() {
		at := []string{"slave_ip", f.Host, "slave_port", strconv.Itoa(f.Port), "slave_state", f.State}
		r.gauge("redis_connected_slave_offset_bytes", "The offset that the replica has acknowledged.", float64(f.Acked), at...)
		r.gauge("redis_connected_slave_lag_seconds", "Seconds since the replica's last acknowledgement.", float64(f.Lag), at...)
	}
}

// number returns the value of a field of INFO: states are 1 when all is well.
func number(value any) float64 {
	switch v := value.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
	case string:
		if v == "ok" {
			return 1
		}
		n, _ := strconv.ParseFloat(v, 64)
		return n
	}
	return 0
}

// commands reads the statistics of the commands that were called.
func (r *scrape) commands() {
	names, tallies := []string(nil), []Tally(nil)
	for id := range r.svc.Commands {
		if t := r.svc.Tally(id, &r.v.Counters); t.Calls+t.Rejected+t.Failed > 0 {
			names, tallies = append(names, r.svc.Commands[id]), append(tallies, t)
		}
	}
	for _, x := range []struct {
		name, help string
		value      func(*Tally) float64
	}{
		{"redis_commands_total", "Calls, by command.", func(t *Tally) float64 { return float64(t.Calls) }},
		{"redis_commands_duration_seconds_total", "Time spent, by command.", func(t *Tally) float64 { return float64(t.Micros) / 1e6 }},
		{"redis_commands_rejected_calls_total", "Calls that were refused before they ran, by command.",
			func(t *Tally) float64 { return float64(t.Rejected) }},
		{"redis_commands_failed_calls_total", "Calls that ended in an error, by command.", func(t *Tally) float64 { return float64(t.Failed) }},
	} {
		for i := range tallies {
			r.counter(x.name, x.help, x.value(&tallies[i]), "cmd", names[i])
		}
	}
	for i := range tallies {
		r.latencies(names[i], &tallies[i])
	}
}

// latencies reads how long the calls of a command took, in us and powers of four.
func (r *scrape) latencies(name string, t *Tally) {
	d := Metric{Name: "redis_commands_latencies_usec", Help: "How long calls took, in microseconds, by command.", Kind: Distribution,
		Labels: []string{"cmd", name}, Sum: float64(t.Micros), Buckets: map[float64]uint64{}}
	bin := 0
	for bound := int64(1); bound <= 1<<22; bound *= 4 {
		for ; bin < LatencyBins && LatencyTop(bin) <= bound; bin++ {
			d.Count += uint64(t.Latency[bin])
		}
		d.Buckets[float64(bound)] = d.Count
	}
	for ; bin < LatencyBins; bin++ {
		d.Count += uint64(t.Latency[bin])
	}
	if d.Count > 0 {
		r.emit(d)
	}
}

// databases reads the numbers of the databases that hold keys; database 0 is
// always there, so that a graph begins at 0.
func (r *scrape) databases() {
	for _, x := range []struct {
		name, help string
		value      func(*engine.DatabaseSurvey) float64
	}{
		{"redis_db_keys", "Keys, by database.", func(d *engine.DatabaseSurvey) float64 { return float64(d.Keys) }},
		{"redis_db_keys_expiring", "Keys with a deadline, by database.", func(d *engine.DatabaseSurvey) float64 { return float64(d.Expires) }},
		{"redis_db_avg_ttl_seconds", "How long these have left on average, by database.",
			func(d *engine.DatabaseSurvey) float64 { return d.AvgTTL.Seconds() }},
	} {
		for n := range r.v.Databases {
			if d := &r.v.Databases[n]; n == 0 || d.Keys > 0 {
				r.gauge(x.name, x.help, x.value(d), "db", "db"+strconv.Itoa(n))
			}
		}
	}
}

// spikes reads what LATENCY LATEST shows.
func (r *scrape) spikes() {
	names := r.svc.Latencies.Names()
	for _, event := range names {
		if s := r.svc.Latencies.Get(event); len(s.Samples) > 0 {
			r.gauge("redis_latency_spike_last", "When an event of LATENCY was last seen, in seconds since 1970.",
				float64(s.Last().At), "event_name", event)
		}
	}
	for _, event := range names {
		if s := r.svc.Latencies.Get(event); len(s.Samples) > 0 {
			r.gauge("redis_latency_spike_duration_seconds", "How long it took then.", float64(s.Last().Ms)/1e3, "event_name", event)
		}
	}
}
