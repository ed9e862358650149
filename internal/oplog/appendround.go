package oplog

import (
	"context"
	"strconv"
	"time"
)

// maxRound limits the bytes that the appender collects for one sync: they take 16 ms at 500 MB/s.
const maxRound = 8 << 20

// round holds bytes that were taken from the log but are not written yet.
type round struct {
	pieces [][]byte
	size   int
	pos    int64         // the offset after the pieces
	rest   []byte        // taken bytes behind a cut
	whole  bool          // pos is between two transactions
	failed bool          // the end of a batch could not write it
	stamp  int64         // the newest annotation, in seconds
	last   int64         // bytes of the log in the previous round
	took   time.Duration // duration of the last sync
	usual  time.Duration // usual duration of a sync
}

// quickSync is the usual duration of a sync up to which an event loop syncs at the end of its batch, while its other
// clients wait. Waking the goroutine, and being woken by it, costs about 50 to 100 us, so a longer sync is better
// off-loop.
const quickSync = 500 * time.Microsecond

// awaitShare is the inverse of the greatest share of a sync's duration that a round waits for clients whose replies
// the previous sync has just released. Without the wait, the first of them would get a sync of its own, and the
// others would wait for two syncs. With 50 clients a sync covers 45 of them instead of 25. A wait below minAwait is
// below the resolution of a timer, so a round on a fast disk does not wait.
const (
	awaitShare = 8
	minAwait   = 50 * time.Microsecond
	maxAwait   = time.Millisecond
)

// await waits briefly if the log has fewer pending bytes than the previous round.
func (a *Appender) await(ctx context.Context) {
	a.writing.Lock()
	o := &a.round
	d := min(o.took/awaitShare, maxAwait)
	few := a.log.End()-o.pos < o.last
	a.writing.Unlock()
	if few && d >= minAwait {
		a.sleep(ctx, d)
	}
}

// take takes a round from the log and writes it. With sync it also syncs the round.
func (a *Appender) take(sync bool) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	a.round.last = a.log.End() - a.round.pos
	a.takeBytes()
	err := a.write()
	if err == nil && sync {
		a.syncing.Lock()
		defer a.syncing.Unlock()
		a.timedSync()
	}
	return err
}

// settleBatch writes and syncs the pending bytes at the end of a loop's batch. It does nothing unless syncs are fast,
// the appender works normally, and no other goroutine uses the files. It reports whether all bytes of the log are
// written and synced; if not, the goroutine does the rest.
func (a *Appender) settleBatch() bool {
	if !a.quick.Load() || !a.writing.TryLock() {
		return false
	}
	defer a.writing.Unlock()
	if !a.syncing.TryLock() {
		return false
	}
	defer a.syncing.Unlock()
	a.mu.Lock()
	well := !a.closing && !a.rotating() && a.file != nil && a.trouble() == nil
	a.mu.Unlock()
	o, all := &a.round, a.log.End()
	if !well || len(o.pieces) > 0 || o.rest != nil {
		return false
	}
	o.last = all - o.pos
	a.takeBytes()
	if a.write() != nil {
		o.failed = true
		a.mu.Lock()
		a.signalWork() // the goroutine tries again later
		a.mu.Unlock()
		return false
	}
	a.timedSync()
	return o.pos >= all
}

// timedSync calls syncFile and measures its duration. The usual duration moves by an eighth towards each sync, so it
// follows the median. A single slow sync, for instance on a busy machine, has little effect.
func (a *Appender) timedSync() {
	start := time.Now()
	if !a.syncFile() {
		return
	}
	o := &a.round
	o.took = time.Since(start)
	if step := o.usual / 8; o.took > o.usual {
		o.usual += max(step, time.Microsecond)
	} else {
		o.usual -= step
	}
	a.quick.Store(o.usual <= quickSync)
}

// takeBytes takes the bytes of the log up to the cut. It reads the cut after it has taken the bytes, because a cut is
// set before any bytes follow it. The lock writing is held.
func (a *Appender) takeBytes() {
	o := &a.round
	a.annotate()
	for o.size < maxRound && o.pos < a.cut.Load() {
		b := o.rest
		o.rest = nil
		if b == nil {
			b = a.r.Next()
		}
		end, cut := a.r.Offset(), a.cut.Load()
		if b == nil {
			o.pos, o.whole = min(end, cut), true
			return
		}
		o.whole = false
		if end > cut {
			k := max(cut-end+int64(len(b)), 0)
			o.rest, b = b[k:], b[:k]
			end, o.whole = cut, true
		}
		if o.pos = end; len(b) > 0 {
			o.pieces, o.size = append(o.pieces, b), o.size+len(b)
		}
	}
}

// annotate adds the time before a round, at most once a second.
func (a *Appender) annotate() {
	if a.now == nil || !a.round.whole || a.log.End() == a.round.pos {
		return
	}
	if s := a.now() / 1000; s != 0 && s != a.round.stamp {
		a.round.stamp = s
		a.round.pieces = append(a.round.pieces, append(strconv.AppendInt([]byte("#TS:"), s, 10), '\r', '\n'))
	}
}

// write writes the round. If that fails, it keeps the round and marks the log as failed. For a file with a failed
// sync it drops the round, because the round would follow data that may be missing. The lock writing is held.
func (a *Appender) write() error {
	a.mu.Lock()
	given := a.file.failed != nil
	a.mu.Unlock()
	var err error
	if !given {
		err = a.file.append(a.round.pieces)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && !given {
		if len(a.round.pieces) == 0 && a.synced == a.written {
			a.synced = a.round.pos // the round had only control bytes, which are in no file
			a.reportSynced()
		}
		a.written, a.size = a.round.pos, a.file.size
		a.r.SetWritten(a.written)
	}
	if err == nil {
		clear(a.round.pieces)
		a.round.pieces, a.round.size = a.round.pieces[:0], 0
	}
	a.writeErr = err
	a.reportFailure()
	return err
}

// sleep waits for d in the goroutine, or less if signalWork wakes it.
func (a *Appender) sleep(ctx context.Context, d time.Duration) {
	a.timer.Reset(d)
	select {
	case <-a.timer.C:
	case <-ctx.Done():
	}
}
