package ebb

import "context"

// Driver is a backend that somebody else has written, over another client library
// for instance: Use makes a Conn of it. The commands it is given are not empty,
// and none changes the connection's state. A reply that is an error is a Value of
// that kind, with a nil error; an error means that there was no reply, and has
// ErrUnavailable, ErrClosed, ErrArgument or the context's error in its chain. A
// command that may have run must not be sent again. Methods are safe for
// concurrent use.
//
// A Driver that also has a method Engine() *Engine leads to an engine in this
// process, which Conn.Engine then returns. One that is an IntsDriver has a shorter way
// for most of what the toolkit's objects ask.
type Driver interface {
	// Do runs one command.
	Do(ctx context.Context, args []any) (Value, error)
	// Block is Do for a command that waits, and ends soon after ctx does.
	Block(ctx context.Context, args []any) (Value, error)
	// Pipeline runs commands one after the other; see Conn.Pipeline.
	Pipeline(ctx context.Context, cmds [][]any) ([]Value, error)
	// Tx runs commands as one; see Conn.Tx.
	Tx(ctx context.Context, cmds [][]any) ([]Value, error)
	// Watch calls fn with what NewWatched makes of a connection that watches keys;
	// see Conn.Watch.
	Watch(ctx context.Context, fn func(*Watched) error, keys []string) error
	// Subscribe returns when the server has confirmed the subscription.
	Subscribe(ctx context.Context, kind SubscribeKind, names []string) (Feed, error)
	// Capabilities is asked for often.
	Capabilities() Capabilities
	// String says how it runs, without a password.
	String() string
	// Close waits for the calls that are running.
	Close() error
}

// IntsDriver is a Driver that runs Conn.Ints and Conn.ScriptInts itself: else they go
// by Do, which costs some ten allocations more.
type IntsDriver interface {
	// Ints runs one command of texts that replies with integers, see IntsOf. In
	// contrast to Do it returns an error reply as the error, Value.Err. The words are
	// not changed any more.
	Ints(ctx context.Context, words []string) (Ints, error)
}

// Feed is a Driver's side of a subscription.
type Feed interface {
	// Next waits for a message; see Subscription.Next for its errors.
	Next(ctx context.Context) (Message, error)
	// Close may be called from any goroutine, and more than once; it ends a Next
	// that waits, with ErrClosed.
	Close() error
}

// SubscribeKind is what the names of a subscription are.
type SubscribeKind uint8

// The kinds of subscriptions.
const (
	Channels SubscribeKind = iota // SUBSCRIBE
	Patterns                      // PSUBSCRIBE
	Sharded                       // SSUBSCRIBE
)

// command is the kind's command.
func (k SubscribeKind) command() string {
	return [...]string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"}[k]
}

// Use returns a Conn over a driver, which Close closes.
func Use(d Driver) *Conn { return &Conn{b: drive(d)} }

// NewWatched returns what a Driver's Watch gives to its function: do runs one
// command on the connection that watches, and tx commands as one, or returns
// ErrConflict.
func NewWatched(do func(ctx context.Context, args []any) (Value, error), tx func(ctx context.Context, cmds [][]any) ([]Value, error)) *Watched {
	return &Watched{runDo: do, runTx: tx}
}

// ArgText returns the text of an argument as every backend sends it, for Drivers;
// ErrArgument for a type that has none. It allocates, but for strings.
func ArgText(a any) (string, error) { return argText(a) }

// CapabilitiesOf reads what a server is from two replies: the text of INFO server,
// which may be empty, and the reply to COMMAND INFO HPEXPIRE FCALL SSUBSCRIBE
// LOCK.ACQUIRE, which may be an error: a user may have the right to one and not to the
// other. The last of the four tells ebb where INFO does not.
func CapabilitiesOf(infoServer string, commands Value) Capabilities {
	caps := parseInfo(infoServer)
	e := commands.Elems
	has := func(i int) bool { return i < len(e) && len(e[i].Elems) > 0 }
	caps.HashFieldTTL, caps.Functions, caps.ShardedPubSub = has(0), has(1), has(2)
	if caps.Native = caps.Native || has(3); caps.Native {
		caps.Server, caps.HashFieldTTL, caps.Functions, caps.ShardedPubSub = "ebb", true, true, true
	}
	return caps
}

// driven is the backend of a driver.
type driven struct {
	d    Driver
	ints IntsDriver // d, if it is one
}

func drive(d Driver) driven {
	ints, _ := d.(IntsDriver)
	return driven{d, ints}
}

func (b driven) do(ctx context.Context, args []any) (Value, error)    { return b.d.Do(ctx, args) }
func (b driven) block(ctx context.Context, args []any) (Value, error) { return b.d.Block(ctx, args) }
func (b driven) pipeline(ctx context.Context, cmds [][]any) ([]Value, error) {
	return b.d.Pipeline(ctx, cmds)
}
func (b driven) tx(ctx context.Context, cmds [][]any) ([]Value, error) { return b.d.Tx(ctx, cmds) }
func (b driven) watch(ctx context.Context, fn func(*Watched) error, keys []string) error {
	return b.d.Watch(ctx, fn, keys)
}
func (b driven) subscribe(ctx context.Context, kind SubscribeKind, names []string) (feed, error) {
	f, err := b.d.Subscribe(ctx, kind, names)
	if err != nil {
		return nil, err
	}
	return drivenFeed{f}, nil
}
func (b driven) capabilities() Capabilities { return b.d.Capabilities() }
func (b driven) String() string             { return b.d.String() }
func (b driven) close() error               { return b.d.Close() }

func (b driven) engine() *Engine {
	if e, ok := b.d.(interface{ Engine() *Engine }); ok {
		return e.Engine()
	}
	return nil
}

type drivenFeed struct{ f Feed }

func (f drivenFeed) next(ctx context.Context) (Message, error) { return f.f.Next(ctx) }
func (f drivenFeed) close() error                              { return f.f.Close() }
