package session

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/script"
)

// replHost implements replication.Host for a service.
type replHost Service

// Replication returns the replication node of the service.
func (s *Service) Replication() *replication.Node { return s.repl }

// Follow makes the client a replica, whose connection f takes over.
func (c *Session) Follow(f *replication.Replica) {
	c.view.show(viewReplica, true)
	c.HandOver(f.Run)
	f.Join()
	c.follows.Store(f)
}

// AwaitAcks ends the wait that the client's command has begun, with a reply, as soon as met reports that
// enough replicas have acknowledged.
func (c *Session) AwaitAcks(met func() bool, reply func(*command.Ctx)) {
	w := c.waiting
	c.svc.repl.Await(&replication.AckWait{Over: w.over.Load, Met: met, End: func() { w.answer(nil, reply) }})
}

// gateOf maps each gate of package replication to the gate of dispatch.
var gateOf = [...]gate{
	replication.GateReadOnly:   gateReadOnly,
	replication.GateStale:      gateStale,
	replication.GateNoReplicas: gateNoReplicas,
	replication.GateLoading:    gateLoading,
}

func (h *replHost) SetGate(g replication.Gate, closed bool) { h.gates.set(gateOf[g], closed) }

func (h *replHost) PauseWrites(on bool) { h.pause.handOver(on) }

func (h *replHost) Paused() bool { return h.pause.active() }

func (h *replHost) AwaitPause(ctx context.Context) error { return h.pause.await(ctx) }

const errDemoted = command.ReplyError("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")

func (h *replHost) Demoted(tx *engine.Tx) {
	for _, c := range h.clients.snapshot() {
		if w := c.view.waiting.Load(); w != nil {
			w.end(tx, func(*command.Ctx) { w.fail(errDemoted); w.last = true })
		}
	}
}

func (h *replHost) Keeper() *durable.Keeper { return h.keeper }

func (h *replHost) Port() int { return (*adminHost)(h).Port() }

func (h *replHost) Shutdown() bool {
	end := h.opts.Shutdown
	if end == nil {
		return false
	}
	h.background.Go(func() { end() })
	return true
}

func (h *replHost) Functions() [][]byte { return (*Service)(h).libraries() }

func (h *replHost) LoadFunction(code []byte) error { return (*Service)(h).loadLibrary(code) }

func (h *replHost) DropFunctions() { h.scripts.FlushLibraries() }

func (h *replHost) StageFunctions(ctx context.Context) replication.StagedFunctions {
	s := (*Service)(h)
	return &libraries{s: s, staged: script.New(s.scriptOptions()), host: loadHost{ctx: ctx, s: s}}
}

// libraries holds the libraries of a full synchronisation until Install: no client can call them before.
type libraries struct {
	s      *Service
	staged *script.Engine
	host   loadHost
}

// Load implements StagedFunctions.
func (x *libraries) Load(code []byte) error {
	_, err := x.staged.LoadLibrary(code, true, &x.host)
	return err
}

// Install implements StagedFunctions.
func (x *libraries) Install() error {
	if len(x.staged.Libraries()) == 0 {
		x.s.scripts.FlushLibraries()
		return nil
	}
	return x.s.scripts.RestoreLibraries(x.staged.DumpLibraries(), script.Flush, &x.host)
}

// loadHost is the script.Host of libraries that are loaded without a client: a load may log, and ends when
// its context does.
type loadHost struct {
	ctx context.Context
	s   *Service
}

func (h *loadHost) Call([][]byte) []byte {
	return []byte("-ERR no commands while a library is loaded\r\n")
}
func (h *loadHost) SetProto(int)                   {}
func (h *loadHost) SetReplication(bool, bool)      {}
func (h *loadHost) Allowed([][]byte) (bool, error) { return false, nil }
func (h *loadHost) Log(level int, text string)     { h.s.host.Log(level, text) }
func (h *loadHost) CountError(string, bool)        {}
func (h *loadHost) Tick() error                    { return h.ctx.Err() }

// streamApplier is a session that runs a master's stream.
type streamApplier struct {
	c     *Session
	queue []queued // scratch memory of LockAll
}

func (h *replHost) NewApplier(conn reactor.Conn) replication.Applier {
	c := (*Service)(h).NewSession(conn)
	c.replay = true
	c.setUser(h.acl.Super())
	c.view.show(viewMaster, true)
	return &streamApplier{c: c}
}

// Tx implements Applier.
func (a *streamApplier) Tx() *engine.Tx { return a.c.tx }

// Select implements Applier.
func (a *streamApplier) Select(db int) { a.c.dbi = db }

// Close implements Applier.
func (a *streamApplier) Close() { a.c.Closed(nil) }

// Settle implements Applier.
func (a *streamApplier) Settle(read int) { a.c.endBatch(read, 0) }

// Panicked implements Applier.
func (a *streamApplier) Panicked(what any) {
	a.c.svc.logPanic(what, a.c.ctx.Spec, a.c.id)
	a.c.tx.Abandon()
}

// replied returns an error with the text of its reply.
func replied(err error) error { return command.ReplyError(command.WireText(err)) }

// Resolve implements Applier. It refuses a command for administrators unless the command writes: a master
// replicates data, and its stream must not stop or reconfigure the server.
func (a *streamApplier) Resolve(args [][]byte) (c replication.Command, err error) {
	a.c.ctx.ForgetKeys() // the parser returns the arguments of all commands in the same memory
	spec, err := a.c.resolve(args)
	if err == nil && spec.Has(command.Admin) && !spec.Has(command.Write) {
		err = errors.New("a master does not replicate commands of administrators")
	}
	if err != nil {
		return c, replied(err)
	}
	c = replication.Command{Args: args, Own: spec, Scripts: spec.Has(command.MayReplicate)}
	if spec.Has(command.Write) {
		return c, nil
	}
	switch spec.Name {
	case "ping":
		c.Kind = replication.KindPing
	case "select":
		c.Kind = replication.KindSelect
	case "publish", "spublish":
		c.Kind = replication.KindMessage
	case "exec", "discard":
		c.Kind = replication.KindExec
	}
	return c, nil
}

// AppendKeys implements Applier.
func (a *streamApplier) AppendKeys(to []replication.Touched, q replication.Command) (_ []replication.Touched, all bool) {
	c, spec := a.c, q.Own.(*command.Spec)
	if spec.Flags&(command.Write|command.MayReplicate) == 0 || spec.Has(command.PubSub) {
		return to, false
	}
	if spec.Group == command.GroupScripting {
		return to, true // a script or function may write keys that it does not name
	}
	refs, err := c.ctx.KeysOf(spec, q.Args)
	if err != nil || spec.LocksAll(q.Args) || len(refs) == 0 {
		return to, true
	}
	for _, k := range refs {
		to = append(to, replication.Touched{DB: c.dbi, Key: q.Args[k.Pos]})
	}
	if db := otherDB(spec, q.Args, c.svc.DB.Databases()); db >= 0 {
		to = append(to, replication.Touched{DB: db, Key: q.Args[refs[len(refs)-1].Pos]})
	}
	return to, false
}

// otherDB returns the database in which a command writes its last key, if the command names a database; limit
// is the number of databases. It returns -1 if the command writes only in the selected database.
func otherDB(spec *command.Spec, args [][]byte, limit int) int {
	at := 0
	switch spec.Name {
	case "move":
		at = 2
	case "copy":
		for i := 3; i < len(args)-1; i++ {
			if command.EqualFold(args[i], "DB") {
				at = i + 1
			}
		}
	}
	if at == 0 || at >= len(args) {
		return -1
	}
	n, ok := numeral.ParseInt(args[at])
	if !ok || n < 0 || n >= int64(limit) {
		return -1 // the command is refused
	}
	return int(n)
}

// Lock implements Applier.
func (a *streamApplier) Lock(q replication.Command) error {
	c, spec := a.c, q.Own.(*command.Spec)
	c.ctx.Spec, c.ctx.Args = spec, q.Args // lock may run the handler, for its error about wrong arguments
	if _, err := c.lock(spec, q.Args); err != nil {
		return replied(err)
	}
	if !c.tx.Begun() {
		c.tx.LockAll(c.dbi)
	}
	return nil
}

// LockAll implements Applier.
func (a *streamApplier) LockAll(queue []replication.Command) error {
	c := a.c
	a.queue = a.queue[:0]
	for _, q := range queue {
		a.queue = append(a.queue, queued{q.Own.(*command.Spec), q.Args})
	}
	if err := c.lockAll(a.queue); err != nil {
		return replied(err)
	}
	if !c.tx.Begun() {
		c.tx.LockAll(c.dbi)
	}
	return nil
}

// keepReplies is the largest buffer for replies that a streamApplier keeps.
const keepReplies = 4 << 20

// Run implements Applier.
func (a *streamApplier) Run(q replication.Command, inside bool) error {
	c, spec := a.c, q.Own.(*command.Spec)
	c.tx.Replaying()
	x := c.ctx
	x.Spec, x.Args, x.NoWait = spec, q.Args, inside
	if spec.Has(command.Timed) {
		var err error
		if x.Args, err = c.takeInstant(q.Args); err != nil {
			return replied(err)
		}
	}
	c.count(spec, len(q.Args))
	var since int64
	seen := c.svc.observed.Load()
	if seen != 0 {
		since = c.began(seen, spec, q.Args)
	}
	err := spec.Run(&x)
	if seen != 0 {
		c.ran(seen, spec, q.Args, since)
	}
	switch {
	case err != nil:
		err = replied(err)
	case len(c.out.Buf) > 0 && c.out.Buf[0] == '-':
		err = command.ReplyError(c.out.Buf[1 : len(c.out.Buf)-2])
	}
	c.out.Buf = c.out.Buf[:0]
	if cap(c.out.Buf) > keepReplies {
		c.out.Buf = nil
	}
	return err
}
