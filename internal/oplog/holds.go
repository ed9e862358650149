package oplog

// This file decides when a reply may leave.
//
//	a reply depends on the stream up to its mark
//	   appendfsync always ── synced >= mark? ────┐
//	   a group ───────────── committed >= mark? ─┴─▶ Settled: it may leave
//
// In a group, replies also belong to a term, which ends with each change of the role: Depose, Lead, Rest. Writes that
// were not committed at the end of the term may be missing from the stream of later masters, so their replies never
// leave. SetCommitted ignores offsets of older terms. A replica of a group does not hold replies back, but its terms
// count too: a batch may begin on a replica and end on a master.

// Holds has the conditions for which replies wait, and the term of the group. It is one word, so a session without
// such conditions pays for one load. A session reads it before it runs a command.
type Holds uint64

const (
	holdSynced    Holds = 1 << iota // replies wait until their effects are synced
	holdCommitted                   // replies wait until their effects are committed in the group
	holdRests                       // the server is not the master of its group, so replies do not wait for it
	oneTerm       Holds = 1 << 8    // the bits from here on count the terms
)

// Any reports whether replies wait for something, or belong to a term.
func (h Holds) Any() bool { return h&(holdSynced|holdCommitted) != 0 }

// Group reports whether the server is in a group, so that replies belong to a term.
func (h Holds) Group() bool { return h&holdCommitted != 0 }

// Leads reports whether replies wait for commits: the server is the master of its group.
func (h Holds) Leads() bool { return h&(holdCommitted|holdRests) == holdCommitted }

// Term returns the number of the term.
func (h Holds) Term() uint64 { return uint64(h / oneTerm) }

// Older returns that of the two whose term is older.
func (h Holds) Older(other Holds) Holds {
	if other.Term() < h.Term() {
		return other
	}
	return h
}

// Holds returns the present value. It costs one atomic load of a word that changes only with the configuration and
// the role.
func (l *Log) Holds() Holds { return Holds(l.holds.Load()) }

func (l *Log) setHold(which Holds, on bool) {
	if on {
		l.holds.Or(uint64(which))
	} else {
		l.holds.And(^uint64(which))
	}
}

// SetGroup sets whether the server is in a group. It then counts as the master, until Rest.
func (l *Log) SetGroup(on bool) {
	l.setHold(holdCommitted, on)
	if !on {
		l.Alarm()
	}
}

// SetCommitted raises the offset up to which the group's members have the stream, and wakes its waiters. It does
// nothing if term, a result of Holds.Term, is over, or if the offset is not above the present one.
func (l *Log) SetCommitted(term uint64, offset int64) {
	if offset <= l.committed.Load() || !l.commit(term, offset) {
		return
	}
	l.wakeSynced()
}

// commit stores a committed offset, if it is of the present term and above the present one. It reports whether it
// did.
func (l *Log) commit(term uint64, offset int64) bool {
	l.smu.Lock()
	defer l.smu.Unlock()
	if l.Holds().Term() != term || offset <= l.committed.Load() {
		return false
	}
	l.committed.Store(offset)
	return true
}

// Committed returns the offset up to which the group's members have the stream, in this term.
func (l *Log) Committed() int64 { return l.committed.Load() }

// Depose ends the term: this server is no longer the master of its group. It wakes all waiters. The outcome of writes
// whose replies wait is uncertain from now on. The caller holds all shards, so no transaction runs in two terms.
func (l *Log) Depose() {
	l.smu.Lock()
	l.holds.Add(uint64(oneTerm))
	l.committed.Store(0)
	l.smu.Unlock()
	l.Alarm()
}

// Lead starts a term as the master of the group. The caller holds all shards.
func (l *Log) Lead() { l.turn(false) }

// Rest starts a term as a replica of the group: replies do not wait for commits. The caller holds all shards.
func (l *Log) Rest() { l.turn(true) }

// turn starts a term. The term and the role change in one atomic step: a session that saw only one of the changes
// would take a master's replies for those of a replica.
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

// Alarm wakes all waiters. Each checks its condition, and waits again if necessary.
func (l *Log) Alarm() {
	l.smu.Lock()
	defer l.smu.Unlock()
	l.alarms.Add(1) // with smu held, so that it does not wake a waiter that was added later
	l.wake(true)
}

// Alarms returns the number of Alarms so far. A failure of the files, and each change of the conditions for replies,
// also call Alarm.
func (l *Log) Alarms() int64 { return l.alarms.Load() }

// OnAlarm makes the next Alarm wake w once.
func (l *Log) OnAlarm(w Waker) { l.await(waiting{0, untilAlarm, w}) }

// Durable reports whether a reply need not wait until an offset is synced: SetAlways is off, the offset is synced, or
// it belongs to a stream before Reset.
func (l *Log) Durable(offset int64) bool { return !l.Always() || l.isSynced(offset) }

// Promised reports whether a reply need not wait for the group: the server is not a master of a group, or the offset
// is committed.
func (l *Log) Promised(offset int64) bool { return !l.Holds().Leads() || l.committed.Load() >= offset }

// Settled reports whether a reply that depends on the stream up to an offset may leave: the offset is Durable and Promised.
func (l *Log) Settled(offset int64) bool { return l.Durable(offset) && l.Promised(offset) }

// OnSettled returns Settled. If that is false, the log wakes w once: when the offset is settled, when the files fail
// or have failed and the reply waits for them, or at an Alarm.
func (l *Log) OnSettled(offset int64, w Waker) bool {
	if l.OnBatchSettled(offset, w) {
		return true
	}
	l.writeBeforeBatchEnd()
	return false
}

// OnPromised returns Promised. If that is false, the log wakes w once: when the offset is committed, or at an Alarm.
func (l *Log) OnPromised(offset int64, w Waker) bool {
	return l.Promised(offset) || l.await(waiting{offset, untilPromised, w})
}

// OnBatchSettled is OnSettled for a caller that calls EndBatch soon.
func (l *Log) OnBatchSettled(offset int64, w Waker) bool {
	return l.Settled(offset) || l.await(waiting{offset, untilSettled, w})
}
