package oplog

import (
	"fmt"
	"math"
	"time"
)

// sync syncs the file, unless it is completely synced or a sync of it has failed.
func (a *Appender) sync() {
	a.syncing.Lock()
	defer a.syncing.Unlock()
	a.syncFile()
}

// syncFile is sync for a caller that holds the lock syncing. It reports whether it called the system.
func (a *Appender) syncFile() bool {
	a.mu.Lock()
	f, upTo := a.file, a.written
	needed := f != nil && f.failed == nil && a.synced < upTo
	a.flying = needed
	a.mu.Unlock()
	if needed {
		a.noteSync(f, upTo, f.Sync())
	}
	return needed
}

// noteSync records the result of a sync up to an offset. The lock syncing is held.
func (a *Appender) noteSync(f *appendFile, upTo int64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flying = false
	if err != nil {
		f.failed = err
		a.noteHoles(f, err)
		return
	}
	a.synced = upTo
	a.reportSynced()
}

// noteHoles records that a file, and the files before it, may lack data. The lock is held.
func (a *Appender) noteHoles(f *appendFile, err error) {
	a.holes = max(a.holes, f.number)
	a.syncErr = fmt.Errorf("%w (the append-only files may lack data: a rewrite makes new ones)", err)
	a.reportFailure()
}

// giveUp stops writing to the file, which may be closed or only partly renamed. The next rewrite begins a new file.
func (a *Appender) giveUp(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.file.failed = err
	a.noteHoles(a.file, err)
}

// reportSynced tells the log the synced offset, unless data may be missing. The lock is held.
func (a *Appender) reportSynced() {
	if a.holes == 0 && !a.fresh {
		a.r.SetSynced(a.synced)
	}
}

// reportFailure tells the log whether the files fail. The lock is held.
func (a *Appender) reportFailure() {
	if err := a.trouble(); !sameError(err, a.reported) {
		a.reported = err
		a.log.Fail(err)
		if a.hook != nil {
			a.hook()
		}
	}
}

// sameError compares the texts of errors, because each attempt to write returns a new error.
func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Error() == b.Error()
}

// trouble returns the error because of which the files lack a part of the log, or nil. The lock is held.
func (a *Appender) trouble() error {
	if a.holes > 0 {
		return a.syncErr
	}
	return a.writeErr
}

// signalSync signals the goroutine of EverySec that there is work. The lock is held.
func (a *Appender) signalSync() {
	if a.policy != EverySec || a.suspended || a.synced >= a.written {
		return
	}
	select {
	case a.dirty <- struct{}{}:
	default:
	}
}

// syncEverySec is the goroutine that syncs under EverySec, one second after the begin of the last sync. It syncs in
// parallel with the writes, so a slow sync does not delay them.
func (a *Appender) syncEverySec() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for due := false; ; {
		select {
		case <-a.dirty:
		case <-a.quit:
			return
		}
		if !due {
			select {
			case <-timer.C:
			case <-a.quit:
				return
			}
		}
		timer.Reset(syncInterval)
		a.mu.Lock()
		wanted := a.policy == EverySec && !a.suspended
		a.mu.Unlock()
		if wanted {
			a.sync()
		}
		due = a.late(timer)
	}
}

// late reports whether a sync took longer than the time to the next sync.
func (a *Appender) late(timer *time.Timer) bool {
	select {
	case <-timer.C:
		a.mu.Lock()
		a.delayed++
		a.mu.Unlock()
		return true
	default:
		return false
	}
}

// rotate changes to the next file at the cut, which the round has reached. It first syncs the old file, whatever the
// policy, because only the last file may end within a command.
func (a *Appender) rotate(x *Rotation) {
	a.writing.Lock()
	defer a.writing.Unlock()
	a.syncing.Lock()
	defer a.syncing.Unlock()
	if a.round.pos > x.offset {
		a.settle(x, fmt.Errorf("the cut is at offset %d, but the files are at %d already", x.offset, a.round.pos))
		return
	}
	old := a.file
	if old != nil && old.failed == nil {
		a.noteSync(old, a.written, old.Sync())
	}
	next, err := a.open(x)
	if err != nil {
		a.settle(x, err)
		return
	}
	if old != nil {
		_ = old.Close() // the file is synced, or its failure is recorded
		a.files.closed(old, next)
	}
	if x.db >= 0 {
		a.round.pieces = append(a.round.pieces, AppendSelect(nil, x.db))
	}
	a.round.stamp = 0
	a.settle(x, nil)
}

// open opens the file of a rotation and makes it the present one. If earlier files may lack data, the manifest does
// not list it yet, like a fresh file.
func (a *Appender) open(x *Rotation) (next *appendFile, err error) {
	a.mu.Lock()
	fresh := x.kind == openFresh || x.kind == openRewrite && a.holes > 0
	a.mu.Unlock()
	if x.kind == openFirst {
		next, err = a.files.openLast()
		if err == nil {
			err = next.syncFound()
		}
	} else {
		next, err = a.files.beginRewrite(fresh)
	}
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened++
	next.number = a.opened
	a.file, a.size, a.fresh, a.cutFile = next, next.size, fresh, next.number
	a.written = x.offset
	if next.failed != nil {
		a.noteHoles(next, next.failed)
	}
	return next, nil
}

func (a *Appender) settle(x *Rotation, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut.Store(math.MaxInt64)
	x.finish(err)
}

// CommitRewrite ends a rewrite. The file base has all data up to the cut, is synced, and is on the same file system.
// CommitRewrite renames it, adds it to the manifest, and removes the files that it replaces. After an error the old
// files stay valid, and the caller must call AbortRewrite.
func (a *Appender) CommitRewrite(base string) error {
	a.mu.Lock()
	x := a.rotation
	a.mu.Unlock()
	if x == nil {
		return errNoRewrite
	}
	if <-x.done; x.err != nil {
		return x.err
	}
	if err := a.commit(base); err != nil {
		return err
	}
	a.sync()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reportSynced()
	a.updateAlways()
	a.reportFailure()
	return nil
}

func (a *Appender) commit(base string) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	a.syncing.Lock()
	defer a.syncing.Unlock()
	if a.fresh {
		if err := a.files.settleIncr(a.file); err != nil {
			a.giveUp(err)
			return err
		}
	}
	counts, err := a.files.commitRewrite(base)
	if !counts {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fresh = false
	if a.cutFile > a.holes {
		a.holes, a.syncErr = 0, nil
	}
	if err != nil { // the new base is valid, unless the power fails now
		a.noteHoles(a.file, err)
	}
	a.baseSize = a.files.Size() + a.file.size
	return err
}

// AbortRewrite aborts a rewrite. The appender continues in the newest increment. After StartFresh,
// the caller calls Close.
func (a *Appender) AbortRewrite() {
	a.mu.Lock()
	x := a.rotation
	a.mu.Unlock()
	if x != nil {
		<-x.done
	}
	a.files.abortRewrite()
}

// AppenderStats are the numbers in INFO persistence.
type AppenderStats struct {
	CurrentSize int64 // bytes of all files in the manifest
	BaseSize    int64 // CurrentSize at the start or after the last rewrite
	Buffered    int64 // bytes of the log that are not written yet
	PendingSync int   // syncs under way: 0 or 1
	Delayed     int64 // syncs of EverySec that took longer than a second
	WriteErr    error // error of the last write or sync; nil: success
	Fresh       bool  // the manifest does not list the file yet, because its base is missing
	Holes       bool  // the files may lack data until the next rewrite
}

// ResetDelayed sets Stats.Delayed to 0.
func (a *Appender) ResetDelayed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delayed = 0
}

// Stats returns the present numbers. It does not access the disk.
func (a *Appender) Stats() AppenderStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := AppenderStats{
		CurrentSize: a.files.Size() + a.size, BaseSize: a.baseSize, Buffered: a.log.End() - a.written,
		Delayed: a.delayed, WriteErr: a.trouble(), Fresh: a.fresh, Holes: a.holes > 0,
	}
	if a.flying {
		s.PendingSync = 1
	}
	return s
}
