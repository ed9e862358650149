package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
)

// With appendfsync always the server sends no reply before the writes that the reply depends on are
// synced.
//
//	Serve ── replies of a batch ──▶ synced already? ── yes ──▶ they leave
//	                                      │ no
//	                                      ▼
//	                 held; the session parks; Log wakes it when the sync is done,
//	                 which is one for all of them
//
// Where syncs are fast, a loop syncs all writes of its batch at the end of the batch (Settle), and
// its sessions continue before the loop looks for more requests. This wakes no goroutine, and all
// sessions that had a request in the batch share one sync.
//
// All that a command has read or written lies before the mark of its transaction in the stream. If
// the transaction of another session made the output (a command that was served, a message), that
// transaction may not have settled yet. A barrier then waits for all transactions that are under
// way, and after that the end of the stream is the mark.
//
// While the server cannot write the files, it refuses writes, and a client that has already written
// gets the error that the outcome of its write is not certain. Reads continue: they return the data
// in memory. The newest of these writes were not acknowledged to any client and may be lost in a
// crash.

// heldReplies is output that waits for the sync of the writes that it replies to.
type heldReplies struct {
	on      bool
	closing bool // the connection ends after it
	wrote   bool // it replies to a write
	out     []byte
	mark    int64    // the server may send it when the stream is synced up to here
	barrier *barrier // or when this is passed; nil: mark counts
	alarms  int64    // Log.Alarms when the session began to wait: each alarm wakes it
}

// Settle ends the batch of a network loop, which calls it. If a sync takes only microseconds,
// Settle syncs what the batch wrote and wakes the sessions that waited for it. Else the sync runs
// in the background. Settle reports whether there was anything to sync.
func (s *Service) Settle(loop int) (did bool) {
	l := s.stats[loop]
	if l.settles = true; !l.batch {
		return false
	}
	l.batch = false
	s.DB.Log().EndBatch()
	return true
}

// holdReplies holds output that the server may not send yet, and reports whether it does so.
// foreign means that transactions of other sessions have made a part of the output, served that
// another transaction has served the command.
func (c *connection) holdReplies(out []byte, foreign, served bool) bool {
	h, log := &c.held, c.log
	h.mark, h.barrier, h.wrote, h.alarms = c.mark, nil, c.wrote || served, log.Alarms()
	c.mark, c.wrote = 0, false
	if !h.wrote && log.Failure() != nil {
		return false
	}
	if foreign {
		h.barrier = c.host.beginBarrier(c.conn)
	} else if c.settled(h.mark) {
		return false
	}
	h.on, h.out = true, append(h.out[:0], out...)
	return true
}

// settled is Log.OnSettled for the session. Within a batch the loop syncs, and no other
// goroutine has to begin a sync.
func (c *connection) settled(mark int64) bool {
	log := c.log
	if c.stats.batch {
		return log.OnBatchSettled(mark, c.conn)
	}
	return log.OnSettled(mark, c.conn)
}

// upTo returns up to which mark the stream is to be synced before the held output may be sent; -1
// if it is not known yet.
func (h *heldReplies) upTo() int64 {
	if h.barrier != nil {
		return h.barrier.mark.Load()
	}
	return h.mark
}

// ready reports whether the held output may be sent.
func (c *connection) ready() bool {
	h, log := &c.held, c.log
	mark := h.upTo()
	if mark < 0 || log.Settled(mark) {
		return mark >= 0
	}
	if n := log.Alarms(); n != h.alarms { // an alarm has woken the session, and its cause may be over: it waits again
		h.alarms = n
		return c.settled(mark)
	}
	return false
}

// release appends the held output, if the server may send it. If the files fail, the server never
// sends replies to writes: the client gets an error, and the server closes the connection.
func (c *connection) release(out []byte) []byte {
	h, log := &c.held, c.log
	switch {
	case c.ready() || !log.Always() || !h.wrote && log.Failure() != nil:
		out = append(out, h.out...)
	case log.Failure() != nil:
		out = append(out, "-MISCONF Errors writing to the AOF file: "...)
		out = append(out, cleantext.Reply(log.Failure().Error())...)
		out = append(out, "; what came of the last commands is not certain\r\n"...)
		h.closing = true
	default:
		return out
	}
	h.on, h.barrier = false, nil
	if cap(h.out) > 1<<16 {
		h.out = nil
	}
	return out
}

// TakePushes implements reactor.Session.
func (c *Session) TakePushes(out []byte) []byte {
	if !c.held.on && !c.log.Holds().Any() {
		return c.takePushes(out)
	}
	if c.held.on {
		if out = c.release(out); c.held.on {
			return out
		}
	}
	before, waits := len(out), c.parked != nil
	c.mayHold = true
	out = c.takePushes(out)
	c.mayHold = false
	if len(out) > before && c.holdReplies(out[before:], true, waits) {
		return out[:before]
	}
	return out
}

// barrier is passed when the transactions that were under way at its start are synced.
type barrier struct {
	db   *engine.DB
	conn reactor.Conn
	mark atomic.Int64 // -1: not known yet
}

// beginBarrier implements connectionHost.
func (s *Service) beginBarrier(conn reactor.Conn) *barrier {
	b := &barrier{db: s.DB, conn: conn}
	b.mark.Store(-1)
	s.background.Go(b.pass)
	return b
}

func (b *barrier) pass() {
	b.db.Barrier()
	log := b.db.Log()
	mark := log.End()
	b.mark.Store(mark)
	if log.OnSettled(mark, b.conn) {
		b.conn.Wake()
	}
}

// ErrNotDurable means that the server could not write the files for a change that is in memory. The
// outcome of the change is not certain until the server can write them again.
var ErrNotDurable = errors.New("the append-only files cannot be written")

// durably waits, in an embedded session, until all that a command has written or read is synced.
// foreign means that the transaction of another session has served it.
func (c *Session) durably(ctx context.Context, foreign bool) error {
	log := c.svc.DB.Log()
	mark, wrote := c.tx.TakeMark(), c.tx.TakeWrote() || foreign
	if foreign {
		c.svc.DB.Barrier()
		mark = log.End()
	}
	w := make(oplog.Signal, 1)
	for !log.OnSettled(mark, w) {
		if err := log.Failure(); err != nil {
			if !wrote {
				return nil
			}
			return fmt.Errorf("%w: %w", ErrNotDurable, err)
		}
		select {
		case <-w:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.quit:
			return engine.ErrClosed
		case <-c.svc.ctx.Done():
			return engine.ErrClosed
		}
	}
	return nil
}
