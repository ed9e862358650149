package oplog

import (
	"context"
	"slices"
	"sync/atomic"
)

// Kind is the purpose of a Reader.
type Kind uint8

const (
	// ForFile readers see all bytes at once, without control bytes.
	ForFile Kind = iota
	// ForReplica readers see control bytes too. If there are files, they see only the bytes that the files contain,
	// or, with SetAlways, the synced bytes. So a server that is killed restarts with all data that its replicas have.
	ForReplica
)

// Reader reads the stream from an offset on. Calls of Next exclude each other; one goroutine calls Wait. Any goroutine
// may call the other methods.
type Reader struct {
	l      *Log
	kind   Kind
	b      *block
	offset atomic.Int64 // written by Next; others may call Next while the goroutine of Wait sleeps
	epoch  int
	wake   chan struct{}

	skip   []span // control bytes ahead; guarded by l.mu, like the fields below
	asleep bool
	closed bool
	nudged bool // makes Wait return at once
	pushed bool // see SetPushed
}

// span is a part of the stream.
type span struct{ from, to int64 }

// ReaderAt returns a reader that begins at an offset. The caller closes it. Errors: ErrGone.
func (l *Log) ReaderAt(offset int64, kind Kind) (*Reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.cur.base + l.cur.size.Load()
	if offset < l.start || offset > end {
		return nil, ErrGone
	}
	b := l.tail
	for next := b.next.Load(); next != nil && next.base <= offset; next = b.next.Load() {
		b = next
	}
	r := &Reader{l: l, kind: kind, b: b, epoch: l.epoch, wake: make(chan struct{}, 1)}
	r.offset.Store(offset)
	l.readers = append(l.readers, r)
	return r, nil
}

// Offset returns the offset of the next byte that Next returns.
func (r *Reader) Offset() int64 { return r.offset.Load() }

// Next returns the next bytes of the stream, or nil if there are none yet. It returns at most about 128 KiB, unless
// one transaction is longer. The bytes do not change, and the caller may keep them.
func (r *Reader) Next() []byte {
	if r.kind == ForFile {
		r.l.mu.Lock()
		defer r.l.mu.Unlock()
		if r.epoch != r.l.epoch {
			return nil
		}
	}
	for {
		from, to := r.offset.Load(), r.limit()
		for len(r.skip) > 0 && r.skip[0].to <= from {
			r.skip = r.skip[1:]
		}
		if len(r.skip) > 0 {
			if s := r.skip[0]; s.from <= from {
				if to = min(s.to, to); to == from {
					return nil
				}
				r.offset.Store(to)
				continue
			} else {
				to = min(to, s.from)
			}
		}
		b := r.at(from)
		if b == nil || from >= to {
			return nil
		}
		to = min(to, b.base+b.size.Load())
		if from >= to {
			return nil
		}
		r.offset.Store(to)
		return b.buf[from-b.base : to-b.base : to-b.base]
	}
}

// pass records bytes ahead that a reader for files skips. The log's lock is held.
func (r *Reader) pass(s span) {
	if n := len(r.skip); n > 0 && r.skip[n-1].to == s.from {
		r.skip[n-1].to = s.to
		return
	}
	r.skip = append(r.skip, s)
}

// at returns the block that holds an offset, or nil if there is none yet.
func (r *Reader) at(offset int64) *block {
	for {
		next := r.b.next.Load() // read next before size: if next is set, size is final
		if offset < r.b.base+r.b.size.Load() {
			return r.b
		}
		if next == nil {
			return nil
		}
		r.b = next
	}
}

// limit returns the offset up to which the reader may read.
func (r *Reader) limit() int64 {
	end := r.l.end.Load()
	switch {
	case r.kind == ForFile:
		return end
	case r.l.Always():
		return min(end, r.l.synced.Load())
	case r.l.bound.Load() > 0 && r.l.failure.Load() == nil:
		return min(end, r.l.written.Load())
	}
	return end
}

// mostPushed is the number of unread bytes from which appended bytes wake a reader of SetPushed in any case. For a
// long pipeline the wake costs little, and the replica begins to apply it before the loop has run all of it.
const mostPushed = 16 << 10

// SetPushed makes appended bytes not wake the reader while a push is pending (Log.BeginPush), because the loops then
// read for it with Next.
func (r *Reader) SetPushed() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if !r.closed && !r.pushed {
		r.pushed = true
		r.l.pushed.Add(1)
	}
}

// BeginPush begins a batch of an event loop that pushes the stream to replicas at its end, after EndPush. Batches of
// several loops may overlap. It returns false, and the caller must not call EndPush, if no reader is pushed. It costs
// one atomic load then.
func (l *Log) BeginPush() bool {
	if l.pushed.Load() == 0 {
		return false
	}
	l.pushes.Add(1)
	return true
}

// EndPush ends a batch of BeginPush: from here on appended bytes wake the readers. The caller then passes on what Next
// returns for each pushed reader, or wakes the reader by Nudge.
func (l *Log) EndPush() { l.pushes.Add(-1) }

// sleepsOn reports whether the reader's bytes are left to the end of a batch. The log's lock is held.
func (r *Reader) sleepsOn(soon bool) bool {
	if r.kind == ForFile {
		return soon
	}
	return r.pushed && r.l.pushes.Load() > 0 && r.limit()-r.offset.Load() < mostPushed
}

// Nudge makes the present or the next Wait return, even without new bytes.
func (r *Reader) Nudge() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	r.nudged = true
	r.wakeUp()
}

// Wait waits until Next has bytes, or until Nudge. Errors: the error of ctx, ErrReset, ErrClosed.
func (r *Reader) Wait(ctx context.Context) error {
	for {
		r.l.mu.Lock()
		switch {
		case r.closed:
			r.l.mu.Unlock()
			return ErrClosed
		case r.epoch != r.l.epoch:
			r.l.mu.Unlock()
			return ErrReset
		case r.nudged || r.offset.Load() < r.limit():
			r.nudged = false
			r.l.mu.Unlock()
			return nil
		}
		if !r.asleep {
			r.asleep = true
			r.l.sleepers++
		}
		r.l.mu.Unlock()
		select {
		case <-r.wake:
		case <-ctx.Done():
			r.l.mu.Lock()
			r.stopSleeping()
			r.l.mu.Unlock()
			return ctx.Err()
		}
	}
}

// wakeUp wakes the reader if it waits. The log's lock is held.
func (r *Reader) wakeUp() {
	if r.stopSleeping() {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// stopSleeping ends the reader's wait, and reports whether it waited.
func (r *Reader) stopSleeping() bool {
	if !r.asleep {
		return false
	}
	r.asleep = false
	r.l.sleepers--
	return true
}

// SetWritten calls Log.SetWritten, for the caller that writes this reader's bytes to a file. It does nothing after
// Log.Reset, because the new stream has other offsets.
func (r *Reader) SetWritten(offset int64) {
	if r.note(&r.l.written, offset) {
		r.l.wroteMore()
	}
}

// SetSynced calls Log.SetSynced under the same condition.
func (r *Reader) SetSynced(offset int64) {
	if r.note(&r.l.synced, offset) {
		r.l.syncedMore()
	}
}

func (r *Reader) note(what *atomic.Int64, offset int64) bool {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.epoch != r.l.epoch {
		return false
	}
	what.Store(offset)
	return true
}

// Close closes the reader: it releases the blocks, and Wait returns.
func (r *Reader) Close() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	if r.pushed {
		r.l.pushed.Add(-1)
	}
	r.wakeUp()
	if i := slices.Index(r.l.readers, r); i >= 0 {
		r.l.readers = slices.Delete(r.l.readers, i, i+1)
	}
}
