package servercmd

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

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/script"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/wire"
)

// This file implements the debugger of scripts. After SCRIPT DEBUG the client's next EVAL takes the
// connection out of its transport, and a goroutine of the transport runs the session:
//
//	EVAL ─▶ debugScript ─▶ Hijack ─▶ scriptDebug.run ─┬▶ read: the user's commands ─▶ words
//	                                                └▶ EVAL in an embedded session,
//	                                                   whose script asks Read for words
//
// With SYNC the embedded session belongs to the service itself: the script holds all shards, and
// other clients get BUSY. With YES it belongs to a service of its own, on a copy of the data, which
// the session drops at its end; the server continues meanwhile.

// debugMode is the mode that SCRIPT DEBUG has selected.
type debugMode uint8

const (
	debugOff debugMode = iota
	debugCopy
	debugSync
)

var specScriptDebug = command.Spec{
	Name: "script|debug", Group: command.GroupScripting, Since: "3.2.0", Complexity: "O(1)",
	Summary: "Sets the debug mode of server-side Lua scripts.",
	Flags:   command.NoScript,
	Client:  command.Stateful,
	Args:    []command.Arg{command.OneOf("mode", command.Token("YES"), command.Token("SYNC"), command.Token("NO"))},
	Replies: "OK. After YES and SYNC the next EVAL begins a debugging session, which takes over the connection until the script ends.",
	Examples: `
> SCRIPT DEBUG NO
OK
> SCRIPT DEBUG MAYBE
(error) ERR Use SCRIPT DEBUG YES/SYNC/NO
`,
	Run: runScriptDebug,
}

func runScriptDebug(c *command.Ctx) error {
	s := session.Of(c)
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
	if mode != debugOff && (s.InMulti() || len(c.Out.Buf) > 0) {
		return command.ReplyError("ERR SCRIPT DEBUG must be called outside a pipeline")
	}
	if _, ok := s.Conn().(reactor.Hijacker); !ok && mode != debugOff {
		return command.ReplyError("ERR the script debugger needs a connection to a server")
	}
	s.SetDebug(nil)
	if mode != debugOff {
		s.SetDebug(func(c *command.Ctx) error { return debugScript(c, mode) })
	}
	c.Out.OK()
	return nil
}

const (
	// maxCopied bounds the memory, in bytes, of the data that all sessions together copy.
	maxCopied = 256 << 20
	// maxDebugInput is the largest length of a user's command, in bytes, as in Redis.
	maxDebugInput = 1 << 20
	// debugPatience is the time in which the user has to read the output.
	debugPatience = 5 * time.Second
)

// errDebugger is the error of a script whose session has lost its user. The script then has no effects.
var errDebugger = errors.New("the debugging session is over")

// endOfDebugging is the line after which the reply of EVAL follows.
const endOfDebugging = "<endsession>"

// scriptDebug is one debugging session. Its methods Send, Rest, Read, Overdue and Refused implement
// script.Console.
type scriptDebug struct {
	svc  *session.Service // the service that the client is connected to
	c    *session.Session // the session of the client
	mode debugMode
	args [][]byte // the request of EVAL

	nc       net.Conn
	words    chan []string // from read, which closes it when no more words can come
	wrong    error         // the reason why read closed it; nil: the connection has ended. Set before words is closed
	expelled atomic.Bool   // this side closed the connection: CLIENT KILL, or the end of the server
	stop     chan struct{} // closed when the script has ended: read then ends

	host *session.ScriptHost // the host of the running script
	copy *session.Service    // the service of debugCopy
	last []string            // the lines of the script since its last stop
	from int64               // us: the instant of the last stop
}

// debugScript turns the client's connection into a debugging session.
func debugScript(c *command.Ctx, mode debugMode) error {
	s := session.Of(c)
	if s.InMulti() {
		return command.ReplyError("ERR a script cannot be debugged in a transaction")
	}
	d := &scriptDebug{svc: session.ServiceOf(c), c: s, mode: mode, args: command.CopyArgs(c.Args),
		words: make(chan []string), stop: make(chan struct{})}
	s.SetDebug(nil)
	s.HandOver(d.run)
	return nil
}

// run runs the session, on the goroutine of the connection.
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
			var out wire.Writer
			out.Error(command.WireText(err))
			d.write(append(debugLines([]string{endOfDebugging}), out.Buf...))
			return
		}
		defer release()
		svc = d.copy
	}
	reader.Go(func() { d.read(buffered) })

	reply, err := svc.RunDebugged(d.c, d, d.args)
	if err == nil {
		d.write(append(debugLines(append(d.last, endOfDebugging)), reply...))
	}
}

// read reads the user's commands until the connection or the script ends.
func (d *scriptDebug) read(buf []byte) {
	defer close(d.words)
	parser := wire.Parser{Limits: wire.Limits{MaxBulk: maxDebugInput}}
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
			if words := texts(args); len(words) > 0 {
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
				d.copy.Interrupt() // it ends the script at any point
			}
			return
		}
	}
}

// write sends b to the user. It gives up if the user does not read.
func (d *scriptDebug) write(b []byte) {
	patience := time.AfterFunc(debugPatience, func() { _ = d.nc.Close() })
	defer patience.Stop()
	_, _ = d.nc.Write(b) // if it fails, read fails too
}

// debugLines encodes lines as one reply.
func debugLines(lines []string) []byte {
	b := strconv.AppendInt([]byte{'*'}, int64(len(lines)), 10)
	b = append(b, "\r\n"...)
	for _, l := range lines {
		b = append(append(append(b, '+'), noLineEnds.Replace(l)...), "\r\n"...)
	}
	return b
}

var noLineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// Send implements script.Console. With SYNC, other clients get BUSY, and SCRIPT KILL can end the script,
// before the user reads that the script has stopped.
func (d *scriptDebug) Send(lines []string) {
	if d.mode == debugSync {
		d.host.Hold()
	}
	d.write(debugLines(lines))
}

// Rest implements script.Console.
func (d *scriptDebug) Rest(lines []string) { d.last = lines }

// Read implements script.Console.
func (d *scriptDebug) Read() ([]string, error) {
	var killing <-chan struct{}
	if d.mode == debugSync {
		killing = d.host.Hold()
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
		return nil, session.ErrScriptKilled
	case <-d.c.Context().Done():
		return nil, d.host.Ended()
	}
}

func (d *scriptDebug) now() int64 { return d.svc.DB.Clock().Micros() }

// Overdue implements script.Console.
func (d *scriptDebug) Overdue() (bool, error) {
	if d.expelled.Load() {
		return false, errDebugger
	}
	return d.now()-d.from >= d.svc.BusyAfter(), nil
}

// Refused implements script.Console.
func (d *scriptDebug) Refused() bool { return d.host.Refused() }

// makeCopy makes a service with a copy of the data, only for this session.
func (d *scriptDebug) makeCopy() (release func(), err error) {
	s := d.svc
	size := s.DB.UsedMemory()
	if taken := s.AddDebugCopy(size); taken > maxCopied {
		s.AddDebugCopy(-size)
		return nil, command.ReplyError(fmt.Sprintf("ERR SCRIPT DEBUG YES runs the script on a copy of the data, which takes %d bytes now; "+
			"the copies of all sessions may take %d: debug with SYNC, or on a server with less data", taken, maxCopied))
	}
	defer func() {
		if err != nil {
			s.AddDebugCopy(-size)
			err = fmt.Errorf("SCRIPT DEBUG YES cannot copy the data: %w", err)
		}
	}()
	cfg := config.New()
	if err := cfg.Parse(strings.NewReader(debugConfig(s.Config)), "debugger"); err != nil {
		return nil, err
	}
	hooks, table := &session.Hooks{}, func(*config.Set) (*command.Table, error) { return s.Table(), nil }
	db := engine.Open(engine.Options{Databases: s.DB.Databases(), Clock: s.DB.Clock(), Hooks: hooks})
	if d.copy, err = session.NewService(session.Options{DB: db, Table: table, Config: cfg, Logger: s.Log}, hooks); err != nil {
		db.Close()
		return nil, err
	}
	db.SetLayout(s.DB.Layout())
	release = func() {
		d.copy.Close()
		_ = d.copy.Keeper().Close()
		db.Close()
		s.AddDebugCopy(-size)
	}
	if err := copyData(d.c.Context(), db, s.DB); err != nil {
		release()
		s.AddDebugCopy(size) // it is subtracted again above
		return nil, err
	}
	return release, nil
}

// debugConfig returns the parts of the configuration that the run of a script depends on, as lines of a file.
// Commands keep their names, because both services have one table.
func debugConfig(c *config.Set) string {
	var b strings.Builder
	for _, name := range []string{"databases", "cluster-enabled", "script-memory-limit", "proto-max-bulk-len"} {
		fmt.Fprintf(&b, "%s %s\n", name, c.String(name))
	}
	return b.String()
}

// copyData copies the keys of an engine into another one.
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
