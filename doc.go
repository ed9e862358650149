// Package ebb opens a store for data with deadlines: an engine in this process, or a
// server. The URL says which:
//
//	c, err := ebb.Open(ctx, "mem://")                          an engine in this process, private
//	c, err := ebb.Open(ctx, "mem://sessions")                  the same, shared by name in this process
//	c, err := ebb.Open(ctx, "file:///var/lib/app")             the same with files: writes are kept
//	c, err := ebb.Open(ctx, "redis://user:pw@host:6379/0")     an ebb server, Redis or Valkey
//	c, err := ebb.Open(ctx, "rediss://host:6380")              with TLS
//	c, err := ebb.Open(ctx, "unix:///run/ebb.sock")            over a unix socket
//	c, err := ebb.Open(ctx, "redis+sentinel://h1,h2,h3/mymaster")
//	                                                           the master that Sentinel names
//	c, err := ebb.Open(ctx, "redis+cluster://h1:6379,h2:6379") Redis or Valkey Cluster
//	c := ebb.Wrap(universalClient)                             a go-redis client that the program has already
//	c := ebb.Use(driver)                                       another client library, such as contrib/rueidis
//
// A program that uses a Conn behaves the same on all of them. A program that needs one
// kind of backend only may open it with the package of its driver, and then links no
// other; the Conn has the same type:
//
//	            ┌─ embed ──── command ─ engine ─ (files)   a function call, no RESP
//	ebb ─ conn ─┤
//	            ├─ goredis ── sockets ─ one server, Sentinel's master, or a cluster's nodes
//	            └─ a Driver of another library
//
// # Packages
//
// The connection:
//
//	ebb              Open, Wrap and Use, and the types and errors of conn by another name
//	conn             Conn, Driver, Batch, Script, Codec, Subscription, errors
//	conn/driverutil  what the author of a Driver calls
//	embed            the engine in this process; its Engine: backups, sync, what expires next
//	embed/embedredis a go-redis client of an embedded engine, for libraries that take one
//	goredis          servers, through go-redis
//
// The toolkit, objects on any Conn:
//
//	limit            rate limiters, and limits on concurrent calls
//	limit/httplimit  the same as middleware of net/http
//	lock             leases with fencing tokens, semaphores, leaders, once across processes
//	lock/httpidem    Idempotency-Key of HTTP, as middleware
//	queue            jobs with delays, priorities, schedules, retries and dead letters
//	cache            values that a program can load again, with one loader at a time
//	expmap           maps whose entries expire
//	expset           sets whose members expire
//	topic            messages to all subscribers
//	stream           logs of entries, and consumer groups that share them
//	bloom            filters: was an item seen before?
//	unique           counters of distinct items
//	bits             bitmaps and calendars
//	near             members by distance
//
// Servers, tests and the parts below:
//
//	server           a server of ebb from Go: Start, or an engine on any listener
//	console          the web console, as an http.Handler
//	ebbtest          a backend on virtual time, with faults, for tests
//	clock            an engine's time, and one that a test moves
//	resp             the protocol, and Value
//
// A module of its own, github.com/ebbdb/ebb/redisson:
//
//	redisson         objects in the layouts of Redisson, which Java programs can share
//
// Modules of their own, below github.com/ebbdb/ebb/contrib, so that ebb does not depend on
// their libraries:
//
//	rueidis          a Driver over rueidis, with client-side caching
//	otel             traces and metrics of OpenTelemetry
//	echo, fiber, gin rate limits and idempotency for these frameworks
//	grpc             rate limits as interceptors
//	gorilla, scs     stores of sessions
//	asynq            the delayed tasks of asynq, on time
//
// Conn.Do runs any command. The commands that programs use most have typed methods.
// Pipeline and Tx run a Batch of commands; Tx runs it as one transaction. Watch, Block and
// Subscribe need a connection of their own. Replicated returns a view of the Conn whose
// writes survive a failover. Capabilities says what the backend can do.
//
// The constructors of the toolkit have one form: New(c, name, what the object needs,
// opts ...Options), with at most one Options, whose zero value works; they return an error and
// contact no server. A second Options value, or an option that makes no sense, is ErrArgument.
// Options.Prefix of Open begins the names of all objects of a Conn.
//
// # Files
//
// A file:// URL names a directory. It is locked while it is open: in one process all Conns
// of it share one engine, and another process gets an error that names the owner. The
// engine syncs its file every second. With ?fsync=always a call returns when the data that
// it wrote, or read, is on disk. Engine.Sync (EngineOf) waits for that at any time. Close
// writes and syncs the rest, and returns an error if it could not. Engine.Backup writes a
// snapshot. An ebb server reads the same directory. redis-server reads it too, if the data
// has only types that Redis knows.
//
// # Errors
//
// An error reply is returned as a ReplyError. A read of a key that does not exist returns
// ErrNil. ErrUnavailable says that the backend cannot be reached or is not ready. An error
// after the context ended has the context's error in its chain, so that errors.Is(err,
// context.DeadlineExceeded) is true after a deadline. After one of the last two errors the
// command may or may not have taken effect; a Conn sends it at most once. If
// ErrUnavailable comes with a ReplyError, the command has certainly not taken effect.
//
// # Reading the source
//
// Start at Conn.Do in conn/conn.go, then internal/embedded/driver.go, which has the path
// between a call and the engine, and goredis/server.go, with cluster.go for the nodes.
package ebb
