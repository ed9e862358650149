package command

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

// Commands that wait.
//
//	runBLPop ─▶ nothing there ─▶ Ctx.Block ─▶ waiter in the lines of its keys
//	                                             │  the session parks
//	another client's LPUSH ─▶ end of its Tx ─▶ waiter.Serve: is it still permitted?
//	                                             │  runBLPop again, in that Tx, for
//	                                             │  the key alone
//	                          wake the session ◀─┴─ the reply is the waiter's own
//
// A waiter ends once, by whoever comes first: it is served, its time is up
// (timeouts.go), CLIENT UNBLOCK, or its connection goes. It costs no goroutine.
// The locks: shards, waiter.mu, then those of timeouts and of the engine's lines.

// Wait says what a command waits for.
type Wait struct {
	// Keys are what a change of is worth another look.
	Keys [][]byte
	// Kinds is what a key must hold for that; engine.None stands for nothing.
	Kinds engine.Kinds
	// Also are further keys that the command touches when it is served.
	Also [][]byte
	// Millis is the longest wait in ms; 0: for ever.
	Millis int64
	// Passable lets those behind be served where this one was not.
	Passable bool
	// Relook has those behind looked at again when this one leaves unserved:
	// what was too little for it may do for the next.
	Relook bool
	// Undo gives back what the command was given, in a transaction of its keys,
	// where the connection went before the reply was written.
	Undo func(*Ctx)
	// Refused replies where nobody may wait: in a transaction or a script. By
	// default it is a null array.
	Refused func(*Ctx)
	// Expired replies when the time is up; by default a null array.
	Expired func(*Ctx)
}

// errBlocked is what the handler of a command that waits returns.
const errBlocked = ReplyError("ERR the command waits")

// Block makes the command wait, and returns the error that the handler is to
// return at once. The handler has written and changed nothing. It is run again,
// with a transaction of somebody else's, whenever a key has changed; where there
// still is nothing for it, it calls Block again and stays where it is.
func (c *Ctx) Block(w Wait) error {
	switch {
	case c.waiter != nil:
		return errBlocked
	case c.noWait || c.Session.replay:
		if w.Refused != nil {
			w.Refused(c)
		} else {
			c.Out.NullArray()
		}
		return nil
	}
	c.Session.waiting = newWaiter(c, &w)
	return errBlocked
}

// Candidates returns those of a command's keys that it may look at now: when it
// is run again, the one that has changed; at first, all but those whose contents
// are about to go to others who have waited longer.
func (c *Ctx) Candidates(keys [][]byte) [][]byte {
	if c.waiter != nil {
		return c.ready[:]
	}
	if c.noWait || c.Service.DB.Waiters() == 0 {
		return keys
	}
	mine := keys
	for i, k := range keys {
		switch owed := c.Tx.Pending(k); {
		case owed && len(mine) == len(keys):
			mine = append([][]byte(nil), keys[:i]...)
		case !owed && len(mine) < len(keys):
			mine = append(mine, k)
		}
	}
	return mine
}

// Waited reports whether the command has waited and is run again.
func (c *Ctx) Waited() bool { return c.waiter != nil }

// Since is when the command began to wait, in us since 1970; 0 if it has not.
func (c *Ctx) Since() int64 {
	if c.waiter == nil {
		return 0
	}
	return c.waiter.since
}

// waiter is a session whose command waits.
type waiter struct {
	ticket  engine.Ticket
	c       *Session
	expired func(*Ctx)
	undo    func(*Ctx)
	since   int64    // us since 1970
	until   int64    // ms since 1970; 0: for ever
	keys    [][]byte // where relook or undo is set
	relook  bool
	dbi     int
	noTouch bool
	done    chan struct{} // for DoContext: closed at the end

	mu    sync.Mutex // guards what follows, until over
	over  atomic.Bool
	lost  bool // the connection is gone, or to go
	last  bool // the connection goes after the reply
	given bool // it was served, and the reply has not been written
	ctx   Ctx
	out   resp.Writer
	memo  any // what the command notes for its Undo

	argv int64 // bytes of the arguments

	slot uint32 // in timeouts, whose lock guards it
}

// newWaiter puts the command's session into the lines of its keys.
func newWaiter(c *Ctx, o *Wait) *waiter {
	s := c.Session
	w := &waiter{c: s, expired: o.Expired, undo: o.Undo, relook: o.Relook, since: c.Now(), dbi: c.Tx.Selected(), noTouch: s.noTouch}
	w.out.Proto = c.Out.Proto
	if c.Out.Collecting() {
		w.out.Collect()
		w.done = make(chan struct{})
	}
	w.ctx = Ctx{Out: &w.out, Spec: c.Spec, Args: ownArgs(c.Args), Table: c.Table, Session: s, Service: c.Service, waiter: w}
	w.ticket.Waiter, w.ticket.Kinds, w.ticket.Passable = w, o.Kinds, o.Passable
	if len(o.Also) > 0 {
		w.ticket.Also = ownArgs(o.Also)
	}
	w.argv = argsBytes(c.Args)
	s.svc.DB.Charge(w.argv)
	w.mu.Lock() // who finds it in a line or in the view waits until it is complete
	defer w.mu.Unlock()
	c.Tx.Enqueue(&w.ticket, o.Keys...)

	t := &c.Service.timeouts
	t.waiting.Add(1)
	s.view.waiting.Store(w)
	if o.Millis > 0 {
		w.until = (w.since+999)/1000 + o.Millis
	}
	if o.Relook || o.Undo != nil {
		w.keys = ownArgs(o.Keys)
	}
	if w.until > 0 {
		t.schedule(w)
	}
	return w
}

// Serve implements engine.Waiter: it runs the command again, or ends the wait with
// NOPERM if the user may not run it any more. Then what the key has is left to those
// behind.
func (w *waiter) Serve(tx *engine.Tx, key []byte) (done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over.Load() {
		return true
	}
	if w.c.doomed.Load() {
		w.lost = true
		w.finish(0)
		return true
	}
	if err := w.permitServed(tx); err != nil {
		w.fail(err)
		w.finish(0)
		return true
	}
	began := w.c.svc.DB.Clock().Micros()
	caller := tx.Caller()
	tx.SetCaller(w.c)
	defer tx.SetCaller(caller)
	tx.NoTouch(w.noTouch)
	mark, x := w.out.Mark(), &w.ctx
	x.Tx, x.ready[0] = tx, key
	err := w.run(x)
	if err != errBlocked && w.c.observing&obsTracks != 0 {
		w.c.noteReads(tx, x.Spec, x.Args)
	}
	x.Tx = nil
	if err != nil {
		w.out.Rollback(mark)
		if err == errBlocked {
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

// fail replies an error.
func (w *waiter) fail(err error) {
	text := wireText(err)
	w.c.stats.of(w.ctx.Spec).failed.Add(1)
	w.c.svc.totals.countError(text)
	w.out.Error(text)
}

// finish ends the wait, whose last step took us, with mu held. The ticket is
// still to leave its lines.
func (w *waiter) finish(us int64) {
	c := w.c
	c.svc.timeouts.cancel(w)
	c.svc.DB.Charge(-w.argv)
	c.svc.timeouts.waiting.Add(-1)
	c.view.waiting.CompareAndSwap(w, nil)
	s := c.stats.of(w.ctx.Spec)
	s.calls.Add(1)
	s.micros.Add(us)
	if c.svc.latency.Load() {
		s.record(us, 1)
	}
	w.over.Store(true)
	if w.done != nil {
		close(w.done)
	} else {
		c.conn.Wake()
	}
}

// end ends the wait with a reply, if it has not ended, and reports whether it
// did. tx is the caller's transaction, nil for none.
func (w *waiter) end(tx *engine.Tx, reply func(*Ctx)) bool {
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
		w.c.svc.beside.Go(w.again) // its shards are free when the transaction ends
	default:
		w.c.svc.afterwards(w.again)
	}
	return true
}

// timeOut ends the wait as if its time were up.
func (w *waiter) timeOut(tx *engine.Tx) bool {
	if w.expired != nil {
		return w.answer(tx, w.expired)
	}
	return w.end(tx, func(x *Ctx) { x.Out.NullArray() })
}

// answer ends the wait with a reply that says something, for which the user needs
// what the command needs.
func (w *waiter) answer(tx *engine.Tx, reply func(*Ctx)) bool {
	return w.end(tx, func(x *Ctx) {
		if err := w.permitServed(nil); err != nil {
			w.fail(err)
			return
		}
		reply(x)
	})
}

// unblock ends the wait with an error.
func (w *waiter) unblock(tx *engine.Tx) bool {
	return w.end(tx, func(*Ctx) { w.fail(ReplyError("UNBLOCKED client unblocked via CLIENT UNBLOCK")) })
}

// abandon ends the wait without a reply, and the session with it.
func (w *waiter) abandon(tx *engine.Tx) bool { return w.end(tx, func(*Ctx) { w.lost = true }) }

// transaction is what the session runs its commands in; nil for no session.
func (c *Session) transaction() *engine.Tx {
	if c == nil {
		return nil
	}
	return c.tx
}

// again has those in line for the waiter's keys look once more.
func (w *waiter) again() {
	if w.c.svc.DB.Waiters() == 0 {
		return
	}
	tx := w.c.svc.DB.Begin(w.dbi, w.keys...)
	for _, k := range w.keys {
		tx.Signal(k)
	}
	tx.Commit()
}

// takeBack undoes what the command of a connection that is gone was given.
func (w *waiter) takeBack() {
	w.mu.Lock()
	given := w.given && w.undo != nil
	w.given = false
	w.mu.Unlock()
	if !given {
		return
	}
	w.c.svc.afterwards(func() {
		tx := w.c.svc.DB.Begin(w.dbi, w.keys...)
		x := w.ctx
		x.Out, x.Tx = &resp.Writer{}, tx
		w.undo(&x)
		tx.Commit()
	})
}

// resume appends the reply of the command that has waited.
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

// Unsent implements reactor.UnsentWatcher: what a reply gave that did not go out
// is given back. It may be that the client has read the reply, and what came after
// it did not go out: the next request would have told.
func (c *Session) Unsent() {
	if w := c.answered; w != nil {
		w.takeBack()
	}
}

// Queued is one who waits in line.
type Queued struct {
	Args   [][]byte // the request
	Client int64    // who sent it, as CLIENT ID says
	Since  int64    // us since 1970
}

// Queue returns who waits for a key with a command of the same group, first come
// first. O(those).
func (c *Ctx) Queue(key []byte) (line []Queued) {
	for _, x := range c.Tx.Line(key) {
		if w, ok := x.(*waiter); ok && w.ctx.Spec.Group == c.Spec.Group {
			line = append(line, Queued{w.ctx.Args, w.c.id, w.since})
		}
	}
	return line
}

// Line returns the requests of Queue.
func (c *Ctx) Line(key []byte) (line [][][]byte) {
	for _, q := range c.Queue(key) {
		line = append(line, q.Args)
	}
	return line
}

// Behind reports whether others wait for a key, whose value is of a kind, so that
// who comes now stands behind them. O(1).
func (c *Ctx) Behind(key []byte, kind engine.Kind) bool {
	return c.waiter == nil && c.Tx.Awaited(key, kind)
}

// await waits for the command of an embedded session.
func (c *Session) await(ctx context.Context) (resp.Value, error) {
	w := c.waiting
	c.waiting = nil
	select {
	case <-w.done:
	case <-ctx.Done():
		if w.abandon(nil) {
			return resp.Value{}, ctx.Err()
		}
	case <-c.quit:
		if w.abandon(nil) {
			return resp.Value{}, engine.ErrClosed
		}
	case <-c.svc.ctx.Done():
		if w.abandon(nil) {
			return resp.Value{}, engine.ErrClosed
		}
	}
	return w.out.Value(), nil
}

// LeaveOn has the waits of an embedded session end with engine.ErrClosed when
// quit is closed.
func (c *Session) LeaveOn(quit <-chan struct{}) { c.quit = quit }

// PeerClosed implements reactor.PeerWatcher: a client that sends no more gets
// nothing more either if its command waits.
func (c *Session) PeerClosed() {
	c.peerGone.Store(true) // who begins to wait later looks for it
	if w := c.view.waiting.Load(); w != nil {
		w.abandon(nil)
	}
}
