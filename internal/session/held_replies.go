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

// No reply is sent before the writes that it depends on are safe: with appendfsync always they are synced,
// and in a group each member of the in-sync set holds them (oplog.Log.Settled).
//
//	Serve ── replies of a batch ──▶ may they be sent? ─ yes ──▶ they are sent
//	                                      │ no
//	                                      ▼
//	                 held; the session parks; Log wakes it when they may, all
//	                 sessions by one sync, or by one acknowledgement
//
// If syncs are fast, a loop syncs all writes of its batch at the end of the batch (Settle), and its sessions
// continue before the loop reads more requests. This wakes no goroutine, and all sessions that had a request
// in the batch share one sync. In the same place a loop sends the writes of its batch to the members of the
// group (replication.Node.Push).
//
// Everything that a command has read or written is before the mark of its transaction in the stream. If the
// transaction of another session made the output (a served command, a message), that transaction may not have
// settled yet. A barrier then waits for all current transactions, and the end of the stream after that is the
// mark.
//
// While the server cannot write the files, it refuses writes. A client that has already written gets an error
// that says that the outcome of its write is not certain. Reads continue: they return the data in memory. The
// newest of these writes were not acknowledged to any client and may be lost in a crash.
//
// In a group a reply also waits for the lease if one of its transactions added nothing to the stream: another
// node could be the master and have newer data. (A transaction that wrote needs no lease: the members that
// acknowledged the write have no other master.) If the server is no longer the master of the term in which
// the first command of the batch began, or after sync-timeout, the outcome is not certain: the client gets an
// error, and the connection closes.

// steady returns the time of the clock for intervals (engine.DB.Steady), in us.
func (s *Service) steady() int64 { return s.DB.Steady().Micros() }

// engineTime returns the engine's time at an instant of that clock.
func (s *Service) engineTime(steady int64) int64 { return s.DB.Clock().Micros() - s.steady() + steady }

// now implements connectionHost.
func (s *Service) now() int64 { return s.steady() }

// holding implements connectionHost.
func (s *Service) holding() *heldBytes { return &s.heldBytes }

// unsyncedAfter implements connectionHost.
func (s *Service) unsyncedAfter() int64 { return s.unsynced.Load() }

const (
	unsyncedText = "UNSYNCED what came of the last commands is not certain"
	uncertain    = "; what came of the last commands is not certain"
)

// heldReplies is output that waits until it may be sent.
type heldReplies struct {
	on      bool
	closing bool       // the connection closes after it
	lost    bool       // an error has replaced it
	did     engine.Did // the work of the transactions that it replies to
	out     []byte
	holds   oplog.Holds // the state of the log before the first of them began
	since   int64       // us: the instant at which it was held
	mark    int64       // it depends on the stream up to this position
	barrier *barrier    // or up to the mark of this barrier; nil: mark counts
	alarms  int64       // Log.Alarms when the session began to wait for the mark: each alarm wakes it
	leases  int64       // Log.Alarms when it began to wait for the lease; -1: it does not
	counted int         // the number of its bytes in heldBytes
}

// Settle ends the batch of a network loop, which calls it. If a sync takes only microseconds, Settle syncs
// the writes of the batch and wakes the sessions that waited for the sync. Otherwise the sync runs in the
// background. Then it pushes the writes to replicas. Settle reports whether there was anything to
// sync.
func (s *Service) Settle(loop int) (did bool) {
	l := s.stats[loop]
	l.settles = true
	if did = l.batch; did {
		l.batch = false
		s.DB.Log().EndBatch()
	}
	if l.pushes { // after EndBatch: members get nothing that is not synced
		l.pushes = false
		s.DB.Log().EndPush()
		s.repl.Push()
	}
	return did
}

// holdReplies holds output that the server may not send yet, and reports whether it does so. foreign means
// that transactions of other sessions made a part of the output; served means that another transaction served
// the command.
func (c *connection) holdReplies(out []byte, foreign, served bool) bool {
	h, log := &c.held, c.log
	h.mark, h.barrier, h.did, h.alarms, h.leases = c.mark, nil, c.did, log.Alarms(), -1
	if served {
		h.did |= engine.Wrote | engine.Looked
	}
	c.mu.Lock() // a command in the background may take messages meanwhile
	h.holds, foreign = c.holds, foreign || c.foreign
	c.foreign = false
	c.mu.Unlock()
	c.mark, c.did = 0, 0
	switch {
	case h.mark == 0 && h.did == 0 && !foreign:
		return false // it reveals no data
	case !h.holds.Group() && h.did&engine.Wrote == 0 && log.Failure() != nil:
		return false
	case foreign:
		h.barrier = c.host.beginBarrier(c.conn)
		h.alarms = -1 // ready waits for the mark itself: the barrier would wait for files that fail
	case c.awaitMark(h.mark) && c.hasLease() && !h.over(log):
		return false
	}
	h.on, h.since, h.out = true, c.host.now(), append(h.out[:0], out...)
	if h.holds.Group() {
		c.countHeld(len(out))
	}
	if h.over(log) {
		c.conn.Wake()
	}
	return true
}

// beginUnheld begins a command whose reply waits for no sync and no member of a group (command.OfServer),
// because an operator needs it most when these do not answer. It reports whether endUnheld must end the
// command; inside a transaction the reply waits with the others.
func (c *Session) beginUnheld() bool {
	if c.parked != nil || c.tx.Begun() {
		return false
	}
	c.noteTransactions() // of the earlier commands
	return true
}

// endUnheld discards the record of the command's work. A command in the background locks by itself, and has
// no such record.
func (c *Session) endUnheld() {
	if c.parked == nil {
		c.tx.TakeMark()
		c.tx.TakeDid()
	}
}

// over reports whether the term of a group in which the first command began is over.
func (h *heldReplies) over(log *oplog.Log) bool {
	return h.holds.Group() && log.Holds().Term() != h.holds.Term()
}

// awaitMark reports whether the stream is safe up to a mark. If it is not, the log wakes the session later.
// Within a batch the loop syncs, so no other goroutine needs to begin a sync.
func (c *connection) awaitMark(mark int64) bool {
	if c.stats.batch && c.log.Failure() == nil {
		return c.log.OnBatchSettled(mark, c.conn)
	}
	return onSettled(c.log, mark, c.held.did, c.conn)
}

// onSettled calls Log.OnSettled according to the work of the transactions: reads do not wait for files that
// fail.
func onSettled(log *oplog.Log, mark int64, did engine.Did, w oplog.Waker) bool {
	if did&engine.Wrote != 0 || log.Failure() == nil {
		return log.OnSettled(mark, w)
	}
	return log.OnPromised(mark, w)
}

// hasLease reports whether the output needs no lease, or the server has the lease. If not, an alarm wakes the
// session.
func (c *connection) hasLease() bool {
	h := &c.held
	if h.did&engine.Looked == 0 || !h.holds.Leads() || c.host.leased() {
		return true
	}
	if n := c.log.Alarms(); n != h.leases {
		h.leases = n
		c.log.OnAlarm(c.conn)
	}
	return c.host.leased() // the lease may have come back before OnAlarm
}

// upTo returns the mark up to which the stream has to be safe before the held output may be sent; -1 if it is
// not known yet.
func (h *heldReplies) upTo() int64 {
	if h.barrier != nil {
		return h.barrier.mark.Load()
	}
	return h.mark
}

// ready reports whether the held output may be sent. If not, an event wakes the session later.
func (c *connection) ready() bool {
	h, log := &c.held, c.log
	mark := h.upTo()
	switch {
	case mark < 0:
		return false
	case log.Settled(mark) || h.did&engine.Wrote == 0 && log.Failure() != nil && log.Promised(mark):
		return c.hasLease()
	}
	if n := log.Alarms(); n != h.alarms { // an alarm has woken the session, and its cause may be over: it waits again
		h.alarms = n
		return c.awaitMark(mark) && c.hasLease()
	}
	return false
}

// release appends the held output, if the server may send it. If the files fail, the server never sends
// replies to writes, and it never sends replies of a term that is over: the client gets an error, and the
// server closes the connection.
func (c *connection) release(out []byte) []byte {
	h, log := &c.held, c.log
	ready := c.ready()
	switch failure := log.Failure(); {
	case h.over(log): // after ready, which may have seen a position that a later term has committed
		out = c.lose(out, unsyncedText)
	case ready:
		out = append(out, h.out...)
	case failure != nil && log.Always() && h.did&engine.Wrote != 0:
		out = c.lose(out, "MISCONF Errors writing to the AOF file: "+cleantext.Reply(failure.Error())+uncertain)
	case h.holds.Group() && c.host.now()-h.since >= c.host.unsyncedAfter():
		out = c.lose(out, unsyncedText)
	default:
		return out
	}
	if h.holds.Group() {
		c.stats.Held.Record(c.host.now() - h.since)
	}
	h.on, h.barrier = false, nil
	c.countHeld(0)
	if cap(h.out) > 1<<16 {
		h.out = nil
	}
	return out
}

// lose replaces the held output with an error, after which the connection closes.
func (c *connection) lose(out []byte, text string) []byte {
	c.held.closing, c.held.lost = true, true
	return append(append(append(out, '-'), text...), "\r\n"...)
}

// TakePushes implements reactor.Session.
func (c *Session) TakePushes(out []byte) []byte {
	holds := c.log.Holds()
	if !holds.Any() && !c.held.on {
		return c.takePushes(out)
	}
	if c.held.on {
		if out = c.release(out); c.held.on {
			return out
		}
	}
	if c.held.lost {
		c.conn.Kill(nil) // no other code closes a connection that only gets messages
		return out
	}
	before, waits := len(out), c.parked != nil
	if !waits {
		c.holds = holds
	}
	c.mayHold = true
	out = c.takePushes(out)
	c.mayHold = false
	if c.parked == nil {
		c.noteTransactions()
	}
	if len(out) > before && c.holdReplies(out[before:], waits, waits) {
		return out[:before]
	}
	return out
}

// barrier is passed when the output of the transactions that were running at its start may be sent.
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

// The errors of embedded sessions whose command has run, but whose outcome is not certain.
var (
	// ErrNotDurable: the server could not write the files for a change that is in memory. It may be lost until the server can
	// write them again.
	ErrNotDurable = errors.New("the append-only files cannot be written")
	// ErrUnsynced: the members of the server's group have not acknowledged the data that the command depends on.
	ErrUnsynced = errors.New(unsyncedText)
)

// settled waits, in an embedded session, until everything that a command has written or read is safe. foreign
// means that the transaction of another session has served it.
func (c *Session) settled(ctx context.Context, foreign bool) error {
	log, since := c.log, c.svc.now()
	mark, did := c.tx.TakeMark(), c.tx.TakeDid()
	if foreign {
		did |= engine.Wrote | engine.Looked
		c.svc.DB.Barrier()
		mark = log.End()
	}
	h := heldReplies{did: did, holds: c.holds}
	w := make(oplog.Signal, 1)
	if did != 0 && c.holds.Group() && !(log.Settled(mark) && c.svc.leased()) {
		defer func() { c.stats.Held.Record(c.svc.now() - since) }()
	}
	for mark > 0 || did != 0 {
		ready := onSettled(log, mark, did, w)
		if ready && did&engine.Looked != 0 && c.holds.Leads() && !c.svc.leased() {
			log.OnAlarm(w)
			ready = c.svc.leased()
		}
		switch failure := log.Failure(); {
		case h.over(log):
			return ErrUnsynced
		case ready:
			return nil
		case failure != nil && log.Always() && did&engine.Wrote != 0:
			return fmt.Errorf("%w: %w", ErrNotDurable, failure)
		case c.holds.Group() && c.svc.now()-since >= c.svc.unsyncedAfter():
			return ErrUnsynced
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
