package replication

import (
	"context"
	"log/slog"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/reactor"
)

// Options configure a Node. All fields are required.
type Options struct {
	DB     *engine.DB
	Config *config.Set
	Logger *slog.Logger
	Host   Host
	// Version is written into snapshots as redis-ver.
	Version string
}

// Host is the server around a Node. Its methods are safe for concurrent use.
type Host interface {
	// SetGate makes the server refuse commands for a reason, or ends that. It does not
	// block and takes no shard.
	SetGate(g Gate, closed bool)
	// PauseWrites holds back the writes of clients while a FAILOVER is under way, or
	// ends that. It does not end a CLIENT PAUSE.
	PauseWrites(on bool)
	// Paused reports whether AwaitPause would wait. It costs one load of a word.
	Paused() bool
	// AwaitPause waits while CLIENT PAUSE holds back writes: it holds back the master's stream too. Its error is that of
	// ctx.
	AwaitPause(ctx context.Context) error
	// Demoted ends commands that wait for an event that only a master has, such as a pushed element. tx holds all
	// shards.
	Demoted(tx *engine.Tx)
	// NewApplier returns a session that runs the stream which arrives on conn.
	NewApplier(conn reactor.Conn) Applier
	// Keeper returns the durable.Keeper of the data's files; nil before there is one.
	Keeper() *durable.Keeper
	// Port returns the TCP port of the server.
	Port() int
	// Shutdown starts the shutdown of the server and returns at once. It reports false if the program has set no
	// function for that.
	Shutdown() bool

	// Functions returns the code of all libraries of functions.
	Functions() [][]byte
	// LoadFunction loads one library, and replaces one of the same name.
	LoadFunction(code []byte) error
	// DropFunctions forgets all libraries.
	DropFunctions()
	// StageFunctions returns an empty set of libraries that no client can call. Loads
	// end with ctx.
	StageFunctions(ctx context.Context) StagedFunctions
}

// StagedFunctions are libraries that arrive while clients still call the old ones.
type StagedFunctions interface {
	// Load adds a library.
	Load(code []byte) error
	// Install replaces all libraries of the server, or changes nothing and returns an
	// error. All shards are locked.
	Install() error
}

// Gate is a reason for which the server refuses commands.
type Gate uint8

// The gates that replication closes.
const (
	GateReadOnly   Gate = iota // the server is a replica that clients must not write to
	GateStale                  // the server is a replica without its master's stream
	GateNoReplicas             // fewer good replicas than min-replicas-to-write
	GateLoading                // a full synchronisation replaces the data
)

// Applier runs commands of a master's stream: a session without the limits, gates and
// permissions of a client. Active expiration is off and no command is logged while a
// command runs. One goroutine uses it.
//
// The errors of Resolve, Lock, LockAll and Run are error replies: their text begins with
// a code.
type Applier interface {
	// Tx returns the session's transaction.
	Tx() *engine.Tx
	// Select chooses the database of the commands that follow.
	Select(db int)
	// Resolve finds the command of a request. The result refers to args. An error means
	// that a master does not replicate such a command.
	Resolve(args [][]byte) (Command, error)
	// AppendKeys appends the keys that a command may change. all reports that it may also change keys that it does
	// not name.
	AppendKeys(to []Touched, c Command) (_ []Touched, all bool)
	// Lock begins a transaction with the keys of a command, or with all shards if it names none.
	Lock(c Command) error
	// LockAll begins a transaction with the keys of several commands.
	LockAll(queue []Command) error
	// Run runs a command in the transaction that has begun. queued reports that it stands in a MULTI.
	Run(c Command, queued bool) error
	// Settle adds the commands since the last call, and the bytes that were read, to the
	// server's statistics.
	Settle(read int)
	// Panicked logs a panic of a command and gives up its transaction. The deferred function
	// that has recovered the panic must call it, so that the log has the stack.
	Panicked(what any)
	// Close ends the session.
	Close()
}

// Command is a request of a master's stream that an Applier has resolved.
type Command struct {
	Args [][]byte
	Kind CommandKind
	// Scripts reports that the command may fail although it has written.
	Scripts bool
	// Own is the Applier's own data about the command, for Lock and Run.
	Own any
}

// CommandKind decides what the Node does with a command.
type CommandKind uint8

// The kinds of commands; 0 is any other command, which runs in a transaction.
const (
	KindPing    CommandKind = iota + 1 // PING: counts in the offset
	KindSelect                         // SELECT
	KindMessage                        // PUBLISH, SPUBLISH
	KindExec                           // EXEC or DISCARD without MULTI
)

// Touched is a key that a command may change.
type Touched struct {
	DB  int
	Key []byte
}
