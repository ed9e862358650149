package durable

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/oplog"
)

// player replays the commands of append-only files:
//
//	command ─ one key ─▶ batch of the key's worker ─▶ worker: Applier
//	        └ others ──▶ alone, after all workers have finished their batches
//
// Commands of one key, and of keys with the same hash tag, run in the file's order. Commands of
// other keys run at the same time, in any order. The result is the same, because each command
// touches only its own key. The commands of a transaction run one by one, because no client reads
// in between.
type player struct {
	o        Options
	ctx      context.Context
	commands *atomic.Int64
	db       int // the selected database in the file
	alone    *worker
	workers  []*worker
	seed     maphash.Seed
	failed   atomic.Pointer[error]
	busy     bool // workers have unfinished commands
}

// worker runs commands with its own session.
type worker struct {
	p     *player
	apply Applier
	db    int // the selected database of the session
	batch []played
	next  chan []played
	idle  chan []played // empty batches for reuse
	doing sync.WaitGroup
	ended sync.WaitGroup
}

// played is a command, its database, and the position of its end.
type played struct {
	db   int
	args [][]byte
	end  oplog.Place
}

const (
	playBatch = 128 // the number of commands in a batch
	playAhead = 16  // batches that wait for a worker
)

// newPlayer returns a player with a worker for each processor. The caller closes it.
func newPlayer(ctx context.Context, o Options, commands *atomic.Int64) *player {
	p := &player{o: o, ctx: ctx, commands: commands, seed: maphash.MakeSeed()}
	p.alone = &worker{p: p, apply: o.NewApplier()}
	if n := runtime.GOMAXPROCS(0); n > 1 && o.Route != nil {
		for range n {
			w := &worker{p: p, apply: o.NewApplier(), next: make(chan []played, playAhead), idle: make(chan []played, playAhead+2)}
			w.ended.Go(w.run)
			p.workers = append(p.workers, w)
		}
	}
	return p
}

// command runs a command, now or later. It keeps the arguments. It returns the first error of any
// command so far.
func (p *player) command(args [][]byte, end oplog.Place) error {
	if failed := p.failed.Load(); failed != nil {
		return *failed
	}
	if n := p.commands.Add(1); n%playBatch == 0 && p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	switch name := args[0]; {
	case len(args) == 2 && is(name, "SELECT"):
		n, ok := numeral.ParseInt(args[1])
		if !ok || n < 0 {
			return fmt.Errorf("SELECT %q: the argument is not a number of a database", args[1])
		}
		if have := p.o.DB.Databases(); n >= int64(have) {
			return fmt.Errorf("the append-only file selects database %d, but `databases` is %d; start with at least %d", n, have, n+1)
		}
		p.db = int(n)
		return nil
	case len(args) == 1 && (is(name, "MULTI") || is(name, "EXEC")):
		return nil
	}
	c := played{p.db, args, end}
	if len(p.workers) > 0 {
		if key, one := p.o.Route(args); one {
			return p.worker(key).take(c)
		}
		p.barrier()
		if failed := p.failed.Load(); failed != nil {
			return *failed
		}
	}
	return p.alone.do(c)
}

func is(name []byte, word string) bool {
	return len(name) == len(word) && strings.EqualFold(string(name), word)
}

// worker returns the worker for a key. Keys with the same hash tag have the same worker, because
// they have the same shard.
func (p *player) worker(key []byte) *worker {
	if i := bytes.IndexByte(key, '{'); i >= 0 {
		if j := bytes.IndexByte(key[i+1:], '}'); j > 0 {
			key = key[i+1 : i+1+j]
		}
	}
	return p.workers[maphash.Bytes(p.seed, key)%uint64(len(p.workers))]
}

// take adds a command to the worker's batch, and passes the batch to the worker when it is full.
func (w *worker) take(c played) error {
	if w.batch == nil {
		select {
		case w.batch = <-w.idle:
		default:
			w.batch = make([]played, 0, playBatch)
		}
	}
	w.p.busy = true
	if w.batch = append(w.batch, c); len(w.batch) == playBatch {
		w.flush()
	}
	return nil
}

func (w *worker) flush() {
	if len(w.batch) > 0 {
		w.doing.Add(1)
		w.next <- w.batch
		w.batch = nil
	}
}

// barrier waits until the workers have run all their commands.
func (p *player) barrier() {
	if !p.busy {
		return
	}
	for _, w := range p.workers {
		w.flush()
	}
	for _, w := range p.workers {
		w.doing.Wait()
	}
	p.busy = false
}

// run runs batches until there are no more. After an error it receives batches and does not run
// them.
func (w *worker) run() {
	for batch := range w.next {
		for _, c := range batch {
			if w.p.failed.Load() != nil {
				break
			}
			if err := w.do(c); err != nil {
				w.p.failed.CompareAndSwap(nil, &err)
			}
		}
		clear(batch)
		select {
		case w.idle <- batch[:0]:
		default:
		}
		w.doing.Done()
	}
}

// do runs one command in the worker's session.
func (w *worker) do(c played) error {
	if w.db != c.db {
		if err := w.apply.Apply([][]byte{[]byte("SELECT"), fmt.Append(nil, c.db)}); err != nil {
			return err
		}
		w.db = c.db
	}
	if err := w.apply.Apply(c.args); err != nil {
		return fmt.Errorf("the command %s of database %d was refused: %w (%s)", shown(c.args), c.db, err, c.end)
	}
	return nil
}

// shown formats a command for an error.
func shown(args [][]byte) string {
	const limit = 4
	more := ""
	if len(args) > limit {
		args, more = args[:limit], " ..."
	}
	for i, a := range args {
		if len(a) > 64 {
			args[i] = a[:64:64]
		}
	}
	return fmt.Sprintf("%q%s", args, more)
}

// close ends the workers after they have run all commands. It returns the first error of any
// command.
func (p *player) close() error {
	p.barrier()
	for _, w := range p.workers {
		close(w.next)
		w.ended.Wait()
		w.apply.Close()
	}
	p.alone.apply.Close()
	if failed := p.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}
