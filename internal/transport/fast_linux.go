package transport

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebbdb/ebb/internal/reactor"
)

// fastPath serves listeners with the event loops.
type fastPath struct {
	r       *reactor.Reactor
	backlog int
}

func newFastPath(o *Options, gate *reactor.Gate) (*fastPath, error) {
	r, err := reactor.New(reactor.Config{
		NewSession: o.NewSession,
		Loops:      o.Loops,
		Gate:       gate,
		Refusal:    o.Refusal,
		KeepAlive:  o.KeepAlive,
		HighWater:  o.HighWater,
		Logger:     o.Logger,
		Idle:       o.Idle,
		Settle:     o.Settle,
		Now:        o.Now,
	})
	if err != nil {
		return nil, err
	}
	return &fastPath{r: r, backlog: o.Backlog}, nil
}

// add moves ln's socket to the event loops and closes ln.
func (f *fastPath) add(ln net.Listener, network string) (stop func(), err error) {
	defer ln.Close()
	raw, err := ln.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, dupErr := -1, error(nil)
	if err := raw.Control(func(own uintptr) {
		fd, dupErr = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 3)
	}); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", ln.Addr(), dupErr)
	}
	if f.backlog > 0 {
		_ = unix.Listen(fd, f.backlog) // listen on a listening socket changes the backlog
	}
	l, err := f.r.AddListener(fd, network)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", ln.Addr(), err)
	}
	return l.Close, nil
}

func (f *fastPath) loops() int                         { return f.r.Loops() }
func (f *fastPath) nudge(loop int)                     { f.r.Nudge(loop) }
func (f *fastPath) setKeepAlive(d time.Duration)       { f.r.SetKeepAlive(d) }
func (f *fastPath) shutdown(ctx context.Context) error { return f.r.Shutdown(ctx) }
