package command

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/resp"
)

// follower does what a master's stream says, and appends the stream to this
// server's own, byte by byte: each command in the transaction that it makes here,
// so that offset and data change together.
//
// What it cannot do (a command that is not known, or is refused) it says in the
// log, counts, and goes on, as propagation-error-behavior says: the bytes count in
// the stream all the same, and data differs from the master's from there on. Files
// leave it out: it would be refused again at the next start.
type follower struct {
	l *link
	m *masterConn
	c *Session

	buf []byte // received and not done yet
	at  int    // buf[:at] is a transaction that has begun, as far as it was looked at
	in  bool   // a transaction has begun
	db  int    // the database that the stream has selected, -1: none

	queue []queued      // the transaction
	parts []oplog.Range // where the commands of queue stand in it
	idle  []oplog.Range // what files leave out of it
	args  [][]byte
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
		return f.pass(args, raw, err)
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
		return f.pass(args, raw, errors.New("there is no MULTI before it"))
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

// pass takes over bytes that stand for nothing here.
func (f *follower) pass(args [][]byte, raw []byte, why error) error {
	if err := f.begin(); err != nil {
		return err
	}
	f.c.tx.Verbatim(raw, f.db, oplog.Range{To: len(raw)})
	f.c.tx.Unlock()
	return f.refused(args, why)
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
	c := f.c
	if _, err := c.lock(spec, args); err != nil {
		return f.pass(args, raw, err)
	}
	if !c.tx.Begun() {
		c.tx.LockAll(c.dbi)
	}
	if err := f.mine(); err != nil {
		return err
	}
	if err := f.do(spec, args, false); err != nil {
		c.tx.Verbatim(raw, f.db, oplog.Range{To: len(raw)})
		c.tx.Unlock()
		return f.refused(args, err)
	}
	c.tx.Verbatim(raw, f.db)
	c.tx.Unlock()
	return nil
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
	var fatal error
	for i, q := range f.queue {
		if q.spec.Name == "select" {
			c.dbi, _ = strconv.Atoi(string(q.args[1]))
			c.tx.Select(c.dbi)
			continue
		}
		c.tx.Select(c.dbi)
		if err := f.do(q.spec, q.args, true); err != nil {
			f.idle = append(f.idle, f.parts[i])
			if fatal == nil {
				fatal = f.refused(q.args, err)
			}
		}
		c.tx.Tell()
	}
	f.db = db
	slices.SortFunc(f.idle, func(a, b oplog.Range) int { return a.From - b.From })
	c.tx.Verbatim(raw, db, f.idle...)
	c.tx.Unlock()
	return fatal
}

// gather splits a transaction into the commands that stand for something here, and
// returns the database that it leaves selected.
func (f *follower) gather(raw []byte) (db int, err error) {
	db = f.db
	f.queue, f.parts, f.idle, f.args = f.queue[:0], f.parts[:0], f.idle[:0], f.args[:0]
	for at := 0; at < len(raw); {
		args, n, err := f.c.parser.Next(raw[at:])
		if err != nil || n == 0 {
			return 0, fmt.Errorf("a transaction of the stream cannot be understood: %w", err)
		}
		part := oplog.Range{From: at, To: at + n}
		at += n
		if len(args) == 0 || len(args) == 1 && (EqualFold(args[0], "MULTI") || EqualFold(args[0], "EXEC") || EqualFold(args[0], "PING")) {
			continue
		}
		spec, err := f.resolve(args)
		if err != nil {
			if err = f.refused(args, err); err != nil {
				return 0, err
			}
			f.idle = append(f.idle, part)
			continue
		}
		if spec.Name == "select" {
			if db, err = f.number(args); err != nil {
				return 0, err
			}
		}
		from := len(f.args)
		f.args = append(f.args, args...)
		f.queue = append(f.queue, queued{spec, f.args[from:len(f.args):len(f.args)]})
		f.parts = append(f.parts, part)
	}
	return db, nil
}

// refused says that a command of the master could not be done here. The error
// ends the link, where the configuration wants that.
func (f *follower) refused(args [][]byte, why error) error {
	n := f.l.r.refused.Add(1)
	if n <= 16 || n&(n-1) == 0 { // each of the first, then fewer and fewer
		f.l.r.svc.Log.Error("a command of the master was refused: data differs from the master's from here on",
			"command", shown(args), "error", why, "offset", f.l.r.svc.DB.Log().End(), "refused", n)
	}
	if f.l.r.svc.Config.String("propagation-error-behavior") == "ignore" {
		return nil
	}
	if end := f.l.r.svc.opts.Shutdown; end != nil {
		f.l.r.svc.Log.Error("the server ends, as propagation-error-behavior says")
		f.l.r.svc.beside.Go(func() { end() })
	}
	f.l.stop()
	return fmt.Errorf("a command of the master was refused, and propagation-error-behavior is not ignore: %w", why)
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
