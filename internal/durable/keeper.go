package durable

import (
	"cmp"
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

// Keeper keeps an engine's data in a directory. Open returns one; the caller calls Load and Start,
// and closes it before the engine. Its methods are safe for concurrent use. Unless their comments
// say so, a caller must not hold a shard.
type Keeper struct {
	o    Options
	fs   disk.FS
	log  *slog.Logger
	oplg *oplog.Log

	turn chan struct{} // holds one token: the right to make a snapshot
	kick chan struct{} // wakes the loop to look for new work
	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup // the loop and the jobs

	flushes sync.WaitGroup // calls that wait for the appender, at most until its end

	replacing sync.Mutex // held while the RDB file is replaced; locked before mu

	mu       sync.Mutex // guards the fields below; its holder must not lock a shard
	dir      string
	given    string    // the value in Config when dir was locked
	lock     io.Closer // the lock of dir; nil while the Keeper writes no files by itself
	closed   bool
	job      *job // the running job; nil: none
	jobs     jobs
	aof      appendOnly
	load     loading
	unloaded unloaded
	reply    string // the error reply to writes; "": writes are allowed
	started  bool   // the files contain the writes from now on
	filling  bool   // DB.BeginLoad was called, and DB.EndLoad was not
	held     int    // calls of Hold that have not ended: the engine may have partial data
	broken   bool   // a reload has failed: ErrPartial
	whole    bool   // see Whole
}

// Open locks the directory, removes the files of an interrupted job, and reads the manifest of the
// append-only files. It changes nothing else. Without appendonly and save points, or with
// Options.Shared, it does not lock the directory and removes nothing, so that several servers can
// share a directory. Then each save that a client requests, and each change by CONFIG SET, locks
// it.
//
// Errors: *disk.LockedError, which names the owner's pid; oplog.ErrManifest; an error if a file of
// the manifest is missing; the errors of the file system.
func Open(o Options) (*Keeper, error) {
	k := &Keeper{o: o, fs: o.FS, log: o.Logger, oplg: o.DB.Log(), turn: make(chan struct{}, 1), kick: make(chan struct{}, 1)}
	if k.fs == nil {
		k.fs = disk.OS()
	}
	k.log = cmp.Or(k.log, slog.New(slog.DiscardHandler))
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

// occupy locks the directory and cleans it up, if the Keeper needs it.
func (k *Keeper) occupy() error {
	dir := k.o.Dir
	if dir == "" {
		dir = k.o.Config.String("dir")
	}
	dir = cmp.Or(dir, ".")
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
		return 0 // Load returns the error, if the file exists
	}
	return info.Size
}

// keeps reports whether the Keeper writes files by itself, so that it must lock the directory. k.mu
// is held, or nothing runs yet.
func (k *Keeper) keeps() bool {
	points, _ := k.o.Config.Value("save").Data.([]savePoint)
	return len(points) > 0 && !k.o.Shared || k.aof.want || k.aof.state != aofOff || k.o.Config.Bool("appendonly")
}

// takeLock locks the directory, unless the Keeper has locked it already. k.mu is held, or nothing
// runs yet. Errors: *disk.LockedError.
func (k *Keeper) takeLock() error {
	if k.lock != nil {
		return nil
	}
	lock, err := k.fs.Lock(k.dir)
	if err != nil {
		return err
	}
	k.lock = lock
	k.sweep(false) // a synchronisation may be running here
	return nil
}

// leftOut reports whether err means that another server has locked the shared directory, so that
// the Keeper skips the save.
func (k *Keeper) leftOut(err error) bool {
	var locked *disk.LockedError
	return k.o.Shared && errors.As(err, &locked)
}

// settleLock unlocks the directory if the Keeper no longer writes files by itself. k.mu is held.
func (k *Keeper) settleLock() {
	if k.keeps() || k.job != nil || k.jobs.saveScheduled || k.jobs.rewriteScheduled {
		return
	}
	if err := k.unlock(); err != nil {
		k.log.Warn("the directory could not be unlocked", "directory", k.dir, "error", err)
	}
}

// unlock unlocks the directory.
func (k *Keeper) unlock() error {
	if k.lock == nil {
		return nil
	}
	lock := k.lock
	k.lock = nil
	return lock.Close()
}

// openFiles reads the append-only files. With appendonly yes, it returns their errors. Otherwise
// SetAppendOnly returns them later.
func (k *Keeper) openFiles() error {
	c := k.o.Config
	files, err := oplog.OpenFiles(k.fs, filepath.Join(k.dir, c.String("appenddirname")), c.String("appendfilename"))
	if err != nil && c.Bool("appendonly") {
		return err
	}
	k.aof.files, k.aof.filesErr = files, err
	if !c.Bool("appendonly") {
		k.noteFiles()
	}
	return nil
}

// now returns engine time in us.
func (k *Keeper) now() int64 { return k.o.DB.Clock().Micros() }

// Dir returns the directory of the files, "" if there is none.
func (k *Keeper) Dir() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dir
}

// Start begins to append, if appendonly is yes, and to save at the save points. The files contain
// all writes from then on, and SetLoading(false) lets the server accept clients.
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
	k.changeLoading(false)
	return nil
}

// idleTick is the interval at which the loop looks for work without a nudge. A second is enough,
// because save points are counted in seconds.
const idleTick = time.Second

// run is the main function of the goroutine that begins due jobs.
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

// step begins the work that is due now. One goroutine calls it at a time.
func (k *Keeper) step() {
	k.stepAppending()
	k.look()
	k.beginDue(k.now())
	k.mu.Lock()
	k.settleLock()
	k.mu.Unlock()
}

// nudge wakes the loop to look for new work. It does not block.
func (k *Keeper) nudge() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// Turn waits until no other snapshot is running and reserves the next one. Every caller of
// DB.Snapshot, except the Keeper, calls Turn first. done ends the reservation.
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

// Hold does the work of Turn for a caller that replaces all data. It cancels running jobs. Until the caller calls
// done, no job begins by itself and Shutdown saves nothing, because the engine's partial data must
// not be saved.
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

// partial reports whether the engine has partial data, because a load is running or has failed.
func (k *Keeper) partial() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.started || k.held > 0
}

// Shutdown cancels the running job, saves as mode says, unless a load is running, and writes and
// syncs the append-only files. After an error the Keeper continues as before. With force, it ends
// all the same, and the error says what was not written. The caller then calls Close.
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

// saveNow is Save, but it cancels running jobs instead of waiting for them.
func (k *Keeper) saveNow(ctx context.Context) error {
	for {
		k.cancelJob(jobRewrite)
		k.cancelJob(jobSave)
		if err := k.Save(ctx); !errors.Is(err, ErrSaving) { // another job may have begun
			return err
		}
	}
}

// Close stops all goroutines, waits for the running job, writes and syncs the append-only files,
// and unlocks the directory. It returns an error if these files are not completely synced.
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
	<-k.turn // never released: the engine is about to end
	err := k.endAppending()
	return errors.Join(err, k.unlock())
}
