package instance

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/transport"
)

// stressLoops is the number of network loops.
const stressLoops = 2

// stressed is a server on a unix socket, with two loops, on the system's clock. The stress tests inspect its engine,
// and a replica that applies its effects.
type stressed struct {
	t       *testing.T
	db      *engine.DB
	svc     *session.Service
	srv     *transport.Server
	path    string
	replica *modeltest.Replica
}

func newStressed(t *testing.T, options ...string) *stressed {
	s := &stressed{t: t, path: realserver.Socket(t)}
	cfg, err := config.Load(append(options, "--port", "0"), nil)
	if err != nil {
		t.Fatal(err)
	}
	hooks := &session.Hooks{}
	s.db = engine.Open(engine.Options{Hooks: hooks, Shards: 4, RecordEffects: true, Reclaimers: stressLoops})
	if s.svc, err = session.NewService(session.Options{DB: s.db, Table: servercmd.Table, Config: cfg, Loops: stressLoops}, hooks); err != nil {
		t.Fatal(err)
	}
	if s.replica, err = modeltest.NewReplica(); err != nil {
		t.Fatal(err)
	}
	var runs [stressLoops]func() time.Duration
	ready := make(chan struct{})
	for i := range runs {
		r := s.db.Reclaimer(i, func() {
			<-ready
			s.srv.Nudge(i)
		})
		runs[i] = func() time.Duration { return s.svc.Reclaim(r.Run) }
	}
	s.srv, err = transport.New(transport.Options{
		NewSession: func(c transport.Conn) transport.Session { return s.svc.NewSession(c) },
		Unix:       s.path, Loops: stressLoops,
		Idle: func(loop int) time.Duration { return runs[loop]() },
		Now:  func() int64 { return s.db.Clock().Micros() / 1000 },
	})
	if err != nil {
		t.Fatal(err)
	}
	close(ready)
	if err = s.svc.Open(s.srv); err == nil {
		err = s.srv.ListenAll()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}
