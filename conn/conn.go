package conn

import (
	"context"
	"fmt"
	"sync"

	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/drivers"
	"github.com/ebbdb/ebb/resp"
)

// Value is a reply. A status and a string are both text: use AsString instead of Kind, because
// the client library of a remote backend does not tell them apart. The same holds for arrays
// and sets, and for maps, whose pairs a remote backend returns in no particular order: use
// Pairs and Get.
type Value = resp.Value

// Conn is an open backend. Its methods are safe for concurrent use. A call borrows a
// connection or a session, if it needs one. The caller must Close the Conn. In a bubble of
// testing/synctest, use a Conn that was opened in it.
type Conn struct {
	d      Driver
	handle        // the driver's direct calls; nil for a view that waits
	of     *Conn  // the Conn that this is a view of; nil if it is not a view
	wait   string // the replicas that a view waits for, for String
	prefix string // of the names of objects
	shown  string // the prefix, for String; "" if the driver shows it

	mu     sync.Mutex // guards what follows
	subs   map[*Subscription]struct{}
	closed bool
}

// handle has the direct calls, which the objects of the toolkit get with direct.Of.
type handle = direct.Handle

// New returns a Conn over a driver, which Close closes.
func New(d Driver) *Conn {
	c := &Conn{d: d, handle: direct.NewHandle(d), prefix: inherited(d)}
	return c
}

// Capabilities describes the features of a backend beyond Redis's commands.
type Capabilities struct {
	Native   bool   // ebb: the server has ebb's own commands (leases, limiters, ...)
	Embedded bool   // the engine runs in this process
	Server   string // "ebb", "valkey", or "redis" for any other server; "": not known yet (see Wrap)
	Version  string // Valkey's version, or the version of Redis that the server has or emulates

	HashFieldTTL  bool // HPEXPIRE and related commands: deadlines of hash fields
	Functions     bool // FUNCTION and FCALL
	ShardedPubSub bool // SSUBSCRIBE and SPUBLISH
	Cluster       bool // keys of one command, script or transaction must share a hash slot
}

// Do runs one command and returns its reply. Its arguments are strings, byte slices, numbers, booleans (1 and
// 0) or values that marshal themselves to text or bytes. An error reply is returned both as the error, a
// ReplyError, and in the Value.
//
// Embedded, it costs a function call. Remote, it ends when the context's
// deadline passes; a cancellation without one is noticed when the reply comes
// or the read timeout of the URL passes (read_timeout, 3 s by default): use
// Block for commands that wait. Commands that change a connection's state are
// refused with ErrStateful.
func (c *Conn) Do(ctx context.Context, args ...any) (Value, error) {
	if err := checkCommand(args); err != nil {
		return Value{}, err
	}
	if ctx.Err() != nil {
		return Value{}, drivers.Ended(ctx, commandName(args))
	}
	v, err := c.d.Do(ctx, args)
	if err != nil {
		return v, err
	}
	return v, v.Err()
}

// Block does the work of Do for a command that waits at the server. The command has a connection of its own,
// and waits for its own time limit. Block returns soon after the context ends, even if the context has no
// deadline: with the reply, if the command had taken an element by then. A server that does not close the
// connection within 250 ms may take an element that is then lost. So may a server behind a proxy that closes
// both sides of a connection when one has ended. If the server does not reply, Block returns ErrUnavailable:
// when the reply is late by the read timeout, or, for a command without a time limit, when the server has not
// replied to PING twice in a row.
func (c *Conn) Block(ctx context.Context, args ...any) (Value, error) {
	if err := checkCommand(args); err != nil {
		return Value{}, err
	}
	if ctx.Err() != nil {
		return Value{}, drivers.Ended(ctx, commandName(args))
	}
	v, err := c.d.Block(ctx, args)
	if err != nil {
		return v, err
	}
	return v, v.Err()
}

// Pipeline sends the commands of a batch together, and returns their replies in order. The
// server runs them one after the other; commands of other clients may run in between. An error
// reply is in its Value, and later commands still run. An error of Pipeline means that the
// replies are unknown; if it is neither ErrUnavailable nor a context's error, no command has
// run.
func (c *Conn) Pipeline(ctx context.Context, b *Batch) ([]Value, error) {
	cmds, err := b.commands(ctx, "pipeline")
	if err != nil || len(cmds) == 0 {
		return nil, err
	}
	return c.d.Pipeline(ctx, cmds)
}

// Tx runs the commands of a batch as one transaction (MULTI and EXEC), and returns their
// replies in order. If the server refuses a command before the transaction runs, no command
// runs, and the error is a ReplyError with the code EXECABORT. If a command fails while the
// transaction runs, its Value is the error, and the other commands take effect.
func (c *Conn) Tx(ctx context.Context, b *Batch) ([]Value, error) {
	cmds, err := b.commands(ctx, "transaction")
	if err != nil || len(cmds) == 0 {
		return nil, err
	}
	return c.d.Tx(ctx, cmds)
}

// Watch calls fn with a connection that watches keys. fn reads with Watched.Do, decides, and
// writes with Watched.Tx. Tx returns ErrConflict and does nothing if one of the keys has
// changed. Watch returns fn's error. It does not try again.
func (c *Conn) Watch(ctx context.Context, fn func(*Watched) error, keys ...string) error {
	if len(keys) == 0 {
		return fmt.Errorf("%w: Watch needs keys", ErrArgument)
	}
	if ctx.Err() != nil {
		return drivers.Ended(ctx, "WATCH")
	}
	return c.d.Watch(ctx, fn, keys)
}

// Capabilities describes the backend and the features that it supports.
func (c *Conn) Capabilities() Capabilities { return c.d.Capabilities() }

// Driver returns the Driver of the Conn; for a view, that of its Conn. Use it for features
// without a method of Conn: embed.Of finds an engine with it. Send requests through the Conn.
func (c *Conn) Driver() Driver {
	if c.of != nil {
		return c.of.d
	}
	return c.d
}

// String describes the connection, without its password: "mem://sessions (embedded, shared)".
func (c *Conn) String() string {
	return c.Driver().String() + c.wait + c.shown
}

// Close ends the subscriptions and waits for the running calls. The Close of the last Conn of
// an embedded engine also closes the engine, its data and its listeners. Watch's function must
// not call it. Further calls do nothing.
func (c *Conn) Close() error {
	if c.of != nil {
		return nil
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	subs := c.subs
	c.subs = nil
	c.mu.Unlock()
	for s := range subs {
		_ = s.f.Close()
	}
	err := c.d.Close()
	direct.Idle(c)
	return err
}

// Batch is a list of commands for Pipeline and Tx. The zero value is an empty batch. One
// goroutine at a time may use it. It may be used again.
type Batch struct {
	cmds [][]any
}

// Do adds a command. Pipeline and Tx check the arguments.
func (b *Batch) Do(args ...any) { b.cmds = append(b.cmds, args) }

// Len returns the number of commands.
func (b *Batch) Len() int { return len(b.cmds) }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.cmds)
	b.cmds = b.cmds[:0]
}

// commands returns the commands, or an error if one of them may not run.
func (b *Batch) commands(ctx context.Context, what string) ([][]any, error) {
	for _, args := range b.cmds {
		if err := checkCommand(args); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, drivers.Ended(ctx, what)
	}
	return b.cmds, nil
}

// Watched is the connection that Watch passes to its function. Only that function may use it,
// until it returns.
type Watched struct {
	runDo func(ctx context.Context, args []any) (Value, error)
	runTx func(ctx context.Context, cmds [][]any) ([]Value, error)
}

// Do runs a command, as Conn.Do does, on the watching connection.
func (w *Watched) Do(ctx context.Context, args ...any) (Value, error) {
	if err := checkCommand(args); err != nil {
		return Value{}, err
	}
	if ctx.Err() != nil {
		return Value{}, drivers.Ended(ctx, commandName(args))
	}
	v, err := w.runDo(ctx, args)
	if err != nil {
		return v, err
	}
	return v, v.Err()
}

// Tx runs a batch as Conn.Tx does if no watched key has changed. Otherwise it runs nothing and returns
// ErrConflict. In both cases the connection no longer watches the keys.
func (w *Watched) Tx(ctx context.Context, b *Batch) ([]Value, error) {
	cmds, err := b.commands(ctx, "transaction")
	if err != nil || len(cmds) == 0 {
		return nil, err
	}
	return w.runTx(ctx, cmds)
}
