package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/rdb"
)

// tokenLeap is the amount, in us, by which a start raises the fencing tokens, because a token that was granted
// shortly before a crash may be in no file. It is more than everysec can lose, and more than the
// difference of two clocks should be.
const tokenLeap = 60e6

// loading has the data of the running load and of the last one.
type loading struct {
	run     *loadRun // nil: none
	origin  Origin   // the origin of the RDB file that Load has loaded
	keys    int64    // keys of the last load
	expired int64
	took    int64 // us
}

// loadRun is a running load.
type loadRun struct {
	k        *Keeper
	began    int64        // us
	total    atomic.Int64 // bytes
	read     atomic.Int64
	commands atomic.Int64
	progress engine.Progress
	origin   Origin
	cut      bool // the end of the files was not whole
}

// Load loads the append-only files if appendonly is yes, else the RDB file. As in Redis, if these
// do not exist, it loads nothing, even if files of the other kind exist; but see Options.TakeRDB.
// Load calls SetLoading(true) when it begins, and Start calls SetLoading(false), because a write
// between the two would be in no file. Load logs its progress every second. The engine must be
// empty and unused.
//
// Errors name the file and the offset. After an error the engine has partial data.
func (k *Keeper) Load(ctx context.Context) error {
	if k.o.Memory {
		return nil
	}
	found, err := k.loadStart(ctx)
	if err != nil || !found {
		return err
	}
	k.raiseTokens()
	if o := k.Origin(); o.ID != "" {
		k.oplg.Reset(o.Offset) // the stream continues at its old offset
	}
	return nil
}

// loadStart loads the files of a start, and reports whether there are any.
func (k *Keeper) loadStart(ctx context.Context) (found bool, err error) {
	path := k.rdbPath()
	if k.o.Config.Bool("appendonly") {
		if !k.aof.files.Empty() {
			err := k.loading(ctx, func(x *loadRun) error {
				err := x.aof(ctx, k.o.Config.Bool("aof-load-truncated"), true)
				k.mu.Lock()
				k.whole = err == nil && !x.cut
				k.mu.Unlock()
				return err
			})
			k.noteUnloaded()
			return true, err
		}
		if !k.o.TakeRDB {
			k.noteUnloaded()
			return false, nil
		}
	}
	if _, err := k.fs.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, k.loading(ctx, func(x *loadRun) error { return x.rdbFile(ctx, path, true) })
}

// Whole reports whether Load has loaded append-only files to their end, and has cut nothing off.
func (k *Keeper) Whole() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.whole
}

// Origin returns the stream and the offset that the loaded RDB file names.
func (k *Keeper) Origin() Origin {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.load.origin
}

// loading runs a load. Meanwhile the server replies LOADING to clients, nothing expires (see
// changeLoading), and the Keeper logs the progress.
func (k *Keeper) loading(ctx context.Context, work func(*loadRun) error) error {
	x := &loadRun{k: k, began: k.now(), origin: Origin{DB: -1}}
	k.setLoading(x)
	ctx, cancel := context.WithCancel(ctx)
	logged := make(chan struct{})
	go func() { // ends with ctx; loading waits for it
		defer close(logged)
		x.logProgress(ctx)
	}()
	err := work(x)
	cancel()
	<-logged
	k.endLoading(x, err)
	return err
}

func (k *Keeper) setLoading(x *loadRun) {
	k.mu.Lock()
	k.load.run = x
	k.mu.Unlock()
	k.changeLoading(true)
}

func (k *Keeper) endLoading(x *loadRun, err error) {
	took := k.now() - x.began
	k.mu.Lock()
	k.load = loading{origin: x.origin, keys: x.progress.Keys.Load(), expired: x.progress.Dropped.Load(), took: took}
	k.jobs.dirty = k.o.DB.Dirty()
	k.broken = k.broken || errors.Is(err, ErrPartial)
	started := k.started || k.o.Memory // a Keeper in memory has no Start
	k.mu.Unlock()
	if err == nil {
		k.log.Info("loaded", "keys", x.progress.Keys.Load(), "expired", x.progress.Dropped.Load(), "commands", x.commands.Load(),
			"bytes", x.read.Load(), "seconds", fmt.Sprintf("%.3f", float64(took)/1e6))
	}
	if started && !errors.Is(err, ErrPartial) {
		k.changeLoading(false)
	}
}

// logProgress logs the progress of the load every second.
func (x *loadRun) logProgress(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for last := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		read := x.read.Load()
		x.k.log.Info("loading", "percent", fmt.Sprintf("%.1f", percent(read, x.total.Load())), "keys", x.progress.Keys.Load(),
			"commands", x.commands.Load(), "MB/s", (read-last)/1e6)
		last = read
	}
}

func percent(part, whole int64) float64 { return min(100*float64(part)/float64(max(whole, 1)), 100) }

// raiseTokens raises the fencing tokens, so that no token is granted twice.
func (k *Keeper) raiseTokens() {
	tx := k.o.DB.BeginAll(0)
	tx.SawToken(tx.NextToken() + tokenLeap)
	tx.Commit()
}

// rdbFile loads the RDB file.
func (x *loadRun) rdbFile(ctx context.Context, path string, start bool) error {
	k := x.k
	info, err := k.fs.Stat(path)
	if err != nil {
		return err
	}
	if info.Dir {
		return fmt.Errorf("%s is a directory, and should be an RDB file", path)
	}
	x.total.Store(info.Size)
	f, err := k.fs.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if start {
		if err := k.setClock(max(info.Modified*1000, rdbTime(io.NewSectionReader(f, 0, headBytes))), path); err != nil {
			return err
		}
	}
	if _, err = x.rdb(ctx, f, !start || k.replica()); err != nil {
		return fmt.Errorf("the RDB file %s: %w; look at it with `ebb check`", path, err)
	}
	k.owns(path)
	if x.progress.Dropped.Load() > 0 || x.progress.Short.Load() > 0 || x.origin.DB == k.o.DB.Databases() {
		x.origin = Origin{DB: -1} // the data differs from the replicas', because the load left items out, or the stream has no origin
	}
	return nil
}

// rdb loads an RDB file, and returns the bytes that were read after its end.
func (x *loadRun) rdb(ctx context.Context, r io.Reader, keepExpired bool) (rest []byte, err error) {
	o := rdb.ReaderOptions{Aux: x.text, NoChecksum: !x.k.o.Config.Bool("rdbchecksum")}
	if load := x.k.o.LoadFunction; load != nil {
		o.Function = load
	}
	in := rdb.NewReader(&counting{r, &x.read}, o)
	err = x.k.o.DB.Load(ctx, in, engine.LoadOptions{KeepExpired: keepExpired, Progress: &x.progress})
	return in.Rest(), err
}

// base loads the snapshot at the beginning of append-only files, and returns the bytes that were
// read after its end.
func (x *loadRun) base(ctx context.Context, r io.Reader) (rest []byte, err error) {
	rest, err = x.rdb(ctx, r, true) // rdb reads large blocks, and returns the bytes that it did not need
	if err != nil {
		err = fmt.Errorf("the snapshot in it: %w; look at it with `ebb check`", err)
	}
	return rest, err
}

// text applies an auxiliary text of the file.
func (x *loadRun) text(name, text []byte) error {
	if ours, err := x.k.o.DB.LoadAux(name, text); ours || err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch string(name) {
	case "repl-id":
		x.origin.ID = string(text)
	case "repl-offset":
		if err == nil {
			x.origin.Offset = max(n, 0)
		}
	case "repl-stream-db":
		if err == nil {
			x.origin.DB = int(min(max(n, -1), int64(x.k.o.DB.Databases())))
		}
	}
	return nil
}

// counting counts the bytes that are read.
type counting struct {
	r io.Reader
	n *atomic.Int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// aof loads the append-only files.
func (x *loadRun) aof(ctx context.Context, cutTail, start bool) error {
	k := x.k
	k.mu.Lock()
	files := k.aof.files
	k.mu.Unlock()
	x.total.Store(files.Size())
	if start {
		if err := k.setClock(k.newestOf(files), files.Dir()); err != nil {
			return err
		}
	}
	play := newPlayer(ctx, k.o, &x.commands)
	found, err := files.Load(oplog.Loader{
		RDB:      func(r io.Reader) ([]byte, error) { return x.base(ctx, r) },
		Command:  play.command,
		CutTail:  cutTail,
		Progress: func(read int64) { x.read.Store(read) },
	})
	if err = errors.Join(err, play.close()); err != nil {
		return err
	}
	x.origin = Origin{DB: -1} // the stream has continued since the base
	if x.cut = found.Cut > 0; x.cut {
		k.log.Warn("the end of the append-only file was cut off, because the last command is not whole", "file",
			found.CutFile, "bytes", found.Cut)
	}
	if start {
		return k.setClock(found.Time*1e6, files.Dir())
	}
	return nil
}

// empty deletes all data; files and replicas do not get the change.
func (k *Keeper) empty() {
	tx := k.o.DB.BeginAll(0)
	tx.Replaying()
	tx.Flush(-1)
	tx.Commit()
	if k.o.DropFunctions != nil {
		k.o.DropFunctions()
	}
}

// errReplica: a replica cannot reload, because it would lose the master's effects during the load.
var errReplica = errors.New("this is a replica, whose data goes on changing: REPLICAOF NO ONE comes first")

// replica reports whether the engine follows a master.
func (k *Keeper) replica() bool { return k.o.Replica != nil && k.o.Replica() }

var errMerge = errors.New("DEBUG RELOAD MERGE is not supported: NOFLUSH loads keys that are not there yet")

// Reload implements DEBUG RELOAD. Without a directory it saves to memory. The load keeps dead keys
// and items, because replicas and files have them too; the engine removes them later as always.
func (k *Keeper) Reload(ctx context.Context, o ReloadOptions) error {
	switch {
	case o.Merge:
		return errMerge
	case k.replica():
		return errReplica
	case k.o.Memory:
		return k.reloadMemory(ctx, o)
	}
	if err := k.saveFor(ctx, o); err != nil {
		return err
	}
	k.mu.Lock()
	path := k.rdbPath()
	k.mu.Unlock()
	if _, err := k.fs.Stat(path); err != nil {
		k.changeLoading(false)
		return err
	}
	err := k.inTurn(ctx, func() error {
		return k.loading(ctx, func(x *loadRun) error {
			return k.again(o.NoFlush, func() error { return x.rdbFile(ctx, path, false) })
		})
	})
	switch {
	case err == nil && (o.NoSave || o.NoFlush):
		k.Replaced()
	case err != nil && !errors.Is(err, ErrPartial):
		k.changeLoading(false)
	}
	return err
}

// saveFor saves for a reload. From before the save on, the server refuses writes.
func (k *Keeper) saveFor(ctx context.Context, o ReloadOptions) error {
	k.changeLoading(true)
	if o.NoSave {
		return nil
	}
	err := k.Save(ctx)
	if err != nil {
		k.changeLoading(false)
	}
	return err
}

// changeLoading notes that a load begins or ends. At the begin, it first makes the server refuse
// clients and then calls DB.BeginLoad; at the end it does the reverse. So the stream has all
// effects of clients when changeLoading returns, and the engine removes due items only while the
// stream goes to the files. For this reason a start ends the load in Start, after the start of the
// appender, and not in Load. A reload begins the load before its save, because the load would
// restore items that the reclaimers remove in between. A repeated call changes nothing.
func (k *Keeper) changeLoading(on bool) {
	if on && k.o.SetLoading != nil {
		k.o.SetLoading(true)
	}
	k.mu.Lock()
	change := k.filling != on
	k.filling = on
	k.mu.Unlock()
	switch {
	case !change:
	case on:
		k.o.DB.BeginLoad()
	default:
		k.o.DB.EndLoad()
	}
	if !on && k.o.SetLoading != nil {
		k.o.SetLoading(false)
	}
}

// again empties the engine, unless keep is set, and loads. If the load fails, the engine has
// partial data, which the Keeper never saves.
func (k *Keeper) again(keep bool, load func() error) error {
	if !keep {
		k.empty()
	}
	err := load()
	if err != nil && !keep {
		k.log.Error("a reload has failed: the data in memory is not complete, and is neither served nor saved; start again, the "+
			"files are as they were", "error", err)
		err = fmt.Errorf("%w: %w", ErrPartial, err)
	}
	return err
}

func (k *Keeper) reloadMemory(ctx context.Context, o ReloadOptions) error {
	if o.NoSave {
		return ErrNoDirectory
	}
	return k.inTurn(ctx, func() error {
		var b bytes.Buffer
		k.changeLoading(true) // writes from here on would be lost
		if err := k.writeSnapshot(ctx, &b, new(engine.Progress), snapshotKind{hurry: true}, nil); err != nil {
			k.changeLoading(false)
			return err
		}
		return k.loading(ctx, func(x *loadRun) error {
			x.total.Store(int64(b.Len()))
			return k.again(o.NoFlush, func() error {
				_, err := x.rdb(ctx, &b, true)
				return err
			})
		})
	})
}

// LoadAOF implements DEBUG LOADAOF: it waits until the append-only files have all effects, empties
// the engine, and loads the files.
func (k *Keeper) LoadAOF(ctx context.Context) error {
	switch {
	case k.o.Memory:
		return ErrNoDirectory
	case k.replica():
		return errReplica
	}
	k.mu.Lock()
	err := k.aof.filesErr
	k.mu.Unlock()
	if err != nil {
		return err
	}
	return k.inTurn(ctx, func() error {
		return k.loading(ctx, func(x *loadRun) error {
			if err := k.flushAppended(ctx); err != nil {
				return err
			}
			return k.again(false, func() error { return x.aof(ctx, false, false) })
		})
	})
}

// info fills in the numbers of the running load and of the last one.
func (l *loading) info(i *Info, now int64) {
	i.LoadedKeys, i.ExpiredOnLoad, i.LoadMillis, i.LoadingETA = l.keys, l.expired, l.took/1000, -1
	x := l.run
	if x == nil {
		return
	}
	read, total := x.read.Load(), x.total.Load()
	if total > 0 {
		read = min(read, total) // blocks that were read ahead, and are read again, count twice
	}
	i.Loading, i.LoadingStart, i.LoadingTotal, i.LoadingLoaded = true, x.began/1e6, total, read
	i.LoadingKeys = x.progress.Keys.Load() + x.commands.Load()
	if took := now - x.began; took > 0 && read > 0 {
		i.LoadingETA = max(i.LoadingTotal-read, 0) * took / read / 1e6
	}
}
