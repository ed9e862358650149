package oplog

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Policy says when files are synced: appendfsync.
type Policy uint8

// The policies.
const (
	EverySec Policy = iota // once a second, in parallel with the writes
	Always                 // before the reply is sent: Log.SetAlways
	No                     // when the kernel does; at a change of files, still by the appender
)

// pause lies between two writes that no client waits for, so that they become one. A
// crash of the process loses no more than that; a longer one would save little, as 1,000
// writes of a hundred commands each cost some 3 % of a core.
const pause = time.Millisecond

// syncInterval is between two syncs of EverySec.
const syncInterval = time.Second

// retryAfter is between two attempts to write to a disk that refuses it.
const retryAfter = 100 * time.Millisecond

// AppenderOptions are options of an Appender. The zero value works.
type AppenderOptions struct {
	Policy Policy
	// Now, in ms since 1970, is set to have the time annotated in the files, once a
	// second at most: aof-timestamp-enabled. Where it returns 0 nothing is annotated.
	Now func() int64
	// Changed is called when the files begin or cease to fail, and when they lack
	// something: Stats knows more. It is called with a lock held, and may not block
	// or call the Appender.
	Changed func()
}

// Appender writes a Log to Files. A goroutine takes the pending bytes of the log, writes
// them at once, and continues with the bytes that arrived meanwhile. Under Always it
// syncs once between, for all clients that wait. It sleeps when the log has no pending
// bytes.
//
// Where syncs are fast (quickSync), a loop whose clients wait for one writes and syncs
// itself at the end of its batch, by Log.EndBatch, and the goroutine sleeps on: waking
// it, and it the loop, costs as much as such a sync. The loop does so if it gets the lock
// writing at once. It never waits, and leaves every other case to the goroutine: a change
// of the file, a disk that fails, another writer at work.
//
// Where a write fails, it is taken back, the log fails, and it is tried again until
// it succeeds: then the log is well. A sync is never tried again: after one has
// failed, what the disk holds is unknown, and the log fails until a rewrite whose
// cut came later is committed. Until then its increment is not listed: it would
// follow what may be missing.
//
// Make one with NewAppender, begin with Start or StartFresh, end with Close.
// Methods are safe for concurrent use.
type Appender struct {
	log   *Log
	files *Files
	now   func() int64
	hook  func()

	r     *Reader
	dirty chan struct{} // there is something to sync, for EverySec
	quit  chan struct{}
	wait  sync.WaitGroup
	timer *time.Timer  // of the goroutine
	cut   atomic.Int64 // nothing behind it may go to the file; math.MaxInt64: no cut
	quick atomic.Bool  // syncs are fast

	// The order of locks: writing, syncing, mu.
	writing sync.Mutex // held from taking a round to the end of its write, under Always of its sync
	round   round      // guarded by writing
	syncing sync.Mutex // held during a sync; with writing, where the file changes

	mu        sync.Mutex // guards what follows
	file      *appendFile
	size      int64 // of the file
	written   int64
	synced    int64
	policy    Policy
	suspended bool
	fresh     bool // the file is not listed: nothing counts as synced
	opened    int  // files
	cutFile   int  // the number of the file that begins at the last cut
	holes     int  // files up to this number may lack something, 0: none does
	rotation  *Rotation
	flushes   []flush
	closing   bool
	started   bool
	ctx       context.Context
	cancel    context.CancelFunc
	writeErr  error // of the last write
	syncErr   error // why there are holes
	told      error // what the log was told of both
	flying    bool  // a sync is under way
	delayed   int64
	baseSize  int64
}

// flush is a caller that waits for an offset, whatever the policy.
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
	openFirst   rotationKind = iota // go on in the last increment
	openFresh                       // a new one for other data
	openRewrite                     // a new one for the same data
)

// Wait waits until appending goes on in the new file, or cannot.
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
	a.round.usual = 2 * quickSync // until some were faster
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// Start begins to append what follows an offset, of which Log.Cut gave the
// database, behind what is in the files. It does not wait for the disk: the
// Rotation does. Errors: ErrGone.
func (a *Appender) Start(offset int64, db int) (*Rotation, error) {
	return a.start(&Rotation{offset: offset, db: db, kind: openFirst, done: make(chan struct{})})
}

// StartFresh is Start where what the files hold is not the data at the offset, as
// when appendonly is switched on: the files so far stay as they are until
// CommitRewrite brings the base for this one. Nothing counts as synced before. It
// is called at the cut of that base.
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
	a.round.pos, a.round.whole = x.offset, true // no other goroutine uses it yet
	a.written, a.synced = x.offset, x.offset
	if !a.fresh {
		r.SetWritten(x.offset)
		r.SetSynced(x.offset)
		a.baseSize = a.files.Size()
	}
	a.tellAlways()
	a.wait.Go(a.run)
	a.wait.Go(a.syncEverySec)
	return x, nil
}

// BeginRewrite has appending go on in a new increment from an offset on, with the
// database as Log.Cut gave it: the moment of a new base. All shards are locked.
// Messages, which lock none, may have come since: they are in no file, and the cut is
// behind them. It does not wait for the disk: the Rotation does, and CommitRewrite.
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
		a.nudge()
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

// nudge has the goroutine look at what has changed. The lock is held.
func (a *Appender) nudge() { a.cancel() }

// SetPolicy changes the policy.
func (a *Appender) SetPolicy(p Policy) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.policy = p
	a.tellAlways()
	a.nudge()
	a.kick()
}

// SuspendSync switches syncing off while a snapshot is written, for
// no-appendfsync-on-rewrite. Until it is on again, no client waits for a sync.
func (a *Appender) SuspendSync(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.suspended = on
	a.tellAlways()
	a.nudge()
	a.kick()
}

// maxBehind is how many bytes may wait for a slow disk before clients wait for it.
const maxBehind = 256 << 20

// tellAlways tells the log whether it may speak before a sync. The lock is held.
func (a *Appender) tellAlways() {
	unbased := a.fresh && a.holes == 0 // the first base is to come
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

// Flush waits until all that is in the log now is written and synced. Errors: why
// it is not.
func (a *Appender) Flush() error {
	f := flush{a.log.End(), make(chan error, 1)}
	a.mu.Lock()
	if a.closing || !a.started {
		a.mu.Unlock()
		return ErrClosed
	}
	a.flushes = append(a.flushes, f)
	a.nudge()
	a.mu.Unlock()
	return <-f.done
}

// Close writes and syncs what is in the log, and closes the file. A rewrite that
// was not committed is aborted. It returns an error if the files lack something.
func (a *Appender) Close() error {
	a.mu.Lock()
	if a.closing || !a.started {
		a.mu.Unlock()
		return nil
	}
	a.closing = true
	a.nudge()
	a.mu.Unlock()
	close(a.quit)
	a.wait.Wait()
	a.files.abortRewrite()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tellAlways()
	a.cancel()
	return a.trouble()
}

// run is the goroutine.
func (a *Appender) run() {
	defer a.r.Close()
	for {
		ctx, x, urgent, closing := a.orders()
		reached, idle, failed := a.standing(x)
		switch {
		case closing:
			a.finish(x)
			return
		case failed: // in a batch
			a.sleep(ctx, retryAfter)
			continue
		case reached:
			a.rotate(x)
			continue
		case a.file == nil: // it could not be opened
			a.failFlushes(x, errNoFile)
			<-ctx.Done()
			continue
		}
		if !urgent && idle {
			switch err := a.r.Wait(ctx); {
			case errors.Is(err, ErrReset):
				<-ctx.Done() // the stream is another; Close is to come
				continue
			case err != nil: // there are orders
				continue
			}
		}
		a.step(ctx, x)
	}
}

// errNoFile: Start said so, but its caller went on.
var errNoFile = errors.New("no append-only file is open")

// orders returns what others want: a rotation, something urgent, the end. ctx ends
// when they want something else.
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

// standing says how far the round is: at the cut of a rotation, with nothing in it,
// left by a batch that could not write it.
func (a *Appender) standing(x *Rotation) (reached, idle, failed bool) {
	a.writing.Lock()
	defer a.writing.Unlock()
	o := &a.round
	reached = x != nil && o.pos >= x.offset && len(o.pieces) == 0
	failed, o.failed = o.failed, false
	return reached, o.rest == nil && len(o.pieces) == 0, failed
}

// step writes a round, up to the cut of a rotation, syncs it if the policy says
// so, and pauses.
func (a *Appender) step(ctx context.Context, x *Rotation) {
	a.mu.Lock()
	always := a.policy == Always && !a.suspended
	a.mu.Unlock()
	if always {
		a.await(ctx)
	}
	if err := a.take(always); err != nil {
		if x != nil {
			a.settle(x, err) // what is not in the old file may not be skipped
		}
		a.failFlushes(nil, err)
		a.sleep(ctx, retryAfter)
		return
	}
	if !always {
		a.mu.Lock()
		a.kick()
		a.mu.Unlock()
	}
	a.answerFlushes()
	if !always && x == nil && !a.log.Followed() { // replicas wait for what is written
		a.sleep(ctx, pause)
	}
}

// finish writes what is left, and closes the file.
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
	_ = a.file.Close() // it is synced, or its failure is noted
	a.files.closed(a.file, nil)
}

// drain writes all that the log has now.
func (a *Appender) drain() {
	a.writing.Lock()
	defer a.writing.Unlock()
	for all := a.log.End(); ; {
		before := a.round.pos
		a.gather()
		more := len(a.round.pieces) > 0 || a.round.pos > before
		if a.write() != nil || !more || a.round.pos >= all {
			return
		}
	}
}

// answerFlushes syncs for the waiting flushes, and sends them the result.
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

// failFlushes sends err to the waiting flushes, unless a file is about to be opened.
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
