package replication

import (
	"slices"
)

// WAIT and WAITAOF. A client waits as for a key (block.go), in a line of the
// master's: acknowledgements end the wait, or its time.

// AckWait is a wait for acknowledgements.
type AckWait struct {
	Over func() bool // it has ended otherwise
	Met  func() bool // what it waits for is there
	End  func()      // is called once, if so
}

// Await looks after a wait until it ends: it asks replicas to acknowledge, and calls
// w.Met after each acknowledgement and once a second, in a goroutine of its own.
func (r *Node) Await(w *AckWait) { r.master.wait(w) }

// Acked returns how many replicas have acknowledged the stream up to an offset.
func (r *Node) Acked(offset int64) int { return r.master.count(offset, nil) }

// SyncedBy returns how many replicas say that their files hold the stream up to an offset.
func (r *Node) SyncedBy(offset int64) int {
	return r.master.count(offset, func(f *Replica) int64 { return f.synced.Load() })
}

// OnSynced makes waits be looked at again when this server's files hold the stream up to
// an offset.
func (r *Node) OnSynced(offset int64) { r.db.Log().OnSynced(offset, &r.master) }

// wait has attend look after a wait.
func (m *masterSide) wait(w *AckWait) {
	m.mu.Lock()
	m.waits = append(m.waits, w)
	m.mu.Unlock()
	m.begin()
	m.ask.Store(true)
	m.nudge()
}

// settleWaits ends the waits whose condition is met.
func (m *masterSide) settleWaits() {
	m.mu.Lock()
	all := slices.Clone(m.waits)
	m.mu.Unlock()
	if len(all) == 0 {
		return
	}
	var ended []*AckWait
	for _, w := range all {
		over := w.Over()
		if !over && w.Met() {
			w.End()
			over = true
		}
		if over {
			ended = append(ended, w)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waits = slices.DeleteFunc(m.waits, func(w *AckWait) bool { return slices.Contains(ended, w) })
}

// Wake implements oplog.Waker: something was synced.
func (m *masterSide) Wake() { m.nudge() }

// online is the number of replicas that receive the stream.
func (m *masterSide) online() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.followers {
		if f.at() == followOnline {
			n++
		}
	}
	return n
}

// count is the number of replicas that have acknowledged an offset; of is what they
// acknowledge, by default that they have it in memory.
func (m *masterSide) count(offset int64, of func(*Replica) int64) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.followers {
		acked := f.acked.Load()
		if of != nil {
			acked = of(f)
		}
		if f.at() == followOnline && acked >= offset {
			n++
		}
	}
	return n
}
