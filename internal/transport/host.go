package transport

import (
	"context"
	"net"

	"github.com/ebbdb/ebb/internal/reactor"
)

// Host is an embedded engine that lets clients in.
type Host interface {
	// NewSession returns what a connection runs.
	NewSession(reactor.Conn) reactor.Session
	// Attach notes that a server begins. The host calls stop, from any goroutine, when it
	// is about to close, and then waits for detach, which the server calls once no session
	// is left.
	Attach(stop func()) (detach func(), err error)
}

// ServeHost serves the clients of a listener with the sessions of a host: see embed.Engine.Serve.
func ServeHost(ctx context.Context, ln net.Listener, h Host) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	detach, err := h.Attach(stop)
	if err != nil {
		_ = ln.Close()
		return err
	}
	defer detach()
	return ServeSessions(ctx, ln, Options{NewSession: h.NewSession, Loops: 1})
}
