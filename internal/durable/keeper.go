package durable

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/oplog"
)

// Keeper keeps an engine's data in a directory. Make one with Open, call Load and
// Start, and Close it before the engine. Its methods are safe for concurrent use,
// and, unless they say so, must not be called with a shard locked.
type Keeper struct {
	o    Options
	fs   disk.FS
	log  *slog.Logger
	oplg *oplog.Log

	turn chan struct{} // holds one: the right to make a snapshot
	kick chan struct{} // the loop is to look at what has changed
	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup // the loop and the jobs

	flushes sync.WaitGroup // that wait for the appender, at most until its end

	replacing sync.Mutex // held while the RDB file is replaced; before mu

	mu      sync.Mutex // guards what follows; no shard is locked while it is held
	dir     string
	given   string    // what Config said when dir was taken
	lock    io.Closer // of dir; nil while nothing is kept
	closed  bool
	job     *job // under way
	jobs    jobs
	aof     appendOnly
	load    loading
	reply   string // with which writes are refused
	started bool   // what is written goes into the files
	filling bool   // DB.BeginLoad was called, and DB.EndLoad is to come
	held    int    // calls of Hold whose done is to come: the engine holds a part
	broken  bool   // a reload has failed: ErrPartial
}

// Open locks the directory, removes what an interrupted job has left behind, and
// reads the manifest of the append-only files. It changes nothing else. Where nothing
// is kept by itself, without appendonly and save points, or with Options.Shared, it does
// neither of the first two: several servers may then share a directory. Each save that a client requests, and
// each change by CONFIG SET, then locks it.
//
// Errors: *disk.LockedError, which names the owner's pid; oplog.ErrManifest; a file
// that the manifest names is missing; those of the file system.
func Open(o Options) (*Keeper, error) {
	k := &Keeper{o: o, fs: o.FS, log: o.Logger, oplg: o.DB.Log(), turn: make(chan struct{}, 1), kick: make(chan struct{}, 1)}
	if k.fs == nil {
		k.fs = disk.OS()
	}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	k.ctx, k.stop = context.WithCancel(context.Background())
	k.turn <- struct{}{}
	k.jobs.init(k.now(), o.DB.Dirty())
	k.load.origin = Origin{DB: -1}
	if o.Memory {
		return k, nil
	}
	if err := k.occupy(); err != nil {
		return nil, err
	}
	if err := k.openFiles(); err != nil {
		return nil, errors.Join(err, k.unlock())
	}
	return k, nil
}

// occupy takes the directory.
func (k *Keeper) occupy() error {
	dir := k.o.Dir
	if dir == "" {
		dir = k.o.Config.String("dir")
	}
	if dir == "" {
		dir = "."
	}
	k.dir, k.given = dir, k.o.Config.String("dir")
	if !k.keeps() {
		return nil
	}
	if err := k.takeLock(); err != nil {
		return err
	}
	k.sweep(true)
	return nil
}

// LoadSize returns the bytes of the files that Load would load; 0 if there are none.
func (k *Keeper) LoadSize() int64 {
	if k.o.Memory {
		return 0
	}
	if k.o.Config.Bool("appendonly") {
		switch {
		case !k.aof.files.Empty():
			return max(k.aof.files.Size(), 1)
		case !k.o.TakeRDB:
			return 0
		}
	}
	k.mu.Lock()
	path := k.rdbPath()
	k.mu.Unlock()
	info, err := k.fs.Stat(path)
	if err != nil {
		return 0 // Load will say what is wrong, if the file is there
	}
	return info.Size
}

// keeps reports whether something is kept by itself, so that the directory must be
// ours. k.mu is held, or nothing runs yet.
func (k *Keeper) keeps() bool {
	points, _ := k.o.Config.Value("save").Data.([]savePoint)
	return len(points) > 0 && !k.o.Shared || k.aof.want || k.aof.state != aofOff || k.o.Config.Bool("appendonly")
}

// takeLock makes the directory ours, if it is not yet. k.mu is held, or nothing runs
// yet. Errors: *disk.LockedError.
func (k *Keeper) takeLock() error {
	if k.lock != nil {
		return nil
	}
	lock, err := k.fs.Lock(k.dir)
	if err != nil {
		return err
	}
	k.lock = lock
	k.sweep(false) // a synchronisation may be under way here
	return nil
}

// leftOut reports whether a save has failed because another server has the directory
// that is shared: that save is left out.
func (k *Keeper) leftOut(err error) bool {
	var locked *disk.LockedError
	return k.o.Shared && errors.As(err, &locked)
}

// settleLock lets go of a directory in which nothing is kept any more. k.mu is held.
func (k *Keeper) settleLock() {
	if k.keeps() || k.job != nil || k.jobs.saveScheduled || k.jobs.rewriteScheduled {
		return
	}
	if err := k.unlock(); err != nil {
		k.log.Warn("the directory could not be unlocked", "directory", k.dir, "error", err)
	}
}

// unlock lets go of the directory.
func (k *Keeper) unlock() error {
	if k.lock == nil {
		return nil
	}
	lock := k.lock
	k.lock = nil
	return lock.Close()
}

// openFiles looks at the append-only files. They are needed where appendonly is
// yes; otherwise what is wrong with them is said when it is switched on.
func (k *Keeper) openFiles() error {
	c := k.o.Config
	files, err := oplog.OpenFiles(k.fs, filepath.Join(k.dir, c.String("appenddirname")), c.String("appendfilename"))
	if err != nil && c.Bool("appendonly") {
		return err
	}
	k.aof.files, k.aof.filesErr = files, err
	return nil
}

// now is engine time in us.
func (k *Keeper) now() int64 { return k.o.DB.Clock().Micros() }

// Dir returns the directory of the files, "" if there is none.
func (k *Keeper) Dir() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dir
}

// Start begins to append, if appendonly is yes, and to save at the save points.
// What is written from then on is in the files, and SetLoading(false) lets clients
// in.
func (k *Keeper) Start() error {
	if !k.o.Memory && k.o.Config.Bool("appendonly") {
		if err := k.startAppending(); err != nil {
			return err
		}
	}
	k.mu.Lock()
	k.started = true
	k.mu.Unlock()
	if !k.o.Memory {
		k.wait.Go(k.run)
	}
	k.tellLoading(false)
	return nil
}

// idleTick is how often the loop looks without being nudged: save points are
// counted in seconds.
const idleTick = time.Second

// run is the goroutine that begins what is due.
func (k *Keeper) run() {
	t := time.NewTicker(idleTick)
	defer t.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.kick:
		case <-t.C:
		}
		k.step()
	}
}

// step does what is due now. One goroutine calls it at a time.
func (k *Keeper) step() {
	k.stepAppending()
	k.look()
	k.beginDue(k.now())
	k.mu.Lock()
	k.settleLock()
	k.mu.Unlock()
}

// nudge has the loop look at what has changed. It does not block.
func (k *Keeper) nudge() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// Turn waits until no other snapshot is under way and reserves the next one: a caller that
// calls DB.Snapshot, other than the Keeper, takes a turn first. done gives it back.
func (k *Keeper) Turn(ctx context.Context) (done func(), err error) {
	select {
	case <-k.turn:
		return sync.OnceFunc(func() { k.turn <- struct{}{} }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-k.ctx.Done():
		return nil, ErrClosed
	}
}

// Hold is Turn for a caller that replaces all data: jobs under way are called off, none begins
// by itself, and Shutdown saves nothing until done is called, because what the engine
// holds meanwhile must not be saved.
func (k *Keeper) Hold(ctx context.Context) (done func(), err error) {
	k.hold(1)
	k.cancelJob(jobSave)
	k.cancelJob(jobRewrite)
	turn, err := k.Turn(ctx)
	if err != nil {
		k.hold(-1)
		return nil, err
	}
	return sync.OnceFunc(func() {
		turn()
		k.hold(-1)
	}), nil
}

func (k *Keeper) hold(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held += n
	k.nudge()
}

// partial reports whether the engine holds a part of some data: it is being loaded,
// or that has failed.
func (k *Keeper) partial() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.started || k.held > 0
}

// Shutdown calls the job under way off, saves as mode says, unless data is being
// loaded, and writes and syncs what was appended. After an error the Keeper goes on as
// before, unless force is set: then the error tells what was not written. Close comes
// next.
func (k *Keeper) Shutdown(ctx context.Context, mode ShutdownMode, force bool) error {
	if k.o.Memory {
		if mode == ShutdownSave {
			return ErrNoDirectory
		}
		return nil
	}
	k.cancelJob(jobSave)
	var err error
	if !force || mode != ShutdownNoSave {
		err = k.flushAppended(ctx)
	}
	if err != nil && !force {
		return err
	}
	points, _ := k.o.Config.Value("save").Data.([]savePoint)
	switch {
	case mode == ShutdownNoSave || mode == ShutdownDefault && len(points) == 0:
	case k.partial():
		k.log.Warn("not saved before the end: data is being loaded, and the file has the data so far")
	default:
		k.log.Info("saving before the end")
		saveErr := k.saveNow(ctx)
		if k.leftOut(saveErr) {
			k.log.Warn("not saved before the end", "error", saveErr)
			saveErr = nil
		}
		err = errors.Join(err, saveErr)
	}
	return err
}

// saveNow is Save which waits for no job: it calls them off.
func (k *Keeper) saveNow(ctx context.Context) error {
	for {
		k.cancelJob(jobRewrite)
		k.cancelJob(jobSave)
		if err := k.Save(ctx); !errors.Is(err, ErrSaving) { // another one may have begun
			return err
		}
	}
}

// Close stops everything, waits for the job that has the turn, writes and syncs what was
// appended, and unlocks the directory. It returns an error if something that was appended is not synced.
func (k *Keeper) Close() error {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return nil
	}
	k.closed = true
	k.mu.Unlock()
	k.stop()
	k.wait.Wait()
	<-k.turn // for good: the engine is about to end
	err := k.endAppending()
	return errors.Join(err, k.unlock())
}
