package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
)

type savePoint = config.SavePoint

// jobKind is the kind of a job.
type jobKind uint8

const (
	jobSave jobKind = iota
	jobRewrite
)

// job writes a snapshot. At most one job runs at a time.
type job struct {
	kind     jobKind
	began    int64 // us
	cancel   context.CancelFunc
	done     chan struct{}
	err      error // valid when done is closed
	progress engine.Progress
	dirty    int64 // the engine's count of changes at the cut

	wanted    bool // a caller waits for the job and gets its error
	overtaken bool // its data is older than the file that Emptied has saved; guarded by Keeper.mu
}

// jobs has the results of the past jobs, and the scheduled ones. Times are in us; 0: never.
type jobs struct {
	saveScheduled, rewriteScheduled bool

	lastSave   int64 // the last save that succeeded
	lastTry    int64 // the last attempt of a save
	saveErr    error // the error of the last save
	leftOut    bool  // the last save was skipped, because another server has locked the directory
	saveTook   int64 // the duration of the last save, us; -1: none yet
	saves      int64
	dirty      int64 // the engine's count of changes at the cut of the last successful save
	rewriteErr error
	rewriteTry int64
	rewrote    int64 // the duration of the last rewrite, us; -1: none yet
	rewrites   int64
	failures   int64 // failed rewrites since the last success
}

func (j *jobs) init(now, dirty int64) {
	j.lastSave, j.dirty, j.saveTook, j.rewrote = now, dirty, -1, -1
}

// begin begins a job. k.mu is held, and no job is running.
func (k *Keeper) begin(kind jobKind, work func(context.Context, *job) error) *job {
	ctx, cancel := context.WithCancel(k.ctx)
	j := &job{kind: kind, began: k.now(), cancel: cancel, done: make(chan struct{})}
	k.job = j
	if kind == jobSave {
		k.jobs.saveScheduled, k.jobs.lastTry = false, j.began
	} else {
		k.jobs.rewriteScheduled, k.jobs.rewriteTry = false, j.began
		k.jobs.rewrites++
	}
	k.wait.Go(func() {
		defer cancel()
		err := k.inTurn(ctx, func() error { return work(ctx, j) })
		k.finish(j, err)
	})
	return j
}

// inTurn runs work, which makes a snapshot, when no other snapshot is running.
func (k *Keeper) inTurn(ctx context.Context, work func() error) error {
	done, err := k.Turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	return work()
}

// finish notes the result of a job. A canceled job does not count as failed.
func (k *Keeper) finish(j *job, err error) {
	k.mu.Lock()
	now := k.now()
	switch {
	case errors.Is(err, context.Canceled):
	case j.kind == jobSave:
		k.jobs.saved(j, now, err, k.leftOut(err))
	default:
		k.jobs.rewritten(j, now, err)
	}
	k.job, j.err = nil, err
	k.settleLock()
	k.mu.Unlock()
	k.logResult(j, now, err)
	k.look()
	close(j.done)
	k.nudge()
}

// saved notes the result of a save. As in Redis, a failed save that a caller waits for (SAVE, or
// that of a shutdown) is not a reason to refuse writes; nor is a skipped save.
func (j *jobs) saved(x *job, now int64, err error, leftOut bool) {
	if err == nil || !x.wanted && !leftOut {
		j.saveErr = err
	}
	j.leftOut = leftOut
	j.saveTook = now - x.began
	if err == nil {
		j.lastSave, j.dirty = now, x.dirty
		j.saves++
	}
}

func (j *jobs) rewritten(x *job, now int64, err error) {
	j.rewriteErr = err
	j.rewrote = now - x.began
	if j.failures++; err == nil {
		j.failures = 0
	}
}

// logResult logs the result of a job.
func (k *Keeper) logResult(j *job, now int64, err error) {
	what := "the RDB file is saved"
	failed := "the RDB file could not be saved"
	if j.kind == jobRewrite {
		what, failed = "the append-only files are rewritten", "the append-only files could not be rewritten"
	}
	switch {
	case err == nil:
		k.log.Info(what, "keys", j.progress.Keys.Load(), "seconds", fmt.Sprintf("%.3f", float64(now-j.began)/1e6))
	case errors.Is(err, context.Canceled):
	default:
		k.log.Error(failed, "error", err)
	}
}

// cancelJob cancels a running job of a kind, and waits for its end.
func (k *Keeper) cancelJob(kind jobKind) {
	k.mu.Lock()
	j := k.job
	k.mu.Unlock()
	if j != nil && j.kind == kind {
		j.cancel()
		<-j.done
	}
}

// free reports whether a job of a kind may begin now, and prepares for it. While a job of the other kind is running it returns false
// and no error. k.mu is held. Errors: same while one of this kind is running; ErrNoDirectory, ErrClosed, those of prepare.
func (k *Keeper) free(kind jobKind, same error, prepare func() error) (bool, error) {
	switch {
	case k.o.Memory:
		return false, ErrNoDirectory
	case k.closed:
		return false, ErrClosed
	case k.job == nil:
		err := prepare()
		return err == nil, err
	case k.job.kind == kind:
		return false, same
	}
	return false, nil
}

// BackgroundSave implements BGSAVE. scheduled reports that the save begins after the running
// rewrite, which needs schedule. It locks no shard, and does not wait. Errors: ErrSaving, ErrBusy,
// ErrNoDirectory, ErrClosed, *disk.LockedError.
func (k *Keeper) BackgroundSave(schedule bool) (scheduled bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	free, err := k.free(jobSave, ErrSaving, k.takeLock)
	switch {
	case err != nil:
		return false, err
	case free:
		k.begin(jobSave, k.save)
		return false, nil
	case schedule:
		k.jobs.saveScheduled = true
		return true, nil
	}
	return false, ErrBusy
}

// Save implements SAVE: it writes the RDB file and returns when the file is durable. It waits for a
// running rewrite. Errors: ErrSaving while a BGSAVE is running; the error of the save.
func (k *Keeper) Save(ctx context.Context) error {
	for {
		k.mu.Lock()
		j := k.job
		free, err := k.free(jobSave, ErrSaving, k.takeLock)
		if free {
			j = k.begin(jobSave, k.save)
			j.wanted = true
		}
		k.mu.Unlock()
		switch {
		case err != nil:
			return err
		case free:
			return j.wait(ctx)
		}
		select {
		case <-j.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wait waits for a job, and cancels it when ctx ends.
func (j *job) wait(ctx context.Context) error {
	select {
	case <-j.done:
	case <-ctx.Done():
		j.cancel()
		<-j.done
	}
	return j.err
}

// RewriteAOF implements BGREWRITEAOF. scheduled reports that the rewrite begins after the running
// save. With appendonly no, it writes files all the same, for a later start with yes. It locks no
// shard, and does not wait. Errors: ErrRewriting, ErrNoDirectory, ErrClosed, *disk.LockedError, and
// the errors of the existing files.
func (k *Keeper) RewriteAOF() (scheduled bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	free, err := k.free(jobRewrite, ErrRewriting, k.own)
	switch {
	case err != nil:
		return false, err
	case free:
		k.begin(jobRewrite, k.rewrite)
		return false, nil
	}
	k.jobs.rewriteScheduled = true
	return true, nil
}

// LastSave returns the unix time of the last save that succeeded, in s; at first
// that of the start.
func (k *Keeper) LastSave() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.jobs.lastSave / 1e6
}
