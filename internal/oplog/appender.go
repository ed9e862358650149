package oplog

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Policy is the value of appendfsync. It determines when the appender syncs the files.
type Policy uint8

// The policies.
const (
	EverySec Policy = iota // once a second, in parallel with the writes
	Always                 // before a reply is sent: Log.SetAlways
	No                     // when the kernel does; the appender still syncs before it changes the file
)

// pause is the time between two writes that no client waits for. It collects several rounds in one write, and is the
// most that a crash of the process loses. A longer pause would save little: 1,000 writes per second of a hundred
// commands each cost about 3 % of a core.
const pause = time.Millisecond

// syncInterval is the time between two syncs of EverySec.
const syncInterval = time.Second

// retryAfter is the time between two attempts to write to a failing disk.
const retryAfter = 100 * time.Millisecond

// AppenderOptions configure an Appender. The zero value works.
type AppenderOptions struct {
	Policy Policy
	// Now returns the time in ms since 1970. If it is set, the appender annotates the files with
	// the time, at most once a second: aof-timestamp-enabled. It writes no annotation if Now
	// returns 0.
	Now func() int64
	// The appender calls Changed when the files begin or stop to fail, and when they may lack data;
	// Stats has the details. It calls Changed with a lock held, so Changed must not block or call
	// the Appender.
	Changed func()
}

// Appender writes a Log to Files. A goroutine takes the pending bytes of the log, writes them with one call, and
// continues with the bytes that arrived meanwhile. Under Always it then syncs once for all waiting clients. It sleeps
// while the log has no pending bytes.
//
// If syncs are fast (quickSync), an event loop whose clients wait for a sync writes and syncs by itself at the end of
// its batch, in Log.EndBatch. The goroutine stays asleep, because waking it, and waking the loop again, would cost as
// much as such a sync. The loop does so only if it gets the lock writing at once. In all other cases the goroutine
// does the work: the file changes, the disk fails, or another writer is at work.
//
// If a write fails, the appender removes the partial write, marks the log as failed, and tries
// again until the write succeeds; then it clears the failure. It never repeats a sync: after a
// failed sync, the contents of the disk are unknown, and the log stays failed until the commit of a
// rewrite whose cut came later. Until then the manifest does not list the new increment, because it
// would follow data that may be missing.
//
// NewAppender returns an appender. The caller starts it with Start or StartFresh and ends it with Close. Its methods
// are safe for concurrent use.
type Appender struct {
	log   *Log
	files *Files
	now   func() int64
	hook  func()

	r     *Reader
	dirty chan struct{} // signals EverySec that there is something to sync
	quit  chan struct{}
	wait  sync.WaitGroup
	timer *time.Timer  // used by the goroutine
	cut   atomic.Int64 // the offset up to which the present file may be written; math.MaxInt64: no cut
	quick atomic.Bool  // syncs are fast

	// The order of locks: writing, syncing, mu.
	writing sync.Mutex // held from taking a round to the end of its write, under Always of its sync
	round   round      // guarded by writing
	syncing sync.Mutex // held during a sync; with writing, where the file changes

	mu        sync.Mutex // guards the fields below
	file      *appendFile
	size      int64 // of the file, in bytes
	written   int64
	synced    int64
	policy    Policy
	suspended bool
	fresh     bool // the manifest does not list the file, so no byte counts as synced
	opened    int  // number of opened files
	cutFile   int  // the number of the file that begins at the last cut
	holes     int  // files up to this number may lack data; 0: none
	rotation  *Rotation
	flushes   []flush
	closing   bool
	started   bool
	ctx       context.Context
	cancel    context.CancelFunc
	writeErr  error // the error of the last write
	syncErr   error // the sync error that caused the holes
	reported  error // the failure that the log was told
	flying    bool  // a sync is under way
	delayed   int64
	baseSize  int64
}

// flush is a request to sync up to an offset, whatever the policy.
type flush struct {
	offset int64
	done   chan error
}

// Rotation is the change to another file at an offset of the log.
type Rotation struct {
	offset int64
	db     int
	kind   rotationKind
	done   chan struct{}
	err    error
}

type rotationKind uint8

const (
	openFirst   rotationKind = iota // continue in the last increment
	openFresh                       // a new increment for other data
	openRewrite                     // a new increment for the same data
)

// Wait waits until the appender writes to the new file, or has failed to open it. Errors: the error
// of ctx, or of the change.
func (x *Rotation) Wait(ctx context.Context) error {
	select {
	case <-x.done:
		return x.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *Rotation) finish(err error) {
	x.err = err
	close(x.done)
}

// NewAppender returns an appender that does nothing yet.
func NewAppender(l *Log, f *Files, o AppenderOptions) *Appender {
	a := &Appender{log: l, files: f, policy: o.Policy, now: o.Now, hook: o.Changed, dirty: make(chan struct{}, 1), quit: make(chan struct{}),
		timer: time.NewTimer(0)}
	a.cut.Store(math.MaxInt64)
	a.round.usual = 2 * quickSync // initial estimate: syncs are not quick
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// Start starts to append the stream to the files, from an offset that Log.Cut has returned with db. It does not wait
// for the disk; Rotation.Wait does. Errors: ErrGone.
func (a *Appender) Start(offset int64, db int) (*Rotation, error) {
	return a.start(&Rotation{offset: offset, db: db, kind: openFirst, done: make(chan struct{})})
}

// StartFresh starts as Start does, for files that do not contain the data at the offset, for instance when a client
// sets appendonly to yes. The old files stay unchanged until CommitRewrite adds the base for the new file. Until then
// no byte counts as synced. Call it at the cut of that base.
func (a *Appender) StartFresh(offset int64, db int) (*Rotation, error) {
	return a.start(&Rotation{offset: offset, db: db, kind: openFresh, done: make(chan struct{})})
}

func (a *Appender) start(x *Rotation) (*Rotation, error) {
	r, err := a.log.ReaderAt(x.offset, ForFile)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.r, a.rotation, a.fresh, a.started = r, x, x.kind == openFresh, true
	a.round.pos, a.round.whole = x.offset, true // no other goroutine uses the round yet
	a.written, a.synced = x.offset, x.offset
	if !a.fresh {
		r.SetWritten(x.offset)
		r.SetSynced(x.offset)
		a.baseSize = a.files.Size()
	}
	a.updateAlways()
	a.wait.Go(a.run)
	a.wait.Go(a.syncEverySec)
	return x, nil
}

// BeginRewrite makes the appender continue in a new increment, from the cut of a new base on; offset and db are those
// of Log.Cut. All shards are locked. Messages, which lock no shard, may follow the offset; they are in no file, and
// the cut lies after them. BeginRewrite does not wait for the disk; Rotation.Wait and CommitRewrite do.
func (a *Appender) BeginRewrite(offset int64, db int) *Rotation {
	x := &Rotation{offset: offset, db: db, kind: openRewrite, done: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closing:
		x.finish(ErrClosed)
	case a.rotating():
		x.finish(ErrRewriting)
	default:
		a.rotation = x
		x.offset = a.log.cutFor(a)
		a.signalWork()
	}
	return x
}

// rotating reports whether a change of files is under way. The lock is held.
func (a *Appender) rotating() bool {
	if a.rotation == nil {
		return false
	}
	select {
	case <-a.rotation.done:
		return false
	default:
		return true
	}
}

// signalWork makes the goroutine check for new work. The lock is held.
func (a *Appender) signalWork() { a.cancel() }

// SetPolicy changes the policy. It also applies to clients that are waiting.
func (a *Appender) SetPolicy(p Policy) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.policy = p
	a.updateAlways()
	a.signalWork()
	a.signalSync()
}

// SuspendSync turns syncing off and on again, for no-appendfsync-on-rewrite while a snapshot is written. While it is
// off, no client waits for a sync.
func (a *Appender) SuspendSync(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.suspended = on
	a.updateAlways()
	a.signalWork()
	a.signalSync()
}

// maxBehind is the number of bytes that may wait for a slow disk before clients must wait.
const maxBehind = 256 << 20

// updateAlways sets in the log whether replies wait for a sync. The lock is held.
func (a *Appender) updateAlways() {
	unbased := a.fresh && a.holes == 0 // the first base is not written yet
	bound := int64(maxBehind)
	if unbased || a.closing {
		bound = 0
	}
	a.log.Bound(bound)
	on := a.policy == Always && !a.suspended && !unbased && !a.closing
	if on {
		a.log.files.Store(a)
	} else {
		a.log.files.CompareAndSwap(a, nil)
	}
	if on != a.log.Always() {
		a.log.SetAlways(on)
	}
}

// Flush waits until all bytes that are in the log now are written and synced. It returns the error
// of the write or sync that failed.
func (a *Appender) Flush() error {
	f := flush{a.log.End(), make(chan error, 1)}
	a.mu.Lock()
	if a.closing || !a.started {
		a.mu.Unlock()
		return ErrClosed
	}
	a.flushes = append(a.flushes, f)
	a.signalWork()
	a.mu.Unlock()
	return <-f.done
}

// Close writes and syncs the whole log, and closes the file. It aborts a rewrite that is not committed. It returns an
// error if the files may lack data.
func (a *Appender) Close() error {
	a.mu.Lock()
	if a.closing || !a.started {
		a.mu.Unlock()
		return nil
	}
	a.closing = true
	a.signalWork()
	a.mu.Unlock()
	close(a.quit)
	a.wait.Wait()
	a.files.abortRewrite()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.updateAlways()
	a.cancel()
	return a.trouble()
}

// run is the main function of the appender's goroutine.
func (a *Appender) run() {
	defer a.r.Close()
	for {
		ctx, x, urgent, closing := a.orders()
		reached, idle, failed := a.standing(x)
		switch {
		case closing:
			a.finish(x)
			return
		case failed: // the write at the end of a batch failed
			a.sleep(ctx, retryAfter)
			continue
		case reached:
			a.rotate(x)
			continue
		case a.file == nil: // the file could not be opened
			a.failFlushes(x, errNoFile)
			<-ctx.Done()
			continue
		}
		if !urgent && idle {
			switch err := a.r.Wait(ctx); {
			case errors.Is(err, ErrReset):
				<-ctx.Done() // the stream was reset; Close follows
				continue
			case err != nil: // the orders have changed
				continue
			}
		}
		a.step(ctx, x)
	}
}

// errNoFile means that no file is open: Start failed, but its caller continued.
var errNoFile = errors.New("no append-only file is open")

// orders returns the pending requests: a rotation, urgent work, the end. ctx ends when the requests
// change.
func (a *Appender) orders() (ctx context.Context, x *Rotation, urgent, closing bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		a.ctx, a.cancel = context.WithCancel(context.Background())
	}
	if a.rotating() {
		x = a.rotation
	}
	unsynced := a.policy == Always && !a.suspended && a.synced < a.written && a.file != nil && a.file.failed == nil
	return a.ctx, x, unsynced || len(a.flushes) > 0, a.closing
}

// standing returns the state of the round: whether it has reached the cut of a rotation, whether it is empty, and
// whether the end of a batch failed to write it.
func (a *Appender) standing(x *Rotation) (reached, idle, failed bool) {
	a.writing.Lock()
	defer a.writing.Unlock()
	o := &a.round
	reached = x != nil && o.pos >= x.offset && len(o.pieces) == 0
	failed, o.failed = o.failed, false
	return reached, o.rest == nil && len(o.pieces) == 0, failed
}

// step writes a round, up to the cut of a rotation. It syncs the round if the policy requires that, and pauses.
func (a *Appender) step(ctx context.Context, x *Rotation) {
	a.mu.Lock()
	always := a.policy == Always && !a.suspended
	a.mu.Unlock()
	if always {
		a.await(ctx)
	}
	if err := a.take(always); err != nil {
		if x != nil {
			a.settle(x, err) // the next file must not begin after bytes that the old file lacks
		}
		a.failFlushes(nil, err)
		a.sleep(ctx, retryAfter)
		return
	}
	if !always {
		a.mu.Lock()
		a.signalSync()
		a.mu.Unlock()
	}
	a.answerFlushes()
	if !always && x == nil && !a.log.Followed() { // no pause with replicas, which get only written bytes
		a.sleep(ctx, pause)
	}
}

// finish writes the remaining bytes, and closes the file.
func (a *Appender) finish(x *Rotation) {
	if x != nil {
		a.settle(x, ErrClosed)
	}
	if a.file == nil {
		a.failFlushes(nil, ErrClosed)
		return
	}
	a.drain()
	a.sync()
	a.answerFlushes()
	a.failFlushes(nil, ErrClosed)
	a.writing.Lock()
	defer a.writing.Unlock()
	_ = a.file.Close() // the file is synced, or its failure is recorded
	a.files.closed(a.file, nil)
}

// drain writes all bytes that are in the log now.
func (a *Appender) drain() {
	a.writing.Lock()
	defer a.writing.Unlock()
	for all := a.log.End(); ; {
		before := a.round.pos
		a.takeBytes()
		more := len(a.round.pieces) > 0 || a.round.pos > before
		if a.write() != nil || !more || a.round.pos >= all {
			return
		}
	}
}

// answerFlushes syncs for the waiting flushes that the round has reached, and sends them the result.
func (a *Appender) answerFlushes() {
	a.writing.Lock()
	pos := a.round.pos
	a.writing.Unlock()
	a.mu.Lock()
	var ready []flush
	left := a.flushes[:0]
	for _, f := range a.flushes {
		if f.offset <= pos {
			ready = append(ready, f)
		} else {
			left = append(left, f)
		}
	}
	a.flushes = left
	a.mu.Unlock()
	if len(ready) == 0 {
		return
	}
	a.sync()
	a.mu.Lock()
	err := a.trouble()
	a.mu.Unlock()
	for _, f := range ready {
		f.done <- err
	}
}

// failFlushes sends err to the waiting flushes, unless a rotation is about to open a file.
func (a *Appender) failFlushes(x *Rotation, err error) {
	if x != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.flushes {
		f.done <- err
	}
	a.flushes = nil
}
