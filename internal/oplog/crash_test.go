package oplog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// A world is a process with a log, files and an appender, on a disk with faults. Its data is the numbers of the
// transactions that ran: 0, 1, 2 and so on. So their count is the whole state; a base contains "SNAP n".
type world struct {
	fs     *crashfs.FS
	policy Policy

	log   *Log
	files *Files
	a     *Appender

	txs   int     // number of transactions that ran
	first int     // the first transaction of this log
	ends  []int64 // the offsets after the transactions from first on
	acked int     // this many transactions must not be lost

	failedSyncs bool

	rewriting bool
	snap      int // transactions in the next base
	fresh     bool
	batch     bool
	crashes   int
	lost      int // the most transactions that one crash lost
}

const worldDir = "/data/appendonlydir"

// step is a step of the schedule.
type step struct {
	Op string
	N  int
}

var steps = []string{"run", "run", "run", "multi", "sleep", "sleep", "long", "begin", "commit", "commit", "abort", "crash", "kill", "die", "restart", "off",
	"policy", "eio-sync", "eio-write", "enospc", "heal", "flush", "ping", "suspend",
	"batch", "batch", "settle", "settle"}

// open loads the files, and starts to append.
func (w *world) open() error {
	files, err := OpenFiles(w.fs, worldDir, "a.aof")
	if err != nil {
		return err
	}
	n, err := w.recovered(files)
	var bad *AOFError
	if errors.As(err, &bad) && w.failedSyncs { // bytes after data that a failed sync has lost are an error until they are cut off
		parts := files.Parts()
		if err := w.fs.Truncate(filepath.Join(worldDir, parts[len(parts)-1].Name), bad.Good); err != nil {
			return err
		}
		if files, err = OpenFiles(w.fs, worldDir, "a.aof"); err == nil {
			n, err = w.recovered(files)
		}
	}
	if err != nil {
		return err
	}
	if n < w.acked || n > w.txs {
		return fmt.Errorf("%d transactions are back; %d were acknowledged, %d ran (%v)", n, w.acked, w.txs, files.Parts())
	}
	w.lost = max(w.lost, w.txs-n)
	w.files, w.txs = files, n
	w.begin()
	x, err := w.a.Start(w.log.Cut())
	if err != nil {
		return err
	}
	if err := x.Wait(context.Background()); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	w.acked = n
	return nil
}

// begin creates a log and an appender at an arbitrary offset.
func (w *world) begin() {
	w.log = New(int64(1000 * (w.crashes + 1)))
	w.a = NewAppender(w.log, w.files, AppenderOptions{Policy: w.policy, Now: func() int64 { return time.Now().UnixMilli() }})
	w.a.round.usual = 0
	w.a.quick.Store(true) // in virtual time a sync takes no time
	w.batch = false
	w.first, w.ends = w.txs, nil
	w.rewriting, w.fresh = false, false
}

// recovered reads the files, which must contain a prefix of the transactions, and returns its length.
func (w *world) recovered(files *Files) (int, error) {
	n, open := 0, false
	_, err := files.Load(Loader{CutTail: true, Command: func(args [][]byte, _ Place) error {
		word := string(args[0])
		number := 0
		if len(args) > 1 {
			number, _ = strconv.Atoi(string(args[1]))
		}
		switch {
		case word == "SNAP":
			n = number
		case word == "SELECT":
		case word == "MULTI" && !open:
			open = true
		case word == "EXEC" && open:
			open = false
			n++
		case word == "TX" && number == n:
			if !open {
				n++
			}
		default:
			return fmt.Errorf("%q after %d transactions", args, n)
		}
		return nil
	}})
	return n, err
}

// run runs a transaction with a number of commands and bytes.
func (w *world) run(commands, bytes int) {
	var b []byte
	for range commands {
		b = append(b, request(fmt.Sprintf("TX %d %s", w.txs, strings.Repeat("x", 1+bytes)))...)
	}
	end, _ := w.log.Append(Unit{DB: w.txs % 2, Last: w.txs % 2, Commands: commands, Bytes: b})
	w.txs++
	w.ends = append(w.ends, end)
}

// ack records the transactions that the log calls synced.
func (w *world) ack() {
	upTo := w.log.Synced()
	for i, end := range w.ends {
		if end <= upTo {
			w.acked = max(w.acked, w.first+i+1)
		}
	}
}

// cut begins a rewrite.
func (w *world) cut() {
	if !w.rewriting && !w.fresh {
		w.rewriting, w.snap = true, w.txs
		w.a.BeginRewrite(w.log.Cut())
	}
}

// commit writes a base and commits it.
func (w *world) commit() error {
	if !w.rewriting && !w.fresh {
		return nil
	}
	base := filepath.Join(filepath.Dir(worldDir), "temp-base")
	err := func() error {
		f, err := w.fs.Create(base)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err = f.Write(request(fmt.Sprint("SNAP ", w.snap))); err != nil {
			return err
		}
		return f.Sync()
	}()
	if err == nil {
		err = w.a.CommitRewrite(base)
	}
	if err != nil {
		return w.abort()
	}
	w.rewriting, w.fresh = false, false
	return nil
}

func (w *world) abort() error {
	switch {
	case w.fresh:
		_ = w.a.Close()
		return w.startFresh()
	case w.rewriting:
		w.a.AbortRewrite()
		w.rewriting = false
	}
	return nil
}

// startFresh starts the files again, after transactions that are in no file.
func (w *world) startFresh() error {
	w.begin()
	w.fresh, w.snap = true, w.txs
	_, err := w.a.StartFresh(w.log.Cut())
	return err
}

// end ends the process, and continues with the disk that next returns.
func (w *world) end(next func() *crashfs.FS) error {
	w.ack()
	w.crashes++
	w.fs = next()
	_ = w.a.Close()
	w.ack() // no later transaction can have been acknowledged
	return w.open()
}

func (w *world) do(s step) error {
	switch s.Op {
	case "run":
		w.run(1, s.N)
	case "multi":
		w.run(2+s.N%3, s.N)
	case "sleep":
		time.Sleep(time.Duration(s.N) * 10 * time.Microsecond)
	case "long":
		time.Sleep(time.Duration(s.N) * 10 * time.Millisecond)
	case "ping":
		w.log.AppendControl(request("PING"))
	case "batch":
		w.batch = w.batch || w.log.BeginBatch()
		w.run(1, s.N)
	case "settle":
		if w.batch {
			w.batch = false
			w.log.EndBatch()
		}
	case "begin":
		w.cut()
	case "commit":
		return w.commit()
	case "abort":
		return w.abort()
	case "crash":
		return w.end(w.fs.Crash)
	case "kill":
		if w.log.Failure() != nil { // the new process does not know that a sync failed
			return w.end(w.fs.Crash)
		}
		return w.end(w.fs.Kill)
	case "die":
		w.fs.DieAfter(s.N % 12)
	case "restart":
		return w.restart()
	case "off":
		if w.rewriting || w.fresh {
			return nil
		}
		err := w.a.Close()
		if w.ack(); err != nil { // as after a kill
			return w.end(w.fs.Crash)
		}
		w.txs += s.N // transactions that are in no log
		return w.startFresh()
	case "policy":
		w.policy = Policy(s.N % 3)
		w.a.SetPolicy(w.policy)
	case "suspend":
		w.a.SuspendSync(s.N%2 == 0)
	case "eio-sync":
		w.failedSyncs = true
		w.fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO, Times: 1})
	case "eio-write":
		w.fs.Inject(crashfs.Fault{Op: crashfs.OpWrite, Err: syscall.EIO, Times: 1 + s.N%3, Short: s.N % 20})
	case "enospc":
		w.fs.SetCapacity(int64(s.N * 10))
	case "heal":
		w.fs.SetCapacity(-1)
	case "flush":
		_ = w.a.Flush()
	}
	return nil
}

// restart closes the files in order. Everything must be there afterwards, unless Close returned an error.
func (w *world) restart() error {
	all, fresh := w.txs, w.fresh
	err := w.a.Close()
	w.ack()
	if err == nil && !fresh {
		w.acked = all
	}
	if err != nil {
		return w.end(w.fs.Crash)
	}
	if _, err := w.fs.Stat(worldDir); errors.Is(err, crashfs.ErrDead) {
		return w.end(w.fs.Crash)
	}
	return w.open()
}

// play runs the steps in virtual time.
func (w *world) play(all []step) (err error) {
	if err := w.open(); err != nil {
		return err
	}
	defer func() { _ = w.a.Close() }()
	for i, s := range all {
		if err := w.do(s); errors.Is(err, crashfs.ErrDead) {
			if err := w.end(w.fs.Crash); err != nil {
				return fmt.Errorf("step %d, %v: %w", i, s, err)
			}
		} else if isSystem(err) { // a fault hit a start; the next start works
			if err := w.reopen(); err != nil {
				return fmt.Errorf("step %d, %v: %w", i, s, err)
			}
		} else if err != nil {
			return fmt.Errorf("step %d, %v: %w", i, s, err)
		}
		w.ack()
	}
	return w.end(w.fs.Crash)
}

func isSystem(err error) bool { return errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC) }

// reopen tries again after a fault at a start. Each fault happens once.
func (w *world) reopen() (err error) {
	for range 20 {
		_ = w.a.Close()
		w.fs = w.fs.Crash()
		if err = w.open(); !isSystem(err) {
			return err
		}
	}
	return err
}

// TestNothingAcknowledgedIsLost runs random workloads: transactions, rewrites, faults of the disk, and crashes
// between any two operations on it. The data afterwards must be complete transactions, from the first to at least the
// last one that the log called synced.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	var crashes, lost int
	draw.Check(t, func(rt *rapid.T) {
		w := &world{fs: crashfs.New(rapid.Uint64().Draw(rt, "seed")), policy: rapid.SampledFrom([]Policy{Always, Always, EverySec, No}).Draw(rt, "policy")}
		all := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{rapid.SampledFrom(steps).Draw(rt, "op"), rapid.IntRange(0, 200).Draw(rt, "n")}
		}), 1, 60).Draw(rt, "steps")
		var err error
		synctest.Test(t, func(*testing.T) { err = w.play(all) })
		if err != nil {
			rt.Fatal(err)
		}
		crashes, lost = crashes+w.crashes, max(lost, w.lost)
	})
	t.Logf("%d crashes; the most transactions one lost, none of them acknowledged: %d", crashes, lost)
}

var _ disk.FS = (*crashfs.FS)(nil)
