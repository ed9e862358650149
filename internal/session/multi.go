package session

import (
	"strings"

	"github.com/ebbdb/ebb/internal/command"
)

// multi is a session's transaction: the commands between MULTI and EXEC.
type multi struct {
	on     bool
	failed bool // a command was refused while queueing: EXEC will abort
	queue  []queued
	bytes  int64 // the approximate memory of the queue
	// scripts means that one of the commands runs a script.
	scripts bool
	// any has the flags that at least one of the commands has; lacks has the flags that at least one does not
	// have: see Session.effectiveFlags.
	any, lacks command.Flags
	flags      command.Flags // of the commands, whatever their arguments: the flags that at least one of them has
	args       int           // of all of them
}

// queued is a command that waits for EXEC.
type queued struct {
	spec *command.Spec
	args [][]byte
}

// queuedBytes is the size of a queued command besides its arguments: two words and a slice.
const queuedBytes = 32

// enqueue queues a command for EXEC.
func (c *Session) enqueue(spec *command.Spec, args [][]byte) {
	switch {
	case spec.Has(command.NoMulti):
		c.reject(spec, command.ReplyError("ERR Command not allowed inside a transaction"))
		return
	case c.Full(c.multi.bytes + command.ArgsBytes(args)):
		c.multi.queue = nil // EXEC will abort
		c.reject(spec, command.ErrApart)
		return
	case !c.multi.failed: // EXEC will abort, so the queue need not keep the command
		c.multi.queue = append(c.multi.queue, queued{spec, command.CopyArgs(args)})
		c.multi.scripts = c.multi.scripts || spec.Has(command.Scripts)
		f := c.effectiveFlags(spec, args)
		c.multi.flags |= spec.Flags
		c.multi.args += len(args)
		c.multi.any |= f
		c.multi.lacks |= ^f
		c.multi.bytes += queuedBytes + command.ArgBytes*int64(len(args)) + command.ArgsBytes(args)
	}
	if c.reply == replyOn {
		c.out.Simple("QUEUED")
	} else {
		c.skipReply()
	}
}

// BeginMulti begins a transaction, and reports whether the client was in none.
func (c *client) BeginMulti() bool {
	was := c.multi.on
	c.multi.on = true
	return !was
}

// InMulti reports whether the client is in a transaction.
func (c *client) InMulti() bool { return c.multi.on }

// Exec runs the commands of the client's transaction for EXEC, whose context is x, and writes its reply.
func (c *Session) Exec(x *command.Ctx) error {
	m := &c.multi
	switch {
	case m.needsMemory() && !c.replay && c.svc.outOfMemory():
		return c.abort(command.ErrOOM)
	case m.failed:
		c.EndMulti()
		return command.ErrExecAbort
	case c.loop && (m.slow() || c.watch != nil && c.watch.Len() > ManyArgs):
		return command.ErrBackground
	case c.crossesSlots(m.queue):
		c.EndMulti()
		return errCrossSlot
	}

	c.tx.ReadOnly(m.lacks&command.ReadOnly == 0) // all commands only read
	switch err := c.lockAll(m.queue); {
	case err == command.ErrBackground:
		return err
	case err != nil: // a script is overdue
		return c.abort(err)
	}
	if err := c.recheck(x.Spec, x.Args); err != nil {
		c.tx.Unlock()
		return c.abort(err)
	}
	if c.watch != nil && c.watch.Broken(c.tx) {
		x.Out.NullArray()
	} else if err := c.runQueue(m.queue); err != nil {
		c.tx.Unlock()
		return err
	}
	c.batch.noteNotRun(x.Spec) // the client's last command is EXEC
	// The session stops watching while the shards are still locked, so that a later write does not touch
	// finished watches.
	c.EndMulti()
	c.tx.Unlock()
	return nil
}

// EndMulti drops the transaction and the watched keys.
func (c *Session) EndMulti() {
	q := c.multi.queue
	clear(q)
	if cap(q) > keepQueue {
		q = nil
	}
	c.multi = multi{queue: q[:0]}
	c.Unwatch()
}

// keepQueue is the size of the longest queue that a session keeps for its next transaction.
const keepQueue = 8

// abort ends the transaction because the server refused EXEC itself, and returns the error to
// reply.
func (c *Session) abort(why error) error {
	c.EndMulti()
	return command.ReplyError("EXECABORT Transaction discarded because of: " + strings.TrimPrefix(command.WireText(why), "ERR "))
}

// runQueue runs the commands of a transaction, whose shards are locked. If a command will take long and the
// earlier ones have only read, it returns ErrBackground, and EXEC begins again in the background. After a
// write it cannot begin again, and the loop has to wait.
func (c *Session) runQueue(queue []queued) error {
	loop := c.loop
	defer func() { c.loop, c.step = loop, command.Ctx{} }()
	c.out.Array(len(queue))
	for _, q := range queue {
		if err := c.runQueued(q); err != nil {
			return err
		}
		c.loop = c.loop && q.spec.Has(command.ReadOnly)
	}
	return nil
}

// runQueued runs one command of a transaction. Its error is one of the replies;
// only ErrBackground is returned.
func (c *Session) runQueued(q queued) error {
	if err := c.permitQueued(q.spec, q.args); err != nil {
		text := command.WireText(err)
		c.svc.admin.Totals.CountError(text)
		c.out.Error(text)
		return nil
	}
	x := &c.step
	*x = c.ctx
	x.Spec, x.Args, x.NoWait = q.spec, q.args, true
	c.tx.Select(c.dbi)
	c.tx.NoTouch(c.noTouch)
	mark := c.out.Mark()
	var since int64
	seen := c.svc.observed.Load()
	if seen != 0 {
		since = c.began(seen, q.spec, q.args)
	}
	err := q.spec.Run(x)
	c.tx.Tell()
	if err == command.ErrBackground && c.loop {
		return err
	}
	if seen|c.observing != 0 {
		c.ran(seen, q.spec, q.args, since)
	}
	c.count(q.spec, len(q.args))
	switch {
	case err != nil:
		c.out.Rollback(mark)
		c.stats.of(q.spec).Failed.Add(1)
		c.out.Error(c.svc.countFailure(err))
	case !c.out.Wrote(mark): // CLIENT REPLY OFF: the array stays complete
		c.out.Null()
	}
	return nil
}

// manyCommands is the largest number of commands that a transaction may have on a network loop: at
// some 100 ns each they take about as long as LongBytes.
const manyCommands = 1024

// slow reports whether a transaction must not run on a network loop.
func (m *multi) slow() bool {
	return len(m.queue) > manyCommands || m.args > ManyArgs || m.flags&command.Slow != 0
}

// needsMemory reports whether the queue has a command that the memory limit can refuse.
func (m *multi) needsMemory() bool { return m.flags&command.DenyOOM != 0 }

// lockAll begins the transaction on all keys of the commands, including watched keys. It returns the errors
// of wait.
func (c *Session) lockAll(queue []queued) error {
	keys, all := c.keys[:0], false
	if c.watch != nil {
		if all = c.watch.Len() > ManyArgs; !all { // many keys are in all shards
			keys = c.watch.AppendKeys(keys)
		}
	}
	for _, q := range queue {
		if all {
			break
		}
		if all = q.spec.LocksAll(q.args) || q.spec.Has(command.SelfLock); all {
			break
		}
		refs, err := c.ctx.KeysOf(q.spec, q.args)
		if all = err != nil; all {
			break
		}
		for _, k := range refs {
			keys = append(keys, q.args[k.Pos])
		}
	}
	defer clear(keys) // the arguments are not kept alive
	if c.keys = keys; c.tryLock(all, keys) {
		return nil
	}
	return c.wait(all, keys)
}

// Watch watches keys. Their shards are locked, unless there are many: see command.Sliced. Errors: ErrApart,
// and the error of an overdue script; then none of the keys is watched.
func (c *Session) Watch(keys [][]byte) error {
	if c.watch == nil {
		c.watch = c.svc.DB.NewWatch()
	}
	if c.Full(c.watch.Bytes() + command.ArgsBytes(keys)) {
		return command.ErrApart
	}
	if c.tx.Begun() {
		c.watchKeys(keys)
		return nil
	}
	return c.watchSlices(keys)
}

func (c *Session) watchKeys(keys [][]byte) {
	for _, key := range keys {
		c.watch.Add(c.tx, key)
	}
}

// watchSlices watches keys one at a time, so that other commands run in between. A client reads the watched
// keys after the reply to WATCH, and so after all of them are watched. It returns an error if a script is
// overdue; then none of the keys is watched.
func (c *Session) watchSlices(keys [][]byte) error {
	had := c.watch.Len()
	for i := range keys {
		one := keys[i : i+1]
		if !c.tryLock(false, one) {
			if err := c.wait(false, one); err != nil {
				c.watch.Forget(nil, had)
				return err
			}
		}
		c.watchKeys(one)
		c.tx.Unlock()
	}
	return nil
}

// Unwatch drops the watched keys. A goroutine does the work if there are many of them, or if other
// transactions hold their shards: a script may hold a shard for long.
func (c *Session) Unwatch() {
	w := c.watch
	switch {
	case w == nil || w.Len() == 0:
	case w.Len() > ManyArgs: // key by key, while other commands run
		c.watch = nil
		c.svc.background.Go(func() { w.Clear(nil) })
	case c.tx.Begun():
		w.Clear(c.tx)
	case !w.TryClear():
		c.watch = nil
		c.svc.background.Go(func() { w.Clear(nil) })
	}
}
