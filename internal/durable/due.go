package durable

// saveRetry is how long after a save that failed the next one may begin by itself,
// us: as long as Redis waits.
const saveRetry = 5e6

// Rewrites that fail are tried again after a pause that doubles. What is urgent,
// because writes are refused until it has succeeded, begins with a short one.
const (
	urgentPause = 1e6       // us
	urgentMost  = 60e6      // us
	easyPause   = 60e6      // us
	easyMost    = 60 * 60e6 // us
	easyTries   = 3         // that come without a pause, as in Redis
)

// beginDue begins the job that is due at an instant, if none is under way: what was
// scheduled, what a save point asks for, what the growth of the files does.
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

// grown reports whether the append-only files have grown by so much that they are
// to be rewritten. k.mu is held.
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

// rewriteDue reports whether a rewrite may begin by itself.
func (j *jobs) rewriteDue(now int64, urgent bool) bool {
	first, most, tries := int64(easyPause), int64(easyMost), int64(easyTries)
	if urgent {
		first, most, tries = urgentPause, urgentMost, 1
	}
	if j.failures < tries {
		return true
	}
	pause := min(first<<min(j.failures-tries, 12), most)
	return now-j.rewriteTry >= pause
}
