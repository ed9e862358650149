package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
)

// Under appendfsync always no byte leaves before what it tells of is synced.
//
//	Serve ── replies of a batch ──▶ synced already? ── yes ──▶ they leave
//	                                      │ no
//	                                      ▼
//	                 held; the session parks; Log wakes it when the sync is done,
//	                 which is one for all who wait
//
// Where syncs are fast, a loop has all that its batch wrote synced at the end of the
// batch itself (Settle), and its sessions go on before it looks for more: no goroutine
// is woken, and as many share a sync as had a request in the batch.
//
// What a command has seen or written lies before its transaction's mark in the
// stream. Where somebody else's transaction made the output (a command that was
// served, a message), that may not have settled yet: a barrier waits for all that
// are under way, and then the end of the stream is the mark.
//
// While the files cannot be written, writes are refused, and who has written hears
// that nobody knows what will come of it. Reads go on: they see what is in memory, of
// which the newest, that nobody was told is done, may not outlast a crash.

// heldReplies is output that waits for the sync of the writes that it replies to.
type heldReplies struct {
	on      bool
	closing bool // the connection ends behind it
	wrote   bool // it tells of a write
	out     []byte
	mark    int64    // it may leave when so much of the stream is synced
	barrier *barrier // or when this is passed; nil: mark says it
	faults  int64    // Log.Failures when the session began to wait: each wakes it
}

// Settle ends the batch of a network loop, on which it is called: what the batch wrote
// is synced, if that is a matter of microseconds, and whoever waited for it is woken.
// Else that goes on in the background. It reports whether there was anything.
func (s *Service) Settle(loop int) (did bool) {
	l := s.stats[loop]
	if l.settles = true; !l.batch {
		return false
	}
	l.batch = false
	s.DB.Log().EndBatch()
	return true
}

// holdReplies holds output that may not leave yet, and reports whether it does.
// foreign says that others' transactions have made a part of it, served that a
// command that waited was served.
func (c *Session) holdReplies(out []byte, foreign, served bool) bool {
	h, log := &c.held, c.svc.DB.Log()
	h.mark, h.barrier, h.wrote, h.faults = c.mark, nil, c.wrote || served, log.Failures()
	c.mark, c.wrote = 0, false
	if !h.wrote && log.Failure() != nil {
		return false
	}
	if foreign {
		b := &barrier{conn: c.conn, svc: c.svc}
		b.mark.Store(-1)
		h.barrier = b
		c.svc.background.Go(b.pass)
	} else if c.settled(h.mark) {
		return false
	}
	h.on, h.out = true, append(h.out[:0], out...)
	return true
}

// settled is Log.OnSettled for the session. In a batch its loop sees to the
// sync; nobody else has to begin one.
func (c *Session) settled(mark int64) bool {
	log := c.svc.DB.Log()
	if c.stats.batch {
		return !log.Always() || log.OnBatchSynced(mark, c.conn) || !log.Always()
	}
	return log.OnSettled(mark, c.conn)
}

// upTo is how much of the stream is to be synced before what is held may leave; -1:
// that is not known yet.
func (h *heldReplies) upTo() int64 {
	if h.barrier != nil {
		return h.barrier.mark.Load()
	}
	return h.mark
}

// ready reports whether what is held may leave.
func (c *Session) ready() bool {
	h, log := &c.held, c.svc.DB.Log()
	mark := h.upTo()
	if mark < 0 || log.Settled(mark) {
		return mark >= 0
	}
	if n := log.Failures(); n != h.faults { // one has woken it, and may be over: it waits again
		h.faults = n
		return c.settled(mark)
	}
	return false
}

// release appends what is held, if it may leave. If the files fail, what tells of a
// write never may: the client hears that, and is closed.
func (c *Session) release(out []byte) []byte {
	h := &c.held
	log := c.svc.DB.Log()
	switch {
	case c.ready() || !log.Always() || !h.wrote && log.Failure() != nil:
		out = append(out, h.out...)
	case log.Failure() != nil:
		out = append(out, "-MISCONF Errors writing to the AOF file: "...)
		out = append(out, command.OneLine(log.Failure().Error())...)
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
	if !c.held.on && !c.svc.DB.Log().Always() {
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

// barrier is passed when what was under way as it began is synced.
type barrier struct {
	svc  *Service
	conn reactor.Conn
	mark atomic.Int64 // -1: not known yet
}

func (b *barrier) pass() {
	b.svc.DB.Barrier()
	log := b.svc.DB.Log()
	mark := log.End()
	b.mark.Store(mark)
	if log.OnSettled(mark, b.conn) {
		b.conn.Wake()
	}
}

// ErrNotDurable says that the files could not take a write that is in memory: what
// came of it is not certain before they can again.
var ErrNotDurable = errors.New("the append-only files cannot be written")

// durably waits, in an embedded session, until what a command has written or seen
// is synced. foreign says that another's transaction has served it.
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
