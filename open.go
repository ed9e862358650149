package ebb

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/goredis"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/serverurl"
)

// Options holds the settings that a URL cannot have. The zero value works.
type Options struct {
	// Clock is the embedded engine's time; the system's if nil. An engine that is shared by
	// name has the clock of the call of Open that made it; another Clock is ebb.ErrArgument.
	Clock clock.Clock
	// TLS configures rediss:// connections; the system's roots and the URL's
	// host name if nil.
	TLS *tls.Config
	// Logger receives the log of an embedded engine: loading, files that cannot be written;
	// and of go-redis: failed connects (see goredis.Options). If it is nil, they log nothing.
	Logger *slog.Logger
	// Dial makes the connections to a server; the system's network if nil.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Prefix begins the names of all objects that are made with the Conn, on every backend:
	// with "shop:", queue.New(c, "mail") is the queue "shop:mail". It ends with a separator. It
	// does not change the keys of commands, such as those of Conn.Get. Conn.WithPrefix says
	// more, and gives a Conn of Wrap or Use a prefix.
	Prefix string
}

// Open opens the backend that a URL names:
//
//	mem://                  an engine of its own in this process
//	mem://name              the engine of that name in this process, shared; its
//	                        data is lost when the last Conn is closed
//	mem://name/3            its database 3
//	mem://?maxmemory=64mb&maxmemory-policy=allkeys-lru
//	                        an engine with a limit of memory; mem:// and file:// take
//	                        maxmemory, maxmemory-policy, maxmemory-samples,
//	                        maxmemory-eviction-tenacity, maxmemory-protect and
//	                        maxmemory-protect-limiters, with the values that the
//	                        directives of the same names have
//	file:///var/lib/app     an engine in this process whose data is kept in that
//	                        directory; Open creates it if it is missing; file://data
//	                        is a directory below the working directory. Parameters:
//	                        fsync=always|everysec|no, db=3, and those of memory
//	redis://user:pw@host:6379/0?read_timeout=3s&pool_size=20
//	rediss://...            the same with TLS
//	unix://user:pw@/path/to/socket?db=0
//	valkey://, valkeys://, redis+unix://, redis-socket://
//	                        the same three in the spellings of other clients; a database
//	                        may be ?db=0 or ?database=0, a login ?user=user&password=pw,
//	                        and redis://pw@host has a password without a user
//	redis+sentinel://user:pw@h1:26379,h2,h3/mymaster/0?sentinel_username=u&sentinel_password=p
//	                        the master of that name, which Sentinel knows; user
//	                        and pw are for the servers
//	redis+cluster://user:pw@h1:6379,h2,h3
//	                        a cluster; the URL names some of its nodes
//	rediss+sentinel://..., rediss+cluster://...
//	                        the same with TLS, to sentinels and servers
//
// A second Open of a file:// directory in the same process returns a Conn of the same
// engine. In another process it returns an error that names the owner. An Open that names
// parameters of memory other than those with which the engine was opened is ErrURL. With
// fsync=everysec, the default, a failure of the machine may lose the writes of the last
// second. With always, a call returns when the data that it wrote, or read, is on disk. A
// server reads the same directory: ebb serve --dir.
//
// The parameters of the servers' URLs are those of go-redis's ParseURL; without
// max_retries the driver never sends a command twice that may have run. It sends a command
// again, for about half a second, that certainly has not run. That is so after certain
// errors of a server (MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING, MASTERDOWN, and behind
// Sentinel or in a cluster READONLY), and behind Sentinel or in a cluster after a refused
// connection. After that time the error is ErrUnavailable. If a single server does not
// answer, the error is ErrUnavailable at once. docs/toolkit/connections.md describes this
// and the differences in a cluster.
//
// A server must answer PING before the context ends. Open returns ErrUnavailable if none
// does, a ReplyError if the server refuses the client, and ErrURL for a URL that it cannot
// use. Two Options are ebb.ErrArgument.
func Open(ctx context.Context, rawURL string, opts ...Options) (*Conn, error) {
	o, err := kit.Option(opts)
	if err != nil {
		return nil, fmt.Errorf("ebb: open: %w", err)
	}
	scheme, _, found := strings.Cut(rawURL, "://")
	if !found {
		return nil, fmt.Errorf("%w: %q has no scheme; try mem:// or redis://127.0.0.1:6379", ErrURL, serverurl.Shown(rawURL))
	}
	if ctx.Err() != nil {
		return nil, driverutil.Ended(ctx, "open "+scheme+"://")
	}
	_, servers := serverurl.Canonical(scheme)
	switch {
	case scheme == "mem" || scheme == "file":
		return embed.Open(ctx, rawURL, embed.Options{Clock: o.Clock, Logger: o.Logger, Prefix: o.Prefix})
	case servers:
		return goredis.Open(ctx, rawURL, goredis.Options{TLS: o.TLS, Dial: o.Dial, Logger: o.Logger, Prefix: o.Prefix})
	}
	return nil, fmt.Errorf("%w: scheme %q is none of mem, file, %s, redis+sentinel, redis+cluster", ErrURL, scheme, serverurl.Schemes)
}

// Use returns a Conn over a driver, which Close closes.
func Use(d conn.Driver) *Conn { return conn.New(d) }

// Wrap returns a Conn over a go-redis client that the program already has; see
// goredis.Wrap.
func Wrap(client redis.UniversalClient) *Conn { return goredis.Wrap(client) }

// EngineOf returns the embedded engine behind a connection, nil for a remote one. It is
// valid until Close.
func EngineOf(c *Conn) *Engine { return embed.Of(c) }
