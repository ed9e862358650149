// Package ebb opens a store for data with deadlines: an engine in this process, or a
// server. The URL says which:
//
//	c, err := ebb.Open(ctx, "mem://")                          an engine in this process, private
//	c, err := ebb.Open(ctx, "mem://sessions")                  the same, shared by name in this process
//	c, err := ebb.Open(ctx, "file:///var/lib/app")             the same with files: what is written is kept
//	c, err := ebb.Open(ctx, "redis://user:pw@host:6379/0")     an ebb server, Redis or Valkey
//	c, err := ebb.Open(ctx, "rediss://host:6380")              with TLS
//	c, err := ebb.Open(ctx, "unix:///run/ebb.sock")            over a unix socket
//	c, err := ebb.Open(ctx, "redis+sentinel://h1,h2,h3/mymaster")
//	                                                           the master that Sentinel names
//	c, err := ebb.Open(ctx, "redis+cluster://h1:6379,h2:6379") Redis or Valkey Cluster
//	c := ebb.Wrap(universalClient)                             a go-redis client that is there already
//	c := ebb.Use(driver)                                       another client library, such as contrib/rueidis
//
// What is written against a Conn behaves the same on all of them. A program that needs
// one kind of backend alone may open it by the package of its driver, and then links no
// other; the Conn is the same type:
//
//	            ┌─ embed ──── command ─ engine ─ (files)   a function call, no RESP
//	ebb ─ conn ─┤
//	            ├─ goredis ── sockets ─ one server, Sentinel's master, or a cluster's nodes
//	            └─ a Driver of another library
//
// # Packages
//
//	ebb        Open, Wrap and Use, and the types and errors of conn by another name
//	conn       Conn, Driver, Batch, Script, Codec, Subscription, errors
//	embed      the engine in this process; its Engine: backups, sync, typed data
//	goredis    servers, through go-redis
//	limit      rate limiters, and limits on what runs at the same time
//	           (limit/httplimit: middleware of net/http)
//	lock       leases with fencing tokens, semaphores, leaders, once across processes
//	queue      jobs with delays, priorities, retries and dead letters
//	expmap     maps whose entries expire
//	expset     sets whose members expire
//	topic      messages to all subscribers
//	stream     consumer groups
//	bloom      filters
//	unique     counters of distinct values
//	bits       bitmaps and calendars
//	near       members by distance
//	ebbtest    a backend on virtual time for tests
//	engine     the data structures, with typed methods
//	server     serves an engine on any listener
//	resp       the protocol, and Value
//
// A Conn has one method for every command there is, Do, typed methods for the
// ones programs use most, and the four things that Do cannot do, because they
// need a connection to themselves: Pipeline and Tx (a Batch of commands, the
// latter atomic), Watch, Block, and Subscribe. Replicated is a view of it whose
// writes no failover loses. Capabilities says what is behind it.
//
// # Files
//
// A file:// URL names a directory. It is locked while it is open: in one process it
// leads to one engine, and another process is told who has it. What is appended is
// synced every second; with ?fsync=always a call returns when what it wrote, or read,
// is on disk, and Engine.Sync (EngineOf) waits for that at any time. Close writes what is left,
// syncs it, and says whether it could. Engine.Backup writes a snapshot. An ebb server
// reads the same directory, and so does redis-server while it holds nothing but what
// Redis knows.
//
// # Errors
//
// A reply that is an error comes back as a ReplyError. What is not there is
// ErrNil. A backend that cannot be reached, or is not ready, is ErrUnavailable. An
// error after the context ended has the context's error in its chain, so that
// errors.Is(err, context.DeadlineExceeded) says what it should. After either of
// the last two a command may or may not have taken effect: it is sent once at
// most. If ErrUnavailable comes with a ReplyError, it certainly has not.
//
// # Reading the source
//
// Start at Conn.Do in conn/conn.go, then embed/embed.go, which is all there is between
// a call and the engine, and goredis/server.go, with cluster.go for the nodes.
package ebb
