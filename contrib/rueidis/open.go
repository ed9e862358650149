package rueidisebb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// Options say how the driver uses its client. The zero value works.
type Options struct {
	// Cache is the time for which this process may keep a reply to one of Cached; 0: no
	// cache. When a key changes, the server sends a message and rueidis drops the copy.
	// Until that message arrives, a read may return the value before the write, even if this
	// process has written. If the connection is lost without an error, a read may be older
	// by up to Cache. Scripts, and so the objects of the toolkit, never read copies. The
	// client must not have DisableCache.
	Cache time.Duration
	// Cached are the names of the commands whose replies may be cached. Each takes its key
	// as the first argument. nil: DefaultCached.
	Cached []string
	// ReadTimeout is the longest time that a call waits for its reply, if its context has no
	// earlier deadline. After it the call fails with ErrUnavailable, and its command may
	// have run. For Block and Subscribe it comes on top of the time that they wait anyway.
	// 0: ConnWriteTimeout if Open gets one, else 3 s, as over go-redis; over a client of
	// Wrap 10 s, as in rueidis itself. Negative: rueidis' own limit only, which may be later
	// than ConnWriteTimeout by twice its Dialer.KeepAlive.
	ReadTimeout time.Duration
	// Prefix begins the names of all objects that are made with the Conn; see
	// conn.Conn.WithPrefix.
	Prefix string
}

// prefix returns the Prefix of optional options.
func prefix(opts []Options) string {
	if len(opts) == 0 {
		return ""
	}
	return opts[0].Prefix
}

// DefaultCached are the commands that the driver caches if Options.Cached is nil: reads of
// one key.
var DefaultCached = []string{
	"GET", "STRLEN", "GETRANGE", "GETBIT", "BITCOUNT", "BITPOS",
	"HGET", "HMGET", "HGETALL", "HLEN", "HEXISTS", "HKEYS", "HVALS", "HSTRLEN",
	"LLEN", "LINDEX", "LRANGE", "LPOS",
	"SCARD", "SISMEMBER", "SMISMEMBER", "SMEMBERS",
	"ZCARD", "ZCOUNT", "ZSCORE", "ZMSCORE", "ZRANK", "ZREVRANK", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE",
	"GEOPOS", "GEODIST", "GEOHASH", "TYPE",
}

// Open makes a client and a Conn over it; Close closes both. The server must answer before
// the context ends: see ebb.Open for the errors. Open turns rueidis' retries of reads off,
// because they do not end while the server is unreachable. Two Options are ebb.ErrArgument.
func Open(ctx context.Context, option rueidis.ClientOption, opts ...Options) (*conn.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("rueidisebb: open: %w", err)
	}
	option.DisableRetry = true
	doing := "open " + strings.Join(option.InitAddress, ",")
	conns := &hangups{}
	conns.dial(&option)
	client, err := rueidis.NewClient(option)
	if err != nil {
		if v, ok := refusedGreeting(err); ok && !routing.Untouched(v) {
			return nil, fmt.Errorf("rueidisebb: %s: %w", doing, v.Err())
		}
		return nil, unavailable(ctx, doing, err)
	}
	var c *conn.Conn
	d, err := newDriver(client, true, opts)
	if err == nil {
		c, err = conn.NewPrefixed(d, prefix(opts))
	}
	if err == nil {
		d.hangups, d.blockers.most = conns, min(keepBlockers, poolSize(option)/2)
		d.setTimeouts(option, opts)
		err = d.probe.Known(ctx)
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("rueidisebb: %s: %w", doing, err)
	}
	return c, nil
}

// poolSize returns the number of connections that a client has for commands that wait.
func poolSize(option rueidis.ClientOption) int {
	if option.BlockingPoolSize == 0 {
		return rueidis.DefaultPoolSize
	}
	return option.BlockingPoolSize
}

// Wrap returns a Conn over a client that the program already has; Close leaves it open.
// The first use runs the capability probe, and so does each later use until the server
// answers; until then Capabilities is empty, and calls fail. With Options.Cache the client
// should have DisableRetry; without it, reads wait for an unreachable server until their
// context ends.
func Wrap(client rueidis.Client, opts ...Options) (*conn.Conn, error) {
	d, err := newDriver(client, false, opts)
	if err != nil {
		return nil, err
	}
	return conn.NewPrefixed(d, prefix(opts))
}

func newDriver(client rueidis.Client, owned bool, opts []Options) (*driver, error) {
	o, err := kit.Option(opts)
	if err != nil {
		return nil, fmt.Errorf("rueidisebb: %w", err)
	}
	if o.Cache < 0 || o.Cache > 0 && o.Cache < time.Millisecond {
		return nil, fmt.Errorf("%w: rueidisebb: a Cache of %v: it must be at least 1ms, or 0 for none", conn.ErrArgument, o.Cache)
	}
	mode := client.Mode()
	d := &driver{
		client: client, owned: owned, calls: remote.NewGate(),
		cluster: mode == rueidis.ClientModeCluster,

		deadlines: &deadlines{since: time.Now()},
	}
	// The driver cannot read the timeouts of an existing client.
	d.setTimeouts(rueidis.ClientOption{ConnWriteTimeout: 10 * rueidis.DefaultTCPKeepAlive}, opts)
	if !d.cluster {
		d.auto = newAutoPipeline(client, d.deadlines)
	}
	d.ctx, d.end = context.WithCancel(context.Background())
	follows := mode == rueidis.ClientModeCluster || mode == rueidis.ClientModeSentinel
	d.policy = remote.Policy{Name: "rueidisebb", Follows: follows, Closed: d.ctx.Done(), Later: &d.later}
	d.probe = remote.NewProbe("rueidisebb", "", d.cluster, d.raw)
	if o.Cache > 0 {
		names := o.Cached
		if names == nil {
			names = DefaultCached
		}
		d.cacheTTL, d.cached = o.Cache, map[string]struct{}{}
		for _, n := range names {
			d.cached[strings.ToUpper(n)] = struct{}{}
		}
	}
	return d, nil
}

// String implements conn.Driver.
func (d *driver) String() string {
	var nodes []string
	for addr := range d.client.Nodes() {
		nodes = append(nodes, addr)
	}
	slices.Sort(nodes)
	s := "rueidis to " + strings.Join(nodes, ",")
	caps := d.Capabilities()
	if caps.Server != "" {
		s += " (a server: " + caps.Server
		if caps.Version != "" && !caps.Native {
			s += " " + caps.Version
		}
		s += ")"
	}
	if d.cached != nil {
		s += fmt.Sprintf(", reads cached for up to %v", d.cacheTTL)
	}
	return s
}
