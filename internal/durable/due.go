package durable

// saveRetry is the pause, in us, after a failed save before the next automatic one. It is Redis's
// value.
const saveRetry = 5e6

// The Keeper repeats a failed rewrite after a pause that doubles each time. It begins with a short
// pause if the rewrite is urgent because the server refuses writes until it succeeds.
const (
	urgentPause = 1e6       // us
	urgentMost  = 60e6      // us
	easyPause   = 60e6      // us
	easyMost    = 60 * 60e6 // us
	easyTries   = 3         // tries without a pause, as in Redis
)

// beginDue begins the job that is due at now, unless a job is running: a scheduled one, one for a
// save point, or a rewrite because the files have grown.
func (k *Keeper) beginDue(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.job != nil || k.closed || k.broken || k.held > 0 {
		return
	}
	switch {
	case k.jobs.rewriteScheduled, k.rewriteNeeded() && k.jobs.rewriteDue(now, true):
		k.begin(jobRewrite, k.rewrite)
	case k.jobs.saveScheduled:
		k.begin(jobSave, k.save)
	case k.savePoint(now):
		k.begin(jobSave, k.save)
	case k.grown() && k.jobs.rewriteDue(now, false):
		k.begin(jobRewrite, k.rewrite)
	}
}

// savePoint reports whether a save point is reached. k.mu is held.
func (k *Keeper) savePoint(now int64) bool {
	points, _ := k.o.Config.Value("save").Data.([]savePoint)
	j := &k.jobs
	dirty := k.o.DB.Dirty() - j.dirty
	for _, p := range points {
		if dirty >= int64(p.Changes) && (now-j.lastSave)/1e6 > p.Seconds && (j.saveErr == nil && !j.leftOut || now-j.lastTry > saveRetry) {
			k.log.Info("saving", "changes", dirty, "seconds", p.Seconds)
			return true
		}
	}
	return false
}

// grown reports whether the append-only files have grown enough for a rewrite. k.mu is held.
func (k *Keeper) grown() bool {
	percent := k.o.Config.Int("auto-aof-rewrite-percentage")
	if k.aof.state != aofOn || percent == 0 {
		return false
	}
	s := k.aof.appender.Stats()
	if s.CurrentSize <= k.o.Config.Int("auto-aof-rewrite-min-size") {
		return false
	}
	base := max(s.BaseSize, 1)
	return (s.CurrentSize-base)*100/base >= percent
}

// rewriteDue reports whether an automatic rewrite may begin now.
func (j *jobs) rewriteDue(now int64, urgent bool) bool {
	first, limit, tries := int64(easyPause), int64(easyMost), int64(easyTries)
	if urgent {
		first, limit, tries = urgentPause, urgentMost, 1
	}
	if j.failures < tries {
		return true
	}
	pause := min(first<<min(j.failures-tries, 12), limit)
	return now-j.rewriteTry >= pause
}
