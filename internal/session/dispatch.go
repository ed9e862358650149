package session

import (
	"runtime"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/reactor"
)

// outcome is the state of a request after a step of dispatch.
type outcome uint8

const (
	done         outcome = iota // replied
	again                       // not begun: the session dispatches it again after a wake-up
	inBackground                // runs in the background
	waiting                     // it waits; Session.waiting is the waiter
)

// ManyArgs is the largest number of arguments that a request may have on a network loop, and the
// longest list of the session that a command walks there. Each takes 50 to 250 ns, so other clients
// wait for up to a millisecond. Longer requests run in the background.
const ManyArgs = 4096

// dispatch is the only path from a request to its handler: it finds the command, decides whether it may run,
// locks the shards of its keys, runs it, and settles its effects.
func (c *Session) dispatch(args [][]byte) outcome {
	c.ctx.ForgetKeys()
	spec, err := c.resolve(args)
	if err == nil {
		err = c.admit(spec, args)
	}
	if err != nil {
		if err == errPaused {
			return again
		}
		if spec == nil && c.conn != nil && isHTTPWord(args[0]) {
			c.closeForeign()
			return done
		}
		if s := c.svc.table.Lookup(args[0]); s != nil && s.Has(command.RunsQueue) {
			err = c.abort(err)
		}
		named := spec
		if spec == nil { // the command is known, but its number of arguments is wrong
			if named, _ = c.svc.table.Find(args); named != nil {
				c.stats.of(named).Rejected.Add(1)
			}
		}
		c.batch.noteNotRun(named)
		c.reject(spec, err)
		return done
	}
	if c.multi.on && !spec.Has(command.NoQueue) {
		c.batch.noteNotRun(spec)
		c.enqueue(spec, args)
		return done
	}
	c.count(spec, len(args))
	if c.loop && (len(args) > ManyArgs || spec.Has(command.Slow)) {
		if spec.Has(command.Scripts) {
			c.oom = !c.replay && c.svc.outOfMemory()
		}
		return c.runInBackground(spec, args)
	}
	if spec.Has(command.Scripts) || c.multi.scripts && spec.Has(command.RunsQueue) {
		c.oom = !c.replay && c.svc.outOfMemory()
		if c.loop {
			return c.runOnCoroutine(spec, args)
		}
	}
	ofServer := spec.Has(command.OfServer) && c.beginUnheld()
	what := c.execute(spec, args)
	if ofServer {
		c.endUnheld()
	}
	if what == waiting {
		c.batch.calls-- // it is counted when it ends
	}
	return what
}

// resolve finds the command of a request.
func (c *Session) resolve(args [][]byte) (*command.Spec, error) {
	if c.replay {
		return c.resolveEffect(args)
	}
	if s := c.last; s != nil && s.Plain() && command.EqualFold(args[0], s.Called()) && s.ArityOK(args) {
		return s, nil
	}
	s, err := c.svc.table.Resolve(args)
	if err == nil {
		c.last = s
	}
	return s, err
}

// admit decides whether a command may run now.
func (c *Session) admit(spec *command.Spec, args [][]byte) error {
	if !c.authed && !spec.Has(command.NoAuth) && c.svc.NeedsLogin() {
		return command.ErrNoAuth
	}
	if u := c.user.User(); !u.Unlimited && !c.defers(args) {
		if err := c.permit(u, spec, args); err != nil {
			return err
		}
	}
	if c.svc.pause.active() {
		if err := c.svc.pause.holds(c, spec, args); err != nil {
			return err
		}
	}
	if err := c.tooBusy(spec, args); err != nil {
		return err
	}
	if c.subs.Len() > 0 && c.out.Proto != 3 && !spec.Has(command.InSubscription) {
		return command.NotInSubscription(spec.Name)
	}
	if c.svc.cluster && !c.replay && !c.defers(args) {
		if err := c.oneSlot(spec, args); err != nil {
			return err
		}
	}
	if spec.Flags&(command.DenyOOM|command.Scripts) != 0 && !c.replay && c.svc.outOfMemory() &&
		c.effectiveFlags(spec, args)&command.DenyOOM != 0 {
		return command.ErrOOM
	}
	if closed := c.svc.gates.closed.Load(); closed != 0 {
		if err := c.pass(gate(closed), spec, c.effectiveFlags(spec, args)); err != nil {
			return err
		}
	}
	if c.observing != 0 && c.watches(spec) {
		return errMonitorKeys
	}
	return nil
}

// defers reports whether a request has too many arguments to check them on a network loop. It then
// runs in the background, and admitDeferred checks them there.
func (c *Session) defers(args [][]byte) bool { return len(args) > ManyArgs && c.loop && !c.multi.on }

// admitDeferred is the part of admit that checks every argument.
func (c *Session) admitDeferred(spec *command.Spec, args [][]byte) error {
	if u := c.user.User(); !u.Unlimited {
		if err := c.permit(u, spec, args); err != nil {
			return err
		}
	}
	if c.svc.cluster && !c.replay {
		return c.oneSlot(spec, args)
	}
	return nil
}

// reject replies with an error to a command that was not begun.
func (c *Session) reject(spec *command.Spec, err error) {
	if c.multi.on {
		c.multi.failed = true
	}
	if c.observing != 0 {
		c.settleCaching(spec)
	}
	if spec != nil {
		c.stats.of(spec).Rejected.Add(1)
	}
	c.fail(err)
}

// fail replies with an error.
func (c *Session) fail(err error) {
	text := ""
	if c.uncounted {
		text = command.WireText(err)
	} else {
		text = c.svc.countFailure(err)
	}
	if c.reply == replyOn {
		c.out.Error(text)
	} else {
		c.skipReply()
	}
}

// execute locks, runs and settles one command in the calling goroutine.
func (c *Session) execute(spec *command.Spec, args [][]byte) outcome {
	x := &c.ctx
	x.Spec, x.Args = spec, args
	began, err := c.lock(spec, args)
	if err != nil {
		if err == command.ErrBackground {
			return c.runInBackground(spec, args)
		}
		c.fail(err)
		return done
	}
	if began {
		if err := c.recheck(spec, args); err != nil {
			c.tx.Unlock()
			c.reject(spec, err)
			return done
		}
	}
	mark := c.out.Mark()
	c.tx.NoTouch(c.noTouch)
	if c.replay {
		c.tx.Replaying()
		if spec.Has(command.Timed) {
			if x.Args, err = c.takeInstant(args); err != nil {
				if began {
					c.tx.Unlock()
				}
				c.fail(err)
				return done
			}
		}
	}
	var since int64
	seen := c.svc.observed.Load()
	if seen != 0 {
		since = c.began(seen, spec, args)
	}
	err = spec.Run(x)
	if seen|c.observing != 0 && err != command.ErrBackground {
		if err == command.ErrBlocked {
			since = 0
		}
		c.ran(seen, spec, args, since)
		c.settleCaching(spec)
	}
	if began {
		c.tx.Unlock()
	}
	if err != nil {
		c.out.Rollback(mark)
		return c.notDone(spec, args, err)
	}
	if c.reply != replyOn {
		c.out.Rollback(mark)
		c.skipReply()
	}
	return done
}

// notDone ends a command that has returned an error: it waits, runs again in the background, or has failed.
func (c *Session) notDone(spec *command.Spec, args [][]byte, err error) outcome {
	if c.parked == nil {
		c.dropPieces(len(c.out.Buf))
	}
	switch {
	case err == command.ErrBlocked:
		return waiting
	case err == command.ErrBackground && c.loop:
		return c.runInBackground(spec, args)
	}
	c.stats.of(spec).Failed.Add(1)
	c.fail(err)
	return done
}

// spins is the number of times that a loop tries to lock a shard before it sleeps for it: other goroutines hold a
// shard for about a microsecond.
const spins = 200

// lock begins the command's transaction, if it has keys. On a network loop it returns ErrBackground if a long
// operation holds a shard.
func (c *Session) lock(spec *command.Spec, args [][]byte) (began bool, err error) {
	tx := c.tx
	if tx.Begun() {
		return false, nil // inside EXEC, or a script
	}
	tx.ReadOnly(spec.Has(command.ReadOnly))
	key := spec.OneKey(args)
	switch {
	case spec.LocksAll(args):
		if !tx.TryLockAll(c.dbi) {
			return true, c.wait(true, nil)
		}
	case key > 0:
		if !tx.TryLockKey(c.dbi, args[key]) {
			return true, c.wait(false, args[key:key+1])
		}
	case spec.Has(command.SelfLock) && c.loop:
		// The goroutine would sleep for a shard, and the loop with it.
		if !tx.TryLockAll(c.dbi) {
			return true, command.ErrBackground
		}
	case spec.Has(command.Sliced) && len(args) > ManyArgs:
		tx.Select(c.dbi)
		return false, nil
	case spec.HasKeys():
		keys, err := c.keysOf(spec, args)
		if err != nil {
			return false, err
		}
		if !tx.TryLock(c.dbi, keys) {
			return true, c.wait(false, keys)
		}
	default:
		tx.Select(c.dbi)
		return false, nil
	}
	return true, nil
}

// wait locks the shards of keys, or all shards, while others hold them. A loop must not sleep for them: it
// gets ErrBackground.
func (c *Session) wait(all bool, keys [][]byte) error {
	defer c.tx.Await(all, keys)()
	for range spins {
		if c.OthersRun() {
			return command.ErrBackground
		}
		runtime.Gosched()
		if c.tryLock(all, keys) {
			return nil
		}
	}
	if c.loop {
		return command.ErrBackground
	}
	return c.sleepFor(all, keys)
}

// keysOf returns the keys of a request.
func (c *Session) keysOf(spec *command.Spec, args [][]byte) ([][]byte, error) {
	refs, err := c.ctx.KeysOf(spec, args)
	c.keys = c.keys[:0]
	if err != nil {
		// The handler reports wrong arguments better than the search for keys can; but it must not find a key
		// unlocked.
		if c.OthersRun() {
			return nil, command.ErrBackground
		}
		return nil, c.badArguments(spec, args)
	}
	for _, k := range refs {
		c.keys = append(c.keys, args[k.Pos])
	}
	return c.keys, nil
}

// badArguments runs a handler only for its error, if the server can find no keys in the arguments. It holds
// every shard, so that the handler cannot read an unlocked key.
func (c *Session) badArguments(spec *command.Spec, args [][]byte) error {
	if err := c.wait(true, nil); err != nil {
		return err
	}
	defer c.tx.Unlock()
	mark := c.out.Mark()
	c.ctx.NoWait = true
	err := spec.Run(&c.ctx)
	c.ctx.NoWait = false
	c.out.Rollback(mark)
	if err == nil {
		err = command.ErrSyntax
	}
	return err
}

// parked is a command that runs in the background.
type parked struct {
	spec  *command.Spec
	args  [][]byte
	state atomic.Uint32 // of the constants below
	out   []byte        // the reply, once finished
	wait  *waiter       // the waiter that the command waits in after its background run

	coroutine *coroutine // the coroutine that has begun to run it; nil: it has not begun
	check     bool       // its arguments must still be checked
}

const (
	parkedRuns uint32 = iota
	parkedFinished
	parkedAbandoned // the connection ended first: the goroutine must clean up
	parkedWaits     // it has no goroutine: the command waits
)

// runInBackground prepares a command to run in a goroutine of its own, and copies its arguments.
// The session belongs to that goroutine until the command has finished.
func (c *Session) runInBackground(spec *command.Spec, args [][]byte) outcome {
	c.parked = &parked{spec: spec, args: command.CopyArgs(args), check: c.defers(args)}
	c.batch.calls-- // it is counted when it ends
	return inBackground
}

// backgroundOut is the first capacity of a reply, in bytes: commands in the background mostly have
// long replies.
const backgroundOut = 32 << 10

// startParked starts the command that runInBackground has prepared.
func (c *Session) startParked() {
	p := c.parked
	c.loop = false
	c.out.Buf = p.out
	if p.coroutine == nil {
		c.out.Buf = make([]byte, 0, backgroundOut)
	}
	c.svc.slow.Add(1)
	c.svc.background.Go(func() {
		began := c.svc.DB.Clock().Micros()
		what := c.executeParked(p)
		if what != waiting {
			c.showTransaction()
			c.countInBackground(p.spec, c.svc.DB.Clock().Micros()-began)
		}
		c.loop = true
		c.svc.slow.Add(-1)
		next := parkedFinished
		if p.out = c.out.Buf; what == waiting {
			p.wait, next = c.waiting, parkedWaits
			c.waiting = nil
			c.abandonIfPeerGone(p.wait)
		}
		if p.state.CompareAndSwap(parkedRuns, next) {
			c.conn.Wake()
			return
		}
		if p.wait != nil && !p.wait.abandon(nil) {
			p.wait.takeBack()
		}
		c.cleanUp()
	})
}

// executeInBackground does the work of execute for a request that its loop has parked.
func (c *Session) executeInBackground(p *parked) outcome {
	if p.check {
		if err := c.admitDeferred(p.spec, p.args); err != nil {
			c.reject(p.spec, err)
			return done
		}
	}
	return c.execute(p.spec, p.args)
}

// park records that the session's command waits.
func (c *Session) park() {
	c.parked = &parked{wait: c.waiting}
	c.parked.state.Store(parkedWaits)
	c.waiting = nil
	c.abandonIfPeerGone(c.parked.wait)
}

// abandonIfPeerGone ends a wait that began after the client had stopped sending. The loop reports
// that only once, and it may have been during an earlier command.
func (c *connection) abandonIfPeerGone(w *waiter) {
	if c.peerGone.Load() {
		w.abandon(nil)
	}
}

// unpark appends the reply of a parked command, and reports whether there is one
// yet.
func (c *Session) unpark(out []byte) (_ []byte, ok bool) {
	p := c.parked
	switch p.state.Load() {
	case parkedFinished:
		switch {
		case c.replyTooLong(len(p.out)):
		case len(p.out) >= command.ShareFrom && c.mayShare():
			c.bulky += cap(p.out)
			c.pieces = append(c.pieces, reactor.Piece{At: len(out), Bytes: p.out})
		default:
			out = append(out, p.out...)
		}
	case parkedWaits:
		if !p.wait.over.Load() {
			return out, false
		}
		out = c.resume(p.wait, out)
	default:
		return out, false
	}
	c.parked = nil
	return out, true
}
