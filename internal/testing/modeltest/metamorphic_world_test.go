package modeltest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/transport"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// again is the way of a world's data through its files in the middle of a sequence.
type again string

// The ways.
const (
	stays    again = "stays"
	restarts again = "restarts" // closed, and opened on its append-only files
	dies     again = "dies"     // as after a kill: on a copy of what was in the files
	saves    again = "saves"    // closed after SAVE, and opened on the RDB file
	reloads  again = "reloads"  // DEBUG RELOAD
	replays  again = "replays"  // DEBUG LOADAOF
)

// variant is a way to run a sequence of requests that must not show in the data.
type variant struct {
	shards int
	wire   bool   // over TCP, with two loops
	again  again  // at each place for it
	job    string // what begins at each place for it: rewrite, save, both or none
	always bool   // appendfsync always
	small  bool   // containers become large with a few items
}

func (v variant) String() string {
	s := fmt.Sprintf("%d shards, %s, job: %s", v.shards, v.again, v.job)
	if v.wire {
		s += ", wire"
	}
	if v.always {
		s += ", always"
	}
	return s
}

// files reports whether it has a directory.
func (v variant) files() bool {
	return v.job != "none" || v.again != stays && v.again != reloads
}

// metaPatience is the time that a reply may take, of the machine's time.
var metaPatience = tier.Patience

// metaWorld is an engine on a manual clock with its files, of which there may be
// several in its life.
type metaWorld struct {
	variant
	temp  string // its directories are in here
	lives int
	dir   string
	clock *clock.Manual

	db   *engine.DB
	svc  *session.Service
	e    *transcript.Engine // speaks to it in this process; the looker always does
	srv  *transport.Server
	wire map[int]*wireConn
}

// openWorld opens an engine in an empty directory below temp.
func openWorld(temp string, v variant) (*metaWorld, error) {
	w := &metaWorld{variant: v, temp: temp, clock: clock.NewManual(transcript.Start)}
	if err := w.newDir(); err != nil {
		return nil, err
	}
	return w, w.open()
}

func (w *metaWorld) newDir() error {
	w.lives++
	w.dir = filepath.Join(w.temp, strconv.Itoa(w.lives))
	return os.Mkdir(w.dir, 0o700)
}

func (w *metaWorld) options() []string {
	o := []string{"--enable-debug-command", "yes", "--save", ""}
	if w.small {
		o = append(o, "--hash-max-listpack-entries", "4", "--set-max-intset-entries", "5", "--set-max-listpack-entries", "4",
			"--zset-max-listpack-entries", "4", "--list-max-listpack-size", "3", "--stream-node-max-entries", "3")
	}
	if w.files() && w.variant.again != saves {
		o = append(o, "--appendonly", "yes")
	}
	if w.always {
		o = append(o, "--appendfsync", "always")
	}
	return o
}

func (w *metaWorld) open() error {
	cfg, err := config.Load(w.options(), nil)
	if err != nil {
		return err
	}
	hooks := &session.Hooks{}
	w.db = engine.Open(engine.Options{Clock: w.clock, Shards: w.shards, Hooks: hooks, Reclaimers: loops})
	if w.svc, err = session.NewService(session.Options{DB: w.db, Table: servercmd.Table, Config: cfg, Loops: loops}, hooks); err != nil {
		return err
	}
	w.e = transcript.Around(w.db, w.svc, w.clock)
	if w.files() {
		err = w.svc.OpenFiles(session.FileOptions{Dir: w.dir, AcceptClock: true})
		if err == nil {
			err = w.svc.Load(context.Background())
		}
	}
	if err == nil && w.variant.wire {
		err = w.listen()
	}
	return err
}

func (w *metaWorld) listen() (err error) {
	w.wire = map[int]*wireConn{}
	var srv atomic.Pointer[transport.Server]
	var reclaimers [loops]*engine.Reclaimer
	for i := range reclaimers {
		reclaimers[i] = w.db.Reclaimer(i, func() {
			if s := srv.Load(); s != nil {
				s.Nudge(i)
			}
		})
	}
	w.srv, err = transport.Listen(transport.Options{
		NewSession: func(c transport.Conn) transport.Session { return w.svc.NewSession(c) },
		Addrs:      []string{"127.0.0.1:0"},
		Loops:      loops,
		Idle:       func(loop int) time.Duration { return reclaimers[loop].Run() },
		Now:        func() int64 { return w.clock.Micros() / 1000 },
	})
	srv.Store(w.srv)
	return err
}

// close ends everything that runs.
func (w *metaWorld) close() error {
	err := w.hangupAll()
	if w.srv != nil {
		w.srv.Close()
		w.srv = nil
	}
	w.svc.Close()
	err = errors.Join(err, w.svc.Keeper().Close())
	w.db.Close()
	return err
}

// goThrough takes the data through its files, as the variant says. Connections are
// gone after it, and tokens are as after a start.
func (w *metaWorld) goThrough() error {
	if err := w.hangupAll(); err != nil {
		return err
	}
	switch w.variant.again {
	case reloads:
		return errors.Join(w.awaitJobs(), w.do("DEBUG", "RELOAD"), w.leap())
	case replays:
		return errors.Join(w.do("DEBUG", "LOADAOF"), w.leap())
	case saves:
		if err := w.awaitJobs(); err != nil {
			return err
		}
		if err := w.do("SAVE"); err != nil {
			return err
		}
		fallthrough
	case restarts:
		if err := w.close(); err != nil {
			return fmt.Errorf("closing: %w", err)
		}
		return w.open()
	case dies:
		return w.die()
	}
	return w.leap()
}

// die opens the data on a copy of what is in its files.
func (w *metaWorld) die() error {
	if err := w.awaitJobs(); err != nil {
		return err
	}
	if err := w.svc.Keeper().Sync(context.Background()); err != nil {
		return err
	}
	old := w.dir
	if err := w.newDir(); err != nil {
		return err
	}
	if err := os.CopyFS(w.dir, os.DirFS(old)); err != nil {
		return err
	}
	if err := w.close(); err != nil {
		return err
	}
	return w.open()
}

// leap raises tokens as a start does.
func (w *metaWorld) leap() error {
	tx := w.db.BeginAll(0)
	tx.SawToken(tx.NextToken() + 60e6)
	tx.Commit()
	return nil
}

// begin begins what the variant wants to run beside requests.
func (w *metaWorld) begin() error {
	if w.job == "save" || w.job == "both" {
		if _, err := w.svc.Keeper().BackgroundSave(true); err != nil && !errors.Is(err, durable.ErrSaving) {
			return err
		}
	}
	if w.job == "rewrite" || w.job == "both" {
		if _, err := w.svc.Keeper().RewriteAOF(); err != nil && !errors.Is(err, durable.ErrRewriting) {
			return err
		}
	}
	return nil
}

// awaitJobs waits until nothing runs beside requests, and looks whether it went well.
func (w *metaWorld) awaitJobs() error {
	if !w.files() {
		return nil
	}
	for began := time.Now(); ; moment() {
		switch i := w.svc.Keeper().Info(); {
		case time.Since(began) > metaPatience:
			return fmt.Errorf("job: it does not end: %+v", i)
		case i.Saving || i.SaveScheduled || i.Rewriting || i.RewriteScheduled:
		case !i.LastSaveOK || !i.LastRewriteOK || !i.LastWriteOK:
			return fmt.Errorf("job: it failed: %+v", i)
		default:
			return nil
		}
	}
}

// check verifies the engine's invariants. A snapshot under way may hold what nothing else
// refers to.
func (w *metaWorld) check() error {
	err := w.db.Check()
	if err != nil {
		if err := w.awaitJobs(); err != nil {
			return err
		}
		err = w.db.Check()
	}
	return err
}

// do sends the looker's request, and returns the error it is answered with.
func (w *metaWorld) do(args ...string) error {
	_, err := w.ask(args...)
	return err
}

// ask sends a request as the looker, and waits for its reply.
func (w *metaWorld) ask(args ...string) (resp.Value, error) {
	if err := w.e.Send(looker, args); err != nil {
		return resp.Value{}, err
	}
	v, err := w.await(looker)
	if err == nil && v.Kind == resp.KindError {
		err = fmt.Errorf("refused: %s to %q", v.Str, args)
	}
	return v, err
}

// await waits for a reply within this process: something else may hold shards.
func (w *metaWorld) await(conn int) (resp.Value, error) {
	for began := time.Now(); time.Since(began) < metaPatience; moment() {
		if v, ok := w.e.Next(conn); ok {
			return v, nil
		}
		if err := w.e.Advance(0); err != nil {
			return resp.Value{}, err
		}
	}
	return resp.Value{}, errors.New("reply: there is none")
}

// moment lets goroutines that work beside get on.
func moment() { <-time.After(100 * time.Microsecond) }

func (w *metaWorld) hangupAll() error {
	for n := range w.wire {
		w.hangupWire(n)
	}
	return w.e.HangupAll()
}

func (w *metaWorld) hangup(n int) error {
	if w.variant.wire {
		w.hangupWire(n)
		return nil
	}
	return w.e.Hangup(n)
}

// wireConn is a client's connection.
type wireConn struct {
	net.Conn
	r *bufio.Reader
}

func (w *metaWorld) hangupWire(n int) {
	if c := w.wire[n]; c != nil {
		_ = c.Close()
		delete(w.wire, n)
	}
}

// overWire sends requests in one piece, and returns their replies.
func (w *metaWorld) overWire(n int, requests [][]string) ([]resp.Value, error) {
	c := w.wire[n]
	if c == nil {
		tcp, err := net.Dial("tcp", w.srv.Addrs()[0].String())
		if err != nil {
			return nil, err
		}
		c = &wireConn{tcp, bufio.NewReader(tcp)}
		w.wire[n] = c
	}
	var b []byte
	for _, args := range requests {
		b = wire.AppendCommand(b, args...)
	}
	_ = c.SetDeadline(time.Now().Add(metaPatience))
	if _, err := c.Write(b); err != nil {
		return nil, err
	}
	var got []resp.Value
	for len(got) < len(requests) {
		v, err := wire.ReadValue(c.r)
		if err != nil {
			return nil, fmt.Errorf("reply: there is none to %q: %w", requests[len(got)], err)
		}
		if v.Kind != resp.KindPush {
			got = append(got, v)
		}
	}
	return got, nil
}
