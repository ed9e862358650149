package command

import (
	"strings"

	"github.com/ebbdb/ebb/engine"
)

// multi is a session's transaction: what MULTI began and EXEC will run.
type multi struct {
	on     bool
	failed bool // a command was refused while queueing: EXEC will abort
	queue  []queued
}

// queued is a command that waits for EXEC.
type queued struct {
	spec *Spec
	args [][]byte
}

// enqueue puts a command off until EXEC.
func (c *Session) enqueue(spec *Spec, args [][]byte) {
	if spec.Has(NoMulti) {
		c.reject(spec, ReplyError("ERR Command not allowed inside a transaction"))
		return
	}
	own := make([][]byte, len(args))
	for i, a := range args {
		own[i] = append([]byte(nil), a...)
	}
	c.multi.queue = append(c.multi.queue, queued{spec, own})
	if c.reply == replyOn {
		c.out.Simple("QUEUED")
	} else {
		c.skipReply()
	}
}

var specMulti = Spec{
	Name: "multi", Group: GroupTransactions, Since: "1.2.0", Complexity: "O(1)",
	Summary: "Starts a transaction.",
	Flags:   NoScript | Loading | Stale | Fast | AllowBusy | NoQueue,
	Examples: "> MULTI\nOK\n> INCR visits\nQUEUED\n> INCR visits\nQUEUED\n> EXEC\n1) (integer) 1\n2) (integer) 2\n" +
		"> MULTI\nOK\n> MULTI\n(error) ERR MULTI calls can not be nested\n> DISCARD\nOK\n",
	Run: runMulti,
}

func runMulti(c *Ctx) error {
	m := &c.Session.multi
	if m.on {
		return ReplyError("ERR MULTI calls can not be nested")
	}
	m.on = true
	c.Out.OK()
	return nil
}

var specDiscard = Spec{
	Name: "discard", Group: GroupTransactions, Since: "2.0.0", Complexity: "O(N), when N is the number of queued commands",
	Summary:  "Discards a transaction.",
	Flags:    NoScript | Loading | Stale | Fast | AllowBusy | NoQueue,
	Examples: "> MULTI\nOK\n> SET k v\nQUEUED\n> DISCARD\nOK\n> GET k\n(nil)\n> DISCARD\n(error) ERR DISCARD without MULTI\n",
	Run:      runDiscard,
}

func runDiscard(c *Ctx) error {
	if !c.Session.multi.on {
		return ReplyError("ERR DISCARD without MULTI")
	}
	c.Session.multi = multi{}
	c.Session.unwatch()
	c.Out.OK()
	return nil
}

var specExec = Spec{
	Name: "exec", Group: GroupTransactions, Since: "1.2.0", Complexity: "Depends on commands in the transaction",
	Summary: "Executes all commands in a transaction.",
	Flags:   NoScript | Loading | Stale | SkipSlowlog | NoQueue,
	Examples: "> MULTI\nOK\n> SET k v\nQUEUED\n> GET k\nQUEUED\n> EXEC\n1) OK\n2) \"v\"\n" +
		"> WATCH k\nOK\n2> SET k other\nOK\n> MULTI\nOK\n> SET k mine\nQUEUED\n> EXEC\n(nil)\n> EXEC\n(error) ERR EXEC without MULTI\n",
	Run: runExec,
}

func runExec(c *Ctx) error {
	s := c.Session
	m := s.multi
	switch {
	case !m.on:
		return ReplyError("ERR EXEC without MULTI")
	case m.failed:
		s.multi = multi{}
		s.unwatch()
		return ErrExecAbort
	}
	if s.busy() || s.loop && m.slow() {
		return ErrBeside
	}
	s.multi = multi{}
	s.lockAll(m.queue)
	defer func() {
		// The watches go while the shards are still locked, so that nobody
		// breaks what is over.
		if s.watch != nil {
			s.watch.Clear(s.tx)
		}
		s.tx.Unlock()
	}()
	if s.watch != nil && s.watch.Broken(s.tx) {
		c.Out.NullArray()
		return nil
	}
	c.Out.Array(len(m.queue))
	for _, q := range m.queue {
		s.runQueued(q)
	}
	return nil
}

// abort ends the transaction because EXEC itself was refused, and returns the
// error to reply.
func (c *Session) abort(why error) error {
	c.multi = multi{}
	c.unwatch()
	return ReplyError("EXECABORT Transaction discarded because of: " + strings.TrimPrefix(wireText(why), "ERR "))
}

// runQueued runs one command of a transaction; its error is one of the replies.
func (c *Session) runQueued(q queued) {
	x := c.ctx
	x.Spec, x.Args = q.spec, q.args
	c.tx.Select(c.dbi)
	mark := c.out.Mark()
	c.count(q.spec, len(q.args))
	if err := q.spec.Run(&x); err != nil {
		c.out.Rollback(mark)
		c.stats.of(q.spec).failed.Add(1)
		text := wireText(err)
		c.svc.totals.countError(text)
		c.out.Error(text)
	}
}

// slow reports whether a transaction must not run on a network loop.
func (m *multi) slow() bool {
	for _, q := range m.queue {
		if q.spec.Has(Slow) {
			return true
		}
	}
	return false
}

// lockAll begins the transaction on all keys of the commands, watched keys
// included.
func (c *Session) lockAll(queue []queued) {
	var keys [][]byte
	if c.watch != nil {
		keys = c.watch.Keys()
	}
	for _, q := range queue {
		if q.spec.Has(AllKeys) || q.spec.Has(SelfLock) {
			c.tx.LockAll(c.dbi)
			return
		}
		refs, err := q.spec.AppendKeys(c.ctx.keys[:0], q.args)
		c.ctx.keys = refs
		if err != nil {
			c.tx.LockAll(c.dbi)
			return
		}
		for _, k := range refs {
			keys = append(keys, q.args[k.Pos])
		}
	}
	c.tx.Lock(c.dbi, keys)
}

var specWatch = Spec{
	Name: "watch", Group: GroupTransactions, Since: "2.2.0", Complexity: "O(1) for every key.",
	Summary:  "Monitors changes to keys to determine the execution of a transaction.",
	Flags:    NoScript | Loading | Stale | Fast | AllowBusy | NoQueue,
	Args:     []Arg{ManyKeys("key", Meta)},
	Examples: "> WATCH a b\nOK\n> MULTI\nOK\n> WATCH c\n(error) ERR WATCH inside MULTI is not allowed\n> DISCARD\nOK\n",
	Run:      runWatch,
}

func runWatch(c *Ctx) error {
	s := c.Session
	if s.multi.on {
		return ReplyError("ERR WATCH inside MULTI is not allowed")
	}
	if s.watch == nil {
		s.watch = c.Service.DB.NewWatch()
	}
	for _, key := range c.Args[1:] {
		s.watch.Add(c.Tx, key)
	}
	c.Out.OK()
	return nil
}

var specUnwatch = Spec{
	Name: "unwatch", Group: GroupTransactions, Since: "2.2.0", Complexity: "O(1)",
	Summary:  "Forgets about watched keys of a transaction.",
	Flags:    NoScript | Loading | Stale | Fast | AllowBusy,
	Examples: "> WATCH k\nOK\n> UNWATCH\nOK\n2> SET k v\nOK\n> MULTI\nOK\n> GET k\nQUEUED\n> EXEC\n1) \"v\"\n",
	Run:      runUnwatch,
}

func runUnwatch(c *Ctx) error {
	c.Session.unwatch()
	c.Out.OK()
	return nil
}

func (c *Session) unwatch() {
	if c.watch != nil {
		var held *engine.Tx
		if c.tx.Begun() {
			held = c.tx
		}
		c.watch.Clear(held)
	}
}
