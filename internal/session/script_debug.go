package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/script"
	"github.com/ebbdb/ebb/resp"
)

// The debugger of scripts. After SCRIPT DEBUG the client's next EVAL takes the connection
// out of its transport, and a goroutine of the transport's runs the session:
//
//	EVAL ─▶ debugScript ─▶ Hijack ─▶ scriptDebug.run ─┬▶ read: the user's commands ─▶ words
//	                                                └▶ EVAL in an embedded session,
//	                                                   whose script asks Read for words
//
// With SYNC the embedded session is one of the service itself: the script holds all
// shards, and others get BUSY. With YES it is one of a service of its own, on a copy of
// the data, which goes away with the session; the server runs on meanwhile.

// debugMode is what SCRIPT DEBUG has chosen.
type debugMode uint8

const (
	debugOff debugMode = iota
	debugCopy
	debugSync
)

func runScriptDebug(c *command.Ctx) error {
	s := sessionOf(c)
	mode := debugOff
	switch a := c.Args[2]; {
	case command.EqualFold(a, "NO"):
	case command.EqualFold(a, "YES"):
		mode = debugCopy
	case command.EqualFold(a, "SYNC"):
		mode = debugSync
	default:
		return command.ReplyError("ERR Use SCRIPT DEBUG YES/SYNC/NO")
	}
	if mode != debugOff && (s.multi.on || len(c.Out.Buf) > 0) {
		return command.ReplyError("ERR SCRIPT DEBUG must be called outside a pipeline")
	}
	if _, ok := s.conn.(reactor.Hijacker); !ok && mode != debugOff {
		return command.ReplyError("ERR the script debugger needs a connection to a server")
	}
	s.debugs = mode
	c.Out.OK()
	return nil
}

const (
	// maxCopied bounds the memory of the data that sessions copy at a time, in bytes.
	maxCopied = 256 << 20
	// maxDebugInput is how long a command of the user's may be, in bytes, as in Redis.
	maxDebugInput = 1 << 20
	// debugPatience is how long the user may take to read what was sent.
	debugPatience = 5 * time.Second
)

// errDebugger is how a script ends whose session has lost its user, and has no effects.
var errDebugger = errors.New("the debugging session is over")

// endOfDebugging is the line that says that the reply of EVAL follows.
const endOfDebugging = "<endsession>"

// scriptDebug is one session. Its methods Send, Rest, Read, Overdue and Refused implement
// script.Console.
type scriptDebug struct {
	svc  *Service // that the client is connected to
	c    *Session // the client's
	mode debugMode
	args [][]byte // of EVAL

	nc       net.Conn
	words    chan []string // from read, which closes it when there will be no more
	wrong    error         // why it did; nil: the connection is gone. Set before words is closed
	expelled atomic.Bool   // this side closed the connection: CLIENT KILL, or the server ends
	stop     chan struct{} // closed when the script has ended: read is to end

	host *scriptHost // of the running script
	copy *Service    // of debugCopy
	last []string    // what the script has noted since its last stop
	from int64       // us: since when the script has run without a stop
}

// debugScript makes the client's connection that of a debugging session.
func debugScript(c *command.Ctx) error {
	s := sessionOf(c)
	if s.multi.on {
		return command.ReplyError("ERR a script cannot be debugged in a transaction")
	}
	s.debugged = &scriptDebug{svc: serviceOf(c), c: s, mode: s.debugs, args: ownArgs(c.Args), words: make(chan []string), stop: make(chan struct{})}
	s.debugs = debugOff
	s.closing = true // of the transport; run goes on with the connection
	serviceOf(c).pubsub.Leave(s)
	return nil
}

// run is the session, on the goroutine of the connection.
func (d *scriptDebug) run(nc net.Conn, buffered []byte) {
	d.nc = nc
	var reader sync.WaitGroup
	defer reader.Wait()
	defer nc.Close()
	defer close(d.stop)

	svc := d.svc
	if d.mode == debugCopy {
		release, err := d.makeCopy()
		if err != nil {
			var out resp.Writer
			out.Error(command.WireText(err))
			d.write(append(debugLines([]string{endOfDebugging}), out.Buf...))
			return
		}
		defer release()
		svc = d.copy
	}
	reader.Go(func() { d.read(buffered) })

	s := svc.NewSession(nil)
	defer s.Closed(nil)
	s.setUser(d.c.user)
	s.dbi, s.debugger, s.quit = d.c.dbi, d, d.svc.ctx.Done()
	s.out.Proto = d.c.out.Proto
	s.dispatchSafely(d.args)
	s.endBatch(0, 0)
	if svc.DB.Log().Always() {
		if err := s.durably(svc.ctx, false); err != nil {
			return
		}
	}
	d.write(append(debugLines(append(d.last, endOfDebugging)), s.out.Buf...))
}

// read reads the user's commands until the connection or the script ends.
func (d *scriptDebug) read(buf []byte) {
	defer close(d.words)
	parser := resp.Parser{Limits: resp.Limits{MaxBulk: maxDebugInput}}
	chunk := make([]byte, 4096)
	for {
		var args [][]byte
		var n int
		err := errors.New("an inline request")
		if len(buf) == 0 || buf[0] == '*' {
			args, n, err = parser.Next(buf)
		}
		switch {
		case err != nil:
			d.wrong = script.Misspoken("ERR protocol error")
			return
		case n > 0:
			if words := textsOf(args); len(words) > 0 {
				select {
				case d.words <- words:
				case <-d.stop:
					return
				}
			}
			buf = buf[n:]
			continue
		case len(buf) > maxDebugInput:
			d.wrong = script.Misspoken("ERR max client buffer reached")
			return
		}
		n, err = d.nc.Read(chunk)
		buf = append(buf, chunk[:n]...)
		if err != nil {
			if d.expelled.Store(errors.Is(err, net.ErrClosed)); d.copy != nil {
				d.copy.stop() // the script ends, wherever it is
			}
			return
		}
	}
}

func textsOf(args [][]byte) []string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	return words
}

// write sends to the user, and gives up on one that does not read.
func (d *scriptDebug) write(b []byte) {
	patience := time.AfterFunc(debugPatience, func() { _ = d.nc.Close() })
	defer patience.Stop()
	_, _ = d.nc.Write(b) // where it fails, read finds out too
}

// debugLines are lines as one reply.
func debugLines(lines []string) []byte {
	b := strconv.AppendInt([]byte{'*'}, int64(len(lines)), 10)
	b = append(b, "\r\n"...)
	for _, l := range lines {
		b = append(append(append(b, '+'), noLineEnds.Replace(l)...), "\r\n"...)
	}
	return b
}

var noLineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// Send implements script.Console.
func (d *scriptDebug) Send(lines []string) { d.write(debugLines(lines)) }

// Rest implements script.Console.
func (d *scriptDebug) Rest(lines []string) { d.last = lines }

// Read implements script.Console. With SYNC others hear at once that they wait for a
// script: it may stand still for as long as the user likes.
func (d *scriptDebug) Read() ([]string, error) {
	var killing <-chan struct{}
	if d.mode == debugSync {
		r := d.host.show()
		if !r.over.Load() {
			r.beOverdue()
		}
		killing = r.killing
	}
	select {
	case words, ok := <-d.words:
		d.from = d.now()
		switch {
		case ok:
			return words, nil
		case d.wrong != nil:
			return nil, d.wrong
		case d.copy != nil || d.expelled.Load():
			return nil, errDebugger
		}
		return nil, script.ErrLeft
	case <-killing:
		return nil, errScriptKilled
	case <-d.svc.ctx.Done():
		if d.host.wrote {
			d.host.x.Tx.Forget()
		}
		return nil, errScriptEnded
	}
}

func (d *scriptDebug) now() int64 { return d.svc.DB.Clock().Micros() }

// Overdue implements script.Console.
func (d *scriptDebug) Overdue() (bool, error) {
	if d.expelled.Load() {
		return false, errDebugger
	}
	return d.now()-d.from >= d.svc.busyAfter.Load(), nil
}

// Refused implements script.Console.
func (d *scriptDebug) Refused() bool { return !d.host.begun }

// makeCopy makes a service with a copy of the data, for the session alone.
func (d *scriptDebug) makeCopy() (release func(), err error) {
	s := d.svc
	size := s.DB.UsedMemory()
	if taken := s.copied.Add(size); taken > maxCopied {
		s.copied.Add(-size)
		return nil, command.ReplyError(fmt.Sprintf("ERR SCRIPT DEBUG YES runs the script on a copy of the data, which takes %d bytes now; "+
			"the copies of all sessions may take %d: debug with SYNC, or on a server with less data", taken, maxCopied))
	}
	defer func() {
		if err != nil {
			s.copied.Add(-size)
			err = fmt.Errorf("SCRIPT DEBUG YES cannot copy the data: %w", err)
		}
	}()
	cfg := config.New()
	if err := cfg.Parse(strings.NewReader(s.debugConfig()), "debugger"); err != nil {
		return nil, err
	}
	hooks := &Hooks{}
	db := engine.Open(engine.Options{Databases: s.DB.Databases(), Clock: s.DB.Clock(), Hooks: hooks})
	if d.copy, err = NewService(Options{DB: db, Config: cfg, Logger: s.Log}, hooks); err != nil {
		db.Close()
		return nil, err
	}
	db.SetLayout(s.DB.Layout())
	release = func() {
		d.copy.Close()
		_ = d.copy.keeper.Close()
		db.Close()
		s.copied.Add(-size)
	}
	if err := copyData(s.ctx, db, s.DB); err != nil {
		release()
		s.copied.Add(size) // it is taken back above
		return nil, err
	}
	return release, nil
}

// debugConfig is what of the configuration a script's run depends on, as lines of a file.
func (s *Service) debugConfig() string {
	var b strings.Builder
	for _, name := range []string{"databases", "cluster-enabled", "script-memory-limit", "proto-max-bulk-len"} {
		fmt.Fprintf(&b, "%s %s\n", name, s.Config.String(name))
	}
	for _, r := range s.Config.Renames() {
		fmt.Fprintf(&b, "rename-command %q %q\n", r.From, r.To)
	}
	return b.String()
}

// copyData fills an engine with the keys of another.
func copyData(ctx context.Context, to, from *engine.DB) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	in, out := io.Pipe()
	var writer sync.WaitGroup
	defer writer.Wait()
	defer in.Close()
	writer.Go(func() {
		w := rdb.NewWriter(out, rdb.WriterOptions{})
		err := from.Snapshot(ctx, w, engine.SnapshotOptions{NoCompress: true})
		if err == nil {
			err = w.End()
		}
		out.CloseWithError(err)
	})
	r := rdb.NewReader(in, rdb.ReaderOptions{NoChecksum: true, Aux: func(name, text []byte) error {
		_, err := to.LoadAux(name, text)
		return err
	}})
	return to.Load(ctx, r, engine.LoadOptions{})
}
