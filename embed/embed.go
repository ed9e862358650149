// Package embed is the engine in this process as a conn.Driver: data in memory, shared by
// name within the process or private, or with files.
//
//	Conn ── driver ── slot: a session and memory for arguments ── command ── engine ── (files)
//
// A call borrows a session, runs the command in the caller's goroutine, and gives the
// session back: no socket, no RESP. Frequent calls need no session: docs/design/direct.md. The
// driver is in internal/embedded. Start reading at Open.
package embed

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/embedded"
	"github.com/ebbdb/ebb/internal/kit"
)

// Options holds the settings that a URL cannot have. The zero value works.
type Options struct {
	// Clock is the engine's time; the system's if nil. An engine that is shared by
	// name has the clock of the call of Open that made it; another Clock is ebb.ErrArgument.
	Clock clock.Clock
	// Logger receives the engine's log: loading, files that cannot be written. If it is nil,
	// the engine logs nothing.
	Logger *slog.Logger
	// Prefix begins the names of all objects that are made with the Conn; see
	// conn.Conn.WithPrefix.
	Prefix string
}

// Open opens the engine that a mem:// or file:// URL names, as ebb.Open does. Two Options are ebb.ErrArgument.
func Open(ctx context.Context, rawURL string, opts ...Options) (*conn.Conn, error) {
	o, err := kit.Option(opts)
	if err != nil {
		return nil, fmt.Errorf("embed: open: %w", err)
	}
	if ctx.Err() != nil {
		return nil, driverutil.Ended(ctx, "open an engine")
	}
	return embedded.Open(ctx, rawURL, o.Prefix, embedded.Options{Clock: o.Clock, Logger: o.Logger})
}

// Of returns the engine behind a connection: an embedded one, or that of the server whose Server.Conn has
// returned it. It is nil for a remote one, and valid until Close. Connections over the same engine have the same Engine.
func Of(c *conn.Conn) *Engine {
	in := embedded.Of(c)
	if in == nil {
		return nil
	}
	return in.PublicOnce(func() any { return &Engine{in} }).(*Engine)
}

// Database returns the number of the database that a Conn of an engine uses; 0 for a remote
// one.
func Database(c *conn.Conn) int { return embedded.Database(c) }

// Engine is an engine in this process with its commands. One or more Conns use it, and the close
// of the last one closes it, unless it is a server's.
type Engine struct{ in *embedded.Engine }

// Conn returns a further Conn over the engine, in a database, which the caller closes. Errors: ErrRemote for the
// nil Engine of a remote connection, ErrClosed after the close of the engine's last Conn, ErrArgument
// for a database that does not exist.
func (e *Engine) Conn(db int) (*conn.Conn, error) {
	if e == nil {
		return nil, conn.ErrRemote
	}
	return e.in.Conn(db)
}

// Backup writes a snapshot, an RDB file of one instant, to w, while the engine is in use.
// ebb check reads it; a server loads it as its dump.rdb. On the nil Engine of a remote
// connection it fails with ErrRemote; use the program ebb backup there. Closing the last
// Conn ends Backup early, with an error.
func (e *Engine) Backup(ctx context.Context, w io.Writer) error {
	if e == nil {
		return conn.ErrRemote
	}
	return e.in.Service().Keeper().Backup(ctx, w)
}

// Sync returns when everything that was written before is on disk, with every value of
// fsync. For an engine without files, Sync returns nil at once.
func (e *Engine) Sync(ctx context.Context) error {
	if e == nil {
		return conn.ErrRemote
	}
	return e.in.Sync(ctx)
}

// Serve serves the engine to redis-cli or any other client:
//
//	ln, err := net.Listen("tcp", "127.0.0.1:6380")
//	err = ebb.EngineOf(conn).Serve(ctx, ln)
//
// It accepts connections from ln until ctx ends, ln fails or the engine is closed. It then
// closes ln, gives replies up to five seconds to be written, closes the connections, and
// returns nil, or the error of ln. ln can be any listener. There is no password: a client
// that reaches ln may read and write everything, so choose an address of this machine
// alone. It returns ErrClosed for a closed engine, and ErrRemote for the nil Engine of a
// remote connection.
func (e *Engine) Serve(ctx context.Context, ln net.Listener) error {
	var in *embedded.Engine
	if e != nil {
		in = e.in
	}
	return in.Serve(ctx, ln)
}
