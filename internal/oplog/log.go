// Package oplog implements the stream of effects: in memory, in append-only files, and for
// replicas.
//
//	transaction ──Append──▶ Log ── blocks of bytes, absolute offsets ──▶
//	                         ├─ Reader of the Appender ──▶ append-only file
//	                         ├─ Reader of a replica ──────▶ its connection
//	                         └─ Keep: the replication backlog
//
// The stream has the format of Redis's replication: commands in RESP with absolute times, SELECT
// where the database changes, MULTI and EXEC around the commands of a transaction. There is one
// stream, and its offsets are the replication offsets.
//
// A transaction appends while its shards are locked, so two transactions that share a shard are in
// the order in which they ran. Bytes do not change once appended: readers need no lock. A block
// that neither a reader nor the backlog refers to is garbage.
//
// Start reading at Log.Append and Reader.Next.
package oplog

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// blockSize is the size of a block in bytes. An append of at least bigAppend bytes becomes its own block, without a
// copy.
const (
	blockSize = 128 << 10
	bigAppend = 32 << 10
)

// Errors of readers.
var (
	// ErrGone means that the offset is no longer in memory, or is beyond the end of the stream.
	ErrGone = errors.New("oplog: the offset is not in memory")
	// ErrReset means that Reset was called after the reader was created.
	ErrReset = errors.New("oplog: the stream has started again")
	// ErrClosed means that the reader was closed.
	ErrClosed = errors.New("oplog: the reader is closed")
)

// Waker is notified once for each wait. Wake must not block.
type Waker interface{ Wake() }

// Signal is a Waker for a goroutine that waits in a select. It needs a capacity of 1.
type Signal chan struct{}

// Wake implements Waker.
func (s Signal) Wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Log is the stream. New returns one. Its methods are safe for concurrent use.
type Log struct {
	end     atomic.Int64  // the offset after the newest byte
	written atomic.Int64  // the files contain the stream up to here
	synced  atomic.Int64  // the files are durable up to here
	holds   atomic.Uint64 // the value of Holds
	says    atomic.Bool   // AppendMessage appends; written with mu held
	bound   atomic.Int64  // number of bytes that may wait to be written; 0: any
	failure atomic.Pointer[error]
	alarms  atomic.Int64             // number of Alarms
	batches atomic.Int32             // number of batches that have begun and not ended
	pushed  atomic.Int32             // number of readers of SetPushed
	pushes  atomic.Int32             // number of pushes that have begun and not ended
	files   atomic.Pointer[Appender] // under Always, the appender that syncs; nil: none

	mu       sync.Mutex // guards the fields below
	cur      *block     // the newest block
	tail     *block     // the oldest block that ReaderAt finds
	start    int64      // the first readable offset
	keep     int64
	db       int // the selected database of the stream; -1: none
	readers  []*Reader
	sleepers int
	epoch    int // number of Resets

	smu       sync.Mutex // guards the fields below; no other lock is taken with it
	waiting   []waiting
	committed atomic.Int64 // the group's members have the stream up to here; written with smu held
}

// block is a piece of the stream. The bytes before size do not change.
type block struct {
	base int64 // offset of buf[0]
	buf  []byte
	size atomic.Int64
	next atomic.Pointer[block] // set when the block is full
}

// waiting is one wait for an offset.
type waiting struct {
	offset int64
	until  goal
	w      Waker
}

// goal is the state of the stream that a waiter waits for.
type goal uint8

const (
	untilWritten  goal = iota // the files contain the stream up to the offset
	untilSynced               // the files are durable up to the offset
	untilSettled              // replies that depend on the offset may leave
	untilPromised             // replies may leave as far as the group is concerned
	untilAlarm                // only Alarm ends the wait
)

// New returns an empty stream that begins at an offset.
func New(start int64) *Log {
	l := &Log{}
	l.reset(start)
	return l
}

func (l *Log) reset(start int64) {
	l.cur = &block{base: start}
	l.tail, l.start, l.db = l.cur, start, -1
	l.end.Store(start)
	l.written.Store(start)
	l.synced.Store(start)
}

// Reset starts a new stream at an offset, as a replica does after a full synchronisation. Readers of the old stream
// get ErrReset. No append may run meanwhile.
func (l *Log) Reset(offset int64) {
	l.mu.Lock()
	l.epoch++
	l.reset(offset)
	l.wakeReaders()
	l.mu.Unlock()
	l.Alarm()
}

// A Unit holds the effects of one transaction.
type Unit struct {
	DB, Last int    // the databases of its first and of its last command
	Commands int    // more than one command is enclosed in MULTI and EXEC
	Bytes    []byte // the commands, with a SELECT where the database changes
}

const (
	multi = "*1\r\n$5\r\nMULTI\r\n"
	exec  = "*1\r\n$4\r\nEXEC\r\n"
)

// Append appends a transaction, and returns the offset after it. The shards of the transaction are locked. If kept is
// true, the log owns the bytes from now on, and the caller must not use them; otherwise it has copied them.
func (l *Log) Append(u Unit) (end int64, kept bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.DB != l.db {
		var b [32]byte
		l.write(AppendSelect(b[:0], u.DB))
	}
	l.db = u.Last
	if u.Commands > 1 {
		l.writeString(multi)
	}
	if kept = len(u.Bytes) >= bigAppend; kept {
		l.adopt(u.Bytes)
	} else {
		l.write(u.Bytes)
	}
	if u.Commands > 1 {
		l.writeString(exec)
	}
	return l.publish(), kept
}

// A Range is a part of a byte slice.
type Range struct{ From, To int }

// AppendVerbatim appends bytes of a master's stream on a replica. db is the selected database after them. idle lists
// parts of b, in order, that count in the offsets but that readers for files skip.
func (l *Log) AppendVerbatim(b []byte, db int, idle ...Range) (end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.cur.base + l.cur.size.Load()
	l.write(b)
	for _, x := range idle {
		l.passForFiles(span{from + int64(x.From), from + int64(x.To)})
	}
	l.db = db
	return l.publish()
}

// AppendControl appends a command that only replicas receive, and returns the offset after it. The command counts in
// the offsets, but readers for files skip it.
func (l *Log) AppendControl(b []byte) (end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.control(b)
}

func (l *Log) control(b []byte) (end int64) {
	from := l.cur.base + l.cur.size.Load()
	l.write(b)
	l.passForFiles(span{from, l.cur.base + l.cur.size.Load()})
	return l.publish()
}

// passForFiles makes readers for files skip bytes that were just written.
func (l *Log) passForFiles(s span) {
	for _, r := range l.readers {
		if r.kind == ForFile {
			r.pass(s)
		}
	}
}

// TakeMessages sets whether AppendMessage appends. It is on for a master's stream with replicas.
func (l *Log) TakeMessages(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.says.Store(on)
}

// TakesMessages returns the value that TakeMessages has set. It costs one atomic read.
func (l *Log) TakesMessages() bool { return l.says.Load() }

// AppendMessage is AppendControl for a caller that holds no shard. It does nothing unless TakeMessages is on.
func (l *Log) AppendMessage(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.says.Load() {
		l.control(b)
	}
}

// AppendSelect appends SELECT db in RESP to b.
func AppendSelect(b []byte, db int) []byte {
	var n [8]byte
	d := strconv.AppendInt(n[:0], int64(db), 10)
	b = append(b, "*2\r\n$6\r\nSELECT\r\n$"...)
	b = strconv.AppendInt(b, int64(len(d)), 10)
	b = append(b, '\r', '\n')
	b = append(b, d...)
	return append(b, '\r', '\n')
}

// write copies b after the newest byte. Readers see it after publish, or earlier if it fills a block.
func (l *Log) write(b []byte) {
	for len(b) > 0 {
		c := l.cur
		n := int(c.size.Load())
		if c.buf == nil {
			c.buf = make([]byte, blockSize)
		}
		if n == len(c.buf) {
			l.extend(make([]byte, blockSize), 0)
			continue
		}
		k := copy(c.buf[n:], b)
		c.size.Store(int64(n + k))
		b = b[k:]
	}
}

func (l *Log) writeString(s string) {
	var b [16]byte
	l.write(append(b[:0], s...))
}

// adopt makes b a block, without a copy.
func (l *Log) adopt(b []byte) { l.extend(b, len(b)) }

// extend adds a block with n valid bytes, and drops the oldest blocks that the backlog does not
// need.
func (l *Log) extend(buf []byte, n int) {
	c := l.cur
	x := &block{base: c.base + c.size.Load(), buf: buf}
	x.size.Store(int64(n))
	c.next.Store(x)
	l.cur = x
	l.trim()
}

func (l *Log) trim() {
	end := l.cur.base + l.cur.size.Load()
	for next := l.tail.next.Load(); next != nil && end-next.base >= l.keep; next = l.tail.next.Load() {
		l.tail = next
		l.start = max(l.start, next.base)
	}
}

// publish makes the written bytes visible, and wakes the readers that wait for them.
func (l *Log) publish() (end int64) {
	end = l.cur.base + l.cur.size.Load()
	l.end.Store(end)
	l.wakeReady(l.batches.Load() > 0)
	return end
}

// wakeReady wakes the readers that have bytes to read. While a batch is about to end (soon), it does not wake readers
// for files, because the end of the batch writes the files. Nor does it wake pushed readers while a push is pending. The
// lock is held.
func (l *Log) wakeReady(soon bool) {
	for i := 0; l.sleepers > 0 && i < len(l.readers); i++ {
		if r := l.readers[i]; r.asleep && !r.sleepsOn(soon) && r.offset.Load() < r.limit() {
			r.wakeUp()
		}
	}
}

func (l *Log) wakeReaders() {
	for _, r := range l.readers {
		r.wakeUp()
	}
}

// End returns the offset after the newest byte.
func (l *Log) End() int64 { return l.end.Load() }

// DB returns the selected database of the stream; -1: none.
func (l *Log) DB() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.db
}

// Cut returns the offset of the end of the stream and the database that is selected there; -1: none. The bytes after
// this offset are the difference to a snapshot of this instant. All shards are locked.
func (l *Log) Cut() (offset int64, db int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cur.base + l.cur.size.Load(), l.db
}

// cutFor returns the same offset as Cut. It sets the appender's cut before any bytes follow the offset.
func (l *Log) cutFor(a *Appender) (offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offset = l.cur.base + l.cur.size.Load()
	a.cut.Store(offset)
	return offset
}

// Unselect makes the next transaction begin with a SELECT, for a reader that starts here without the earlier stream.
// It must not be called on a stream that replicas follow.
func (l *Log) Unselect() {
	l.mu.Lock()
	l.db = -1
	l.mu.Unlock()
}

// Keep sets the size of the replication backlog: the least number of bytes before End that stay readable; 0: none.
func (l *Log) Keep(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keep == 0 && n > 0 { // earlier bytes are not part of the backlog
		l.start = l.cur.base + l.cur.size.Load()
	}
	l.keep = n
	l.trim()
}

// Oldest returns the oldest offset that ReaderAt accepts.
func (l *Log) Oldest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start
}

// SetAlways sets whether replies wait until their effects are synced: appendfsync always.
func (l *Log) SetAlways(on bool) {
	l.setHold(holdSynced, on)
	l.mu.Lock()
	l.wakeReaders()
	l.mu.Unlock()
	if !on {
		l.Alarm()
	}
}

// BeginBatch delays the writing of appended bytes until EndBatch, so that the clients of an event loop wait for one
// sync together. It returns false if no client waits for syncs or syncs are slow: the appender then writes the bytes
// at once, and the caller must not call EndBatch. Batches of several loops may overlap. Only OnBatchSettled waits for
// the end of a batch.
func (l *Log) BeginBatch() bool {
	if a := l.files.Load(); a == nil || !a.quick.Load() {
		return false
	}
	l.batches.Add(1)
	return true
}

// EndBatch ends a batch. It writes and syncs the bytes of the log before it returns. If another goroutine uses the
// files, or the disk fails, it leaves the work to the appender's goroutine. It waits only for the disk.
func (l *Log) EndBatch() {
	l.batches.Add(-1) // from here on Append wakes the appender; all earlier bytes are in the log
	if l.synced.Load() >= l.end.Load() {
		return
	}
	if a := l.files.Load(); a == nil || !a.settleBatch() {
		l.writeNow()
	}
}

// writeNow makes the appender write the bytes of the log now.
func (l *Log) writeNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeReady(false)
}

// Always returns the value that SetAlways has set.
func (l *Log) Always() bool { return Holds(l.holds.Load())&holdSynced != 0 }

// Written returns the offset up to which the files contain the stream.
func (l *Log) Written() int64 { return l.written.Load() }

// Synced returns the offset up to which the files are durable.
func (l *Log) Synced() int64 { return l.synced.Load() }

// Followed reports whether a replica reads the stream.
func (l *Log) Followed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.readers, func(r *Reader) bool { return r.kind == ForReplica })
}

// SetWritten sets Written, and wakes its waiters.
func (l *Log) SetWritten(offset int64) {
	l.written.Store(offset)
	l.wroteMore()
}

func (l *Log) wroteMore() {
	if l.bound.Load() == 0 {
		return
	}
	l.wakeSynced()
	l.mu.Lock()
	l.wakeReady(true) // replicas may read the bytes now
	l.mu.Unlock()
}

// Bound sets the number of bytes that may wait to be written before Behind returns true; 0: any number, because there
// are no files.
func (l *Log) Bound(bytes int64) {
	l.bound.Store(bytes)
	if bytes == 0 {
		l.Alarm()
		l.mu.Lock()
		l.wakeReaders()
		l.mu.Unlock()
	}
}

// Behind reports whether more bytes than Bound wait to be written, so that clients should wait before they write
// more. If so, the log wakes w once, when the files have caught up or fail; clients do not wait for files that fail.
// It costs three atomic reads.
func (l *Log) Behind(w Waker) bool {
	bound := l.bound.Load()
	if bound == 0 || l.end.Load()-l.written.Load() <= bound || l.failure.Load() != nil {
		return false
	}
	return !l.await(waiting{l.end.Load() - bound/2, untilWritten, w})
}

// SetSynced sets Synced, and wakes its waiters.
func (l *Log) SetSynced(offset int64) {
	l.synced.Store(offset)
	l.syncedMore()
}

func (l *Log) syncedMore() {
	l.wakeSynced()
	if l.Always() {
		l.mu.Lock()
		l.wakeReady(true) // replicas may read the bytes now
		l.mu.Unlock()
	}
}

// isSynced reports whether an offset is synced, or lies beyond the end and so belongs to a stream before Reset.
func (l *Log) isSynced(offset int64) bool {
	return l.synced.Load() >= offset || offset > l.end.Load()
}

// OnSynced reports whether an offset is synced, or belongs to a stream before Reset. If it returns false, the log
// wakes w once: when the offset is synced, when the files fail or have failed, or at an Alarm.
func (l *Log) OnSynced(offset int64, w Waker) bool {
	if l.isSynced(offset) || l.await(waiting{offset, untilSynced, w}) {
		return true
	}
	l.writeBeforeBatchEnd()
	return false
}

// writeBeforeBatchEnd makes the appender write now and not at the end of a batch.
func (l *Log) writeBeforeBatchEnd() {
	if l.batches.Load() > 0 {
		l.writeNow()
	}
}

// await adds a waiter, unless its wait is over. If the files fail, it wakes a waiter for them at once.
func (l *Log) await(x waiting) (over bool) {
	l.smu.Lock()
	defer l.smu.Unlock()
	switch {
	case l.over(x):
		return true
	case l.failure.Load() != nil && (x.until <= untilSynced || x.until == untilSettled && l.Always()):
		x.w.Wake()
	default:
		l.waiting = append(l.waiting, x)
	}
	return false
}

func (l *Log) over(x waiting) bool {
	switch x.until {
	case untilWritten:
		return l.written.Load() >= x.offset
	case untilSynced:
		return l.isSynced(x.offset)
	case untilSettled:
		return l.Settled(x.offset)
	case untilPromised:
		return l.Promised(x.offset)
	}
	return false
}

// wakeSynced wakes the waiters whose wait is over.
func (l *Log) wakeSynced() {
	l.smu.Lock()
	defer l.smu.Unlock()
	l.wake(false)
}

// wake wakes the waiters whose wait is over, or all waiters. smu is held.
func (l *Log) wake(all bool) {
	left := l.waiting[:0]
	for _, x := range l.waiting {
		if all || l.over(x) {
			x.w.Wake()
		} else {
			left = append(left, x)
		}
	}
	clear(l.waiting[len(left):])
	l.waiting = left
}

// Fail records that the files fail with err, and wakes all waiters. With nil it records that they work again.
func (l *Log) Fail(err error) {
	if err == nil {
		if l.failure.Swap(nil) != nil && l.Holds().Group() {
			l.Alarm() // replies that waited only for the group may have to wait for the files again
		}
		return
	}
	l.failure.Store(&err)
	l.Alarm()
	l.mu.Lock()
	l.wakeReaders() // replicas do not wait for files that fail
	l.mu.Unlock()
}

// Failure returns the error with which the files fail, or nil.
func (l *Log) Failure() error {
	if p := l.failure.Load(); p != nil {
		return *p
	}
	return nil
}
