package durable

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

const dir = "/data"

// start is the time at which manual clocks start.
var start = time.UnixMilli(1_700_000_000_000)

// world is an engine with a Keeper on a file system that fails on cue. It is made
// and used in a synctest bubble.
type world struct {
	fs      *crashfs.FS
	clock   *clock.Manual
	conf    *config.Set
	db      *engine.DB
	k       *Keeper
	tx      *engine.Tx
	options Options
	logs    *logs

	mu      sync.Mutex
	refused string
}

// logs collects log lines.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logs) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), text)
}

func newFS(seed uint64) *crashfs.FS {
	fs := crashfs.New(seed)
	if err := fs.MkdirAll(dir); err != nil {
		panic(err)
	}
	fs.SetTime(start.UnixMilli())
	return fs
}

// newWorld makes an engine and its options.
func newWorld(fs *crashfs.FS, clock *clock.Manual, pairs ...string) *world {
	w := &world{fs: fs, clock: clock, conf: config.New(), logs: &logs{}}
	if len(pairs) > 0 {
		if err := w.conf.Change(true, pairs...); err != nil {
			panic(err)
		}
	}
	w.db = engine.Open(engine.Options{Clock: clock, Shards: 4, Databases: 4})
	w.tx = w.db.NewTx()
	w.options = Options{
		DB: w.db, Config: w.conf, FS: fs, Dir: dir, Version: "7.4.0",
		Logger:     slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		NewApplier: func() Applier { return &applier{tx: w.db.NewTx()} },
		RefuseWrites: func(reply string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.refused = reply
		},
	}
	return w
}

// open opens, loads and starts.
func (w *world) open(t testing.TB) error {
	var err error
	if w.k, err = Open(w.options); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := w.k.Load(t.Context()); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if err := w.k.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

// run opens a world, or fails the test.
func run(t *testing.T, fs *crashfs.FS, pairs ...string) *world {
	t.Helper()
	w := newWorld(fs, clock.NewManual(start), pairs...)
	t.Cleanup(func() { _ = w.close() })
	if err := w.open(t); err != nil {
		t.Fatal(err)
	}
	return w
}

// close ends everything. Errors are those of the files.
func (w *world) close() error {
	var err error
	if w.k != nil {
		err = w.k.Close()
	}
	w.db.Close()
	return err
}

// set stores strings in one transaction, and returns its mark.
func (w *world) set(pairs ...string) int64 {
	var keys [][]byte
	for i := 0; i < len(pairs); i += 2 {
		keys = append(keys, []byte(pairs[i]))
	}
	w.tx.Lock(0, keys)
	for i, k := range keys {
		if _, _, err := w.tx.Set(k, []byte(pairs[2*i+1]), engine.SetOptions{}, nil); err != nil {
			panic(err)
		}
	}
	w.tx.Unlock()
	return w.tx.TakeMark()
}

func (w *world) del(key string) int64 {
	w.tx.Lock(0, [][]byte{[]byte(key)})
	w.tx.Del([]byte(key))
	w.tx.Unlock()
	return w.tx.TakeMark()
}

// get returns a value, "" for none.
func (w *world) get(key string) string {
	w.tx.Lock(0, [][]byte{[]byte(key)})
	defer w.tx.Unlock()
	v, _, err := w.tx.Get([]byte(key))
	if err != nil {
		panic(err)
	}
	return string(v)
}

// holds compares keys and their values, "" for none.
func (w *world) holds(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := w.get(pairs[i]); got != pairs[i+1] {
			t.Errorf("%s=%q, want %q", pairs[i], got, pairs[i+1])
		}
	}
}

// acked waits as a client does under always, and reports whether the reply left.
func (w *world) acked(mark int64) bool {
	log := w.db.Log()
	for wake := make(oplog.Signal, 1); ; {
		if log.Failure() != nil || !log.Always() {
			return false
		}
		if log.OnSynced(mark, wake) {
			return log.Failure() == nil
		}
		select {
		case <-wake:
		case <-time.After(tier.Patience):
			return false
		}
	}
}

// refusal is with what writes are refused.
func (w *world) refusal() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

// applier runs the few commands of these tests.
type applier struct {
	tx *engine.Tx
	db int
}

func (a *applier) Close() {}

func (a *applier) Apply(args [][]byte) error {
	if string(args[0]) == "SELECT" {
		a.db, _ = strconv.Atoi(string(args[1]))
		return nil
	}
	a.tx.LockAll(a.db)
	defer a.tx.Unlock()
	a.tx.Replaying()
	switch name := string(args[0]); name {
	case "SET":
		o := engine.SetOptions{}
		if len(args) > 4 {
			o.Deadline, _ = strconv.ParseInt(string(args[4]), 10, 64)
		}
		_, _, err := a.tx.Set(args[1], args[2], o, nil)
		return err
	case "DEL", "UNLINK":
		for _, k := range args[1:] {
			a.tx.Del(k)
		}
	case "FLUSHALL":
		a.tx.Flush(-1)
	default:
		return errors.New("unknown command " + name)
	}
	return nil
}

// logged fails unless the Keeper's log has a line with the text.
func (w *world) logged(t *testing.T, text string) {
	t.Helper()
	if !w.logs.has(text) {
		t.Errorf("nothing was logged of %q:\n%s", text, w.logs.b.String())
	}
}
