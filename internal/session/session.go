package session

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/script"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// yieldBytes is the number of bytes of output after which a call of Serve lets other connections run.
const yieldBytes = 1 << 18

// Session is one client: a connection's, or an embedded one. It turns requests into replies. One goroutine at
// a time calls its methods, unless their comments say otherwise. Its own fields concern the running command;
// connection.go has the bytes, client.go the state that lasts from command to command.
type Session struct {
	svc *Service
	connection
	client

	ctx       command.Ctx
	step      command.Ctx // of the command that EXEC runs
	tx        *engine.Tx
	last      *command.Spec // the command of the previous request: the next one is often the same
	batch     batchStats
	keys      [][]byte // scratch
	observing uint32   // the flags that dispatch checks, see observe.go
	hot       hotCall  // the running command, if HOTKEYS samples it
	replay    bool
	script    bool  // it represents a script
	oom       bool  // memory was full when a script was about to begin
	uncounted bool  // errors do not count: see SetUncounted
	noAhead   uint8 // the number of batches for which it does not read ahead

	coroutine *coroutine // the coroutine on the loop that runs the command
	parked    *parked    // a command that runs in the background, or waits
	waiting   *waiter    // the waiter of a command that has just begun to wait
	answered  *waiter    // its reply was written, and no request has come since then

	doing     context.Context // the context of DoContext; nil: none
	doneEarly error           // the reason why DoContext's command ended early
	quit      <-chan struct{}
	restrict  func(*command.Spec, [][]byte) error // of calls in scripts; nil: none
	debug     func(*command.Ctx) error            // runs the next EVAL under a debugger; nil: there is none
	debugger  script.Console                      // EVAL runs under it; nil: under none
}

// NewSession returns a session for a connection, or an embedded one if conn is
// nil. Closed ends it.
func (s *Service) NewSession(conn reactor.Conn) *Session { return s.newSession(conn, nil) }

// newSession makes a session as NewSession does, with the origin of an embedded session, which may be nil.
func (s *Service) newSession(conn reactor.Conn, from *Origin) *Session {
	c := &Session{svc: s, client: client{charger: s.DB}, connection: s.newConnection(conn), tx: s.DB.NewTx()}
	if conn != nil {
		if l := conn.Loop(); l >= 0 && l < len(s.stats)-1 {
			c.loop, c.stats = true, s.stats[l]
		}
	}
	c.ctx = command.Ctx{Out: &c.out, Tx: c.tx, DB: s.DB, Table: s.table, Host: c}
	c.tx.SetCaller(c)
	c.setDefaultUser()
	c.created = s.steady()
	c.view.multi.Store(-1)
	if from != nil {
		c.introduce(from.shown())
	}
	s.clients.add(c)
	s.admin.Totals.Connections.Add(1)
	if s.denied(conn) {
		s.admin.Totals.Rejected.Add(1)
		c.closing = true
		c.Push([]byte("-" + ProtectedMode + "\r\n"))
		conn.Kill(nil)
	}
	return c
}

// Serve implements reactor.Session.
func (c *Session) Serve(in, out []byte) (consumed int, _ []byte, v reactor.Verdict) {
	log := c.svc.DB.Log()
	if len(in) > 0 && !c.held.on && c.parked == nil && log.Behind(c.conn) {
		return 0, out, reactor.Park // the disk is slower than the clients
	}
	holds := log.Holds()
	if !holds.Any() && !c.held.on {
		return c.serve(in, out)
	}
	if c.held.on {
		if out = c.release(out); c.held.on {
			return 0, out, reactor.Park
		}
		if c.queued.Load() {
			c.conn.Wake() // for the messages after it
		}
	}
	if c.held.closing {
		return 0, out, reactor.Close
	}
	all := len(in)
	if all > 0 && c.parked == nil && holds.Leads() && c.svc.heldBytes.full(c.conn) {
		if in = in[:c.alwaysServed(in)]; len(in) == 0 {
			return 0, out, reactor.Park
		}
	}
	if c.parked == nil {
		c.holds = holds
	}
	if c.stats.settles && !c.stats.batch {
		c.stats.batch = log.BeginBatch()
	}
	if c.stats.settles && !c.stats.pushes {
		c.stats.pushes = log.BeginPush()
	}
	before, served := len(out), c.parked != nil && c.parked.wait != nil
	c.mayHold = true
	consumed, out, v = c.serve(in, out)
	c.mayHold = false
	if len(in) < all && v == reactor.Continue {
		v = reactor.Yield // to handle the next request
	}
	if c.parked == nil { // otherwise another goroutine may use the transaction
		c.noteTransactions()
	}
	if len(out) == before || !c.holdReplies(out[before:], served, served) {
		return consumed, out, v
	}
	c.held.closing = v == reactor.Close
	return consumed, out[:before], reactor.Park
}

// serve does the work of Serve for replies that need not wait: it runs the complete requests of the input.
// After a panic in a command it closes the connection, and the client loses the replies of the batch.
func (c *Session) serve(in, out []byte) (consumed int, rest []byte, v reactor.Verdict) {
	given, before, used := out, len(out), 0 // the recovery changes the results, so the loop has variables of its own
	defer func() {
		if what := recover(); what != nil {
			c.crashed(what)
			c.out.Buf = nil
			c.endBatch(0, 0)
			consumed, rest, v = len(in), given, reactor.Close
		}
	}()
	if c.parked != nil {
		var ok bool
		if out, ok = c.unpark(out); !ok {
			return 0, out, reactor.Park
		}
		if n := len(out) - before + pieceBytes(c.pieces); n > yieldBytes && !c.closing && len(in) > 0 {
			return 0, out, reactor.Yield // the transport checks that the client reads before it continues
		}
	}
	bounded := c.svc.bounds.memory.Load() > 0
	if bounded && (c.evicted.Load() || c.overMemory(len(in), len(out)-before)) {
		return 0, out, reactor.Park // parked until its loop closes it
	}
	c.out.Buf = out
	c.followConfig()
	start, ahead := len(out), 0 // the start of the reply to the current request; the end of the input that was read ahead
	for !c.closing {
		args, n, err := c.parser.Next(in[used:])
		if err != nil {
			c.protocolError(err)
			break
		}
		if n == 0 {
			c.boundInput(len(in) - used)
			if bounded && len(in) > used && c.overMemory(len(in)-used, len(c.out.Buf)-before) {
				return used, c.settle(used, before), reactor.Park
			}
			break
		}
		if n > largeRequest && c.boundInput(n) {
			break
		}
		if used+n < len(in) && used >= ahead {
			ahead = used + c.readAhead(in[used:])
		}
		if len(args) > 0 {
			if c.last == nil && in[used] != '*' && isHTTPRequestLine(args) {
				c.closeForeign()
				break
			}
			c.answered = nil
			start = len(c.out.Buf)
			switch what := c.dispatch(args); what {
			case again: // the request stays in the input
				c.parser.Reset()
				return used, c.settle(used, before), reactor.Park
			case inBackground, waiting:
				used += n
				out = c.settle(used, before)
				c.parkRequest(what, len(in)-used)
				return used, out, reactor.Park
			}
			if c.queued.Load() {
				c.out.Buf = c.takePushes(c.out.Buf)
			}
		}
		used += n
		if bounded && c.overMemory(len(in)-used, len(c.out.Buf)-before) {
			return used, c.settle(used, before), reactor.Park
		}
		if len(c.out.Buf)-before > c.turn {
			if c.replyTooLong(len(c.out.Buf) - start) {
				break
			}
			return used, c.settle(used, before), reactor.Yield
		}
	}
	return c.finish(used, before)
}

// finish ends a batch after its last request. Its output begins at before.
func (c *Session) finish(used, before int) (int, []byte, reactor.Verdict) {
	v := c.verdict(before)
	return used, c.settle(used, before), v
}

// parkRequest parks the session for a request that runs in the background or waits; left is the number of bytes of input
// after it.
func (c *Session) parkRequest(what outcome, left int) {
	if what == inBackground {
		c.startParked()
		return
	}
	c.park()
	if c.svc.bounds.memory.Load() > 0 {
		c.overMemory(left, 0)
	}
}

// verdict returns the transport's next step after a batch whose output begins at before, and completes or
// drops that output.
func (c *Session) verdict(before int) reactor.Verdict {
	switch {
	case c.cutOff:
		c.out.Buf = c.out.Buf[:before]
		c.dropPieces(-1)
		return reactor.Park // until Kill ends it
	case c.closing:
		if c.takeOver != nil {
			c.conn.(reactor.Hijacker).Hijack(c.takeOver)
		}
		c.out.Buf = c.takePushes(c.out.Buf)
		return reactor.Close
	}
	return reactor.Continue
}

// followConfig applies the changes of CONFIG SET to a connected client.
func (c *Session) followConfig() {
	if int64(c.parser.Limits.MaxBulk) != c.svc.maxBulk.Load() || !c.authed && c.parser.Limits.Unauthenticated != c.svc.NeedsLogin() {
		c.setLimits()
	}
	c.turn = int(c.svc.bounds.turn.Load())
}

// settle ends a batch: it counts the bytes that were read and written, and takes the output from the session.
func (c *Session) settle(consumed, before int) []byte {
	out := c.out.Buf
	c.out.Buf = nil
	c.noteTransactions()
	if c.multi.on {
		c.multiBytes += int64(consumed)
		c.showTransaction()
	} else {
		c.multiBytes = 0
	}
	n := len(out) - before + c.lent
	c.lent = 0
	c.endBatch(consumed, n)
	if consumed >= bulkyFrom {
		c.bulky += consumed
	}
	return out
}

// noteTransactions records, for the replies of the batch, the work of the session's transactions.
func (c *Session) noteTransactions() {
	c.mark = max(c.mark, c.tx.TakeMark())
	c.did |= c.tx.TakeDid()
}

// HasWritten reports whether a transaction of the batch has written. Only the owner of the session may call
// it.
func (c *Session) HasWritten() bool {
	c.noteTransactions()
	return c.did&engine.Wrote != 0
}

// Push queues a message for the client, encoded for its protocol. Any goroutine may call it. The message
// reveals data, so it is sent only when the output of the current transactions may be sent.
func (c *Session) Push(msg []byte) { c.push(msg, true) }

// PushBare queues a message that reveals no data. It waits only for the messages before it.
func (c *Session) PushBare(msg []byte) { c.push(msg, false) }

func (c *Session) push(msg []byte, tells bool) {
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		return
	}
	c.queue = append(c.queue, msg...)
	if tells && !c.tells {
		c.tells, c.told = true, c.log.Holds()
	}
	n := len(c.queue)
	c.mu.Unlock()
	if !c.queued.Swap(true) && c.conn != nil {
		c.conn.Wake()
	}
	if c.conn != nil && c.svc.bounds.memory.Load() > 0 {
		c.counted.Add(int64(len(msg)))
		c.host.noteGrowth(int64(len(msg)))
	}
	if c.conn != nil {
		if _, unsent := c.conn.Buffered(); c.overLimit(n+unsent, false) {
			c.closeUnsent(errSlowReader)
		}
	}
}

var errSlowReader = errors.New("the client does not read its messages: client-output-buffer-limit exceeded")

// takePushes does the work of TakePushes for messages that need not wait.
func (c *Session) takePushes(out []byte) []byte {
	if !c.queued.Load() {
		return out
	}
	if p := c.parked; p != nil {
		// The reply with a read value must precede the message that the value is stale.
		if p.state.Load() == parkedRuns {
			return out
		}
		out, _ = c.unpark(out)
	}
	return c.takeQueue(out)
}

// SendQueued writes the messages that wait for the client before the reply to its command x. In EXEC, and
// while the client gets no replies, they continue to wait.
func (c *Session) SendQueued(x *command.Ctx) {
	if x == &c.ctx && c.reply == replyOn {
		x.Out.Raw(c.takeQueue(nil))
	}
}

// Closed implements reactor.Session.
func (c *Session) Closed(err error) {
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		return
	}
	c.gone = true
	c.queue = nil
	c.mu.Unlock()
	if c.held.on {
		c.Unsent()
		c.countHeld(0)
	}
	c.releaseMemory()
	if f := c.follows.Load(); f != nil {
		f.Leave(err) // if the connection was never handed over
	}
	p := c.parked
	runs := p != nil && p.state.CompareAndSwap(parkedRuns, parkedAbandoned) // the goroutine of the command owns the session from here on, and cleans up
	switch {
	case err == errSlowReader || err == reactor.ErrOutputLimit:
		c.svc.admin.Totals.OutputLimit.Add(1)
		c.svc.Log.Warn("client closed", "id", c.id, "why", err)
	case err == errClientMemory:
		c.svc.admin.Totals.Evicted.Add(1)
		c.svc.Log.Warn("client closed", "id", c.id, "why", err)
	case err != nil && (runs || !c.closing):
		c.svc.Log.Debug("client closed", "id", c.id, "why", err)
	}
	if runs {
		return
	}
	if p != nil && p.wait != nil && !p.wait.abandon(nil) {
		p.wait.takeBack()
	}
	c.cleanUp()
}

// cleanUp removes the session from all structures. If there are many, a goroutine in the background does so
// in slices.
func (c *Session) cleanUp() {
	if c.lists() > ManyArgs {
		c.svc.background.Go(c.leaveAll)
		return
	}
	c.leaveAll()
}

func (c *Session) leaveAll() {
	c.svc.pubsub.Leave(c)
	c.svc.pause.forget(c)
	c.StopTracking()
	c.svc.monitors.remove(c)
	c.Unwatch()
	c.svc.clients.remove(c)
	c.svc.DB.ChargeApart(-c.view.multiBytes.Swap(0) - c.view.nameBytes.Swap(0))
	c.svc.bounds.used.Add(-c.counted.Swap(0))
}

// Do runs one request in an embedded session and returns the reply. If the command waits, so does Do; see
// DoContext.
func (c *Session) Do(args ...[]byte) resp.Value {
	v, _ := c.DoContext(context.Background(), args...)
	return v
}

// DoContext runs a request as Do does, with a context. When ctx ends, a waiting command ends, and so does a
// script that has not written: it has then had no effect. The error is the context's, or engine.ErrClosed;
// see LeaveOn.
func (c *Session) DoContext(ctx context.Context, args ...[]byte) (resp.Value, error) {
	v, _, err := c.DoSome(ctx, wire.Bound{}, args...)
	return v, err
}

// DoSome runs a request as DoContext does, for a caller that needs only the beginning of the reply. It copies
// no more than the bound allows; cut reports that it has left something out. The command itself runs as
// always.
func (c *Session) DoSome(ctx context.Context, limit wire.Bound, args ...[]byte) (v resp.Value, cut bool, err error) {
	c.out.CollectSome(limit)
	c.doing, c.doneEarly, c.holds = ctx, nil, c.log.Holds()
	what := c.dispatchSafely(args)
	c.doing = nil
	c.endBatch(0, 0)
	if what == waiting {
		v, cut, err = c.await(ctx)
		if err == nil && c.holds.Any() && !c.replay {
			err = c.settled(ctx, true)
		}
		return v, cut, err
	}
	if c.holds.Any() && !c.replay {
		if err := c.settled(ctx, false); err != nil {
			return resp.Value{}, false, err
		}
	}
	v = c.out.Value()
	if c.doneEarly != nil {
		return resp.Value{}, false, c.doneEarly
	}
	return v, c.out.Cut(), nil
}

// abandonWait reports whether a script that has had no effect must end because its caller has left: the
// caller's context has ended, or LeaveOn's channel is closed.
func (c *Session) abandonWait() bool {
	if c.doing == nil || c.multi.on {
		return false
	}
	if c.doneEarly = c.doing.Err(); c.doneEarly != nil {
		return true
	}
	select {
	case <-c.quit:
		c.doneEarly = engine.ErrClosed
		return true
	default:
		return false
	}
}
