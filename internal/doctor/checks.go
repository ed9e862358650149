package doctor

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// checks are all checks, in the order of the report. A check returns one finding, or none if it does not apply
// or its data is missing.
var checks = []func(*facts) []Finding{
	server, memory, evictable, limiters, fragmentation, snapshots, appendOnly, space, expiry, notifications, rules, streams, queues, large,
	replicas, master, clients, refused, descriptors, access, certificate, slow, keysCommand, clock, kernel,
}

// one returns a finding with commands that correct it, or without; how says what else to do.
func one(g Grade, area, what, why, fix string, how ...string) []Finding {
	return []Finding{{Grade: g, Area: area, What: what, Why: why, Fix: fix, How: strings.Join(how, "; ")}}
}

func fine(area, format string, args ...any) []Finding {
	return one(OK, area, fmt.Sprintf(format, args...), "", "")
}

func server(f *facts) []Finding {
	if len(f.info) == 0 {
		return nil
	}
	what := fmt.Sprintf("%s %s, %s, up %s", f.product, f.info[f.product+"_version"], f.info["role"],
		time.Duration(f.num("uptime_in_seconds"))*time.Second)
	if f.info["loading"] == "1" {
		return one(Act, "server", what+": it loads its data, "+f.info["loading_loaded_perc"]+" %",
			"clients get LOADING errors until it is done", "", "wait")
	}
	return fine("server", "%s", what)
}

func memory(f *facts) []Finding {
	used, limit, all := f.num("used_memory")-f.num("mem_not_counted_for_evict"), f.num("maxmemory"), f.num("total_system_memory")
	policy := f.info["maxmemory_policy"]
	what := size(used)
	if len(f.info) == 0 {
		return nil
	}
	if limit > 0 {
		what = fmt.Sprintf("%s of %s (%.0f %%), %s", size(used), size(limit), 100*used/limit, policy)
	}
	set := "CONFIG SET maxmemory " + fmt.Sprintf("%.0f", 0.7*all)
	if f.product == "ebb" {
		set = "CONFIG SET maxmemory 70%"
	}
	switch {
	case limit == 0:
		return one(Look, "memory", what+", and maxmemory is 0", "data grows until the system kills the server", set)
	case all > 0 && limit > all:
		return one(Act, "memory", fmt.Sprintf("%s, on a machine of %s", what, size(all)),
			"the system kills the server before maxmemory is reached", set)
	case used > 0.9*limit && policy == "noeviction":
		return one(Act, "memory", what, "writes are refused at 100 % (OOM)", "",
			"give it more memory; if it is a cache, CONFIG SET maxmemory-policy allkeys-lru")
	case f.num("evicted_keys") > 0 && policy != "noeviction":
		return one(Look, "memory", fmt.Sprintf("%s; %.0f keys were evicted", what, f.num("evicted_keys")),
			"right for a cache; data that cannot be made again does not belong beside it", "",
			"compare keyspace_hits with keyspace_misses in INFO stats")
	}
	return fine("memory", "%s", what)
}

// keys returns the numbers of keys, and of keys with a deadline, in all databases.
func (f *facts) keys() (all, timed float64) {
	for name, line := range f.info {
		if !strings.HasPrefix(name, "db") || !strings.HasPrefix(line, "keys=") {
			continue
		}
		for part := range strings.SplitSeq(line, ",") {
			switch k, v, _ := strings.Cut(part, "="); k {
			case "keys":
				all += number(v)
			case "expires":
				timed += number(v)
			}
		}
	}
	return all, timed
}

func evictable(f *facts) []Finding {
	all, timed := f.keys()
	policy := f.info["maxmemory_policy"]
	if all == 0 {
		return nil
	}
	what := fmt.Sprintf("%.0f keys, %.0f %% with a deadline", all, 100*timed/all)
	switch {
	case strings.HasPrefix(policy, "volatile-") && timed == 0 && f.num("maxmemory") == 0:
		return one(Look, "eviction", what+", and the policy is "+policy,
			"the policy evicts keys with a deadline only: with a maxmemory, writes would be refused there",
			"CONFIG SET maxmemory-policy allkeys-lru", "or give keys a TTL, before a limit is set")
	case strings.HasPrefix(policy, "volatile-") && timed == 0:
		return one(Act, "eviction", what+", and the policy is "+policy,
			"the policy evicts keys with a deadline only: there are none, so writes are refused at maxmemory",
			"CONFIG SET maxmemory-policy allkeys-lru", "or give keys a TTL")
	case strings.HasPrefix(policy, "allkeys-") && f.named("*lock*", lockName, "lock"):
		how := "keep locks on a server with maxmemory-policy noeviction"
		if f.product == "ebb" {
			how += "; or take them with LOCK.ACQUIRE, whose keys are not evicted"
		}
		return one(Look, "eviction", what+"; keys with names of locks are among them, and the policy is "+policy,
			"an evicted lock has two holders", "", how)
	}
	return fine("eviction", "%s", what)
}

// lockName reports whether a key is named as a lock.
func lockName(name string) bool {
	return strings.HasPrefix(name, "lock:") || strings.HasSuffix(name, ":lock")
}

// limiterNames are parts of names that limiters have.
var limiterNames = []string{"limit", "limiter", "limits", "ratelimit", "ratelimiter", "rate-limit", "rate_limit"}

// limiterName reports whether a key is named as a limiter.
func limiterName(name string) bool {
	parts := strings.Split(strings.ToLower(name), ":")
	return slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(limiterNames, part) })
}

// limiters looks at limiters that are evicted. They have a deadline, so a volatile- policy chooses among them first.
func limiters(f *facts) []Finding {
	policy, why := f.info["maxmemory_policy"], "a limiter that is evicted is full again: it allows a burst"
	protect, known := f.config["maxmemory-protect"]
	switch {
	case policy == "noeviction" || policy == "" || f.num("maxmemory") == 0:
		return nil
	case known && !slices.Contains(strings.Fields(protect), "limiter") && f.num("limiter_allowed")+f.num("limiter_denied") > 0:
		fix := "CONFIG SET maxmemory-protect limiter"
		if protect != "none" && protect != "" {
			fix = "CONFIG SET maxmemory-protect '" + protect + " limiter'"
		}
		return one(Look, "eviction", "limiters are in use, and maxmemory-protect is "+cmp.Or(protect, "empty"), why, fix)
	case strings.HasPrefix(policy, "volatile-") && f.named("*limit*", limiterName, "limiter"):
		how := "keep limiters on a server with maxmemory-policy noeviction"
		if f.product == "ebb" {
			how += "; or count with RL.TAKE, whose keys are not evicted"
		}
		return one(Look, "eviction", "keys with names of limiters have a deadline, and the policy is "+policy, why, "", how)
	}
	return nil
}

// named reports whether a key of the database has such a name, and is not of a type of ebb that eviction spares. It looks at the first
// million keys: a server takes some milliseconds for each of the steps.
func (f *facts) named(pattern string, is func(name string) bool, spared string) bool {
	cursor := "0"
	for range 100 {
		v, ok := f.ask("SCAN", cursor, "MATCH", pattern, "COUNT", 10_000)
		if !ok || len(v.Elems) != 2 {
			return false
		}
		for _, name := range v.Elems[1].Elems {
			if !is(name.String()) {
				continue
			}
			if f.product != "ebb" {
				return true
			}
			if kind, ok := f.ask("TYPE", name.String()); ok && kind.String() != spared {
				return true
			}
		}
		if cursor = v.Elems[0].String(); cursor == "0" {
			return false
		}
	}
	return false
}

func fragmentation(f *facts) []Finding {
	ratio, used := f.num("mem_fragmentation_ratio"), f.num("used_memory")
	if ratio < 1.5 || used < 256<<20 {
		return nil
	}
	return one(Look, "memory", fmt.Sprintf("resident memory is %.1f times the data", ratio),
		"the allocator holds memory that the data has left",
		"", "CONFIG SET activedefrag yes, if the server is built with its own jemalloc; or restart a replica, and fail over to it")
}

// lasting is a fix that also holds after the next start, with what else to do for that.
func (f *facts) lasting(fix string) (commands, how string) {
	if f.info["config_file"] == "" {
		return fix, "there is no configuration file, so start the server with it, too"
	}
	return fix + "; CONFIG REWRITE", ""
}

func snapshots(f *facts) []Finding {
	if len(f.config) == 0 {
		return nil
	}
	appending := f.info["aof_enabled"] == "1"
	switch {
	case f.info["rdb_last_bgsave_status"] == "err":
		return one(Act, "files", "the last snapshot failed",
			"writes are refused while stop-writes-on-bgsave-error is yes, and a restart loses data",
			"BGSAVE", "the log has the reason (a full disk, no permission): correct that first")
	case f.config["save"] == "" && !appending && f.info["role"] == "master":
		fix, how := f.lasting("CONFIG SET appendonly yes")
		return one(Look, "files", "neither snapshots nor append-only files", "a restart loses all data", fix, how)
	case f.config["save"] == "":
		return nil
	}
	since := time.Duration(float64(f.Clock().Unix())-f.num("rdb_last_save_time")) * time.Second
	if changes := f.num("rdb_changes_since_last_save"); !appending && changes > 0 && since > 24*time.Hour {
		return one(Look, "files", fmt.Sprintf("%.0f changes since the last snapshot, %s ago", changes, since.Round(time.Hour)),
			"a crash loses these changes", "BGSAVE; CONFIG SET save '3600 1 300 100 60 10000'")
	}
	return fine("files", "snapshots: %s; %.0f changes since the last", f.config["save"], f.num("rdb_changes_since_last_save"))
}

func appendOnly(f *facts) []Finding {
	if f.info["aof_enabled"] != "1" {
		return nil
	}
	fsync := f.config["appendfsync"]
	switch {
	case f.info["aof_last_write_status"] == "err":
		return one(Act, "files", "writing the append-only file failed", "writes are refused, and earlier ones may be lost",
			"", "the log has the reason (a full disk, no permission)")
	case f.info["aof_last_bgrewrite_status"] == "err":
		return one(Act, "files", "the last rewrite of the append-only file failed", "the file grows without bound",
			"BGREWRITEAOF", "the log has the reason: correct that first")
	case f.num("aof_delayed_fsync") > 0:
		return one(Look, "files", fmt.Sprintf("%.0f fsyncs took longer than the next one was due", f.num("aof_delayed_fsync")),
			"writes wait for a slow disk", "CONFIG SET no-appendfsync-on-rewrite yes", "or a faster disk")
	}
	return fine("files", "append-only file: appendfsync %s", fsync)
}

// A removal more than lateRemoval us after the deadline is late, as for the alert EbbDeadlinesLate. One in a hundred tells something from
// enoughRemoved removals on.
const (
	lateRemoval   = 16_384
	enoughRemoved = 1000
)

func expiry(f *facts) []Finding {
	if f.product != "ebb" {
		stale := f.num("expired_stale_perc")
		if stale > 10 {
			return one(Look, "expiry", fmt.Sprintf("%.0f %% of the keys with a deadline have expired and are still in memory", stale),
				"they take memory, and their expired events are late", "CONFIG SET active-expire-effort 10")
		}
		return nil
	}
	backlog, p99 := f.num("expiry_backlog"), f.num("expiry_lag_p99_us")
	if backlog > 100_000 {
		return one(Look, "expiry", fmt.Sprintf("%.0f items have expired and are not removed yet",
			backlog), "a large expiration is under way; no client sees them",
			"", "spread deadlines with JITTER; EXPIRY SURVEY shows the next hour")
	}
	if v, ok := f.ask("EXPIRY", "SURVEY"); ok {
		if largest := largestSecond(v.Elems); largest > 1_000_000 {
			return one(Look, "expiry", fmt.Sprintf("%d keys expire within one second of the next minute", largest), "removing them takes CPU time",
				"", "spread deadlines with JITTER")
		}
	}
	if f.num("expiry_lag_count") >= enoughRemoved && p99 > lateRemoval {
		return one(Look, "expiry", fmt.Sprintf("one in a hundred of what expired was removed more than %.0f ms after its deadline", p99/1000),
			"clients do not see it, but memory is freed late, and so are expired events", "",
			"the machine has too little processor time; after a change CONFIG RESETSTAT sets the counts back to 0")
	}
	return fine("expiry", "%.0f keys have a deadline, %.0f removed; removal p99 %.1f ms after the deadline", f.num("expiry_items"),
		f.num("expiry_removed"), p99/1000)
}

func notifications(f *facts) []Finding {
	set, known := f.config["notify-keyspace-events"]
	if !known {
		return nil
	}
	v, ok := f.ask("PUBSUB", "CHANNELS", "__key*")
	if ok && len(v.Elems) > 0 {
		var names []string
		for _, name := range v.Elems {
			names = append(names, name.String())
		}
		lacks := missingEvents(set, names)
		if lacks == "" {
			return nil
		}
		is := "empty"
		if set != "" {
			is = set
		}
		return one(Act, "events", fmt.Sprintf("subscribed channels of keyspace events: %d; notify-keyspace-events is %s", len(names), is),
			"these subscribers wait for events that are never sent", "CONFIG SET notify-keyspace-events "+set+lacks)
	}
	listening := f.num("pubsub_patterns") > 0 // whose names no command lists
	if set != "" || !listening {
		return nil
	}
	if clients, ok := f.ask("CLIENT", "LIST"); ok && strings.Contains(clients.String(), "cmd=psubscribe") {
		return one(Look, "events", "clients subscribe to patterns, and notify-keyspace-events is empty",
			"subscribers of __key* patterns get no events",
			"CONFIG SET notify-keyspace-events Ex", "if they wait for expired events")
	}
	return nil
}

// missingEvents returns the letters that notify-keyspace-events lacks for subscribers of these channels.
func missingEvents(set string, channels []string) (lacks string) {
	need := func(letter string) {
		if !strings.Contains(set+lacks, letter) {
			lacks += letter
		}
	}
	classes := func() string { return strings.Trim(set+lacks, "KE") }
	for _, name := range channels {
		switch _, event, _ := strings.Cut(name, "__:"); {
		case strings.HasPrefix(name, "__keyspace@"):
			if need("K"); classes() == "" {
				need("A")
			}
		case strings.HasPrefix(name, "__keyevent@"):
			need("E")
			if event == "expired" && !strings.Contains(set+lacks, "A") {
				need("x")
			} else if classes() == "" {
				need("A")
			}
		}
	}
	return lacks
}

func replicas(f *facts) []Finding {
	if f.info["role"] != "master" {
		return nil
	}
	n, want := f.num("connected_slaves"), f.setting("min-replicas-to-write")
	if good := f.num("min_slaves_good_slaves"); good < want && f.config["min-replicas-max-lag"] != "0" {
		has := "no replica"
		if n > 0 {
			has = fmt.Sprintf("%.0f replicas follow in time", good)
		}
		return one(Act, "replication", has+", and min-replicas-to-write is "+f.config["min-replicas-to-write"], "writes are refused (NOREPLICAS)",
			fmt.Sprintf("CONFIG SET min-replicas-to-write %.0f", good), "or start a replica")
	}
	if n == 0 {
		return fine("replication", "no replica: this machine's failure is an outage")
	}
	var late, loading []string
	for i := range int(n) {
		m := map[string]string{}
		for part := range strings.SplitSeq(f.info[fmt.Sprintf("slave%d", i)], ",") {
			k, v, _ := strings.Cut(part, "=")
			m[k] = v
		}
		at := fmt.Sprintf("%s:%s (%s, lag %s s)", m["ip"], m["port"], m["state"], m["lag"])
		switch {
		case slices.Contains([]string{"wait_bgsave", "send_bulk"}, m["state"]):
			loading = append(loading, at)
		case m["state"] != "online" || number(m["lag"]) > 10:
			late = append(late, at)
		}
	}
	switch {
	case len(late) > 0:
		return one(Act, "replication", "replicas that do not follow: "+strings.Join(late, ", "), "a failover to them loses writes",
			"CONFIG SET repl-backlog-size 256mb", "which spares full synchronisations; their logs have the reason")
	case len(loading) > 0:
		return one(Look, "replication", "replicas that get all data: "+strings.Join(loading, ", "), "until then a failover to them loses data",
			"", "wait; if it comes again and again, CONFIG SET repl-backlog-size 256mb")
	}
	return fine("replication", "%.0f replicas follow", n)
}

func master(f *facts) []Finding {
	if f.info["role"] != "slave" {
		return nil
	}
	at := f.info["master_host"] + ":" + f.info["master_port"]
	if f.info["master_sync_in_progress"] == "1" {
		return one(Look, "replication", "all data of the master "+at+" is on its way",
			"until then this replica has none, or old data", "", "wait")
	}
	if f.info["master_link_status"] != "up" {
		since := "was not up yet"
		if s := f.num("master_link_down_since_seconds"); s >= 0 {
			since = fmt.Sprintf("is down since %.0f s", s)
		}
		if why := cmp.Or(f.info["master_sync_last_error"], f.info["master_link_last_error"]); why != "" { // of ebb
			since += " (" + why + ")"
		}
		return one(Act, "replication", fmt.Sprintf("the link to the master %s %s", at, since),
			"this replica's data becomes old", "",
			"the log has the reason: the address, masterauth, or a full synchronisation that does not fit repl-timeout")
	}
	return fine("replication", "follows %s", at)
}

func clients(f *facts) []Finding {
	n, limit := f.num("connected_clients"), f.num("maxclients")
	if limit == 0 {
		return nil
	}
	what := fmt.Sprintf("%.0f of %.0f", n, limit)
	if n > 0.8*limit {
		return one(Act, "clients", what, "the next clients are refused", "CONFIG SET timeout 300",
			"which closes idle connections; or a pool in the clients, or a higher maxclients")
	}
	return fine("clients", "%s", what)
}

func refused(f *facts) []Finding {
	if n := f.num("rejected_connections"); n > 0 {
		return one(Look, "clients", fmt.Sprintf("%.0f connections were refused since the start", n), "maxclients was reached",
			"CONFIG SET timeout 300", "which closes idle connections; or a pool in the clients, or a higher maxclients")
	}
	return nil
}

func access(f *facts) []Finding {
	v, ok := f.ask("ACL", "GETUSER", "default")
	if !ok || len(f.config) == 0 {
		return nil
	}
	m := map[string][]string{}
	for i := 0; i+1 < len(v.Elems); i += 2 {
		for _, e := range v.Elems[i+1].Elems {
			m[v.Elems[i].String()] = append(m[v.Elems[i].String()], e.String())
		}
	}
	open := slices.Contains(m["flags"], "nopass") && !slices.Contains(m["flags"], "off")
	if !open {
		return fine("access", "the default user needs a password, or is off")
	}
	var beyond []string
	for _, a := range strings.Fields(f.config["bind"]) {
		a = strings.TrimPrefix(a, "-")
		if !strings.HasPrefix(a, "127.") && a != "::1" && a != "localhost" {
			beyond = append(beyond, a)
		}
	}
	if len(beyond) == 0 && f.config["bind"] != "" {
		return fine("access", "no password, and only this machine's addresses")
	}
	if f.config["protected-mode"] == "yes" {
		return one(Look, "access", "no password; protected-mode refuses clients of other machines", "programs on this machine may do everything",
			"", "set a password with CONFIG SET requirepass, or make users and switch the default user off (ACL SETUSER default off)")
	}
	return one(Act, "access", "no password, protected-mode no, and the server listens on "+strings.Join(beyond, " "),
		"every client that reaches the port may read, change and delete everything", "CONFIG SET protected-mode yes",
		"which refuses clients of other machines at once; then set a long password with CONFIG SET requirepass, and in the file")
}

func certificate(f *facts) []Finding {
	if len(f.Certificates) == 0 {
		return nil
	}
	left := f.Certificates[0].NotAfter.Sub(f.Clock())
	what := fmt.Sprintf("the certificate is valid until %s", f.Certificates[0].NotAfter.UTC().Format("2006-01-02"))
	switch {
	case left < 14*24*time.Hour:
		return one(Act, "tls", what, "clients refuse the server after that", "", "replace the files of tls-cert-file and tls-key-file")
	case left < 30*24*time.Hour:
		return one(Look, "tls", what, "clients refuse the server after that", "", "replace the files of tls-cert-file and tls-key-file")
	}
	return fine("tls", "%s", what)
}

// slow looks at the slow log of the last day.
func slow(f *facts) []Finding {
	v, ok := f.ask("SLOWLOG", "GET", 128)
	if !ok {
		return nil
	}
	n := map[string]int{}
	worst, total, name := int64(0), 0, ""
	for _, e := range v.Elems {
		if len(e.Elems) < 4 || len(e.Elems[3].Elems) == 0 || f.Clock().Unix()-e.Elems[1].Int > 24*3600 {
			continue
		}
		command := strings.ToUpper(e.Elems[3].Elems[0].String())
		total++
		if n[command]++; e.Elems[2].Int > worst {
			worst, name = e.Elems[2].Int, command
		}
	}
	if worst < 100_000 {
		return fine("speed", "%d slow commands in the log of the last day", total)
	}
	return one(Look, "speed", fmt.Sprintf("%s took %d ms; %d slow commands in the log of the last day", name, worst/1000, total),
		"Redis and Valkey serve nothing else meanwhile; ebb does, but not on the same shard",
		"", "SLOWLOG GET shows the arguments; read large values in parts (HSCAN, SSCAN, LRANGE)")
}

func keysCommand(f *facts) []Finding {
	line, ok := f.info["cmdstat_keys"]
	if !ok {
		return nil
	}
	calls, _, _ := strings.Cut(strings.TrimPrefix(line, "calls="), ",")
	if all, _ := f.keys(); all < 10_000 {
		return nil
	}
	return one(Look, "speed", "calls of KEYS since the start: "+calls, "it reads the names of all keys in one step",
		"ACL SETUSER default -keys", "which forbids it; SCAN takes its place")
}

func clock(f *facts) []Finding {
	before := f.Clock()
	v, ok := f.ask("TIME")
	if !ok || len(v.Elems) != 2 {
		return nil
	}
	took := f.Clock().Sub(before)
	theirs := time.Unix(int64(number(v.Elems[0].String())), int64(number(v.Elems[1].String()))*1000)
	if d := theirs.Sub(before.Add(took / 2)); d.Abs() > time.Second+took {
		return one(Look, "clock", fmt.Sprintf("the server's clock differs from this machine's by %s", d.Round(time.Millisecond)),
			"deadlines as instants (EXPIREAT, EXAT) end that much earlier or later than programs here mean",
			"", "run a time service (chrony, systemd-timesyncd) on both")
	}
	if steps := f.num("clock_steps"); steps > 0 {
		return one(Look, "clock", fmt.Sprintf("the server's clock has stepped %.0f times since the start", steps), "deadlines were moved with it",
			"", "run a time service that slews (chrony)")
	}
	return fine("clock", "within a second of this machine's")
}

// kernel looks at settings of this machine.
func kernel(f *facts) []Finding {
	if !f.Local {
		return nil
	}
	read := func(path string) string {
		text, _ := os.ReadFile(filepath.Join(f.Root, path))
		return strings.TrimSpace(string(text))
	}
	var found []Finding
	forks := f.product != "ebb" // ebb's snapshots do not fork
	if strings.Contains(read("sys/kernel/mm/transparent_hugepage/enabled"), "[always]") && forks {
		found = append(found, one(Look, "kernel", "transparent huge pages are always on",
			"a snapshot's fork then copies 2 MB for each write: latency and memory grow",
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")...)
	}
	if read("proc/sys/vm/overcommit_memory") == "0" && forks {
		found = append(found, one(Look, "kernel", "vm.overcommit_memory is 0",
			"the fork of a snapshot fails when memory is half full", "sysctl vm.overcommit_memory=1")...)
	}
	if n := number(read("proc/sys/net/core/somaxconn")); n > 0 && n < f.setting("tcp-backlog") {
		found = append(found, one(Look, "kernel", fmt.Sprintf("net.core.somaxconn is %.0f, tcp-backlog %s", n, f.config["tcp-backlog"]),
			"connections of a burst are dropped", "sysctl net.core.somaxconn="+f.config["tcp-backlog"])...)
	}
	if len(found) == 0 {
		return fine("kernel", "no setting that hurts")
	}
	return found
}
