package modeltest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/transport"
)

// Instance is an engine on the system's clock, served on a port of 127.0.0.1 by
// two loops, whose effects are recorded. Close it.
type Instance struct {
	DB   *engine.DB
	Addr string

	svc *session.Service
	srv *transport.Server
}

// loops is the number of network loops that serve: two, so that connections meet on
// different ones.
const loops = 2

// Serve starts an instance.
func Serve() (*Instance, error) {
	cfg, err := config.Load([]string{"--enable-debug-command", "yes"}, nil)
	if err != nil {
		return nil, err
	}
	hooks := &session.Hooks{}
	in := &Instance{DB: engine.Open(engine.Options{Hooks: hooks, RecordEffects: true, Reclaimers: loops})}
	if in.svc, err = session.NewService(session.Options{DB: in.DB, Table: servercmd.Table, Config: cfg, Loops: loops}, hooks); err != nil {
		in.DB.Close()
		return nil, err
	}
	var srv atomic.Pointer[transport.Server]
	var reclaimers [loops]*engine.Reclaimer
	for i := range reclaimers {
		reclaimers[i] = in.DB.Reclaimer(i, func() {
			if s := srv.Load(); s != nil {
				s.Nudge(i)
			}
		})
	}
	in.srv, err = transport.Listen(transport.Options{
		NewSession: func(c transport.Conn) transport.Session { return in.svc.NewSession(c) },
		Addrs:      []string{"127.0.0.1:0"},
		Loops:      loops,
		Idle:       func(loop int) time.Duration { return reclaimers[loop].Run() },
		Now:        func() int64 { return in.DB.Clock().Micros() / 1000 },
	})
	if err != nil {
		in.svc.Close()
		in.DB.Close()
		return nil, fmt.Errorf("serving: %w", err)
	}
	srv.Store(in.srv)
	in.Addr = in.srv.Addrs()[0].String()
	return in, nil
}

// Close ends the connections, the service and the engine.
func (in *Instance) Close() {
	in.srv.Close()
	in.svc.Close()
	in.DB.Close()
}
