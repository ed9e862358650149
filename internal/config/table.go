package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const (
	maxInt     = math.MaxInt32
	maxLong    = math.MaxInt64
	unbounded  = math.MaxUint64
	minBacklog = 16 << 10 // the least repl-backlog-size, as in Redis
)

// directives is the table sorted by name; byName holds names and aliases.
var directives, byName = index(networkTable, dataTable, durabilityTable, machineTable)

// index sorts, numbers and checks the rows of the tables. It panics with one sentence for
// an invalid row, which is a mistake in this package.
func index(tables ...[]Directive) ([]*Directive, map[string]*Directive) {
	var all []*Directive
	names := make(map[string]*Directive)
	for _, table := range tables {
		for i := range table {
			d := &table[i]
			all = append(all, d)
			for _, name := range []string{d.Name, d.Alias} {
				if name != "" && names[name] != nil {
					panic("config: two directives are called " + name)
				}
				if name != "" {
					names[name] = d
				}
			}
			if (d.Unused == "") == (d.Doc == "") {
				panic("config: " + d.Name + " needs either a meaning or a reason why it is unused")
			}
		}
	}
	slices.SortFunc(all, func(a, b *Directive) int { return strings.Compare(a.Name, b.Name) })
	for i, d := range all {
		d.index = i
		d.initial = d.mustParse(d.Default)
		d.fileInitial = d.initial
		if d.FileDefault != "" {
			d.fileInitial = d.mustParse(d.FileDefault)
		}
	}
	return all, names
}

// mustParse returns the value of a default. It does not parse an empty one: several kinds
// have an unset state that no line of a file can set.
func (d *Directive) mustParse(def string) Value {
	switch {
	case def == "" && d.Kind == SavePoints:
		return saveValue(nil)
	case def == "":
		return Value{}
	}
	v, err := d.parse([]string{def}, Value{})
	if err != nil {
		panic(fmt.Sprintf("config: the default %q of %s: %v", def, d.Name, err))
	}
	return v
}

// The reasons for which ebb accepts a directive and does not use it. So ebb starts with a
// file written for Redis. The server logs the reasons once at its start.
const (
	noClientTLS  = "encrypted key files are not read: decrypt the key first"
	noCluster    = "there are no other nodes"
	noDeprecated = "print, newproxy, setfenv and getfenv are not there"
	noModules    = "there are no modules"
	noFork       = "ebb never forks"
	noJemalloc   = "memory is compacted in slices, always"
	noCycle      = "deadlines fire when they are due: there is no cycle to tune"
	noRehash     = "tables grow and shrink with the work done on them"
	noLazy       = "deleting never costs more for large values"
	noSyslog     = "logs go to standard error or a file"
	noTitle      = "the title of the process is not changed"
	noTuning     = "the operating system's settings are left alone"
	noCrashLog   = "a crash prints Go's own report"
	noTesting    = "it serves Redis's own tests"
	noExtraTLS   = "Go's TLS chooses its own"
	noLocale     = "strings are compared by bytes"
	noCompress   = "the nodes of lists are not compressed"
	noRDMA       = "there is no RDMA transport"
	noPrefetch   = "a network loop chooses how it batches, reads and writes"
	oneChannel   = "a snapshot and the stream behind it come over one connection"
	noLargeLog   = "large requests and replies are not logged; SLOWLOG has the slow ones"
	plainLog     = "the log has one format: key=value with times as in RFC 3339"
)

// networkTable has the directives about connections: addresses, limits of clients, TLS and
// users.
var networkTable = []Directive{
	integer("port", 6379, 0, 65535).does("TCP port; 0 listens on none"),
	special("bind", Addresses, "127.0.0.1 -::1").withFile("* -::*").does("addresses to listen on; '-' before one: not an " +
		"error if it is not available"),
	text("unixsocket", "").immutable().does("path of a unix socket to listen on"),
	{Name: "unixsocketperm", Kind: Octal, Default: "0", Max: 0o777, Immutable: true,
		Doc: "permissions of the unix socket, octal; 0 leaves them"},
	integer("tcp-backlog", 511, 0, maxInt).immutable().does("connections that wait to be accepted"),
	integer("tcp-keepalive", 300, 0, maxInt).does("seconds between probes of an idle connection; 0 sends none"),
	integer("timeout", 0, 0, maxInt).does("seconds after which an idle client is closed; 0 never"),
	integer("maxclients", 10000, 1, math.MaxUint32).does("connections served at once"),
	integer("max-new-connections-per-cycle", 10, 1, 1000).unused("a network loop accepts what waits"),
	integer("max-new-tls-connections-per-cycle", 1, 1, 1000).unused("handshakes do not run on the network loops"),
	text("unixsocketgroup", "").immutable().does("group of the unix socket, a name or a number; empty leaves it"),
	yesno("mptcp", "no").immutable().unused("listeners use Multipath TCP wherever the system has it"),
	yesno("protected-mode", "yes").does("without a password, serve loopback connections only"),
	text("requirepass", "").secret().does("password of the default user; empty for none"),
	enum("enable-protected-configs", "no", "no", "yes", "local").immutable().does("which clients may CONFIG SET dir, dbfilename " +
		"and other protected directives"),
	enum("enable-debug-command", "no", "no", "yes", "local").immutable().does("which clients may use DEBUG"),
	enum("enable-module-command", "no", "no", "yes", "local").immutable().unused(noModules),
	memory("proto-max-bulk-len", 512<<20, 1<<20, maxLong).does("bytes of the longest argument and string"),
	memory("client-query-buffer-limit", 1<<30, 1<<20, maxLong).does("bytes of a client's unfinished request"),
	special("client-output-buffer-limit", OutputLimits,
		"normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60").does("bounds of queued replies: class, hard and " +
		"soft bytes, seconds above soft"),
	{Name: "maxmemory-clients", Kind: MemoryOrPart, Default: "0", Max: maxLong,
		Doc: "bytes of all clients' buffers, or a percentage of maxmemory; 0 means no bound"},
	integer("io-loops", 0, 0, 256).stored(func(n int64) int64 {
		return min(n,
			128)
	}).alias("io-threads").immutable().does("network loops, at most 128; 0 is one for every two processors"),
	yesno("io-threads-do-reads", "no").immutable().unused("every network loop reads and writes"),
	yesno("io-threads-always-active", "no").hidden().unused(noPrefetch),
	integer("events-per-io-thread", 2, 0, maxInt).hidden().unused(noPrefetch),
	integer("prefetch-batch-max-size", 16, 0, 128).unused(noPrefetch),
	integer("lookahead", 16, 1, maxInt).hidden().unused(noPrefetch),
	integer("min-io-threads-avoid-copy-reply", 7, 0, maxInt).hidden().unused(noPrefetch),
	memory("min-string-size-avoid-copy-reply", 16384, 0, maxLong).hidden().unused(noPrefetch),
	memory("min-string-size-avoid-copy-reply-threaded", 65536, 0, maxLong).hidden().unused(noPrefetch),
	text("rdma-bind", "").immutable().unused(noRDMA),
	integer("rdma-port", 0, 0, 65535).immutable().unused(noRDMA),
	memory("rdma-rx-size", 1<<20, 64<<10, 16<<20).immutable().unused(noRDMA),
	integer("rdma-completion-vector", -1, -1, 1024).immutable().unused(noRDMA),
	text("http", "").immutable().only(httpAddress).does("address of the admin pages, /metrics and /healthz: a port " +
		"alone is one of loopback, anything else is host:port; empty listens on none"),
	yesno("http-pprof", "no").immutable().does("whether the admin pages have /debug/pprof/"),
	enum("http-console", "local", "no", "local", "yes").immutable().does("the web console, /console/ of the admin " +
		"pages: local serves loopback clients only, yes all that may log in"),
	yesno("http-console-read-only", "no").immutable().does("refuse every command of the console that changes " +
		"something, whatever the user may do"),
	yesno("http-console-values", "yes").immutable().does("show values in the console; no: their lengths"),
	text("http-console-label", "").immutable().only(consoleLabel).does("a badge on every page of the console: a name, " +
		"and a colour such as #c0392b"),
	text("http-hosts", "").immutable().only(hostNames).does("further names that requests for the admin pages may be for, " +
		"with spaces between them: those of a proxy"),
	yesno("http-tls", "no").immutable().does("serve the admin pages by HTTPS, with tls-cert-file and tls-key-file"),
	integer("socket-mark-id", 0, 0, math.MaxUint32).immutable().unused(noTuning),
	text("bind-source-addr", "").does("address that this server connects to its master from"),
	integer("tracking-table-max-keys", 1000000, 0, maxLong).does("keys that are remembered for clients that cache; 0 means no bound"),

	integer("tls-port", 0, 0, 65535).does("TCP port for TLS; 0 listens on none"),
	text("tls-cert-file", "").does("certificate, PEM"),
	text("tls-key-file", "").does("private key of the certificate, PEM"),
	text("tls-key-file-pass", "").secret().unused("encrypted key files are not read: decrypt the key first"),
	text("tls-client-cert-file", "").does("certificate to show to a master, PEM; empty: that of the server"),
	text("tls-client-key-file", "").does("private key of that certificate, PEM"),
	text("tls-client-key-file-pass", "").secret().unused(noClientTLS),
	text("tls-ca-cert-file", "").does("certificates that clients' are checked against, PEM"),
	text("tls-ca-cert-dir", "").does("directory of such certificates"),
	enum("tls-auth-clients", "yes", "no", "yes", "optional").does("whether clients must show a certificate"),
	enum("tls-auth-clients-user", "off", "CN", "URI", "off").unused("a certificate does not choose the user: clients send AUTH or HELLO"),
	integer("tls-auto-reload-interval", 0, 0, maxInt).unused("the server reads certificates again when their files change, and at SIGHUP"),
	text("tls-protocols", "").only(tlsProtocols).does("versions offered, such as TLSv1.2 TLSv1.3; empty for these two"),
	text("tls-ciphers", "").unused(noExtraTLS),
	text("tls-ciphersuites", "").unused(noExtraTLS),
	text("tls-dh-params-file", "").unused(noExtraTLS),
	yesno("tls-prefer-server-ciphers", "no").unused(noExtraTLS),
	yesno("tls-session-caching", "yes").unused(noExtraTLS),
	integer("tls-session-cache-size", 20480, 0, maxInt).unused(noExtraTLS),
	integer("tls-session-cache-timeout", 300, 0, maxInt).unused(noExtraTLS),
	yesno("tls-cluster", "no").unused(noCluster),
	yesno("tls-replication", "no").does("speak TLS with the master"),

	text("aclfile", "").immutable().does("file that holds the users, one to a line; empty: they stand in the configuration"),
	enum("acl-pubsub-default", "resetchannels", "allchannels", "resetchannels").does("whether new users may use all channels or none"),
	integer("acllog-max-len", 128, 0, maxLong).does("entries of ACL LOG"),
}

// maxDatabases bounds the table of databases that each shard has: with 16 shards this many
// take 128 MiB. Redis accepts 2147483647, which no memory holds.
const maxDatabases = 1 << 20

// dataTable has the directives about the keyspace, its limits, events and statistics.
var dataTable = []Directive{
	integer("databases", 16, 1, maxDatabases).immutable().does("databases SELECT can choose from"),
	integer("shards", 0, 0, 64).immutable().only(powerOfTwo).does("parts of the keyspace with a lock each, a power of two; " +
		"0 chooses by the processors"),
	{Name: "maxmemory", Kind: MemoryOrShare, Default: "0", Max: unbounded,
		Doc: "bytes of data at which keys are evicted or writes refused, or a percentage of the machine's memory; 0 means no bound"},
	enum("maxmemory-policy", "noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu",
		"allkeys-random", "noeviction").does("what gives way at maxmemory; lfu policies also change what OBJECT FREQ and IDLETIME answer"),
	special("maxmemory-protect", Flags, "lock semaphore delayqueue limiter rules").choose("none", "lock", "semaphore", "delayqueue", "limiter",
		"rules").does("what is never evicted; rules: the streams and queues of expiry rules; delayqueue: also the " +
		"streams that queues deliver to"),
	{Name: "maxmemory-protect-limiters", Kind: MemoryOrPart, Default: "25%", Max: maxLong,
		Doc: "bytes of limiters that maxmemory-protect protects, or a percentage of maxmemory; while there are more, the fullest limiters are " +
			"evicted first; 0 means no bound"},
	integer("maxmemory-samples", 5, 1, maxInt).does("keys looked at for each that is evicted"),
	integer("max-clock-ahead", 3600, 0, maxInt).does("seconds by which an instant of the log, or of the master's " +
		"stream, may be ahead of the clock; what is beyond is refused"),
	integer("maxmemory-eviction-tenacity", 10, 0, 100).does("how long one write may evict for: 0 is not at all, 10 is 500 " +
		"us, 100 until there is room"),
	integer("lfu-log-factor", 10, 0, maxInt).does("how slowly access counters grow; larger is slower"),
	integer("lfu-decay-time", 1, 0, maxInt).does("minutes after which an access counter loses one"),
	special("notify-keyspace-events", Events, "").does("classes of keyspace notifications: letters of " + eventLetters),

	integer("hash-max-listpack-entries", 512, 0, maxLong).alias("hash-max-ziplist-entries").does("fields up to which a hash is packed"),
	memory("hash-max-listpack-value", 64, 0, maxLong).alias("hash-max-ziplist-value").does("bytes of the longest " +
		"field or value of a packed hash"),
	integer("list-max-listpack-size", -2, math.MinInt32,
		maxInt).alias("list-max-ziplist-size").does("elements of a list's node; negative: -1 to -5 for 4, 8, 16, 32, 64 KiB"),
	integer("list-compress-depth", 0, 0, maxInt).unused(noCompress),
	integer("set-max-intset-entries", 512, 0, maxLong).does("members up to which a set of integers is packed as such"),
	integer("set-max-listpack-entries", 128, 0, maxLong).does("members up to which a set is packed"),
	integer("set-max-listpack-value", 64, 0, maxLong).withUnits().does("bytes of the longest member of a packed set"),
	integer("zset-max-listpack-entries", 128, 0, maxLong).alias("zset-max-ziplist-entries").does("members up to which a sorted set is packed"),
	memory("zset-max-listpack-value", 64, 0, maxLong).alias("zset-max-ziplist-value").does("bytes of the longest " +
		"member of a packed sorted set"),
	memory("hll-sparse-max-bytes", 3000, 0, maxLong).does("bytes up to which a HyperLogLog is sparse"),
	memory("stream-node-max-bytes", 4096, 0, maxLong).does("bytes of a stream's node; 0 means no bound"),
	integer("stream-node-max-entries", 100, 0, maxLong).does("entries of a stream's node; 0 means no bound"),
	enum("sanitize-dump-payload", "no", "no", "yes", "clients").unused("RESTORE always checks the payload"),
	text("locale-collate", "").unused(noLocale),
	text("hash-seed", "").immutable().unused("the tables draw their seeds at the start"),
	yesno("import-mode", "no").unused("there is no import mode: what has expired is removed even while data is imported"),
	yesno("extended-redis-compatibility", "no").unused("replies and names are those of Redis, always"),
	integer("list-max-ziplist-entries", 512, math.MinInt32, maxInt).hidden().unused("list-max-listpack-size has taken its place"),
	integer("list-max-ziplist-value", 64, 0, maxLong).hidden().unused("list-max-listpack-size has taken its place"),

	integer("slowlog-log-slower-than", 10000, -1, maxLong).alias("commandlog-execution-slower-than").does("microseconds " +
		"from which a command is logged as slow; -1 logs none"),
	integer("slowlog-max-len", 128, 0, maxLong).alias("commandlog-slow-execution-max-len").does("entries of the slow log"),
	integer("commandlog-request-larger-than", 1<<20, -1, maxLong).unused(noLargeLog),
	integer("commandlog-large-request-max-len", 128, 0, maxLong).unused(noLargeLog),
	integer("commandlog-reply-larger-than", 1<<20, -1, maxLong).unused(noLargeLog),
	integer("commandlog-large-reply-max-len", 128, 0, maxLong).unused(noLargeLog),
	yesno("key-memory-histograms", "no").immutable().hidden().unused("MEMORY USAGE and ebb cli --memkeys show the memory of keys"),
	integer("hotkey-top-k", 0, 0, 128).does("keys that HOTKEYS GET returns; 0 samples no commands"),
	integer("hotkey-window-seconds", 10, 1, 86400).does("seconds over which HOTKEYS GET counts"),
	integer("hotkey-sampling-percentage", 2, 1, 100).does("percentage of commands that HOTKEYS GET samples"),
	integer("latency-monitor-threshold", 0, 0, maxLong).does("milliseconds from which LATENCY keeps an event; 0 keeps none"),
	yesno("latency-tracking", "yes").does("keep a histogram of latencies per command"),
	special("latency-tracking-info-percentiles", Percentiles, "50 99 99.9").does("percentiles that INFO latencystats shows"),

	yesno("lazyfree-lazy-eviction", "no").unused(noLazy),
	yesno("lazyfree-lazy-expire", "no").unused(noLazy),
	yesno("lazyfree-lazy-server-del", "no").unused(noLazy),
	yesno("lazyfree-lazy-user-del", "no").unused(noLazy),
	yesno("lazyfree-lazy-user-flush", "no").unused(noLazy),
	integer("active-expire-effort", 1, 1, 10).unused(noCycle),
	integer("hz", 10, 0, maxInt).stored(func(n int64) int64 { return min(max(n, 1), 500) }).unused("INFO shows it, and " + noCycle),
	yesno("dynamic-hz", "yes").unused(noCycle),
	yesno("activerehashing", "yes").unused(noRehash),
	yesno("activedefrag", "no").unused(noJemalloc),
	integer("active-defrag-cycle-min", 1, 1, 99).unused(noJemalloc),
	integer("active-defrag-cycle-max", 25, 1, 99).unused(noJemalloc),
	integer("active-defrag-cycle-us", 500, 0, 100000).unused(noJemalloc),
	integer("active-defrag-threshold-lower", 10, 0, 1000).unused(noJemalloc),
	integer("active-defrag-threshold-upper", 100, 0, 1000).unused(noJemalloc),
	integer("active-defrag-max-scan-fields", 1000, 1, maxLong).unused(noJemalloc),
	memory("active-defrag-ignore-bytes", 100<<20, 1, maxLong).unused(noJemalloc),
	yesno("jemalloc-bg-thread", "yes").unused(noJemalloc),

	integer("busy-reply-threshold", 5000, 0, maxLong).alias("lua-time-limit").does("ms after which others hear BUSY instead of " +
		"waiting for a script; 0: never"),
	memory("script-memory-limit", 256<<20, 1<<20, maxLong).immutable().does("bytes that the values of a running script may take; beyond, it " +
		"gets the error 'not enough memory'"),
	yesno("lua-enable-deprecated-api", "no").alias("lua-enable-insecure-api").immutable().hidden().unused(noDeprecated),
	yesno("lua-replicate-commands", "yes").hidden().unused("scripts are replicated by their effects, always"),
}

// durabilityTable has the directives about files, replicas and clusters.
var durabilityTable = []Directive{
	special("save", SavePoints, "").withFile("3600 1 300 100 60 10000").does("when to save by itself: pairs of " +
		"seconds and changes; empty: never"),
	special("dir", Directory, "").protected().does("directory of the files; default: the working directory. Without it, without a " +
		"configuration file and without appendonly yes, save or a name of such a file, data is in memory alone"),
	text("dbfilename", "dump.rdb").protected().only(fileName("dbfilename")).does("name of the RDB file"),
	yesno("rdbcompression", "yes").does("compress strings in RDB files"),
	yesno("rdbchecksum", "yes").immutable().does("end RDB files with a checksum"),
	yesno("rdb-del-sync-files", "no").unused("a synchronisation leaves no file behind, always"),
	enum("rdb-version-check", "strict", "strict", "relaxed").unused("a file is loaded if all types in it are known, and refused otherwise"),
	yesno("rdb-save-incremental-fsync", "yes").does("sync RDB files as they are written, every few MiB"),
	yesno("stop-writes-on-bgsave-error", "yes").does("refuse writes while the last save has failed"),
	yesno("appendonly", "no").does("keep a log of all changes; yes where dir is given and no configuration file"),
	text("appendfilename", "appendonly.aof").immutable().only(fileName("appendfilename")).does("first part of the names of append-only files"),
	text("appenddirname", "appendonlydir").immutable().only(fileName("appenddirname")).does("directory of append-only files, inside dir"),
	enum("appendfsync", "everysec", "everysec", "always", "no").does("when appended changes are fsynced: always before " +
		"the reply is sent, everysec within a second, no when the system writes them"),
	yesno("no-appendfsync-on-rewrite", "no").does("do not sync appended changes while a file is being written from scratch"),
	integer("auto-aof-rewrite-percentage", 100, 0, maxInt).does("by how much append-only files grow before they are rewritten; 0: never"),
	memory("auto-aof-rewrite-min-size", 64<<20, 0, maxLong).does("bytes below which append-only files are not rewritten by themselves"),
	yesno("aof-load-truncated", "yes").does("start with an append-only file whose end is missing; no: refuse"),
	yesno("aof-use-rdb-preamble", "yes").unused("the base of append-only files is an RDB file, always"),
	yesno("aof-timestamp-enabled", "no").does("note the time in append-only files, each second"),
	yesno("aof-rewrite-incremental-fsync", "yes").does("sync the base of append-only files as it is written"),
	yesno("aof-disable-auto-gc", "no").unused("files that are no longer needed are removed"),
	integer("rdb-key-save-delay", 0, math.MinInt32, maxInt).hidden().unused(noTesting),
	integer("key-load-delay", 0, math.MinInt32, maxInt).hidden().unused(noTesting),
	integer("loading-process-events-interval-bytes", 2<<20, 1024, maxInt).hidden().unused(noTesting),
	enum("propagation-error-behavior", "ignore", "ignore", "panic",
		"panic-on-replicas").does("what follows when a command of the master is refused: " +
		"the link ends; panic and panic-on-replicas end the server"),

	special("replicaof", Master, "").alias("slaveof").immutable().does("master to follow: host and port"),
	text("masteruser", "").alias("primaryuser").secret().does("user to be at the master; empty: the default user"),
	text("masterauth", "").alias("primaryauth").secret().does("password at the master"),
	yesno("replica-serve-stale-data", "yes").alias("slave-serve-stale-data").does("answer while the master is away; no: MASTERDOWN"),
	yesno("replica-read-only", "yes").alias("slave-read-only").does("refuse writes on a replica"),
	yesno("replica-lazy-flush", "no").alias("slave-lazy-flush").unused(noLazy),
	yesno("replica-ignore-maxmemory", "yes").alias("slave-ignore-maxmemory").does("leave eviction to the master"),
	yesno("replica-ignore-disk-write-errors", "no").unused("a replica whose files fail goes on following its master, and says so"),
	integer("replica-priority", 100, 0, maxInt).alias("slave-priority").does("rank among replicas when Sentinel chooses one; 0: never this"),
	text("replica-announce-ip", "").alias("slave-announce-ip").does("address to tell the master"),
	integer("replica-announce-port", 0, 0, 65535).alias("slave-announce-port").does("port to tell the master; 0: the own one"),
	yesno("replica-announced", "yes").does("show this replica to Sentinel"),
	integer("min-replicas-to-write", 0, 0, maxInt).alias("min-slaves-to-write").does("good replicas without which writes " +
		"are refused; 0: none needed"),
	integer("min-replicas-max-lag", 10, 0, maxInt).alias("min-slaves-max-lag").does("seconds since its last word " +
		"up to which a replica is good"),
	memory("repl-backlog-size", 1<<20, 1, maxLong).stored(func(n int64) int64 { return max(n, minBacklog) }).does("bytes of the " +
		"stream that are kept for replicas that come back"),
	integer("repl-backlog-ttl", 3600, 0, maxLong).does("seconds without replicas after which the backlog is let go; 0: never"),
	yesno("repl-disable-tcp-nodelay", "no").unused("the stream leaves in large pieces anyway"),
	yesno("repl-diskless-sync", "yes").does("send snapshots to replicas without a file"),
	yesno("repl-rdb-channel", "yes").hidden().unused(oneChannel),
	yesno("dual-channel-replication-enabled", "no").unused(oneChannel),
	memory("replica-full-sync-buffer-limit", 0, 0, maxLong).unused(oneChannel),
	yesno("repl-mptcp", "no").immutable().unused("the system chooses the transport to the master"),
	integer("repl-diskless-sync-delay", 5, 0, maxInt).does("seconds to wait for more replicas before a snapshot is sent"),
	integer("repl-diskless-sync-max-replicas", 0, 0, maxInt).does("replicas that end that wait; 0: none do"),
	enum("repl-diskless-load", "disabled", "disabled", "on-empty-db", "swapdb", "flush-before-load").does("how a replica takes a full " +
		"synchronisation: through a file that is checked first, straight into an empty server, or next to the old data; " +
		"flush-before-load is as disabled"),
	integer("repl-ping-replica-period", 10, 1, maxInt).alias("repl-ping-slave-period").does("seconds between pings to replicas"),
	integer("repl-timeout", 60, 1, maxInt).does("seconds of silence after which a link is given up"),

	text("group", "").immutable().does("the nodes of a group, the same list on each: host:port of their group ports, with commas " +
		"between them; empty: none"),
	integer("group-port", 0, 0, 65535).immutable().does("port in group that is this node's; 0: the only one of this machine"),
	text("group-name", "ebb").immutable().does("name by which clients of Sentinel's protocol ask for the group's master"),
	integer("group-timeout", 2000, 100, 60000).immutable().does("ms of silence after which a group replaces its master"),
	integer("sentinel-port", 26379, 0, 65535).immutable().does("port at which a node of a group answers Sentinel's protocol; 0: none"),
	integer("min-sync-replicas", 0, 0, 6).immutable().does("replicas in sync without which a group acknowledges nothing, at its first start"),
	enum("sync-level", "memory", "memory", "disk").immutable().does("what a replica of a group acknowledges: what it has applied, or " +
		"what is on its disk"),
	integer("sync-lease", 1000, 10, 60000).immutable().does("ms for which the master of a group may answer reads after replicas were heard"),
	integer("sync-lag", 1000, 10, 60000).immutable().does("ms by which a replica of a group may be behind before it is no longer in sync"),
	integer("sync-timeout", 5000, 100, 3600000).does("ms after which a reply that waits for a group becomes an error"),
	memory("sync-held-max", 64<<20, 0, maxLong).does("bytes of replies that wait for a group, from which on further requests wait unread; " +
		"0: any number"),
	enum("sync-reads", "lease", "lease", "local").immutable().does("reads of a master of a group without the lease: they wait, or are " +
		"answered and may be old"),

	yesno("cluster-enabled", "no").immutable().does("answer CLUSTER as one node that has all slots"),
	text("cluster-config-file", "nodes.conf").immutable().unused(noCluster),
	integer("cluster-node-timeout", 15000, 0, maxLong).unused(noCluster),
	integer("cluster-ping-interval", 1000, 0, maxInt).hidden().unused(noCluster),
	integer("cluster-port", 0, 0, 65535).immutable().unused(noCluster),
	integer("cluster-announce-port", 0, 0, 65535).does("port that CLUSTER names; 0 is the one that clients use"),
	integer("cluster-announce-bus-port", 0, 0, 65535).does("bus port that CLUSTER NODES names; 0 is 10000 above the port"),
	integer("cluster-announce-tls-port", 0, 0, 65535).unused(noCluster),
	text("cluster-announce-ip", "").does("address that CLUSTER names; empty for the one that clients use"),
	text("cluster-announce-hostname", "").only(hostName).unused(noCluster),
	text("cluster-announce-human-nodename", "").only(nodeName).unused(noCluster),
	enum("cluster-preferred-endpoint-type", "ip", "ip", "hostname", "unknown-endpoint").unused(noCluster),
	integer("cluster-migration-barrier", 1, 0, maxInt).unused(noCluster),
	integer("cluster-replica-validity-factor", 10, 0, maxInt).alias("cluster-slave-validity-factor").unused(noCluster),
	yesno("cluster-replica-no-failover", "no").alias("cluster-slave-no-failover").unused(noCluster),
	yesno("cluster-require-full-coverage", "yes").unused(noCluster),
	yesno("cluster-allow-reads-when-down", "no").unused(noCluster),
	yesno("cluster-allow-pubsubshard-when-down", "yes").unused(noCluster),
	yesno("cluster-allow-replica-migration", "yes").unused(noCluster),
	memory("cluster-link-sendbuf-limit", 0, 0, unbounded).unused(noCluster),
	integer("cluster-compatibility-sample-ratio", 0, 0, 100).unused(noCluster),
	text("cluster-announce-client-ipv4", "").only(addressOf("IPv4")).unused(noCluster),
	text("cluster-announce-client-ipv6", "").only(addressOf("IPv6")).unused(noCluster),
	integer("cluster-announce-client-port", 0, 0, 65535).unused(noCluster),
	integer("cluster-announce-client-tls-port", 0, 0, 65535).unused(noCluster),
	integer("cluster-blacklist-ttl", 60, math.MinInt64, maxLong).unused(noCluster),
	enum("cluster-config-save-behavior", "sync", "sync", "best-effort").unused(noCluster),
	integer("cluster-databases", 1, 1, maxInt).immutable().unused(noCluster),
	integer("cluster-manual-failover-timeout", 5000, 1, maxInt).unused(noCluster),
	integer("cluster-message-gossip-perc", 10, 1, 100).hidden().unused(noCluster),
	integer("cluster-slot-migration-log-max-len", 1000, 0, maxLong).unused(noCluster),
	yesno("cluster-slot-stats-enabled", "no").unused(noCluster),
	memory("slot-migration-max-failover-repl-bytes", 0, -1, maxLong).unused(noCluster),
	integer("cluster-slot-migration-handoff-max-lag-bytes", 1<<20, 0, maxLong).hidden().unused(noCluster),
	integer("cluster-slot-migration-write-pause-timeout", 10000, 0, maxLong).hidden().unused(noCluster),
}

// machineTable has the directives about the process and the system.
var machineTable = []Directive{
	enum("loglevel", "notice", "debug", "verbose", "notice", "warning", "nothing").does("how much is logged"),
	text("logfile", "").immutable().does("file to log to; empty for standard error"),
	enum("log-format", "legacy", "legacy", "logfmt", "json").unused(plainLog),
	enum("log-timestamp-format", "legacy", "legacy", "iso8601", "milliseconds").unused(plainLog),
	yesno("hide-user-data-from-log", "no").unused("a crash prints Go's own report, which has no data of users"),
	text("availability-zone", "").does("name of the zone that the server runs in, for INFO"),
	text("pidfile", "").immutable().does("file that holds the process id while the server runs"),
	yesno("daemonize", "no").immutable().does("run in the background: the command returns when the server listens, or fails " +
		"with its error; not on Windows"),
	enum("supervised", "no", "upstart", "systemd", "auto",
		"no").immutable().does("systemd: tell systemd when the server is ready, and do not " +
		"daemonize; auto: if systemd has started it"),
	yesno("always-show-logo", "no").immutable().unused(noTitle),
	yesno("set-proc-title", "yes").immutable().unused(noTitle),
	text("proc-title-template", "{title} {listen-addr} {server-mode}").only(titleTemplate).unused(noTitle),
	yesno("syslog-enabled", "no").immutable().unused(noSyslog),
	text("syslog-ident", "redis").immutable().unused(noSyslog),
	enum("syslog-facility", "local0", "user", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
		"local7").immutable().unused(noSyslog),
	integer("shutdown-timeout", 10, 0, maxInt).does("seconds to wait at shutdown for replicas that lag"),
	special("shutdown-on-sigint", Flags, "default").choose("default", "save", "nosave", "now", "force", "safe",
		"failover").only(shutdownFlags).does("how to end at this signal: save, nosave, now, force; safe and failover are " +
		"for clusters and add nothing"),
	special("shutdown-on-sigterm", Flags, "default").choose("default", "save", "nosave", "now", "force", "safe",
		"failover").only(shutdownFlags).does("how to end at this signal: save, nosave, now, force; safe and failover are " +
		"for clusters and add nothing"),
	yesno("crash-log-enabled", "yes").unused(noCrashLog),
	yesno("crash-memcheck-enabled", "yes").unused(noCrashLog),
	yesno("use-exit-on-panic", "no").hidden().unused(noCrashLog),
	yesno("enable-debug-assert", "no").immutable().hidden().unused(noTesting),
	text("debug-context", "").immutable().hidden().unused(noTesting),
	integer("watchdog-period", 0, 0, maxInt).stored(watchdog).hidden().unused(noCrashLog),
	yesno("disable-thp", "yes").immutable().unused(noTuning),
	enum("oom-score-adj", "no", "no", "yes", "relative", "absolute").unused(noFork),
	special("oom-score-adj-values", Scores, "0 200 800").unused(noFork),
	text("server_cpulist", "").alias("server-cpulist").immutable().unused(noTuning),
	text("bio_cpulist", "").alias("bio-cpulist").immutable().unused(noTuning),
	text("aof_rewrite_cpulist", "").alias("aof-rewrite-cpulist").immutable().unused(noFork),
	text("bgsave_cpulist", "").alias("bgsave-cpulist").immutable().unused(noFork),
	text("ignore-warnings", "").unused(noTuning),
}

// tlsProtocols accepts versions of TLS that are next to each other, such as "TLSv1.2
// TLSv1.3".
func tlsProtocols(s string) error {
	_, _, err := TLSVersions(s)
	return err
}

// TLSVersions returns the lowest and the highest version that tls-protocols offers, by
// their numbers in package crypto/tls; TLS 1.2 and 1.3 for "".
func TLSVersions(directive string) (low, high uint16, err error) {
	words := strings.Fields(strings.ToLower(directive))
	if len(words) == 0 {
		return tls.VersionTLS12, tls.VersionTLS13, nil
	}
	names := []string{"tlsv1", "tlsv1.1", "tlsv1.2", "tlsv1.3"}
	given := make([]bool, len(names))
	for _, w := range words {
		i := slices.Index(names, w)
		if i < 0 {
			return 0, 0, errors.New("argument must be some of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3")
		}
		given[i] = true
	}
	first := slices.Index(given, true)
	last := first
	for last+1 < len(given) && given[last+1] {
		last++
	}
	if slices.Contains(given[last+1:], true) {
		return 0, 0, errors.New("argument leaves out a version between two others: offer those next to each other")
	}
	return tls.VersionTLS10 + uint16(first), tls.VersionTLS10 + uint16(last), nil
}

func powerOfTwo(s string) error {
	switch s {
	case "0", "1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024":
		return nil
	}
	return errors.New("argument must be 0 or a power of two up to 64")
}

// httpAddress accepts an address of the admin pages: a port, or host:port. The pages have
// no password, so a host that stands for all addresses must be written out.
func httpAddress(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = "127.0.0.1", s
	}
	switch n, err := strconv.ParseUint(port, 10, 16); {
	case s == "" || s == "0":
		return nil
	case err != nil || n == 0 && host == "":
		return errors.New("argument must be a port, which is one of loopback, or host:port, such as 127.0.0.1:9121")
	case host == "":
		return errors.New("argument has no host: say 127.0.0.1:" + port + ", or 0.0.0.0:" + port + " for all addresses")
	}
	return nil
}

// consoleLabel accepts a name, and a colour of six hexadecimal digits as the last word.
func consoleLabel(s string) error {
	if i := strings.LastIndexByte(s, ' '); i >= 0 && strings.HasPrefix(s[i+1:], "#") {
		if c := s[i+2:]; len(c) != 6 || strings.Trim(c, "0123456789abcdefABCDEF") != "" {
			return errors.New("argument must end in a colour such as #c0392b, or have none")
		}
	}
	return nil
}

// hostNames accepts names and addresses of hosts, without ports.
func hostNames(s string) error {
	for name := range strings.FieldsSeq(s) {
		if _, err := netip.ParseAddr(name); err == nil {
			continue
		}
		if hostName(name) != nil {
			return errors.New("argument must be names of hosts without ports, such as ebb.example.com; '" + name + "' is none")
		}
	}
	return nil
}

func fileName(what string) func(string) error {
	return func(s string) error {
		switch {
		case strings.ContainsAny(s, `/\`):
			return errors.New(what + " can't be a path, just a filename")
		case s == "" && what != "dbfilename":
			return errors.New(what + " can't be empty")
		}
		return nil
	}
}

func hostName(s string) error {
	for _, c := range []byte(s) {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.", rune(c)) {
			return errors.New("Hostnames may only contain alphanumeric characters, hyphens or dots")
		}
	}
	if len(s) >= 256 {
		return errors.New("Hostnames must be less than 256 characters")
	}
	return nil
}

// nodeName accepts names with the characters that Redis 8 allows.
func nodeName(s string) error {
	if strings.ContainsAny(s, "!#$%&()*+:;<>?@[]^{|}~") {
		return errors.New("Announced human node name contained invalid character")
	}
	return nil
}

// addressOf returns a check that accepts addresses of a family, IPv4 or IPv6, and the
// empty text.
func addressOf(family string) func(string) error {
	return func(s string) error {
		a, err := netip.ParseAddr(s)
		if s != "" && (err != nil || a.Zone() != "" || a.Is4() != (family == "IPv4")) {
			return errors.New("Invalid " + family + " address")
		}
		return nil
	}
}

func titleTemplate(s string) error {
	bad := errors.New("template format is invalid or contains unknown variables")
	if s == "" {
		return bad
	}
	for rest := s; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed || !slices.Contains([]string{"title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"}, name) {
			return bad
		}
		rest = tail
	}
}

func shutdownFlags(s string) error {
	words := strings.Fields(strings.ToLower(s))
	if slices.Contains(words, "save") && slices.Contains(words, "nosave") {
		return errors.New("shutdown options SAVE and NOSAVE can't be used simultaneously")
	}
	return nil
}

// watchdog raises a period to at least two turns of Redis's slowest timer.
func watchdog(n int64) int64 {
	if n == 0 {
		return 0
	}
	return max(n, 200)
}
