package cli

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// conn is a connection without a handshake. One goroutine sends and one receives. Any
// goroutine may call close, also several times.
type conn struct {
	nc  net.Conn
	r   *bufio.Reader
	out []byte
}

// dial connects as the options say, over TCP or a Unix socket, with or without
// TLS.
func dial(ctx context.Context, o *Options) (*conn, error) {
	d := net.Dialer{Timeout: o.Timeout}
	d.SetMultipathTCP(o.Multipath)
	network, addr := "tcp", o.addr()
	if o.Socket != "" {
		network = "unix"
	}
	nc, err := d.DialContext(ctx, network+o.Family, addr)
	if err != nil && o.Family != "" && ctx.Err() == nil { // preferred, not demanded
		nc, err = d.DialContext(ctx, network, addr)
	}
	if err != nil {
		return nil, err
	}
	if o.TLS.Enabled {
		if nc, err = secure(ctx, nc, o); err != nil {
			return nil, err
		}
	}
	return &conn{nc: nc, r: bufio.NewReaderSize(nc, 64<<10)}, nil
}

// secure runs the TLS handshake; it closes nc if that fails.
func secure(ctx context.Context, nc net.Conn, o *Options) (net.Conn, error) {
	cfg, err := tlsConfig(o)
	if err != nil {
		nc.Close()
		return nil, err
	}
	tc := tls.Client(nc, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return tc, nil
}

func tlsConfig(o *Options) (*tls.Config, error) {
	cfg := &tls.Config{ServerName: o.TLS.ServerName, InsecureSkipVerify: o.TLS.Insecure}
	cfg.ServerName = cmp.Or(cfg.ServerName, o.Host)
	var files []string
	if o.TLS.CACert != "" {
		files = append(files, o.TLS.CACert)
	}
	if o.TLS.CACertDir != "" {
		more, err := filepath.Glob(filepath.Join(o.TLS.CACertDir, "*"))
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	if o.TLS.CACert != "" || o.TLS.CACertDir != "" {
		cfg.RootCAs = x509.NewCertPool()
	}
	for _, f := range files {
		pem, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if !cfg.RootCAs.AppendCertsFromPEM(pem) && f == o.TLS.CACert {
			return nil, fmt.Errorf("no certificate in %s", f)
		}
	}
	if o.TLS.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.TLS.Cert, o.TLS.Key)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

func (c *conn) close() { c.nc.Close() }

// send writes one request.
func (c *conn) send(args ...string) error {
	c.out = wire.AppendCommand(c.out[:0], args...)
	_, err := c.nc.Write(c.out)
	return err
}

// recv reads one reply or push.
func (c *conn) recv() (resp.Value, error) { return wire.ReadValue(c.r) }

// do sends a request and reads its reply, dropping pushes that precede it. An
// error reply is returned as the error.
func (c *conn) do(args ...string) (resp.Value, error) {
	if err := c.send(args...); err != nil {
		return resp.Value{}, err
	}
	v, err := c.reply()
	if err == nil {
		err = v.Err()
	}
	return v, err
}

// reply reads the next reply, dropping pushes that precede it.
func (c *conn) reply() (resp.Value, error) {
	for {
		v, err := c.recv()
		if err != nil || v.Kind != resp.KindPush {
			return v, err
		}
	}
}

// gone reports whether the peer has closed an idle connection. It waits a millisecond for
// that; this is acceptable only because a person types the commands.
func (c *conn) gone() bool {
	_ = c.nc.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.r.Peek(1)
	_ = c.nc.SetReadDeadline(time.Time{})
	var ne net.Error
	return err != nil && !(errors.As(err, &ne) && ne.Timeout())
}

// describe returns the text of a connection's error as redis-cli prints it.
func describe(err error) string {
	var errno syscall.Errno
	var dns *net.DNSError
	var ne net.Error
	switch {
	case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed):
		return "Server closed the connection"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "Name or service not known"
	case errors.As(err, &errno):
		return capitalise(errno.Error())
	case errors.As(err, &ne) && ne.Timeout():
		return "Connection timed out"
	}
	return err.Error()
}

func capitalise(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
