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

	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/resp"
)

// player runs the commands of append-only files again:
//
//	command ─ one key ─▶ batch of the key's worker ─▶ worker: Applier
//	        └ others ──▶ when all workers have done what they have, alone
//
// Commands of one key, and of keys with the same hash tag, run in the file's order;
// those of others at the same time, in any order: the result is the same, because each
// command touches its own key alone. The commands of a transaction run one by one: no client
// reads in between.
type player struct {
	o        Options
	ctx      context.Context
	commands *atomic.Int64
	db       int // selected in the file
	alone    *worker
	workers  []*worker
	seed     maphash.Seed
	failed   atomic.Pointer[error]
	busy     bool // workers have something to do
}

// worker runs commands with its own session.
type worker struct {
	p     *player
	apply Applier
	db    int // selected in the session
	batch []played
	next  chan []played
	idle  chan []played // batches to be filled again
	doing sync.WaitGroup
	ended sync.WaitGroup
}

// played is a command, its database, and where it ends.
type played struct {
	db   int
	args [][]byte
	end  oplog.Place
}

const (
	playBatch = 128 // commands that are handed over together
	playAhead = 16  // batches that wait for a worker
)

// newPlayer returns a player with a worker for each processor. Close it.
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

// command runs a command, now or soon. It keeps the arguments. Errors: the first
// of any command so far.
func (p *player) command(args [][]byte, end oplog.Place) error {
	if failed := p.failed.Load(); failed != nil {
		return *failed
	}
	if n := p.commands.Add(1); n%playBatch == 0 && p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	switch name := args[0]; {
	case len(args) == 2 && is(name, "SELECT"):
		n, ok := resp.ParseInt(args[1])
		if !ok || n < 0 || n >= int64(p.o.DB.Databases()) {
			return fmt.Errorf("SELECT %q: there is no such database: start with databases set as high as it was", args[1])
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

// worker returns the one for a key. Keys with the same hash tag have the same, as
// they have the same shard.
func (p *player) worker(key []byte) *worker {
	if i := bytes.IndexByte(key, '{'); i >= 0 {
		if j := bytes.IndexByte(key[i+1:], '}'); j > 0 {
			key = key[i+1 : i+1+j]
		}
	}
	return p.workers[maphash.Bytes(p.seed, key)%uint64(len(p.workers))]
}

// take adds a command to the worker's batch, and hands that over when it is full.
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

// barrier waits until the workers have done all they have.
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

// run runs batches until there are no more. After an error it only takes them.
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

// do runs one command.
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

// shown is a command for an error.
func shown(args [][]byte) string {
	const most = 4
	more := ""
	if len(args) > most {
		args, more = args[:most], " ..."
	}
	for i, a := range args {
		if len(a) > 64 {
			args[i] = a[:64:64]
		}
	}
	return fmt.Sprintf("%q%s", args, more)
}

// close ends the workers when they have done all. Errors: the first of any command.
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
