package durable

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
)

// aofState is the state of the append-only files.
type aofState uint8

const (
	aofOff      aofState = iota
	aofStarting          // the engine logs effects; the files wait for a rewrite
	aofOn
)

// appendOnly is the state of the append-only files. Only the loop, Start and Close
// change the appender and the state; a rewrite that ends aofStarting does as well.
type appendOnly struct {
	files    *oplog.Files
	filesErr error // the error that prevents append-only files
	want     bool  // the value of appendonly
	replaced bool  // the files contain other data than the engine
	state    aofState
	appender *oplog.Appender // in aofOn
	needs    bool            // DB.NeedLog was called
}

// startAppending begins to append at the start of the Keeper. New files begin with a base of the
// engine's data, which is empty unless Options.TakeRDB is set.
func (k *Keeper) startAppending() error {
	k.mu.Lock()
	k.aof.want = true
	empty := k.aof.files.Empty()
	k.mu.Unlock()
	k.needLog(true)
	if empty {
		return k.startFresh()
	}
	a := k.newAppender(k.aof.files)
	tx := k.o.DB.BeginAll(0)
	begun, err := a.Start(k.oplg.Cut())
	tx.Commit()
	if err == nil {
		err = begun.Wait(k.ctx)
	}
	if err != nil {
		return fmt.Errorf("the append-only files in %s cannot be appended to: %w", k.aof.files.Dir(), errors.Join(err, a.Close()))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.aof.appender, k.aof.state = a, aofOn
	return nil
}

// startFresh creates the first files, and waits for them.
func (k *Keeper) startFresh() error {
	k.mu.Lock()
	k.aof.state = aofStarting
	j := k.begin(jobRewrite, k.rewrite)
	k.mu.Unlock()
	if err := j.wait(k.ctx); err != nil {
		return fmt.Errorf("the append-only files in %s cannot be made: %w", k.aof.files.Dir(), err)
	}
	k.mu.Lock()
	k.jobs.rewrites, k.jobs.rewrote = 0, -1 // no client requested this rewrite
	k.mu.Unlock()
	return nil
}

func (k *Keeper) newAppender(files *oplog.Files) *oplog.Appender {
	return oplog.NewAppender(k.oplg, files, oplog.AppenderOptions{Policy: k.policy(), Now: k.annotation, Changed: k.nudge})
}

// annotation returns the time for annotations, in ms, 0 for none: aof-timestamp-enabled.
func (k *Keeper) annotation() int64 {
	if !k.o.Config.Bool("aof-timestamp-enabled") {
		return 0
	}
	return k.now() / 1000
}

// policy returns the value of appendfsync.
func (k *Keeper) policy() oplog.Policy {
	switch k.o.Config.String("appendfsync") {
	case "always":
		return oplog.Always
	case "no":
		return oplog.No
	}
	return oplog.EverySec
}

// needLog switches the engine's log on or off.
func (k *Keeper) needLog(on bool) {
	k.mu.Lock()
	change := k.aof.needs != on
	k.aof.needs = on
	k.mu.Unlock()
	switch {
	case !change:
	case on:
		k.o.DB.NeedLog(1)
	default:
		k.o.DB.NeedLog(-1)
	}
}

// stepAppending changes the state to the one that appendonly requires.
func (k *Keeper) stepAppending() {
	k.mu.Lock()
	want, replaced, state := k.aof.want, k.aof.replaced, k.aof.state
	k.aof.replaced = replaced && want && state != aofOff
	k.mu.Unlock()
	switch {
	case !want && state != aofOff:
		k.closeAppender(aofOff)
		k.mu.Lock()
		k.openFilesAgain() // with the size of the last one
		k.unloaded.aof = ""
		k.mu.Unlock()
		k.needLog(false)
		k.oplg.Fail(nil)
		k.log.Info("appending has ended")
	case want && state == aofOff:
		k.needLog(true)
		k.mu.Lock()
		k.aof.state = aofStarting
		k.mu.Unlock()
	case want && replaced:
		k.closeAppender(aofStarting)
		k.mu.Lock()
		k.aof.replaced = false // the next rewrite contains the replaced data
		k.mu.Unlock()
		k.oplg.Fail(nil)
	}
}

// closeAppender ends appending and a running rewrite. Errors of the files no longer matter.
func (k *Keeper) closeAppender(next aofState) {
	k.mu.Lock()
	a := k.aof.appender
	k.aof.appender, k.aof.state = nil, next
	if j := k.job; j != nil && j.kind == jobRewrite {
		j.cancel() // at once: adopt looks
	}
	k.mu.Unlock()
	if a != nil {
		if err := a.Close(); err != nil {
			k.log.Warn("the append-only files lack something", "error", err)
		}
	}
	k.cancelJob(jobRewrite)
}

// endAppending ends appending when the Keeper closes.
func (k *Keeper) endAppending() error {
	k.mu.Lock()
	a, state := k.aof.appender, k.aof.state
	k.aof.appender, k.aof.state = nil, aofOff
	k.mu.Unlock()
	var err error
	if a != nil {
		k.o.DB.Barrier() // a waiting client gets its reply before the transaction that serves it has appended its effects
		err = a.Close()
		k.flushes.Wait()
	} else if state == aofStarting {
		err = errIncomplete
	}
	k.needLog(false)
	return err
}

// errIncomplete: appendonly is yes, and the first rewrite has not succeeded.
var errIncomplete = errors.New("the append-only files are not complete: their first base is not written")

// flushAppended waits until all bytes of the stream are durable.
func (k *Keeper) flushAppended(ctx context.Context) error {
	k.mu.Lock()
	a, state, j := k.aof.appender, k.aof.state, k.job
	k.mu.Unlock()
	if state == aofStarting && j != nil && j.kind == jobRewrite {
		k.log.Info("waiting for the first base of the append-only files")
		select {
		case <-j.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		return k.flushAppended(ctx)
	}
	switch {
	case state == aofOff:
		return nil
	case a == nil:
		return errIncomplete
	}
	return k.flush(ctx, a)
}

// flush is Appender.Flush, but it waits for a full disk to have space again, until ctx ends or the
// files fail.
func (k *Keeper) flush(ctx context.Context, a *oplog.Appender) error {
	upTo := k.oplg.End()
	done := make(chan error, 1)
	k.flushes.Go(func() { done <- a.Flush() })
	for wake := make(oplog.Signal, 1); ; {
		if err := k.oplg.Failure(); err != nil {
			return err
		}
		if k.oplg.OnSynced(upTo, wake) {
			wake = nil // only Flush has not returned, and it has no more work
		}
		select {
		case err := <-done:
			return err
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Sync waits until the effects of all transactions up to now are written and synced, whatever the
// policy. It returns at once if there are no append-only files. It returns the error that prevents
// the sync.
func (k *Keeper) Sync(ctx context.Context) error {
	passed := make(chan struct{})
	k.flushes.Go(func() { // a script may hold a shard for longer than ctx lasts
		k.o.DB.Barrier()
		close(passed)
	})
	select {
	case <-passed:
		return k.flushAppended(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rewriteNeeded reports whether the files need a rewrite to be complete. k.mu is held.
func (k *Keeper) rewriteNeeded() bool {
	switch k.aof.state {
	case aofStarting:
		return true
	case aofOn:
		return k.aof.appender.Stats().Holes
	}
	return false
}

// rewrite is the job of BGREWRITEAOF: it writes a new base at a cut from which on
// the stream goes into a new file.
func (k *Keeper) rewrite(ctx context.Context, j *job) error {
	if err := k.keepUnloadedAOF(); err != nil {
		return err
	}
	k.mu.Lock()
	x := rewriting{k: k, files: k.aof.files, state: k.aof.state, a: k.aof.appender, base: k.temp("temp-rewriteaof-bg-%d.aof")}
	err := k.aof.filesErr
	k.mu.Unlock()
	if err != nil {
		return err
	}
	k.log.Info("rewriting the append-only files")
	k.suspendSync(x.a, true)
	defer k.suspendSync(x.a, false)
	err = k.writeFile(ctx, x.base, j, snapshotKind{base: true, atCut: x.cut})
	if err == nil {
		err = x.commit(ctx)
	}
	if err != nil {
		x.abort()
		return err
	}
	k.log.Debug("the append-only files", "dir", x.files.Dir(), "parts", len(x.files.Parts()))
	return nil
}

// suspendSync implements no-appendfsync-on-rewrite.
func (k *Keeper) suspendSync(a *oplog.Appender, on bool) {
	if a != nil && (!on || k.o.Config.Bool("no-appendfsync-on-rewrite")) {
		a.SuspendSync(on)
	}
}

// rewriting is a running rewrite.
type rewriting struct {
	k     *Keeper
	files *oplog.Files
	state aofState
	a     *oplog.Appender
	base  string // path
	begun *oplog.Rotation
	err   error
}

// cut is called at the instant of the snapshot.
func (x *rewriting) cut(*engine.Tx) {
	offset, db := x.k.oplg.Cut()
	switch x.state {
	case aofOn:
		x.begun = x.a.BeginRewrite(offset, db)
	case aofStarting:
		x.a = x.k.newAppender(x.files)
		x.begun, x.err = x.a.StartFresh(offset, db)
	default: // files for a later start: the base, without an increment
		x.a = oplog.NewAppender(x.k.oplg, x.files, oplog.AppenderOptions{Policy: oplog.No})
		x.begun, x.err = x.a.StartFresh(offset, db)
	}
}

// commit makes the base and the increment after it the valid files.
func (x *rewriting) commit(ctx context.Context) error {
	if x.err != nil {
		return x.err
	}
	if err := x.begun.Wait(ctx); err != nil {
		return err
	}
	began := x.k.now()
	if err := x.a.CommitRewrite(x.base); err != nil {
		return err
	}
	if x.k.o.Latency != nil {
		x.k.o.Latency("aof-rename", x.k.now()-began)
	}
	switch x.state {
	case aofStarting:
		return x.k.adopt(ctx, x.a)
	case aofOff:
		return x.a.Close()
	}
	return nil
}

// adopt makes the appender of a first rewrite the Keeper's, unless the rewrite is no longer needed.
func (k *Keeper) adopt(ctx context.Context, a *oplog.Appender) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil || k.aof.state != aofStarting || k.aof.replaced || !k.aof.want {
		return context.Canceled
	}
	a.SetPolicy(k.policy())
	k.aof.appender, k.aof.state = a, aofOn
	return nil
}

// abort leaves the files as they were.
func (x *rewriting) abort() {
	switch {
	case x.begun == nil:
	case x.state == aofOn:
		x.a.AbortRewrite()
	default:
		_ = x.a.Close() // no valid file depends on it
		x.k.oplg.Fail(nil)
	}
	_ = x.k.fs.Remove(x.base) // the file may not exist
}

// SetAppendOnly implements CONFIG SET appendonly. With on, it returns when it has checked that
// files can be created, and a rewrite begins after the present job. Writes are durable only after
// this rewrite has succeeded, whatever appendfsync says. Without on, the appender stops after its
// last sync. SetAppendOnly locks no shard; a goroutine of the Keeper does the rest.
func (k *Keeper) SetAppendOnly(on bool) error {
	if k.o.Memory {
		if on {
			return ErrNoDirectory
		}
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if on && !k.aof.want {
		err := k.own()
		if err == nil {
			err = k.tryFiles()
		}
		if err != nil {
			k.settleLock()
			k.log.Error("appendonly cannot be switched on", "error", err)
			return err
		}
	}
	if k.aof.want = on; on {
		k.jobs.failures = 0
	}
	k.nudge()
	return nil
}

// own locks the directory. If it was not locked before, own reads its append-only files again,
// because another server may have written them. They are new, unless they are as they were. k.mu is held.
func (k *Keeper) own() error {
	if k.lock != nil {
		return nil
	}
	if err := k.takeLock(); err != nil {
		return err
	}
	before, unloaded := k.aof.files, k.unloaded.aof
	k.openFilesAgain()
	if before.Same(k.aof.files) {
		k.unloaded.aof = unloaded
	}
	return nil
}

// tryFiles checks that append-only files can be created. k.mu is held.
func (k *Keeper) tryFiles() error {
	if k.aof.filesErr != nil {
		k.openFilesAgain()
	}
	if k.aof.filesErr != nil {
		return k.aof.filesErr
	}
	return k.fs.MkdirAll(k.aof.files.Dir())
}

// openFilesAgain opens the append-only files again while nothing is appended: they had an error, which may be fixed, or others
// may have written them. k.mu is held.
func (k *Keeper) openFilesAgain() {
	c := k.o.Config
	k.aof.files, k.aof.filesErr = oplog.OpenFiles(k.fs, filepath.Join(k.dir, c.String("appenddirname")), c.String("appendfilename"))
	k.noteFiles()
}

// SetFsync implements CONFIG SET appendfsync: it applies the policy of Config. It locks no shard.
func (k *Keeper) SetFsync() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.aof.appender != nil {
		k.aof.appender.SetPolicy(k.policy())
	}
}

// Replaced requests a rewrite of all data into new files, because the engine's data no longer
// follows from the old files and the stream: for a replica after a full synchronisation. It locks
// no shard, and does not wait.
func (k *Keeper) Replaced() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.aof.replaced = k.aof.want
	k.nudge()
}

// AppendOnly reports whether the stream goes into files: Log.Synced moves.
func (k *Keeper) AppendOnly() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.aof.state == aofOn && !k.aof.replaced
}
