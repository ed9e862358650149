package oplog

// This file decides when a reply may leave.
//
//	a reply depends on the stream up to its mark
//	   appendfsync always ── synced >= mark? ────┐
//	   a group ───────────── committed >= mark? ─┴─▶ Settled: it may leave
//
// In a group, replies also belong to a term, which ends with each change of the role: Depose, Lead, Rest. What was not committed when
// the term ended may be in no later master's stream, so its replies never leave. A committed offset that an older term has given changes
// nothing. A member that rests, or follows a master, holds nothing back, but its terms count too: a batch that began on a replica may end
// on a master.

// Holds says what replies wait for, and in which term of a group. It is one word, so that a session that has nothing to wait for pays
// one load. A session takes it before it runs a command.
type Holds uint64

const (
	holdSynced    Holds = 1 << iota // replies wait until their effects are synced
	holdCommitted                   // replies wait until their effects are committed in the group
	holdRests                       // not now: the server is not the master of its group
	oneTerm       Holds = 1 << 8    // the terms are counted in the bits from here on
)

// Any reports whether replies wait for something, or belong to a term.
func (h Holds) Any() bool { return h&(holdSynced|holdCommitted) != 0 }

// Group reports whether the server is in a group, so that replies belong to a term.
func (h Holds) Group() bool { return h&holdCommitted != 0 }

// Leads reports whether replies wait for a group: the server is its master.
func (h Holds) Leads() bool { return h&(holdCommitted|holdRests) == holdCommitted }

// Term returns the number of the term.
func (h Holds) Term() uint64 { return uint64(h / oneTerm) }

// Older returns the one of the older term.
func (h Holds) Older(other Holds) Holds {
	if other.Term() < h.Term() {
		return other
	}
	return h
}

// Holds returns what replies wait for. It costs an atomic load of a word that changes only with the configuration and the role.
func (l *Log) Holds() Holds { return Holds(l.holds.Load()) }

func (l *Log) setHold(which Holds, on bool) {
	if on {
		l.holds.Or(uint64(which))
	} else {
		l.holds.And(^uint64(which))
	}
}

// SetGroup sets whether the server is in a group. It is the master, until Rest.
func (l *Log) SetGroup(on bool) {
	l.setHold(holdCommitted, on)
	if !on {
		l.Alarm()
	}
}

// SetCommitted raises the offset up to which a group's members hold the stream, and wakes the waiters for it. It does nothing if the
// term, as Holds.Term has counted it, is over, or if the offset is not above the one before.
func (l *Log) SetCommitted(term uint64, offset int64) {
	if offset <= l.committed.Load() || !l.commit(term, offset) {
		return
	}
	l.wakeSynced()
}

// commit stores a committed offset of the present term, and reports whether it is one.
func (l *Log) commit(term uint64, offset int64) bool {
	l.smu.Lock()
	defer l.smu.Unlock()
	if l.Holds().Term() != term || offset <= l.committed.Load() {
		return false
	}
	l.committed.Store(offset)
	return true
}

// Committed returns the offset up to which a group's members hold the stream, in this term.
func (l *Log) Committed() int64 { return l.committed.Load() }

// Depose ends the term: this server is no longer the master of its group. It wakes all waiters. What replies of the term are about is
// not certain from now on. The caller holds all shards, so that no transaction runs in two terms.
func (l *Log) Depose() {
	l.smu.Lock()
	l.holds.Add(uint64(oneTerm))
	l.committed.Store(0)
	l.smu.Unlock()
	l.Alarm()
}

// Lead begins a term in which the server is the master of its group. The caller holds all shards.
func (l *Log) Lead() { l.turn(false) }

// Rest begins a term in which the server is not the master of its group: replies wait for no commit. The caller holds all shards.
func (l *Log) Rest() { l.turn(true) }

// turn begins a term. The term and the role change in one step: a session that has seen one of them alone would take the replies of a
// master for those of a replica.
func (l *Log) turn(rests bool) {
	l.smu.Lock()
	for {
		old := l.holds.Load()
		now := old&^uint64(holdRests) + uint64(oneTerm)
		if rests {
			now |= uint64(holdRests)
		}
		if l.holds.CompareAndSwap(old, now) {
			break
		}
	}
	l.committed.Store(0)
	l.smu.Unlock()
	l.Alarm()
}

// Alarm wakes all waiters, whatever they wait for: each looks again, and waits again if it has to.
func (l *Log) Alarm() {
	l.smu.Lock()
	defer l.smu.Unlock()
	l.alarms.Add(1) // here, so that a waiter that was added after it is not woken
	l.wake(true)
}

// Alarms returns how often Alarm was called. So do a failure of the files, and each change of what replies wait for.
func (l *Log) Alarms() int64 { return l.alarms.Load() }

// OnAlarm makes the next Alarm wake w, once.
func (l *Log) OnAlarm(w Waker) { l.await(waiting{0, untilAlarm, w}) }

// Durable reports whether replies need not wait for an offset to be synced: SetAlways is off, the offset is synced, or it belongs to a
// stream before Reset.
func (l *Log) Durable(offset int64) bool { return !l.Always() || l.isSynced(offset) }

// Promised reports whether replies need not wait for a group: the server is the master of none, or the offset is committed.
func (l *Log) Promised(offset int64) bool { return !l.Holds().Leads() || l.committed.Load() >= offset }

// Settled reports whether a reply that depends on the stream up to an offset may leave: the offset is Durable and Promised.
func (l *Log) Settled(offset int64) bool { return l.Durable(offset) && l.Promised(offset) }

// OnSettled is Settled. If it returns false, the log wakes w once: when the offset is settled, when the files fail or have failed and
// the reply waits for them, or at an Alarm.
func (l *Log) OnSettled(offset int64, w Waker) bool {
	if l.OnBatchSettled(offset, w) {
		return true
	}
	l.hasten()
	return false
}

// OnPromised is Promised. If it returns false, the log wakes w once: when the offset is committed, or at an Alarm.
func (l *Log) OnPromised(offset int64, w Waker) bool {
	return l.Promised(offset) || l.await(waiting{offset, untilPromised, w})
}

// OnBatchSettled does the work of OnSettled for a caller that calls EndBatch soon.
func (l *Log) OnBatchSettled(offset int64, w Waker) bool {
	return l.Settled(offset) || l.await(waiting{offset, untilSettled, w})
}
