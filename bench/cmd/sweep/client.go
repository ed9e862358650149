package main

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// client is a connection for one request at a time, or for pipelines by hand: fill out, flush, skip the replies.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

// dial returns a client of a server.
func dial(ctx context.Context, t loadgen.Target) (*client, error) {
	conn, in, err := t.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: in}, nil
}

// emptied returns a client of a server whose keys it has deleted; end closes it, as the end of ctx does. A server that
// has keys is an error unless the user has agreed to lose them.
func emptied(ctx context.Context, t loadgen.Target, agreed bool) (c *client, end func(), err error) {
	if c, err = dial(ctx, t); err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	end = func() {
		stop()
		_ = c.conn.Close()
	}
	v, err := c.do("DBSIZE")
	if err == nil && v.Int > 0 && !agreed {
		err = fmt.Errorf("the server has %d keys, and the sweep deletes all keys: use an empty server, or -flush", v.Int)
	}
	if err == nil {
		_, err = c.do("FLUSHALL")
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return c, end, nil
}

func (c *client) flush() error {
	_, err := c.conn.Write(c.out)
	c.out = c.out[:0]
	return err
}

// do sends a request and returns its reply; an error reply is an error.
func (c *client) do(args ...string) (resp.Value, error) {
	c.out = wire.AppendCommand(c.out, args...)
	if err := c.flush(); err != nil {
		return resp.Value{}, err
	}
	v, err := wire.ReadValue(c.in)
	if err == nil && v.Err() != nil {
		err = fmt.Errorf("%s: %w", args[0], v.Err())
	}
	return v, err
}

// skip reads n replies and returns the first error reply as an error.
func (c *client) skip(n int) error {
	for range n {
		msg, err := loadgen.SkipReply(c.in)
		if err == nil && msg != "" {
			err = resp.ReplyError(msg)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// usedCPU returns the CPU time of the server, as INFO says.
func (c *client) usedCPU() (used time.Duration, err error) {
	v, err := c.do("INFO", "cpu")
	if err != nil {
		return 0, err
	}
	found := 0
	for line := range strings.Lines(v.String()) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "used_cpu_sys" || name == "used_cpu_user" {
			s, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("INFO cpu: cannot read %q: %w", line, err)
			}
			used += time.Duration(s * float64(time.Second))
			found++
		}
	}
	if found != 2 {
		return 0, errors.New("INFO cpu has no used_cpu_sys and used_cpu_user")
	}
	return used, nil
}

// sha returns the name of a script for EVALSHA.
func sha(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// thousands formats a number with commas.
func thousands(f float64) string {
	s := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
