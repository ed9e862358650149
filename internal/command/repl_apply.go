package command

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

// follower does what a master's stream says, and appends the stream to this
// server's own, byte by byte: each command in the transaction that it makes here,
// so that offset and data change together.
//
// A command that it cannot do as the master did (it is not known, or is refused) ends the
// link, and is never skipped: data would differ from the master's from there on. The log
// and INFO name it, its bytes are in no stream of this server's, and the stream's name is
// given up, so that the next link asks for all data. Such links come at growing intervals.
type follower struct {
	l *link
	m *masterConn
	c *Session

	buf []byte // received and not done yet
	at  int    // buf[:at] is a transaction that has begun, as far as it was looked at
	in  bool   // a transaction has begun
	db  int    // the database that the stream has selected, -1: none

	queue []queued // the transaction
	undo  engine.Undo
	half  string // a key that undo does not hold, and that the transaction may have changed; empty: none
	args  [][]byte
	doing [][]byte // the command that is being done
}

// errReplaced ends a link that is not the service's any more.
var errReplaced = errors.New("the server follows another master, or none")

func newFollower(l *link, m *masterConn) *follower {
	f := &follower{l: l, m: m, c: l.r.svc.NewSession(m), buf: make([]byte, 0, linkBuffer), db: l.r.svc.DB.Log().DB()}
	f.c.replay = true
	f.c.become(l.r.svc.acl.super)
	f.c.view.show(viewMaster, true)
	f.c.dbi = max(f.db, 0)
	f.c.parser.Limits = resp.Limits{MaxBulk: math.MaxInt / 2, MaxArgs: math.MaxInt32}
	return f
}

func (f *follower) close() { f.c.Closed(nil) }

// run applies the stream until the connection or the link ends.
func (f *follower) run() error {
	for {
		if len(f.buf) == cap(f.buf) {
			f.buf = append(f.buf, 0)[:len(f.buf)] // twice as large, or so
		}
		n, err := f.m.r.Read(f.buf[len(f.buf):cap(f.buf)])
		f.buf = f.buf[:len(f.buf)+n]
		if n > 0 {
			used, failed := f.apply(f.buf)
			if failed != nil {
				return failed
			}
			f.c.endBatch(used, 0)
			f.keep(used)
		}
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("the master has closed the connection")
		case err != nil:
			return err
		}
	}
}

// keepLink is the largest buffer that a link keeps when it is empty.
const keepLink = 4 << 20

// keep forgets what is done.
func (f *follower) keep(used int) {
	if used == 0 {
		return // a large command arrives: its bytes are not moved for each read
	}
	n := copy(f.buf, f.buf[used:])
	f.buf = f.buf[:n]
	if n == 0 && cap(f.buf) > keepLink {
		f.buf = make([]byte, 0, linkBuffer)
	}
}

// apply does all that is there as a whole, and returns how many bytes that is.
func (f *follower) apply(buf []byte) (used int, err error) {
	pos := f.at
	for pos < len(buf) {
		args, n, err := f.c.parser.Next(buf[pos:])
		if err != nil {
			return used, fmt.Errorf("the stream cannot be understood at offset %d: %w", f.l.r.svc.DB.Log().End(), err)
		}
		if n == 0 {
			break
		}
		pos += n
		switch {
		case f.in && (len(args) == 0 || !EqualFold(args[0], "EXEC")):
			continue
		case f.in:
			f.in = false
			err = f.transaction(buf[used:pos])
		case len(args) == 1 && EqualFold(args[0], "MULTI"):
			f.in = true
			continue
		default:
			err = f.one(args, buf[used:pos])
		}
		if err != nil {
			return used, err
		}
		used = pos
	}
	f.at = pos - used
	return used, nil
}

// one does one command, which is raw in the stream.
func (f *follower) one(args [][]byte, raw []byte) error {
	if len(args) == 0 {
		return f.control(raw)
	}
	spec, err := f.resolve(args)
	switch {
	case EqualFold(args[0], "REPLCONF"):
		if err = f.control(raw); err == nil && len(args) > 1 && EqualFold(args[1], "GETACK") {
			f.l.acknowledge(f.m)
		}
		return err
	case err != nil:
		return f.refused(args, err)
	case spec.Has(Write):
		return f.write(spec, args, raw)
	}
	switch spec.Name {
	case "ping":
		return f.control(raw)
	case "select":
		return f.selectDB(args, raw)
	case "publish", "spublish":
		return f.publish(spec, args, raw)
	case "exec", "discard":
		return f.refused(args, errors.New("there is no MULTI before it"))
	}
	return f.write(spec, args, raw)
}

// resolve finds a command of the stream. What is for administrators is not: a master
// replicates data, and whoever stands in for it must not end or turn the server.
func (f *follower) resolve(args [][]byte) (*Spec, error) {
	spec, err := f.c.resolve(args)
	if err == nil && spec.Has(Admin) && !spec.Has(Write) {
		err = errors.New("a master does not replicate commands of administrators")
	}
	return spec, err
}

// begin locks all shards, for what is no command on keys.
func (f *follower) begin() error {
	f.c.tx.LockAll(f.c.dbi)
	return f.mine()
}

// mine checks, with shards locked, that the link is the service's. If not it lets
// go of them.
func (f *follower) mine() error {
	if f.l.current() {
		return nil
	}
	f.c.tx.Unlock()
	return errReplaced
}

// control takes over what is in the stream for replicas alone.
func (f *follower) control(raw []byte) error {
	if err := f.begin(); err != nil {
		return err
	}
	f.l.r.svc.DB.Log().AppendControl(raw)
	f.c.tx.Unlock()
	return nil
}

// selectDB is SELECT. A database that is not there ends the link: what follows
// would go elsewhere.
func (f *follower) selectDB(args [][]byte, raw []byte) error {
	n, err := f.number(args)
	if err != nil {
		return err
	}
	if err := f.begin(); err != nil {
		return err
	}
	f.db, f.c.dbi = n, n
	f.c.tx.Verbatim(raw, n)
	f.c.tx.Unlock()
	return nil
}

func (f *follower) number(args [][]byte) (int, error) {
	n, ok := int64(-1), false
	if len(args) == 2 {
		n, ok = resp.ParseInt(args[1])
	}
	if most := f.l.r.svc.DB.Databases(); !ok || n < 0 || n >= int64(most) {
		return 0, fmt.Errorf("the master uses a database that is not here: %q, of %d; set the directive databases as it is there", args, most)
	}
	return int(n), nil
}

// publish tells the subscribers of this server.
func (f *follower) publish(spec *Spec, args [][]byte, raw []byte) error {
	if err := f.unpaused(); err != nil {
		return err
	}
	if err := f.begin(); err != nil {
		return err
	}
	if err := f.do(spec, args, false); err != nil {
		f.l.r.svc.Log.Warn("a message of the master could not be published", "error", err)
	}
	f.l.r.svc.DB.Log().AppendControl(raw)
	f.c.tx.Unlock()
	return nil
}

// write does a command that changes data.
func (f *follower) write(spec *Spec, args [][]byte, raw []byte) error {
	if err := f.unpaused(); err != nil {
		return err
	}
	c := f.c
	f.doing = args
	c.ctx.Spec, c.ctx.Args = spec, args // lock may run the handler, for what it says of wrong arguments
	if _, err := c.lock(spec, args); err != nil {
		return f.refused(args, err)
	}
	if !c.tx.Begun() {
		c.tx.LockAll(c.dbi)
	}
	if err := f.mine(); err != nil {
		return err
	}
	if err := f.do(spec, args, false); err != nil {
		c.tx.Unlock()
		return f.refused(args, err)
	}
	c.tx.Verbatim(raw, f.db)
	c.tx.Unlock()
	return nil
}

// unpaused waits for the end of a CLIENT PAUSE, which holds back what the master writes
// too: a replica that is paused stays as it is. The link is kept meanwhile.
func (f *follower) unpaused() error {
	p := &f.l.r.svc.pause
	if !p.active() {
		return nil
	}
	f.l.deaf.Store(true)
	defer f.l.deaf.Store(false)
	defer f.m.noteHeard()
	return p.await(f.l.ctx)
}

// do runs a command in the transaction, whose shards are locked.
func (f *follower) do(spec *Spec, args [][]byte, inside bool) error {
	c := f.c
	c.tx.Replaying()
	x := c.ctx
	x.Spec, x.Args, x.noWait = spec, args, inside
	if spec.Has(Timed) {
		var err error
		if x.Args, err = c.takeInstant(args); err != nil {
			return err
		}
	}
	c.count(spec, len(args))
	var since int64
	seen := c.svc.observed.Load()
	if seen != 0 {
		since = c.began(seen, spec, args)
	}
	err := spec.Run(&x)
	if seen != 0 {
		c.ran(seen, spec, args, since)
	}
	if err == nil && len(c.out.Buf) > 0 && c.out.Buf[0] == '-' {
		err = errors.New(string(c.out.Buf[1 : len(c.out.Buf)-2]))
	}
	c.out.Buf = c.out.Buf[:0]
	if cap(c.out.Buf) > keepLink {
		c.out.Buf = nil
	}
	return err
}

// transaction does what stands between MULTI and EXEC, at once.
func (f *follower) transaction(raw []byte) error {
	if err := f.unpaused(); err != nil {
		return err
	}
	c := f.c
	db, err := f.gather(raw)
	if err != nil {
		return err
	}
	if err := c.lockAll(f.queue); err != nil {
		return err
	}
	if !c.tx.Begun() {
		c.tx.LockAll(c.dbi)
	}
	if err := f.mine(); err != nil {
		return err
	}
	f.undo.Reset()
	f.half = ""
	for i, q := range f.queue {
		if q.spec.Name == "select" {
			c.dbi, _ = strconv.Atoi(string(q.args[1]))
			c.tx.Select(c.dbi)
			continue
		}
		c.tx.Select(c.dbi)
		if i < len(f.queue)-1 || q.spec.Has(MayReplicate) { // a script may fail behind a write
			f.remember(q)
		}
		f.doing = q.args
		if err := f.do(q.spec, q.args, true); err != nil {
			return f.takeBack(q.args, err)
		}
		c.tx.Tell()
	}
	f.db = db
	c.tx.Verbatim(raw, db)
	c.tx.Unlock()
	return nil
}

// remember notes what the keys of a command of a transaction hold before it.
func (f *follower) remember(q queued) {
	c := f.c
	if f.half != "" || q.spec.Flags&(Write|MayReplicate) == 0 || q.spec.Has(PubSub) {
		return
	}
	if q.spec.Group == GroupScripting {
		f.half = "all keys" // a script or function may write what it does not name
		return
	}
	refs, err := q.spec.AppendKeys(c.ctx.keys[:0], q.args)
	if c.ctx.keys = refs; err != nil || q.spec.wide(q.args) || len(refs) == 0 || len(refs) > maxUndo {
		f.half = "all keys"
		return
	}
	for _, k := range refs {
		if !f.undo.Remember(c.tx, q.args[k.Pos]) {
			f.half = strconv.Quote(string(clip(q.args[k.Pos], 64)))
			return
		}
	}
	if db := otherDB(q, c.svc.DB.Databases()); db >= 0 {
		key := q.args[refs[len(refs)-1].Pos]
		c.tx.Select(db)
		if !f.undo.Remember(c.tx, key) {
			f.half = strconv.Quote(string(clip(key, 64)))
		}
		c.tx.Select(c.dbi)
	}
}

// otherDB returns the database, of so many, in which a command writes its last key where that is
// named by the command; -1: it writes in the selected one alone.
func otherDB(q queued, most int) int {
	at := 0
	switch q.spec.Name {
	case "move":
		at = 2
	case "copy":
		for i := 3; i < len(q.args)-1; i++ {
			if EqualFold(q.args[i], "DB") {
				at = i + 1
			}
		}
	}
	if at == 0 || at >= len(q.args) {
		return -1
	}
	n, ok := resp.ParseInt(q.args[at])
	if !ok || n < 0 || n >= int64(most) {
		return -1 // the command is refused
	}
	return int(n)
}

// maxUndo is how many keys one command of a transaction may have to be taken back.
const maxUndo = 64

// takeBack ends a transaction of which the command args was refused: what the commands
// before it did is taken back. Where that cannot be done, files are made anew of what is in
// memory, so that they do not contradict it, and the log says which key differs until all
// data comes.
func (f *follower) takeBack(args [][]byte, why error) error {
	c := f.c
	if f.half == "" {
		if err := f.undo.TakeBack(c.tx); err != nil {
			f.half = "some keys (" + err.Error() + ")"
		}
	}
	half := f.half
	c.tx.Forget()
	c.tx.Unlock()
	if half != "" {
		why = fmt.Errorf("%s; the commands before it in its transaction may have changed %s, and could not be taken back", wireText(why), half)
	}
	err := f.refused(args, why)
	if replaced := f.l.r.onReplaced; half != "" && replaced != nil && f.l.current() {
		replaced()
	}
	return err
}

// gather splits a transaction into the commands that stand for something here, and
// returns the database that it leaves selected.
func (f *follower) gather(raw []byte) (db int, err error) {
	db = f.db
	f.queue, f.args = f.queue[:0], f.args[:0]
	for at := 0; at < len(raw); {
		args, n, err := f.c.parser.Next(raw[at:])
		if err != nil || n == 0 {
			return 0, fmt.Errorf("a transaction of the stream cannot be understood: %w", err)
		}
		at += n
		if len(args) == 0 || len(args) == 1 && (EqualFold(args[0], "MULTI") || EqualFold(args[0], "EXEC") || EqualFold(args[0], "PING")) {
			continue
		}
		spec, err := f.resolve(args)
		if err != nil {
			return 0, f.refused(args, err)
		}
		if spec.Name == "select" {
			if db, err = f.number(args); err != nil {
				return 0, err
			}
		}
		from := len(f.args)
		f.args = append(f.args, args...)
		f.queue = append(f.queue, queued{spec, f.args[from:len(f.args):len(f.args)]})
	}
	return db, nil
}

// refusedCommand is the last command of a master that could not be done here.
type refusedCommand struct {
	offset  int64 // of the stream before it
	command string
	why     string
}

// refused says that a command of the master could not be done here, and returns the
// error that ends the link. No shard is locked.
func (f *follower) refused(args [][]byte, why error) error {
	r := f.l.r
	if !f.l.giveUpStream() {
		return errReplaced
	}
	last := refusedCommand{r.svc.DB.Log().End(), shown(args), wireText(why)}
	r.refusal.Store(&last)
	n := r.refused.Add(1)
	r.svc.Log.Error("a command of the master was refused: the link ends, and all data is asked for again",
		"command", last.command, "error", why, "offset", last.offset, "refused", n)
	if r.svc.Config.String("propagation-error-behavior") != "ignore" {
		if end := r.svc.opts.Shutdown; end != nil {
			r.svc.Log.Error("the server ends, as propagation-error-behavior says")
			r.svc.beside.Go(func() { end() })
		}
		f.l.stop()
	}
	return &refusedError{last}
}

// refusedError ends a link.
type refusedError struct{ refusedCommand }

func (e *refusedError) Error() string {
	return fmt.Sprintf("a command of the master was refused at offset %d: %s: %s", e.offset, e.command, e.why)
}

// giveUpStream forgets the name of the stream, of which this server has not all: the
// next link and the replicas of this server get all data. It reports whether the link is
// still the service's.
func (l *link) giveUpStream() bool {
	tx := l.r.svc.DB.BeginAll(0)
	defer tx.Commit()
	if !l.current() {
		return false
	}
	l.r.become(randomID())
	l.r.svc.dropReplicas("a command of the master was refused: all data is to be synchronised again")
	return true
}

// shown is a command for a log: its first words, and not too much of them.
func shown(args [][]byte) string {
	text := ""
	for i, word := range args {
		if i == 8 {
			return text + " ..."
		}
		text += fmt.Sprintf(" %q", clip(word, 64))
	}
	return text[min(1, len(text)):]
}
