package cli

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// pipe sends raw protocol from standard input as fast as the server reads it, and counts
// the replies. It ends with an ECHO of a random text; its reply shows that the server has
// handled everything before it. The exit status is 1 if a reply was an error or replies
// are missing.
func (c *client) pipe() int {
	p := piping{c: c, mark: fmt.Sprintf("%020d", rand.Uint64())}
	done := make(chan error, 1)
	go func() { done <- p.read() }()

	err := p.feed()
	if err == nil {
		fmt.Fprintln(c.env.Out, "All data transferred. Waiting for the last reply...")
		p.fed.Store(true)
		p.extend()
	} else {
		c.conn.close() // so that read ends
	}
	if readErr := <-done; readErr != nil {
		err = readErr
	}
	var ne net.Error
	switch {
	case err == nil:
		fmt.Fprintln(c.env.Out, "Last reply received from server.")
	case errors.As(err, &ne) && ne.Timeout():
		fmt.Fprintf(c.env.Err, "No replies for %g seconds: exiting.\n", c.opt.PipeTimeout.Seconds())
		p.errors++
	default:
		fmt.Fprintln(c.env.Err, "Error:", describe(err))
		p.errors++
	}
	fmt.Fprintf(c.env.Out, "errors: %d, replies: %d\n", p.errors, p.replies)
	if p.errors > 0 {
		return 1
	}
	return 0
}

// piping is one run of --pipe: one goroutine feeds while another reads.
type piping struct {
	c       *client
	mark    string
	fed     atomic.Bool // all is sent: the timeout counts
	replies int         // of read's goroutine until it ends
	errors  int
}

// feed copies standard input to the server and then sends the mark. The line end before
// the mark completes an inline command that lacks its own; it is an empty command
// otherwise, which has no reply.
func (p *piping) feed() error {
	if _, err := io.Copy(p.c.conn.nc, p.c.env.In); err != nil {
		return err
	}
	_, err := p.c.conn.nc.Write(wire.AppendCommand([]byte("\r\n"), "ECHO", p.mark))
	return err
}

// read counts replies until the mark returns.
func (p *piping) read() error {
	for {
		v, err := p.c.conn.recv()
		switch {
		case err != nil:
			return err
		case v.Kind == resp.KindBulk && v.Str == p.mark:
			return nil
		case v.Kind == resp.KindError:
			p.errors++
			fmt.Fprintln(p.c.env.Err, v.Str)
		}
		p.replies++
		if p.fed.Load() && p.c.conn.r.Buffered() == 0 {
			p.extend()
		}
	}
}

// extend restarts the wait for the next reply.
func (p *piping) extend() {
	if d := p.c.opt.PipeTimeout; d > 0 {
		_ = p.c.conn.nc.SetReadDeadline(time.Now().Add(d))
	}
}
