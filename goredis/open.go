package goredis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/serverurl"
)

// address holds the parts of a URL of servers.
type address struct {
	hosts  []string // one, or several of redis+sentinel and redis+cluster
	master string   // of redis+sentinel
	user   string   // for the sentinels themselves
	pass   string
	opt    *redis.Options // for the servers
	name   string         // the URL, without its password
}

// parseServers reads the URLs that lead to servers. kind is "sentinel", "cluster", or "" for one server.
func parseServers(rawURL string) (a address, kind string, err error) {
	scheme, rest, _ := strings.Cut(rawURL, "://")
	scheme, ok := serverurl.Canonical(scheme)
	if !ok {
		return a, "", fmt.Errorf("%w: %q names no server: the schemes are %s, redis+sentinel, redis+cluster",
			conn.ErrURL, serverurl.Shown(rawURL), serverurl.Schemes)
	}
	base, kind, several := strings.Cut(scheme, "+")
	if several {
		a, err = parseSeveral(rawURL, base, kind, rest)
		return a, kind, err
	}
	s, err := serverurl.Parse(rawURL)
	if err != nil {
		return a, "", fmt.Errorf("%w: %w", conn.ErrURL, err)
	}
	a.name = serverurl.Shown(rawURL)
	a.opt, err = parseOptions(s.URL(), a.name)
	return a, "", err
}

// parseSeveral reads a URL with hosts of the kind sentinel or cluster: base+kind://rest.
func parseSeveral(rawURL, base, kind, rest string) (a address, err error) {
	if strings.Contains(rest, "#") { // url.Parse would drop the text after it
		return a, fmt.Errorf("%w: %s: write # as %%23", conn.ErrURL, serverurl.Shown(rawURL))
	}
	// net/url accepts one host: parseSeveral removes the others and lets net/url parse the rest.
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	login := ""
	if p, q, _ := strings.Cut(path, "?"); serverurl.StrayLogin(p, q) {
		return a, fmt.Errorf("%w: %w", conn.ErrURL, serverurl.Unreadable(rawURL, nil))
	}
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		login, authority = authority[:i+1], authority[i+1:]
	}
	scheme := base + "+" + kind
	if a.hosts, err = parseHosts(scheme, kind, authority); err != nil {
		return a, err
	}
	u, err := url.Parse(base + "://" + login + a.hosts[0] + path)
	if err != nil {
		return a, fmt.Errorf("%w: %s://%s: the part before or after the hosts cannot be read", conn.ErrURL, scheme, authority)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return a, fmt.Errorf("%w: %s://%s: the parameters after ? cannot be read", conn.ErrURL, scheme, authority)
	}
	if kind == "sentinel" {
		a.user, a.pass = q.Get("sentinel_username"), q.Get("sentinel_password")
		q.Del("sentinel_username")
		if q.Has("sentinel_password") {
			q.Set("sentinel_password", "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	a.name = strings.Replace(serverurl.Shown(u.String()), base+"://", scheme+"://", 1)
	a.name = strings.Replace(a.name, a.hosts[0], strings.Join(a.hosts, ","), 1)
	q.Del("sentinel_password")
	u.RawQuery = q.Encode()
	err = a.parseServer(u, scheme, kind)
	return a, err
}

// parseHosts reads hosts separated by commas.
func parseHosts(scheme, kind, authority string) (hosts []string, err error) {
	port := "6379"
	if kind == "sentinel" {
		port = "26379"
	}
	for _, h := range strings.Split(authority, ",") {
		if h == "" {
			return nil, fmt.Errorf("%w: %s:// takes hosts separated by commas, as in %s://h1:%s,h2:%s", conn.ErrURL, scheme, scheme, port, port)
		}
		hosts = append(hosts, withPort(h, port))
	}
	return hosts, nil
}

// parseServer reads the options of the servers behind sentinels, and the name of their master, or those of a cluster's nodes.
func (a *address) parseServer(u *url.URL, scheme, kind string) error {
	if kind == "sentinel" {
		a.master, u.Path, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
		if a.master == "" {
			return fmt.Errorf("%w: %s: name the master, as in %s://h1,h2,h3/mymaster/0", conn.ErrURL, a.name, scheme)
		}
		u.Path = "/" + u.Path
	}
	u.RawPath = ""
	one, err := serverurl.Parse(u.String())
	if err != nil {
		return fmt.Errorf("%w: %s: %w", conn.ErrURL, a.name, err)
	}
	if a.opt, err = parseOptions(one.URL(), a.name); err != nil {
		return err
	}
	if kind == "cluster" && a.opt.DB != 0 {
		return fmt.Errorf("%w: %s: a cluster has database 0 alone", conn.ErrURL, a.name)
	}
	return nil
}

// parseOptions calls go-redis's ParseURL, with name for the URL in errors.
func parseOptions(u *url.URL, name string) (*redis.Options, error) {
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", conn.ErrURL, name, err)
	}
	return o, nil
}

// withPort adds a port to a host that has none.
func withPort(host, port string) string {
	if h, p, err := net.SplitHostPort(host); err == nil {
		if p == "" {
			return net.JoinHostPort(h, port)
		}
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// Options holds the settings that a URL cannot have. The zero value works.
type Options struct {
	// TLS configures rediss:// connections; the system's roots and the URL's
	// host name if nil.
	TLS *tls.Config
	// Dial makes the connections to a server; the system's network if nil.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger gets, at level info, what go-redis logs: failed connects, changes of the master. go-redis
	// has one log for all clients of a process, and the last Open with a Logger sets it. If nil,
	// the first Open of the process turns the log off, because calls return the errors. A program
	// that calls redis.SetLogger keeps its log if it does so after that Open.
	Logger *slog.Logger
	// Prefix begins the names of all objects that are made with the Conn; see
	// conn.Conn.WithPrefix.
	Prefix string
}

// silence turns off the log of go-redis, which goes to standard error, at the first Open.
var silence sync.Once

// setLog sets the log of go-redis for the process.
func setLog(l *slog.Logger) {
	if l == nil {
		silence.Do(func() { logging.Disable() })
		return
	}
	silence.Do(func() {})
	redis.SetLogger(logger{l})
}

// logger is the log of go-redis as a slog.Logger.
type logger struct{ to *slog.Logger }

func (l logger) Printf(ctx context.Context, format string, args ...any) {
	l.to.InfoContext(ctx, "go-redis: "+strings.TrimPrefix(fmt.Sprintf(format, args...), "redis: "))
}

// Open opens the server, the master or the cluster that a URL names, as ebb.Open does.
// Two Options are ebb.ErrArgument.
func Open(ctx context.Context, rawURL string, opts ...Options) (*conn.Conn, error) {
	o, err := kit.Option(opts)
	if err != nil {
		return nil, fmt.Errorf("goredis: open: %w", err)
	}
	if ctx.Err() != nil {
		return nil, driverutil.Ended(ctx, "open a server")
	}
	a, kind, err := parseServers(rawURL)
	if err != nil {
		return nil, err
	}
	setLog(o.Logger)
	settle(a.opt)
	tune(a.opt)
	if a.opt.TLSConfig != nil && o.TLS != nil {
		c := o.TLS.Clone()
		if c.ServerName == "" && kind == "" {
			c.ServerName = a.opt.TLSConfig.ServerName
		}
		a.opt.TLSConfig = c
	} else if a.opt.TLSConfig != nil && kind != "" {
		// TLS checks the certificate of each server against the host of its own address.
		a.opt.TLSConfig.ServerName = ""
	}
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout(a.opt), KeepAliveConfig: keepAlive}).DialContext
	}
	a.opt.Dialer = dialer(dial, a.opt.TLSConfig)
	var client redis.UniversalClient
	switch kind {
	case "sentinel":
		client = redis.NewFailoverClient(a.failover())
	case "cluster":
		client = redis.NewClusterClient(a.cluster())
	default:
		client = redis.NewClient(a.opt)
	}
	b := newDriver(client, a.name)
	b.owned = true
	b.policy.Follows = kind != ""
	c, err := conn.NewPrefixed(b, o.Prefix)
	if err == nil {
		err = b.probe.Run(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return c, nil
}

// newDriver returns the driver over a client.
func newDriver(client redis.UniversalClient, name string) *driver {
	b := &driver{client: client, name: name, waiting: map[*blocker]struct{}{}, calls: remote.NewGate(), policy: policy}
	b.policy.Later = &b.later
	switch c := client.(type) {
	case *redis.Client:
		b.one, b.auto = c, newAutoPipeline(c)
		if c.Options().Addr == failoverAddr {
			b.moves = newMoves()
			c.AddHook(b.moves)
		}
	case *redis.ClusterClient:
		b.nodes, b.policy.Follows = newCluster(c), true
		b.nodes.policy.Later = &b.later
	}
	b.probe = remote.NewProbe("ebb", "open "+name, b.nodes != nil, b.raw)
	return b
}

// keepAlive detects within half a minute that the other machine is gone. A call of Block
// needs it, because it reads for as long as its command waits.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// replyTimeout is the read timeout of a reply, if the URL has none.
const replyTimeout = 3 * time.Second

// stateReload is the age at which the map of a cluster's slots is read again.
const stateReload = 10 * time.Second

// dialTimeout returns the timeout of a connect: go-redis's own default if the URL has
// none.
func dialTimeout(o *redis.Options) time.Duration {
	if o.DialTimeout > 0 {
		return o.DialTimeout
	}
	return 5 * time.Second
}

// settle sets the options of a client: it sends no command twice, and has the timeouts
// that the documentation names. go-redis's own default became 5 s.
func settle(o *redis.Options) {
	o.ReadTimeout = cmp.Or(o.ReadTimeout, replyTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, o.ReadTimeout)
	o.ContextTimeoutEnabled = true
	o.MaxRetries = cmp.Or(o.MaxRetries, -1) // a command that was sent may have run, so go-redis must not send it twice
}

// tune turns off the functions of go-redis that the driver has itself.
func tune(o *redis.Options) {
	o.DialerRetries = 1 // the driver decides what to do without a server
	o.DialerRetryTimeout = time.Millisecond
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.PipelinePoolSize = -1 // pool_size is the most connections, for pipelines too
}

// failover returns the options of a client that follows Sentinel.
func (a address) failover() *redis.FailoverOptions {
	o := a.opt
	return &redis.FailoverOptions{
		PipelinePoolSize: o.PipelinePoolSize, MasterName: a.master, SentinelAddrs: a.hosts, SentinelUsername: a.user, SentinelPassword: a.pass,
		Dialer: o.Dialer, TLSConfig: o.TLSConfig, ClientName: o.ClientName, Protocol: o.Protocol,
		Username: o.Username, Password: o.Password, DB: o.DB,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries, DialerRetryTimeout: o.DialerRetryTimeout,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: true,
		PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout, MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns,
		MaxActiveConns: o.MaxActiveConns, ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
	}
}

// cluster returns the options of a cluster's client. The driver uses that client as a map
// of slots: it sends to one node, once, and returns a redirection to the driver.
func (a address) cluster() *redis.ClusterOptions {
	o := a.opt
	return &redis.ClusterOptions{
		Addrs: a.hosts, MaxRedirects: -1, PipelinePoolSize: o.PipelinePoolSize, ClusterStateReloadInterval: stateReload,
		NewClient: func(o *redis.Options) *redis.Client {
			tune(o)
			return redis.NewClient(o)
		},
		Dialer: o.Dialer, TLSConfig: o.TLSConfig, ClientName: o.ClientName, Protocol: o.Protocol,
		Username: o.Username, Password: o.Password,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: true,
		PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout, MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns,
		MaxActiveConns: o.MaxActiveConns, ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
	}
}

// dialer adds TLS to a dial function, as go-redis does for its own.
func dialer(dial func(context.Context, string, string) (net.Conn, error), c *tls.Config) func(context.Context,
	string, string) (net.Conn, error) {
	if c == nil {
		return dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		own := c
		if own.ServerName == "" && !own.InsecureSkipVerify {
			own = c.Clone()
			own.ServerName, _, _ = net.SplitHostPort(addr)
		}
		t := tls.Client(nc, own)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		return t, nil
	}
}

// Wrap returns a Conn over a go-redis client that the program already has: a
// Client, single or of Sentinel, a ClusterClient, or another. Close leaves the
// client open. The first use asks the server what it can do, and so does
// each later use until it answers; until then Capabilities is empty, and calls fail.
//
// The client's own options stay in force. With one of them the client can send a command
// twice that may have run already: MaxRetries, unless it is -1. On a ClusterClient that
// option has no such effect, and the Conn uses neither MaxRedirects nor ReadOnly: it
// follows redirections itself, to masters only, and never sends a command twice that may
// have run. Hooks of the client, and of a ClusterClient's nodes, see the commands, except
// those of Block, which has connections of its own with the same options. If MaxRetries is
// -1, commands that goroutines send at the same time go as one pipeline, as with Open, and
// many more of them run per second. Hooks see the pipeline with the context of one of the
// commands.
func Wrap(client redis.UniversalClient) *conn.Conn {
	name := "a wrapped client"
	switch c := client.(type) {
	case *redis.Client:
		name = "redis://" + c.Options().Addr
	case *redis.ClusterClient:
		name = "redis+cluster://" + strings.Join(c.Options().Addrs, ",")
	}
	b := newDriver(client, name+", wrapped")
	b.policy.Follows = b.policy.Follows || b.moves != nil
	return conn.New(b)
}

// failoverAddr is the text that go-redis uses as the address of a client that follows
// Sentinel.
const failoverAddr = "FailoverClient"
