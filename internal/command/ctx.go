package command

import (
	"errors"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

// Ctx is what a handler gets: the request, the place for its reply, and the
// transaction in which it reads and writes. It is valid during the call; so are
// the argument bytes.
type Ctx struct {
	// Args is the request, the command's name first; a subcommand's own name
	// second.
	Args [][]byte
	// Out takes the reply: exactly one, unless the handler returns an error
	// before it wrote anything. What it wrote before an error is taken back.
	Out *resp.Writer
	// Tx holds the shards of the command's keys, at one instant. A command
	// without keys finds no shard locked in it.
	Tx *engine.Tx
	// Spec is the command; Table the one it was found in.
	Spec    *Spec
	Table   *Table
	Session *Session
	Service *Service

	keys   []KeyRef
	noWait bool      // a command that would wait does not
	waiter *waiter   // has waited, and is run again because a key has changed
	ready  [1][]byte // that key
}

// ErrBeside is what a handler returns, before it wrote or changed anything, to
// be run again beside the network loops because it will take long.
var ErrBeside = errors.New("runs beside the loops")

// besideBytes is how many bytes a command may walk over on a network loop: at
// memory speed that is about 100 us, the longest that others should wait.
const besideBytes = 1 << 20

// Long returns ErrBeside where the command is about to walk over n bytes on a
// network loop, and that is more than others should wait for.
func (c *Ctx) Long(n int) error {
	if n > besideBytes && c.waiter == nil && c.Session.onLoop() {
		return ErrBeside
	}
	return nil
}

// Now is the command's instant in microseconds since 1970.
func (c *Ctx) Now() int64 {
	if c.Tx != nil && c.Tx.Begun() {
		return c.Tx.Now()
	}
	return c.Service.DB.Clock().Micros()
}
