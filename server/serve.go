// Package server runs servers that speak the Redis protocol within a Go program.
//
//	Start   a server of its own, as `ebb serve` runs it: files, users, replicas, metrics
//	Serve   serves an engine that the program has embedded
//
// Both use internal/transport, Serve by way of the engine, and Start is internal/instance
// behind a configuration whose fields are Go values. Start reading at Start.
package server

import (
	"context"
	"net"
)

// Host is an embedded engine that a server can serve: the result of ebb.EngineOf.
type Host interface {
	// Serve serves a listener, which it closes, until ctx ends: see embed.Engine.Serve.
	Serve(ctx context.Context, ln net.Listener) error
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
	return h.Serve(ctx, ln)
}
