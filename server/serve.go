// Package server runs servers that speak the Redis protocol within a Go program.
//
//	Start   a server of its own, as `ebb serve` runs it: files, users, replicas, metrics
//	Serve   serves an engine that the program has embedded
//
// Both use internal/transport, and Start is internal/instance behind a configuration whose
// fields are Go values. Start reading at Start.
package server

import (
	"context"
	"net"

	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/transport"
)

// Host is an embedded engine that a server can serve: the result of ebb.EngineOf. Its
// methods are for this package; other packages do not implement it.
type Host interface {
	// NewSession returns the session that runs the commands of a connection.
	NewSession(reactor.Conn) reactor.Session
	// Attach registers a server with the engine. The host calls stop, from any goroutine,
	// when it is about to close, and then waits for detach, which is called once no session
	// is left.
	Attach(stop func()) (detach func(), err error)
}

// Serve serves an embedded engine to redis-cli or any other client:
//
//	ln, err := net.Listen("tcp", "127.0.0.1:6380")
//	err = server.Serve(ctx, ln, ebb.EngineOf(conn))
//
// It accepts connections from ln until ctx ends, ln fails or the engine is closed. It then
// closes ln, gives replies up to five seconds to be written, closes the connections, and
// returns nil, or the error of ln. ln can be any listener. There is no password: a client
// that reaches ln may read and write everything, so choose an address of this machine
// alone.
func Serve(ctx context.Context, ln net.Listener, h Host) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	detach, err := h.Attach(stop)
	if err != nil {
		_ = ln.Close()
		return err
	}
	defer detach()
	return transport.ServeSessions(ctx, ln, transport.Options{NewSession: h.NewSession, Loops: 1})
}
