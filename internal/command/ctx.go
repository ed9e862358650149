package command

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/wire"
)

// Ctx is the context of a handler: the request, the writer of its reply, and the transaction in
// which it reads and writes. A Ctx and the argument bytes are valid during the call.
type Ctx struct {
	// Args is the request, the command's name first; a subcommand's own name
	// second.
	Args [][]byte
	// Out takes the reply: exactly one, unless the handler returns an error
	// before it wrote anything. What it wrote before an error is taken back.
	Out *wire.Writer
	// Tx holds the shards of the command's keys, at one instant. A command
	// without keys finds no shard locked in it.
	Tx *engine.Tx
	// DB is the engine that Tx belongs to.
	DB *engine.DB
	// Spec is the command; Table the one it was found in.
	Spec  *Spec
	Table *Table
	// Host is the client that sent the request, and the server that runs it.
	Host Host
	// Waiting is set while a command that has waited is run again.
	Waiting *Waiting
	// NoWait says that a command that would wait replies at once instead, as it does in
	// a transaction and in a script.
	NoWait bool
	// keys and found are the positions of a request's keys, and the request that they belong to.
	keys  []KeyRef
	found keysFound
	// Scratch is memory for one value, which the next command uses again: see
	// KeepScratch.
	Scratch []byte
}

// keysFound identifies the request that Ctx.keys belongs to.
type keysFound struct {
	spec *Spec
	args *[]byte // the first argument
	n    int     // arguments
	err  error   // of the search
}

// KeysOf returns the keys of a request, and the error, as Spec.AppendKeys finds them. It
// looks for them once, for all that decide about a request one after the other: the user's
// rules, slots, locks and tracking. The slice is the Ctx's, until KeysOf is called for
// another request.
func (c *Ctx) KeysOf(spec *Spec, args [][]byte) ([]KeyRef, error) {
	f := &c.found
	if f.spec != spec || f.args != &args[0] || f.n != len(args) {
		c.keys, f.err = spec.AppendKeys(c.keys[:0], args)
		f.spec, f.args, f.n = spec, &args[0], len(args)
	}
	return c.keys, f.err
}

// ForgetKeys must be called before the arguments of a request are in memory in which those
// of another were.
func (c *Ctx) ForgetKeys() { c.found.spec = nil }

// Host is the client that sent a request and the server that runs it, as far as the
// commands on data need them. Package session implements it. The handler's goroutine
// calls the methods during the call.
type Host interface {
	// OnLoop reports whether the command runs on a network loop, which it must not hold up.
	// OthersRun reports whether it does so while other commands run in the background, which may
	// hold shards for long.
	OnLoop() bool
	OthersRun() bool
	// Replaying reports whether the request is an effect of a log or of a master.
	Replaying() bool
	// InScript reports whether a script sent the request.
	InScript() bool
	// NoTouch reports whether the client's commands leave access times as they are.
	NoTouch() bool
	// Clustered reports whether the server is a cluster of one node.
	Clustered() bool
	// Context ends when the server closes.
	Context() context.Context
	// Block puts the client into the lines of w.Keys. Handlers call Ctx.Block.
	Block(c *Ctx, w *Wait)
	// Outgrown reports whether a reply of n bytes is beyond the client's output limit. The
	// server then closes the connection.
	Outgrown(n int) bool
	// ReplyLent replies with v, which lies in the engine's memory under key, without a copy.
	// ReplyOwned replies with v, which belongs only to the reply. They write nothing and return
	// false if the connection needs a copy.
	ReplyLent(c *Ctx, key, v []byte) bool
	ReplyOwned(c *Ctx, v []byte) bool
	// Emptied reports to the server that the command has removed all keys of all databases.
	Emptied(tx *engine.Tx)
	// MayReadEveryKey reports whether the user may run the command and read every key:
	// SORT needs that for BY and GET, whose keys are not among its arguments.
	MayReadEveryKey(c *Ctx) bool
	// MayReadKeys returns a function that reports whether the user may read a key, for a reply that
	// names keys which are not arguments; nil means all keys. The function is valid during the
	// command.
	MayReadKeys(c *Ctx) func(key []byte) bool
	// MayName returns the error to reply if the user may not store a value that names
	// another key, into which the server will write on the value's behalf.
	MayName(c *Ctx, key []byte) error
	// MayWrite returns the error to reply if the user or the server does not permit a write to a key that
	// the command only reads.
	MayWrite(c *Ctx, key []byte) error
}

// ErrBackground is the error of a handler that will take long. The handler returns it before it
// writes or changes anything, and is run again in the background.
var ErrBackground = errors.New("runs in the background")

// LongBytes is the number of bytes that a command may walk over on a network loop: at memory speed that takes
// about 100 us, the longest time that other clients should wait.
const LongBytes = 1 << 20

// Long returns ErrBackground if the command is about to walk over n bytes on a network loop, and n
// is too large for that.
func (c *Ctx) Long(n int) error {
	if n > LongBytes && c.Waiting == nil && c.Host.OnLoop() {
		return ErrBackground
	}
	return nil
}

// WalkBytes is the cost of one byte of a large container in a walk over its items, in bytes of
// memory: the walk goes through a table, and each item is written by itself.
const WalkBytes = 8

// LongWalk does the work of Long for a command that walks over all items of a container.
func (c *Ctx) LongWalk(key []byte) error { return c.Long(c.Tx.ValueSize(key) * WalkBytes) }

// Now returns the command's instant in microseconds since 1970.
func (c *Ctx) Now() int64 {
	if c.Tx != nil && c.Tx.Begun() {
		return c.Tx.Now()
	}
	return c.DB.Clock().Micros()
}

// MayName implements engine.Namer for the user of the client.
func (c *Ctx) MayName(key []byte) error { return c.Host.MayName(c, key) }

// KeepScratch keeps a value's memory for the next command that copies one.
func (c *Ctx) KeepScratch(b []byte) {
	if cap(b) <= 1<<16 && b != nil {
		c.Scratch = b
	}
}

// ShareFrom is the size in bytes from which on a value is not copied into the output. To
// write a piece of its own costs two more system calls, about what it costs to copy 64 KiB
// twice.
const ShareFrom = 128 << 10

// BulkOfKey replies with a string, or a part of one, that lies in the engine's memory.
func (c *Ctx) BulkOfKey(key, v []byte) {
	if len(v) < ShareFrom || !c.Host.ReplyLent(c, key, v) {
		c.Out.Bulk(v)
	}
}

// BulkOfOwn replies with a long string that belongs only to the reply.
func (c *Ctx) BulkOfOwn(v []byte) {
	if len(v) < ShareFrom || !c.Host.ReplyOwned(c, v) {
		c.Out.Bulk(v)
	}
}
