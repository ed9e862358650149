package replication

import (
	"slices"
)

// AckWait is a wait for acknowledgements, for WAIT and WAITAOF. The functions lock no shard and do not block.
type AckWait struct {
	Over func() bool // reports whether the wait has ended for another reason
	Met  func() bool // reports whether the condition holds
	End  func()      // is called once, when Met has returned true
}

// Await registers a wait and returns at once. The Node then checks the wait until it ends.
// Await requests acknowledgements from the replicas. A goroutine of the Node or a network
// loop calls Met after each acknowledgement and once a second.
func (r *Node) Await(w *AckWait) { r.master.wait(w) }

// Acked returns the number of replicas that have acknowledged the stream up to an offset.
func (r *Node) Acked(offset int64) int { return r.master.count(offset, nil) }

// SyncedBy returns the number of replicas that report that their files hold the stream up to an offset.
func (r *Node) SyncedBy(offset int64) int {
	return r.master.count(offset, func(f *Replica) int64 { return f.synced.Load() })
}

// OnSynced makes the Node check the waits again when this server's files hold the stream
// up to an offset.
func (r *Node) OnSynced(offset int64) { r.db.Log().OnSynced(offset, &r.master) }

// wait implements Node.Await.
func (m *master) wait(w *AckWait) {
	m.mu.Lock()
	m.waits = append(m.waits, w)
	m.mu.Unlock()
	m.begin()
	m.askAcks.Store(true)
	m.nudge()
}

// settleWaits ends the waits whose condition is met.
func (m *master) settleWaits() {
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

// Wake implements oplog.Waker. It is called when the files hold more of the stream.
func (m *master) Wake() { m.nudge() }

// online returns the number of replicas that receive the stream.
func (m *master) online() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.followers {
		if f.at() == followOnline {
			n++
		}
	}
	return n
}

// count returns the number of replicas that have acknowledged the stream up to an offset.
// of returns the acknowledged offset that counts; nil: the offset that the replica has in memory.
func (m *master) count(offset int64, of func(*Replica) int64) (n int) {
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
