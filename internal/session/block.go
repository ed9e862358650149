package session

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/timeouts"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// This file implements commands that wait.
//
//	popOrWait ─▶ nothing there ─▶ Ctx.Block ─▶ waiter in the lines of its keys
//	                                              │  the session parks
//	another client's LPUSH ─▶ end of its Tx ─▶ waiter.Serve: is it still permitted?
//	                                              │  popOrWait again, in that Tx, for
//	                                              │  the key alone
//	                           wake the session ◀─┴─ the reply is the waiter's own
//
// A waiter ends exactly once, at the first of these events: a transaction serves it, its time is up (package
// timeouts), CLIENT UNBLOCK names it, or its connection ends. It costs no goroutine. Goroutines take the
// locks in this order: shards, waiter.mu, then those of timeouts and of the engine's lines.

// waiter is a session whose command waits.
type waiter struct {
	state   command.Waiting // the part that the command sees
	ticket  engine.Ticket
	c       *Session
	expired func(*command.Ctx)
	undo    func(*command.Ctx)
	keys    [][]byte // set where relook or undo is set
	relook  bool
	dbi     int
	noTouch bool
	done    chan struct{} // for DoContext: closed at the end

	mu    sync.Mutex // guards the fields below, up to over
	over  atomic.Bool
	lost  bool // the connection has ended, or is about to
	last  bool // the connection ends after the reply
	given bool // it was served, and the reply has not been written
	ctx   command.Ctx
	out   wire.Writer

	argv int64 // bytes of the arguments

	timeout timeouts.Entry
}

// Block implements Host.
func (c *Session) Block(x *command.Ctx, w *command.Wait) { c.waiting = newWaiter(x, w) }

// newWaiter puts the command's session into the lines of its keys.
func newWaiter(c *command.Ctx, o *command.Wait) *waiter {
	s := Of(c)
	w := &waiter{c: s, expired: o.Expired, undo: o.Undo, relook: o.Relook, state: command.Waiting{Since: c.Now()},
		dbi: c.Tx.Selected(), noTouch: s.noTouch}
	w.out.Proto = c.Out.Proto
	if c.Out.Collecting() {
		w.out.CollectSome(c.Out.Bound())
		w.done = make(chan struct{})
	}
	w.ctx = command.Ctx{Out: &w.out, Spec: c.Spec, Args: command.CopyArgs(c.Args), Table: c.Table, DB: c.DB, Host: s, Waiting: &w.state}
	w.ticket.Waiter, w.ticket.Kinds, w.ticket.Want, w.ticket.Passable = w, o.Kinds, o.Want, o.Passable
	if len(o.Also) > 0 {
		w.ticket.Also = command.CopyArgs(o.Also)
	}
	w.argv = command.ArgsBytes(c.Args)
	s.svc.DB.ChargeApart(w.argv)
	w.mu.Lock() // a goroutine that finds the waiter in a line or in the view must wait until it is complete
	defer w.mu.Unlock()
	c.Tx.Enqueue(&w.ticket, o.Keys...)

	s.svc.blocked.Add(1)
	s.view.waiting.Store(w)
	if o.Millis > 0 {
		w.state.Until = (w.state.Since+999)/1000 + o.Millis
	}
	if o.Relook || o.Undo != nil {
		w.keys = command.CopyArgs(o.Keys)
	}
	if w.state.Until > 0 {
		s.svc.timeouts.Schedule(w, &w.timeout, (s.svc.steady()+999)/1000+o.Millis)
	}
	return w
}

// Serve implements engine.Waiter: it runs the command again, or ends the wait with NOPERM if the user may no
// longer run it. The items that the command leaves in the key are for the waiters behind it.
func (w *waiter) Serve(tx *engine.Tx, key []byte) (done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over.Load() {
		return true
	}
	if w.c.closingUnsent.Load() {
		w.lost = true
		w.finish(0)
		return true
	}
	if err := w.permitServed(tx); err != nil {
		w.reject(err)
		return true
	}
	began := w.c.svc.DB.Clock().Micros()
	caller := tx.Caller()
	tx.SetCaller(w.c)
	defer tx.SetCaller(caller)
	tx.NoTouch(w.noTouch)
	mark, x := w.out.Mark(), &w.ctx
	x.Tx, w.state.Key[0] = tx, key
	err := w.run(x)
	if err != command.ErrBlocked && w.c.observing&obsTracks != 0 {
		w.c.noteReads(tx, x, x.Spec, x.Args)
	}
	x.Tx = nil
	if err != nil {
		w.out.Rollback(mark)
		if err == command.ErrBlocked {
			return false
		}
		w.fail(err)
	}
	w.given = err == nil
	us := w.c.svc.DB.Clock().Micros() - began
	if w.c.svc.observed.Load()&obsSlow != 0 {
		w.c.svc.served(w.c, x.Spec, x.Args, began, us)
	}
	w.finish(us)
	return true
}

// fail ends the wait with an error reply.
func (w *waiter) fail(err error) {
	w.c.stats.of(w.ctx.Spec).Failed.Add(1)
	w.refuse(err)
}

// refuse replies with an error.
func (w *waiter) refuse(err error) {
	text := command.WireText(err)
	w.c.svc.admin.Totals.CountError(text)
	w.out.Error(text)
}

// reject ends the wait of a client whose user may no longer run the command: it has not run.
func (w *waiter) reject(err error) {
	w.c.stats.of(w.ctx.Spec).Rejected.Add(1)
	w.refuse(err)
	w.leave()
}

// finish ends the wait, with mu held; us is the time that the last step took. The caller then takes
// the ticket out of its lines.
func (w *waiter) finish(us int64) {
	c := w.c
	s := c.stats.of(w.ctx.Spec)
	s.Calls.Add(1)
	s.Micros.Add(us)
	if c.svc.latency.Load() {
		s.Record(us, 1)
	}
	w.leave()
}

// leave does the work of finish without the statistics.
func (w *waiter) leave() {
	c := w.c
	if w.state.Until > 0 {
		c.svc.timeouts.Cancel(&w.timeout)
	}
	c.svc.DB.ChargeApart(-w.argv)
	c.svc.blocked.Add(-1)
	c.view.waiting.CompareAndSwap(w, nil)
	w.over.Store(true)
	if w.done != nil {
		close(w.done)
	} else {
		c.conn.Wake()
	}
}

// end ends the wait with a reply, if it has not ended yet, and reports whether it did so. tx is the
// caller's transaction; it may be nil.
func (w *waiter) end(tx *engine.Tx, reply func(*command.Ctx)) bool {
	w.mu.Lock()
	if w.over.Load() {
		w.mu.Unlock()
		return false
	}
	reply(&w.ctx)
	w.finish(0)
	w.mu.Unlock()
	w.ticket.Leave()
	switch {
	case !w.relook:
	case tx != nil && tx.Begun():
		w.c.svc.background.Go(w.again) // the shards are unlocked when the transaction ends
	default:
		w.again()
	}
	return true
}

// TimeOut implements timeouts.Waiter.
func (w *waiter) TimeOut() { w.timeOut(nil) }

// timeOut ends the wait as if its time were up.
func (w *waiter) timeOut(tx *engine.Tx) bool {
	if w.expired != nil {
		return w.answer(tx, w.expired)
	}
	return w.end(tx, func(x *command.Ctx) { x.Out.NullArray() })
}

// answer ends the wait with a reply that contains data. The user needs the permissions of the
// command for it.
func (w *waiter) answer(tx *engine.Tx, reply func(*command.Ctx)) bool {
	return w.end(tx, func(x *command.Ctx) {
		if err := w.permitServed(nil); err != nil {
			w.fail(err)
			return
		}
		reply(x)
	})
}

// unblock ends the wait with an error.
func (w *waiter) unblock(tx *engine.Tx) bool {
	return w.end(tx, func(*command.Ctx) { w.fail(command.ReplyError("UNBLOCKED client unblocked via CLIENT UNBLOCK")) })
}

// Unblock ends the wait of a client's command, with an error or as if its time were up, and reports whether it waited. tx is
// the caller's transaction.
func (s *Service) Unblock(tx *engine.Tx, id int64, withError bool) bool {
	w := s.clients.waiter(id)
	switch {
	case w == nil:
		return false
	case withError:
		return w.unblock(tx)
	}
	return w.timeOut(tx)
}

// abandon ends the wait without a reply, and ends the session.
func (w *waiter) abandon(tx *engine.Tx) bool { return w.end(tx, func(*command.Ctx) { w.lost = true }) }

// transaction returns the transaction of the session; nil for a nil session.
func (c *Session) transaction() *engine.Tx {
	if c == nil {
		return nil
	}
	return c.tx
}

// again makes the waiters in the lines of this waiter's keys check their keys once more. During a pause it
// does so when the pause ends, because serving a waiter changes the data.
func (w *waiter) again() {
	if w.c.svc.DB.Waiters() == 0 || w.c.svc.pause.defers(w.again) {
		return
	}
	w.c.svc.DB.Do(w.dbi, w.keys, func(tx *engine.Tx) {
		for _, k := range w.keys {
			tx.Signal(k)
		}
	})
}

// takeBack takes back what the command gave to a connection that has ended. During a pause it does so when
// the pause ends.
func (w *waiter) takeBack() {
	w.mu.Lock()
	given := w.given && w.undo != nil
	w.given = false
	w.mu.Unlock()
	if given {
		w.giveBack(false)
	}
}

// giveBack runs undo. If the server became a replica in the pause of a failover, or its group has replaced
// it, the new master has the grant: giveBack then leaves it to the end of the lease.
func (w *waiter) giveBack(late bool) {
	svc := w.c.svc
	if svc.pause.defers(func() { w.giveBack(true) }) || late && svc.DB.Replica() {
		return
	}
	svc.DB.Do(w.dbi, w.keys, func(tx *engine.Tx) {
		if svc.DB.Replica() && svc.DB.Log().Holds().Group() {
			return // the next master of the group has the grant
		}
		x := w.ctx
		x.Out, x.Tx = &wire.Writer{}, tx
		w.undo(&x)
	})
}

// resume appends the reply of a command that has waited.
func (c *Session) resume(w *waiter, out []byte) []byte {
	switch {
	case w.lost:
		c.closing = true
		return out
	case w.undo != nil && w.given && c.peerGone.Load():
		c.closing = true
		w.takeBack()
		return out
	case c.reply != replyOn:
		c.skipReply()
	default:
		out = append(out, w.out.Buf...)
	}
	c.closing = c.closing || w.last
	if w.undo != nil && w.given {
		c.answered = w
	} else {
		w.given = false
	}
	return out
}

// Unsent implements reactor.UnsentWatcher: it takes back what a reply gave to the client if the reply was not
// sent. If only later bytes were not sent, the client may have read the reply; but the session learns that
// only from the next request, and there was none.
func (c *Session) Unsent() {
	if w := c.answered; w != nil {
		w.takeBack()
	}
}

// Queued implements Queuer.
func (w *waiter) Queued() (*command.Spec, command.Queued) {
	return w.ctx.Spec, command.Queued{Args: w.ctx.Args, Client: w.c.id, Since: w.state.Since}
}

// await waits until the command of an embedded session ends.
func (c *Session) await(ctx context.Context) (v resp.Value, cut bool, err error) {
	w := c.waiting
	c.waiting = nil
	select {
	case <-w.done:
	case <-ctx.Done():
		if w.abandon(nil) {
			return v, false, ctx.Err()
		}
	case <-c.quit:
		if w.abandon(nil) {
			return v, false, engine.ErrClosed
		}
	case <-c.svc.ctx.Done():
		if w.abandon(nil) {
			return v, false, engine.ErrClosed
		}
	}
	v = w.out.Value()
	return v, w.out.Cut(), nil
}

// LeaveOn makes the waits of an embedded session end with engine.ErrClosed when quit is closed.
func (c *Session) LeaveOn(quit <-chan struct{}) { c.quit = quit }

// PeerClosed implements reactor.PeerWatcher. If the command of a client that has stopped sending waits, the
// client gets no further reply, and a command that waits for the end of CLIENT PAUSE does not run.
func (c *Session) PeerClosed() {
	c.peerGone.Store(true) // a command that begins to wait later checks this
	if w := c.view.waiting.Load(); w != nil {
		w.abandon(nil)
	}
	c.svc.pause.leave(c)
}
