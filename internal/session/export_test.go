package session

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// TestTable is the Options.Table of this package's tests. Package servercmd imports this package, so TestMain
// of package session_test sets it.
var TestTable func(*config.Set) (*command.Table, error)

func testTable(c *config.Set) (*command.Table, error) { return TestTable(c) }

// EachGate calls f with each gate of the service and the function that closes or opens it.
func (s *Service) EachGate(f func(gate uint32, set func(closed bool))) {
	for _, g := range []gate{gateLoading, gateReadOnly, gateStale, gateDisk, gateNoReplicas, gateGroup} {
		f(uint32(g), func(closed bool) { s.gates.set(g, closed) })
	}
}

// quietConn is a connection that discards all notifications.
type quietConn struct{}

func (quietConn) Wake()                   {}
func (quietConn) Kill(error)              {}
func (quietConn) RemoteAddr() string      { return "127.0.0.1:1" }
func (quietConn) LocalAddr() string       { return "127.0.0.1:2" }
func (quietConn) Network() string         { return "tcp" }
func (quietConn) FD() int                 { return 3 }
func (quietConn) Loop() int               { return 0 }
func (quietConn) Buffered() (in, out int) { return 0, 0 }

var _ reactor.Conn = quietConn{}

// serviceWith is a service on a manual clock, configured by options.
func serviceWith(t *testing.T, options ...string) (*Service, *clock.Manual) {
	t.Helper()
	cfg, err := config.Load(options, nil)
	if err != nil {
		t.Fatal(err)
	}
	clock := clock.NewManual(time.Unix(1700000000, 0))
	hooks := &Hooks{}
	db := engine.Open(engine.Options{Clock: clock, Hooks: hooks})
	svc, err := NewService(Options{DB: db, Table: testTable, Config: cfg}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { svc.Close(); db.Close() })
	return svc, clock
}

// ask sends a request on a connection and returns the reply.
func ask(t *testing.T, s *Session, args ...string) string {
	t.Helper()
	_, out, _ := s.Serve(wire.AppendCommand(nil, args...), nil)
	return string(out)
}

// trackingService is a service on a running clock.
func trackingService(t *testing.T) *Service {
	hooks := &Hooks{}
	db := engine.Open(engine.Options{Hooks: hooks})
	svc, err := NewService(Options{DB: db, Table: testTable}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { svc.Close(); db.Close() })
	return svc
}

func do(s *Session, args ...string) resp.Value {
	b := make([][]byte, len(args))
	for i, a := range args {
		b[i] = []byte(a)
	}
	return s.Do(b...)
}
