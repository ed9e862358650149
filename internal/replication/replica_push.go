package replication

import (
	"slices"

	"github.com/ebbdb/ebb/internal/reactor"
)

// The event loops push the stream to replicas, if replies wait for the group or for files:
//
//	a loop ── runs a batch of commands ─▶ Log ── end of the batch ─▶ Node.Push ─▶ the replica's socket
//	                                       └── a full socket, a stamp, much data ─▶ the goroutine of Replica.stream
//
// A reply waits until the members have its write, so each thread that must wake on the way costs the client some time.
// The loop that has run the write sends it, and wakes no goroutine. It does not wait: what it cannot send at once is left
// to the goroutine. Both hold wmu while they read the stream and write, so the bytes keep their order.

// beginPushes makes the loops push the stream to the replica, if its connection comes from a loop. A plain replica gets
// another form of the stream, which only the goroutine makes.
func (f *Replica) beginPushes() {
	nc, ok := f.nc.(reactor.Taken) // f.nc no longer changes
	if !ok || !f.announced.ebb {
		return
	}
	f.wmu.Lock()
	f.loop = nc
	f.wmu.Unlock()
	f.reader.SetPushed()
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if !f.left {
		f.m.setPushed(append(slices.Clone(f.m.pushedTo()), f))
	}
}

// pushedTo returns the replicas to which the loops push the stream. The caller must not change the slice.
func (m *master) pushedTo() []*Replica {
	if p := m.pushes.Load(); p != nil {
		return *p
	}
	return nil
}

// setPushed replaces the result of pushedTo. m.mu is held.
func (m *master) setPushed(all []*Replica) { m.pushes.Store(&all) }

// endPushes ends the work of beginPushes. m.mu is held.
func (m *master) endPushes(f *Replica) {
	all := m.pushedTo()
	if i := slices.Index(all, f); i >= 0 {
		m.setPushed(slices.Delete(slices.Clone(all), i, i+1))
	}
}

// Push sends the replicas the bytes that were appended to the stream, as far as their sockets accept them. A
// loop calls it after Log.EndPush. It does not wait.
func (r *Node) Push() {
	for _, f := range r.master.pushedTo() {
		f.push()
	}
}

// push sends the new bytes, or makes the goroutine of stream send them. If another goroutine or loop is sending, that
// one goes on: the goroutine until nothing is left, a loop because of more.
func (f *Replica) push() {
	f.more.Store(true)
	for f.more.Load() && f.wmu.TryLock() {
		f.more.Store(false)
		done := f.sendNow()
		f.wmu.Unlock()
		if !done {
			f.reader.Nudge()
			return
		}
	}
}

// mostPush is the number of bytes from which the goroutine sends them, because a loop has other clients to serve.
const mostPush = 64 << 10

// sendNow sends the new bytes of the stream, and reports false if the goroutine must send the rest. The caller holds wmu.
func (f *Replica) sendNow() bool {
	if f.rest != nil || f.due.command != nil || len(f.stamps) > 0 || f.m.r.db.Log().End()-f.reader.Offset() > mostPush {
		return false
	}
	for b := f.reader.Next(); b != nil; b = f.reader.Next() {
		n, err := f.loop.TryWrite(b)
		f.m.r.sent.Add(int64(n))
		if err != nil || n < len(b) {
			f.rest = b[n:] // after an error the goroutine gets it too
			return false
		}
		f.sent.Store(f.reader.Offset())
	}
	return true
}
