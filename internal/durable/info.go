package durable

import "fmt"

// The error replies to refused writes have Redis's texts.
const (
	refuseSave = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Commands that may modify the data set are disabled, because this instance is configured to report errors " +
		"during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). " +
		"Please check the Redis logs for details about the RDB error."
	refuseAOF = "MISCONF Errors writing to the AOF file: %v"
)

// look checks whether the server has to refuse writes, and calls RefuseWrites.
func (k *Keeper) look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	failure := k.oplg.Failure() // under the lock: the last caller decides
	reply := ""
	points, _ := k.o.Config.Value("save").Data.([]savePoint)
	switch {
	case failure != nil && k.aof.state != aofOff:
		reply = fmt.Sprintf(refuseAOF, failure)
	case k.jobs.saveErr != nil && len(points) > 0 && k.o.Config.Bool("stop-writes-on-bgsave-error"):
		reply = refuseSave
	}
	if reply == k.reply {
		return
	}
	if reply == "" {
		k.log.Info("writes are taken again")
	} else {
		k.log.Error("writes are refused", "why", reply)
	}
	if k.reply = reply; k.o.RefuseWrites != nil {
		k.o.RefuseWrites(reply)
	}
}

// SetSavePoints implements CONFIG SET save and stop-writes-on-bgsave-error. When it returns, the
// server refuses or accepts writes accordingly. It locks no shard.
//
// Errors: ErrNoDirectory, *disk.LockedError.
func (k *Keeper) SetSavePoints() error {
	points, _ := k.o.Config.Value("save").Data.([]savePoint)
	if k.o.Memory {
		if len(points) > 0 {
			return ErrNoDirectory
		}
		return nil
	}
	if len(points) > 0 {
		k.mu.Lock()
		err := k.takeLock()
		k.mu.Unlock()
		if err != nil {
			return err
		}
		k.o.Shared = false
	}
	k.look()
	k.nudge()
	return nil
}

// ResetStats sets Info.DelayedSyncs to 0.
func (k *Keeper) ResetStats() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a := k.aof.appender; a != nil {
		a.ResetDelayed()
	}
}

// Info returns the numbers of INFO persistence. It locks the Keeper for a moment, and no shard.
func (k *Keeper) Info() Info {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, j := k.now(), &k.jobs
	i := Info{
		Dirty: k.o.DB.Dirty() - j.dirty, SaveScheduled: j.saveScheduled,
		LastSave: j.lastSave / 1e6, LastSaveOK: j.saveErr == nil && !j.leftOut, LastSaveTime: seconds(j.saveTook),
		CurrentSave: -1, Saves: j.saves,
		AppendOnly: k.aof.want, RewriteScheduled: j.rewriteScheduled, LastRewriteTime: seconds(j.rewrote), CurrentRewrite: -1,
		LastRewriteOK: j.rewriteErr == nil, Rewrites: j.rewrites, RewriteFailures: j.failures, LastWriteOK: true,
	}
	if x := k.job; x != nil {
		took := seconds(now - x.began)
		if x.kind == jobSave {
			i.Saving, i.CurrentSave = true, took
		} else {
			i.Rewriting, i.CurrentRewrite = true, took
		}
		i.SavedKeys, i.TotalKeys = x.progress.Keys.Load(), x.progress.Total.Load()
	}
	if a := k.aof.appender; a != nil {
		s := a.Stats()
		i.CurrentSize, i.BaseSize, i.Buffered = s.CurrentSize, s.BaseSize, s.Buffered
		i.PendingSync, i.DelayedSyncs, i.LastWriteOK = int64(s.PendingSync), s.Delayed, s.WriteErr == nil
	}
	k.load.info(&i, now)
	// This is true from appendonly yes until the first files exist. Clients that wait for the files
	// poll it.
	if k.aof.want && k.aof.state != aofOn && j.failures == 0 && !i.Loading {
		i.Rewriting = i.Rewriting || !i.Saving
		i.RewriteScheduled = i.RewriteScheduled || i.Saving
	}
	return i
}

// seconds converts us; -1 stays.
func seconds(us int64) int64 {
	if us < 0 {
		return -1
	}
	return us / 1e6
}
