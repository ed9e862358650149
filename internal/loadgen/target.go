package loadgen

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// Common has the options of all measurements on one server.
type Common struct {
	Target   Target
	PID      int       // of the server, for its CPU and memory; 0: unknown
	Flush    bool      // delete all keys first even if there are some
	Out      io.Writer // the findings
	Progress io.Writer // a line that renews itself; nil: none
}

// Target is the address of a server, with the login.
type Target struct {
	Network        string // default tcp
	Addr           string // host:port, or the path of a unix socket
	User, Password string // Password "": none
	Optional       bool   // a server without a password is right, too: the password is that of the environment
	DB             int
	TLS            *tls.Config // nil: none
}

// Dial returns a connection that has authenticated and selected its database.
func (t Target) Dial(ctx context.Context) (net.Conn, *bufio.Reader, error) {
	c, err := t.client(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c.conn, c.in, nil
}

// client is a connection for one request at a time, or for pipelines by hand:
// add requests, flush, read the replies.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

func (t Target) client(ctx context.Context) (*client, error) {
	var d net.Dialer
	network := cmp.Or(t.Network, "tcp")
	conn, err := d.DialContext(ctx, network, t.Addr)
	if err != nil {
		return nil, err
	}
	if t.TLS != nil {
		conn = tls.Client(conn, t.TLS)
	}
	c := &client{conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}
	if err := c.enter(ctx, t); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *client) enter(ctx context.Context, t Target) error {
	defer c.closeWith(ctx)()
	if t.Password != "" {
		args := []string{"AUTH", t.Password}
		if t.User != "" {
			args = []string{"AUTH", t.User, t.Password}
		}
		if _, err := c.do(args...); err != nil && !(t.Optional && strings.Contains(err.Error(), "without any password configured")) {
			return err
		}
	}
	if t.DB != 0 {
		if _, err := c.do("SELECT", strconv.Itoa(t.DB)); err != nil {
			return err
		}
	}
	return nil
}

// closeWith closes the connection when ctx ends; the result undoes that.
func (c *client) closeWith(ctx context.Context) (undo func()) {
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	return func() { stop() }
}

func (c *client) add(args ...string) { c.out = wire.AppendCommand(c.out, args...) }

func (c *client) flush() error {
	_, err := c.conn.Write(c.out)
	c.out = c.out[:0]
	return err
}

// do sends a request and returns its reply; an error reply is an error.
func (c *client) do(args ...string) (resp.Value, error) {
	c.add(args...)
	if err := c.flush(); err != nil {
		return resp.Value{}, err
	}
	v, err := wire.ReadValue(c.in)
	if err == nil && v.Err() != nil {
		err = fmt.Errorf("%s: %w", args[0], v.Err())
	}
	return v, err
}

// read reads one reply.
func (c *client) read() (resp.Value, error) { return wire.ReadValue(c.in) }

// skip reads n replies and returns the first error reply as an error.
func (c *client) skip(n int) error {
	for range n {
		msg, err := SkipReply(c.in)
		if err == nil && msg != "" {
			err = resp.ReplyError(msg)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expired returns how many keys and sub-keys the server says it has reclaimed. DBSIZE is
// not enough: a server with exact counts leaves expired keys out before it has reclaimed
// them.
func (c *client) expired() (n int, err error) {
	v, err := c.do("INFO", "stats")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(v.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "expired_keys" || name == "expired_subkeys" {
			i, err := strconv.Atoi(value)
			if err != nil {
				return 0, fmt.Errorf("INFO stats: %q", line)
			}
			n += i
		}
	}
	return n, nil
}

// flushable returns an error if the server has keys and the user has not agreed to lose
// them.
func (c *client) flushable(agreed bool) error {
	v, err := c.do("DBSIZE")
	if err != nil {
		return err
	}
	if v.Int > 0 && !agreed {
		return fmt.Errorf("the server has %d keys, and this test deletes all keys first: use an empty server, or --flush", v.Int)
	}
	_, err = c.do("FLUSHALL")
	return err
}

// emptied returns a client of a server that is flushable, and empty; end closes it, as
// the end of ctx does.
func (t Target) emptied(ctx context.Context, agreed bool) (c *client, end func(), err error) {
	if c, err = t.client(ctx); err != nil {
		return nil, nil, err
	}
	undo := c.closeWith(ctx)
	end = func() {
		undo()
		c.conn.Close()
	}
	if err := c.flushable(agreed); err != nil {
		end()
		return nil, nil, err
	}
	return c, end, nil
}

// CPUTime returns the CPU time of a process; 0 for no process.
func CPUTime(pid int) (time.Duration, error) {
	if pid == 0 {
		return 0, nil
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("the server's CPU time: %w", err)
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name before it may contain spaces
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, fmt.Errorf("the server's CPU time: /proc/%d/stat has %d fields, want at least 13: %s", pid, len(f), b)
	}
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("the server's CPU time: /proc/%d/stat has no numbers there: %s", pid, b)
	}
	const tick = time.Second / 100 // of USER_HZ, the same on every Linux
	return time.Duration(user+system) * tick, nil
}

// residentMiB returns the resident memory of a process, 0 if it is not known.
func residentMiB(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kib, _ := strconv.Atoi(f[1])
			return kib >> 10
		}
	}
	return 0
}
