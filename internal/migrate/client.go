package migrate

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/serverurl"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

const (
	// replyTimeout is the longest silence of a server that was sent a request. A server that loads or forks may take
	// seconds.
	replyTimeout = time.Minute
	// patience is the time for which a server may be unreachable before a step gives up.
	patience = 30 * time.Second
)

// connectTimeout bounds a connection's attempt, with the TLS handshake. A server without TLS leaves that unanswered.
var connectTimeout = 10 * time.Second

// client is a connection. One goroutine uses it.
type client struct {
	nc  net.Conn
	r   *bufio.Reader
	out []byte
	db  int
	// name has the side and the address of the peer, for errors.
	name string
	// unlocked says that the server has no password, although one was sent.
	unlocked bool
}

func dial(ctx context.Context, s serverurl.Server, cacert string) (*client, error) {
	d := net.Dialer{Timeout: connectTimeout}
	network, addr := "tcp", address(s)
	if s.Socket != "" {
		network = "unix"
	}
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if s.TLS {
		cfg := &tls.Config{ServerName: host(s), InsecureSkipVerify: s.Insecure()}
		if cacert != "" {
			pem, err := os.ReadFile(cacert)
			if cfg.RootCAs = x509.NewCertPool(); err == nil && !cfg.RootCAs.AppendCertsFromPEM(pem) {
				err = fmt.Errorf("no certificate in %s", cacert)
			}
			if err != nil {
				nc.Close()
				return nil, err
			}
		}
		shaking, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		secure := tls.Client(nc, cfg)
		if err := secure.HandshakeContext(shaking); err != nil {
			nc.Close()
			if ctx.Err() == nil && shaking.Err() != nil {
				return nil, fmt.Errorf("no answer to the TLS handshake within %v; a server without TLS wants redis://, not rediss://", connectTimeout)
			}
			return nil, fmt.Errorf("TLS: %w", because(ctx, err))
		}
		nc = secure
	}
	c := &client{nc: nc, r: bufio.NewReaderSize(nc, 64<<10)}
	if s.HavePassword {
		login := []string{"AUTH", s.Password}
		if s.User != "" {
			login = []string{"AUTH", s.User, s.Password}
		}
		// A password from the environment also goes to a server that has none.
		_, err := c.do(ctx, login...)
		if c.unlocked = err != nil && strings.Contains(err.Error(), "without any password configured"); err != nil && !c.unlocked {
			nc.Close()
			return nil, fmt.Errorf("AUTH: %w", err)
		}
	}
	return c, nil
}

func host(s serverurl.Server) string {
	if s.Host == "" {
		return "127.0.0.1"
	}
	return s.Host
}

func port(s serverurl.Server) string {
	if s.Port == "" {
		return "6379"
	}
	return s.Port
}

func address(s serverurl.Server) string {
	if s.Socket != "" {
		return s.Socket
	}
	return net.JoinHostPort(host(s), port(s))
}

// do sends a request and returns its reply; an error reply is an error of type resp.ReplyError.
func (c *client) do(ctx context.Context, args ...string) (resp.Value, error) {
	c.add(args...)
	if err := c.flush(ctx); err != nil {
		return resp.Value{}, err
	}
	v, err := c.reply(ctx)
	if err == nil {
		err = v.Err()
	}
	return v, err
}

// add appends a request to those that flush sends.
func (c *client) add(args ...string) { c.out = wire.AppendCommand(c.out, args...) }

func (c *client) flush(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { c.nc.Close() })()
	_ = c.nc.SetWriteDeadline(time.Now().Add(replyTimeout))
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	return because(ctx, err)
}

// reply reads one reply. Errors are those of the connection.
func (c *client) reply(ctx context.Context) (resp.Value, error) {
	return c.replyWithin(ctx, replyTimeout)
}

func (c *client) replyWithin(ctx context.Context, d time.Duration) (resp.Value, error) {
	defer context.AfterFunc(ctx, func() { c.nc.Close() })()
	_ = c.nc.SetReadDeadline(time.Now().Add(d))
	v, err := wire.ReadValue(c.r)
	return v, because(ctx, err)
}

// because returns the reason of an error: the end of ctx, if that closed the connection.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// use selects a database.
func (c *client) use(ctx context.Context, db int) error {
	if c.db == db {
		return nil
	}
	if _, err := c.do(ctx, "SELECT", strconv.Itoa(db)); err != nil {
		return fmt.Errorf("%s: SELECT %d: %w", c.name, db, err)
	}
	c.db = db
	return nil
}

// peer is a server, and a connection for single requests that is renewed when it was cut. Its methods may be called by
// any goroutine.
type peer struct {
	side   string // FROM or TO
	server serverurl.Server
	cacert string

	info    map[string]string // INFO at the last learn or refresh
	product string            // ebb, redis or valkey
	psync   bool              // the server has the command PSYNC
	exact   bool              // the server has the command PEXPIRETIME

	mu sync.Mutex // guards c
	c  *client
}

// String returns the address and the product, without a password.
func (p *peer) String() string {
	if p.product == "" {
		return address(p.server)
	}
	return fmt.Sprintf("%s (%s %s)", address(p.server), p.product, p.version())
}

func (p *peer) version() string { return p.info[p.product+"_version"] }

func (p *peer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.c != nil {
		p.c.nc.Close()
		p.c = nil
	}
}

// dial returns a new connection.
func (p *peer) dial(ctx context.Context) (*client, error) {
	c, err := dial(ctx, p.server, p.cacert)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", p.side, p, err)
	}
	c.name = fmt.Sprintf("%s %s", p.side, p)
	return c, nil
}

// do runs a command that may be repeated. While the connection fails, it connects again, for patience at most.
func (p *peer) do(ctx context.Context, args ...string) (resp.Value, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for {
		v, err := p.once(ctx, args)
		var refused resp.ReplyError
		if err == nil || errors.As(err, &refused) {
			return v, err
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return v, last
		}
	}
}

func (p *peer) once(ctx context.Context, args []string) (v resp.Value, err error) {
	if p.c == nil {
		if p.c, err = p.dial(ctx); err != nil {
			return v, err
		}
	}
	v, err = p.c.do(ctx, args...)
	var refused resp.ReplyError
	if err == nil {
		return v, nil
	}
	err = fmt.Errorf("%s %s: %s: %w", p.side, p, args[0], err)
	if !errors.As(err, &refused) {
		p.c.nc.Close()
		p.c = nil
	}
	return v, err
}

// learnTimeout bounds the wait for the first replies of a server.
var learnTimeout = 15 * time.Second

// learn finds out what the server is. It does not wait for a server that cannot be reached, and for a paused one not long.
func (p *peer) learn(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	err := p.inquire(within)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return fmt.Errorf("%s %s is connected, but has not replied for %v: its clients may be paused (CLIENT PAUSE), "+
			"or a command runs for long; repeat when it replies to PING", p.side, p, learnTimeout)
	}
	return err
}

func (p *peer) inquire(ctx context.Context) error {
	p.mu.Lock()
	_, err := p.once(ctx, []string{"PING"})
	if doctor.Answers(err) { // INFO tells more
		err = nil
	}
	if err == nil && p.c.unlocked {
		p.server.HavePassword, p.server.Password = false, ""
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := p.refresh(ctx); err != nil {
		return err
	}
	p.product = doctor.Product(p.info)
	if p.info["loading"] == "1" && p.info["role"] == "master" { // a replica loads what its master sends
		return fmt.Errorf("%s %s loads its data (%s %%): run the command again when it has loaded them", p.side, p, p.info["loading_loaded_perc"])
	}
	v, err := p.do(ctx, "COMMAND", "INFO", "psync", "pexpiretime")
	if isRefusal(err) { // by the rights that replication needs, the user may not ask
		var major int
		_, _ = fmt.Sscanf(p.info["redis_version"], "%d.", &major)
		p.psync, p.exact = true, major >= 7
		return nil
	}
	if err != nil {
		return err
	}
	if len(v.Elems) == 2 {
		p.psync, p.exact = len(v.Elems[0].Elems) > 0, len(v.Elems[1].Elems) > 0
	}
	return nil
}

// refresh asks INFO, keeps it, and returns it.
func (p *peer) refresh(ctx context.Context) (map[string]string, error) {
	v, err := p.do(ctx, "INFO", "everything")
	if err == nil && v.Str == "" { // before 7.0
		v, err = p.do(ctx, "INFO", "all")
	}
	if err != nil {
		return nil, err
	}
	p.info = doctor.Info(v.String())
	return p.info, nil
}

// section asks one section of INFO.
func (p *peer) section(ctx context.Context, name string) (map[string]string, error) {
	v, err := p.do(ctx, "INFO", name)
	if err != nil {
		return nil, err
	}
	return doctor.Info(v.String()), nil
}

// setting returns a directive's value; "" if the server does not say.
func (p *peer) setting(ctx context.Context, name string) string {
	value, _ := p.directive(ctx, name)
	return value
}

// directive returns a directive's value; known is false if the server does not say, or does not have it.
func (p *peer) directive(ctx context.Context, name string) (value string, known bool) {
	v, err := p.do(ctx, "CONFIG", "GET", name)
	if err != nil || len(v.Elems) != 2 {
		return "", false
	}
	return v.Elems[1].String(), true
}

// sleep waits, and returns false if ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
