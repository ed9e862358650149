package conn

import (
	"context"
	"time"
)

// Driver is a backend. Packages embed and goredis have one each, and a program may write its own over another
// client library, with the functions of package conn/driverutil. New makes a Conn of a Driver. The commands
// that a Driver gets are not empty, and none changes the connection's state. An error reply is a Value of
// that kind, with a nil error. An error means that there was no reply, and has ErrUnavailable, ErrClosed,
// ErrArgument or the context's error in its chain. A Driver must not send a command again that may have run.
// Its methods are safe for concurrent use.
//
// A Driver may have further methods: Conn.Replicated needs ReplicatedDriver, Conn.Track needs
// TrackingDriver, and a Driver that passes requests on to another Conn implements Wrapper.
type Driver interface {
	// Do runs one command.
	Do(ctx context.Context, args []any) (Value, error)
	// Block is Do for a command that waits, and ends soon after ctx does.
	Block(ctx context.Context, args []any) (Value, error)
	// Pipeline runs commands one after the other; see Conn.Pipeline.
	Pipeline(ctx context.Context, cmds [][]any) ([]Value, error)
	// Tx runs commands as one; see Conn.Tx.
	Tx(ctx context.Context, cmds [][]any) ([]Value, error)
	// Watch calls fn with the result of NewWatched for a connection that watches keys; see
	// Conn.Watch.
	Watch(ctx context.Context, fn func(*Watched) error, keys []string) error
	// Subscribe returns when the server has confirmed the subscription.
	Subscribe(ctx context.Context, kind SubscribeKind, names []string) (Feed, error)
	// Capabilities describes the backend and the features that it supports. It is called often and must be fast.
	Capabilities() Capabilities
	// String describes the backend, without a password.
	String() string
	// Close waits for the running calls.
	Close() error
}

// ReplicatedDriver is a Driver whose writes can wait for replicas. Conn.Replicated needs it.
type ReplicatedDriver interface {
	// Replicated returns a view of the Driver whose calls return when n replicas have received their writes. If
	// fewer replicas have them after within, a call returns its reply with ErrNotReplicated. Calls that only
	// read do not wait. The view shares all resources of the Driver; the Conn never closes it and never
	// subscribes with it.
	Replicated(n int, within time.Duration) Driver
}

// TrackingDriver is a Driver whose backend reports which keys have changed. Conn.Track needs it.
type TrackingDriver interface {
	// Track returns a Feed of the keys that begin with one of the prefixes, from the moment they
	// change; see Conn.Track. No prefix begins with another one. It returns errors.ErrUnsupported if the
	// backend cannot do that.
	Track(ctx context.Context, prefixes []string) (Feed, error)
}

// Wrapper is a Driver that passes its requests on to another Conn, for instance to measure or
// log them.
type Wrapper interface {
	// Unwrap returns the Conn behind the Driver.
	Unwrap() *Conn
}

// Find returns the first T among the Driver of a Conn and the Drivers that it wraps
// (Wrapper.Unwrap). A package uses it to find its own Driver.
func Find[T any](c *Conn) (found T, ok bool) {
	for c != nil {
		d := c.Driver()
		if found, ok = d.(T); ok {
			return found, true
		}
		w, wraps := d.(Wrapper)
		if !wraps {
			break
		}
		c = w.Unwrap()
	}
	return found, false
}

// Feed is the Driver's part of a subscription.
type Feed interface {
	// Next waits for a message; see Subscription.Next for its errors.
	Next(ctx context.Context) (Message, error)
	// Close may be called from any goroutine, and more than once; it ends a Next
	// that waits, with ErrClosed.
	Close() error
}

// SubscribeKind selects the kind of a subscription's names.
type SubscribeKind uint8

// The kinds of subscriptions.
const (
	Channels SubscribeKind = iota // SUBSCRIBE
	Patterns                      // PSUBSCRIBE
	Sharded                       // SSUBSCRIBE
)

// Command returns the command that subscribes: SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE.
func (k SubscribeKind) Command() string {
	return [...]string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"}[k]
}

// NewWatched returns the argument of the function of a Driver's Watch: do runs one command on the watching
// connection, and tx runs commands as one transaction, or returns ErrConflict.
func NewWatched(do func(ctx context.Context, args []any) (Value, error),
	tx func(ctx context.Context, cmds [][]any) ([]Value, error)) *Watched {
	return &Watched{runDo: do, runTx: tx}
}
