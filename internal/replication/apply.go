package replication

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/wire"
)

// follower runs the commands of a master's stream, and appends the stream to this server's
// log byte by byte. The transaction of a command appends its bytes, so that offset and data
// change together.
//
// A command that this server cannot run as the master did (it is unknown, is refused, or panics) ends the link. The
// follower never skips it, because the data would differ from the master's from there on. The log and INFO name the
// command, and its bytes are in no stream of this server. The server gives up the stream's name, so the next link
// asks for all data. Such links follow one another at growing intervals.
type follower struct {
	l      *link
	r      *Node
	m      *masterConn
	a      Applier
	tx     *engine.Tx // the applier's
	parser wire.Parser

	buf []byte // received and not applied yet
	at  int    // buf[:at] is the part of a transaction that was parsed
	in  bool   // in a transaction, whose EXEC has not arrived
	db  int    // the database that the stream has selected; -1: none
	dbi int    // the database of the next command

	queue []Command // the transaction
	undo  engine.Undo
	half  string // the keys that the transaction may have changed and undo does not hold; "": none
	args  [][]byte
	keys  []Touched
	doing [][]byte // the command that runs
}

// errReplaced ends a link that the Node no longer uses.
var errReplaced = errors.New("the server now follows another master, or none")

func newFollower(l *link, m *masterConn) *follower {
	f := &follower{l: l, r: l.r, m: m, a: l.r.host.NewApplier(m), buf: make([]byte, 0, linkBuffer), db: l.r.db.Log().DB()}
	f.tx = f.a.Tx()
	f.choose(max(f.db, 0))
	f.parser.Limits = wire.Limits{MaxBulk: math.MaxInt / 2, MaxArgs: math.MaxInt32}
	return f
}

// choose sets the database of the next command.
func (f *follower) choose(db int) {
	f.dbi = db
	f.a.Select(db)
}

func (f *follower) close() { f.a.Close() }

// runSafely calls run. A panic in a command ends the link and not the process.
func (f *follower) runSafely() (err error) {
	defer func() {
		if what := recover(); what != nil {
			f.a.Panicked(what)
			err = f.refused(f.doing, fmt.Errorf("ERR panic: %v", what))
		}
	}()
	return f.run()
}

// run applies the stream until the connection or the link ends.
func (f *follower) run() error {
	for {
		if len(f.buf) == cap(f.buf) {
			f.buf = append(f.buf, 0)[:len(f.buf)] // grows the buffer to about twice its size
		}
		n, err := f.m.r.Read(f.buf[len(f.buf):cap(f.buf)])
		f.buf = f.buf[:len(f.buf)+n]
		if n > 0 {
			used, failed := f.apply(f.buf)
			if failed != nil {
				return failed
			}
			if used > 0 {
				f.l.applied(f.m)
			}
			f.a.Settle(used)
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

// keep removes the bytes that were applied.
func (f *follower) keep(used int) {
	if used == 0 {
		return // a large command arrives: do not move its bytes for each read
	}
	n := copy(f.buf, f.buf[used:])
	f.buf = f.buf[:n]
	if n == 0 && cap(f.buf) > keepLink {
		f.buf = make([]byte, 0, linkBuffer)
	}
}

// apply applies the complete commands and transactions in buf, and returns their length.
func (f *follower) apply(buf []byte) (used int, err error) {
	pos := f.at
	for pos < len(buf) {
		args, n, err := f.parser.Next(buf[pos:])
		if err != nil {
			return used, fmt.Errorf("cannot parse the master's stream at offset %d: %w", f.r.db.Log().End(), err)
		}
		if n == 0 {
			break
		}
		pos += n
		switch {
		case f.in && (len(args) == 0 || !is(args[0], "EXEC")):
			continue
		case f.in:
			f.in = false
			err = f.transaction(buf[used:pos])
		case len(args) == 1 && is(args[0], "MULTI"):
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

// one applies one command, whose bytes in the stream are raw.
func (f *follower) one(args [][]byte, raw []byte) error {
	if len(args) == 0 {
		return f.control(raw)
	}
	if is(args[0], "REPLCONF") {
		if f.r.group != nil && len(args) == 3 && is(args[1], "STAMP") {
			return f.l.stamped(f.m, args[2])
		}
		err := f.control(raw)
		if err == nil && len(args) > 1 && is(args[1], "GETACK") {
			f.l.acknowledge(f.m)
		}
		return err
	}
	c, err := f.a.Resolve(args)
	if err != nil {
		return f.refused(args, err)
	}
	switch c.Kind {
	case KindPing:
		return f.control(raw)
	case KindSelect:
		return f.selectDB(args, raw)
	case KindMessage:
		return f.publish(c, raw)
	case KindExec:
		return f.refused(args, errors.New("ERR EXEC or DISCARD without MULTI"))
	}
	return f.write(c, raw)
}

// begin locks all shards, for a part of the stream without keys.
func (f *follower) begin() error {
	f.tx.LockAll(f.dbi)
	return f.mine()
}

// mine checks, with shards locked, that the Node still uses the link. If not, it unlocks
// them.
func (f *follower) mine() error {
	if f.l.current() {
		return nil
	}
	f.tx.Unlock()
	return errReplaced
}

// control appends a part of the stream that is for replicas only.
func (f *follower) control(raw []byte) error {
	if err := f.begin(); err != nil {
		return err
	}
	f.r.db.Log().AppendControl(raw)
	f.tx.Unlock()
	return nil
}

// selectDB applies a SELECT. A database that this server does not have ends the link: the
// commands that follow would change another database.
func (f *follower) selectDB(args [][]byte, raw []byte) error {
	n, err := f.number(args)
	if err != nil {
		return err
	}
	if err := f.begin(); err != nil {
		return err
	}
	f.db = n
	f.choose(n)
	f.tx.Verbatim(raw, n)
	f.tx.Unlock()
	return nil
}

func (f *follower) number(args [][]byte) (int, error) {
	n, ok := int64(-1), false
	if len(args) == 2 {
		n, ok = numeral.ParseInt(args[1])
	}
	if most := f.r.db.Databases(); !ok || n < 0 || n >= int64(most) {
		return 0, fmt.Errorf("master selected database %q but only %d are configured; set `databases` to the master's value", last(args), most)
	}
	return int(n), nil
}

// last returns the last argument of a command.
func last(args [][]byte) []byte { return args[len(args)-1] }

// publish delivers a message to the subscribers of this server.
func (f *follower) publish(c Command, raw []byte) error {
	if err := f.unpaused(); err != nil {
		return err
	}
	if err := f.begin(); err != nil {
		return err
	}
	if err := f.a.Run(c, false); err != nil {
		f.r.log.Warn("PUBLISH of the master failed", "error", err)
	}
	f.r.db.Log().AppendControl(raw)
	f.tx.Unlock()
	return nil
}

// write runs a command that changes data.
func (f *follower) write(c Command, raw []byte) error {
	if err := f.unpaused(); err != nil {
		return err
	}
	f.doing = c.Args
	if err := f.a.Lock(c); err != nil {
		return f.refused(c.Args, err)
	}
	if err := f.mine(); err != nil {
		return err
	}
	if err := f.a.Run(c, false); err != nil {
		f.tx.Unlock()
		return f.refused(c.Args, err)
	}
	f.tx.Verbatim(raw, f.db)
	f.tx.Unlock()
	return nil
}

// unpaused waits for the end of a CLIENT PAUSE, which holds back the master's stream too:
// the data of a paused replica does not change. The link stays up meanwhile.
func (f *follower) unpaused() error {
	if !f.r.host.Paused() {
		return nil
	}
	f.l.notReading.Store(true)
	defer f.l.notReading.Store(false)
	defer f.m.noteReceived()
	return f.r.host.AwaitPause(f.l.ctx)
}

// transaction runs the commands between MULTI and EXEC in one transaction.
func (f *follower) transaction(raw []byte) error {
	if err := f.unpaused(); err != nil {
		return err
	}
	db, err := f.split(raw)
	if err != nil {
		return err
	}
	if err := f.a.LockAll(f.queue); err != nil {
		return err
	}
	if err := f.mine(); err != nil {
		return err
	}
	f.undo.Reset()
	f.half = ""
	for i, c := range f.queue {
		if c.Kind == KindSelect {
			n, _ := strconv.Atoi(string(c.Args[1]))
			f.choose(n)
			f.tx.Select(n)
			continue
		}
		f.tx.Select(f.dbi)
		if i < len(f.queue)-1 || c.Scripts {
			f.remember(c)
		}
		f.doing = c.Args
		if err := f.a.Run(c, true); err != nil {
			return f.takeBack(c.Args, err)
		}
		f.tx.Tell()
	}
	f.db = db
	f.tx.Verbatim(raw, db)
	f.tx.Unlock()
	return nil
}

// remember copies the values of a command's keys before the command runs, for takeBack.
func (f *follower) remember(c Command) {
	if f.half != "" {
		return
	}
	keys, all := f.a.AppendKeys(f.keys[:0], c)
	if f.keys = keys; all || len(keys) > maxUndo {
		f.half = "all keys"
		return
	}
	defer f.tx.Select(f.dbi)
	for _, k := range keys {
		f.tx.Select(k.DB)
		if !f.undo.Remember(f.tx, k.Key) {
			f.half = strconv.Quote(string(head(k.Key, 64)))
			return
		}
	}
}

// maxUndo is the greatest number of keys of a command that takeBack restores.
const maxUndo = 64

// takeBack ends a transaction in which the command args was refused. It restores the keys
// that the commands before it have changed. If it cannot restore one, the server rewrites
// its files, so that they are equal to memory, and the log names the key that differs from
// the master's until the next full synchronisation.
func (f *follower) takeBack(args [][]byte, why error) error {
	if f.half == "" {
		if err := f.undo.TakeBack(f.tx); err != nil {
			f.half = "some keys (" + err.Error() + ")"
		}
	}
	half := f.half
	f.tx.Forget()
	f.tx.Unlock()
	if half != "" {
		why = fmt.Errorf("%s; the commands before it in its transaction may have changed %s, and could not be taken back", why, half)
	}
	err := f.refused(args, why)
	if half != "" && f.l.current() {
		f.r.rewriteFiles()
	}
	return err
}

// split puts the commands of a transaction into f.queue, and returns the database that
// the transaction leaves selected.
func (f *follower) split(raw []byte) (db int, err error) {
	db = f.db
	f.queue, f.args = f.queue[:0], f.args[:0]
	for at := 0; at < len(raw); {
		args, n, err := f.parser.Next(raw[at:])
		if err != nil || n == 0 {
			return 0, fmt.Errorf("cannot parse a transaction of the master's stream: %w", err)
		}
		at += n
		if len(args) == 0 || len(args) == 1 && (is(args[0], "MULTI") || is(args[0], "EXEC") || is(args[0], "PING")) {
			continue
		}
		c, err := f.a.Resolve(args)
		if err != nil {
			return 0, f.refused(args, err)
		}
		if c.Kind == KindSelect {
			if db, err = f.number(args); err != nil {
				return 0, err
			}
		}
		from := len(f.args)
		f.args = append(f.args, args...)
		c.Args = f.args[from:len(f.args):len(f.args)] // the parser reuses the slice that it has returned
		f.queue = append(f.queue, c)
	}
	return db, nil
}

// refusedCommand is a command of a master that this server could not run.
type refusedCommand struct {
	offset  int64 // of the stream, before the command
	command string
	why     string
}

// refused logs and counts a command that this server could not run, gives up the stream's
// name, and returns the error that ends the link. The caller holds no shard.
func (f *follower) refused(args [][]byte, why error) error {
	r := f.r
	if !f.l.giveUpStream() {
		return errReplaced
	}
	last := refusedCommand{r.db.Log().End(), shown(args), why.Error()}
	r.refusal.Store(&last)
	n := r.refused.Add(1)
	r.log.Error("a command of the master was refused: the link ends, and this replica asks for all data again",
		"command", last.command, "error", cleantext.Line(last.why, 4*maxPeerText), "offset", last.offset, "refused", n)
	if r.config.String("propagation-error-behavior") != "ignore" {
		if r.host.Shutdown() {
			r.log.Error("the server ends, because propagation-error-behavior is not ignore")
		}
		f.l.stop()
	}
	return &refusedError{last}
}

// refusedError is the error of a link that has ended with a refused command.
type refusedError struct{ refusedCommand }

func (e *refusedError) Error() string {
	return fmt.Sprintf("a command of the master was refused at offset %d: %s: %s", e.offset, e.command, e.why)
}

// giveUpStream gives the stream a new name, because this server lacks a part of it. The
// next link and the replicas of this server then request all data. It reports whether the
// Node still uses the link.
func (l *link) giveUpStream() bool {
	tx := l.r.db.BeginAll(0)
	defer tx.Commit()
	if !l.current() {
		return false
	}
	l.r.become(NewID())
	l.r.dropReplicas("this replica refused a command of its master: its replicas ask for all data again")
	return true
}

// shown returns the text of a command for the log: its first eight words, 64 bytes of
// each.
func shown(args [][]byte) string {
	text := ""
	for i, word := range args {
		if i == 8 {
			return text + " ..."
		}
		text += fmt.Sprintf(" %q", head(word, 64))
	}
	return text[min(1, len(text)):]
}
