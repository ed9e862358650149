package engine

import (
	"math/bits"
	"time"
)

// Counters are the counts of a shard, or of all shards, since the start or the last
// ResetStats.
type Counters struct {
	// These fields come first because most writes increment one of them: see shard. For locks and semaphores
	// they count the grants, and the refusals of clients that do not wait;
	LocksGranted, LocksRefused int64
	// the requests that limiters allowed and denied (a query, PEEK or a cost of 0, counts as neither);
	LimiterAllowed, LimiterDenied int64
	// and the jobs that were added to delay queues, and those that were taken.
	QueueAdded, QueueDelivered int64

	Hits, Misses  int64 // reads of keys that existed, and that did not
	Expired       int64 // keys removed because their deadline had passed
	ExpiredLazily int64 // of these, keys that a command found and removed
	Evicted       int64 // keys removed because memory was full
	Reclaiming    int64 // us spent on slices of reclaiming and compaction
	TimeCaps      int64 // slices of reclaiming that ended before all work was done
	ExpiredItems  int64 // items of containers removed because their deadlines had passed

	// Direct counts the direct calls of an embedded engine, which no session has counted.
	Direct DirectCounts

	// These fields count the jobs of delay queues that were delivered again, and that were acknowledged; then
	// the leases that expired, and the jobs that left the queue in other ways: moved to the dead letters,
	// deleted because the queue has no dead letters, or expired before a consumer took them.
	QueueRedelivered, QueueAcked                       int64
	QueueLapsed, QueueDead, QueueDropped, QueueExpired int64
	// These fields count the occurrences of schedules: those that became jobs, and those that did not, because
	// the previous job was still in the queue, because no engine ran at the time, or because they were too late.
	ScheduleRuns, ScheduleSkipped, ScheduleLate int64
	// QueueLate is the time between a job's due instant and its delivery, in us.
	QueueLate Histogram

	// These fields count permits as the first fields count locks; then the expired leases of both.
	PermitsGranted, PermitsRefused int64
	LeasesExpired                  int64
	// Waits is the time that clients waited until they got a lock or permits, in us.
	Waits Histogram

	// RuleFired counts the entries that expiry rules wrote. RuleSuspended counts the entries that
	// were lost because their stream could not take them.
	RuleFired, RuleSuspended int64

	// Lag is the time between a deadline and the removal of the key or item, in us, by level.
	Lag [Levels]Histogram
}

// LagOf returns the lag of keys and items of all levels, in us.
func (c *Counters) LagOf() (all Histogram) {
	for i := range c.Lag {
		all.add(&c.Lag[i])
	}
	return all
}

func (c *Counters) add(o *Counters) {
	c.Hits += o.Hits
	c.Misses += o.Misses
	c.Expired += o.Expired
	c.ExpiredLazily += o.ExpiredLazily
	c.Evicted += o.Evicted
	c.TimeCaps += o.TimeCaps
	c.Reclaiming += o.Reclaiming
	c.ExpiredItems += o.ExpiredItems
	c.LimiterAllowed += o.LimiterAllowed
	c.LimiterDenied += o.LimiterDenied
	for kind, n := range o.Direct {
		c.Direct[kind] += n
	}
	c.addQueues(o)
	c.LocksGranted += o.LocksGranted
	c.LocksRefused += o.LocksRefused
	c.PermitsGranted += o.PermitsGranted
	c.PermitsRefused += o.PermitsRefused
	c.LeasesExpired += o.LeasesExpired
	c.Waits.add(&o.Waits)
	c.RuleFired += o.RuleFired
	c.RuleSuspended += o.RuleSuspended
	for i := range c.Lag {
		c.Lag[i].add(&o.Lag[i])
	}
}

// addQueues adds the counts of delay queues.
func (c *Counters) addQueues(o *Counters) {
	c.QueueAdded += o.QueueAdded
	c.QueueDelivered += o.QueueDelivered
	c.QueueRedelivered += o.QueueRedelivered
	c.QueueAcked += o.QueueAcked
	c.QueueLapsed += o.QueueLapsed
	c.QueueDead += o.QueueDead
	c.QueueDropped += o.QueueDropped
	c.QueueExpired += o.QueueExpired
	c.ScheduleRuns += o.ScheduleRuns
	c.ScheduleSkipped += o.ScheduleSkipped
	c.ScheduleLate += o.ScheduleLate
	c.QueueLate.add(&o.QueueLate)
}

// waited counts a grant to a client that has waited since an instant in us; 0: it did not
// wait.
func (c *Counters) waited(now, since int64) {
	if since > 0 {
		c.Waits.record(now - since)
	}
}

// Stats returns the sums of all shards' counters. It locks the shards one after the other.
func (db *DB) Stats() Counters {
	var c Counters
	for _, sh := range db.shards {
		sh.lock.Lock()
		sh.addTo(&c)
		sh.lock.Unlock()
	}
	return c
}

// ResetStats sets all counters to zero and forgets the throttled keys. It locks the shards one after the other.
func (db *DB) ResetStats() {
	for _, sh := range db.shards {
		sh.lock.Lock()
		sh.resetStats()
		sh.lock.Unlock()
	}
}

// KeyspaceStats describes one database.
type KeyspaceStats struct {
	Keys    int
	Expires int           // keys with a deadline
	AvgTTL  time.Duration // their mean remaining time to live
	Due     int           // of these, keys that have expired and are not yet removed
	Inner   int           // keys whose fields, members or elements have deadlines
}

// Keyspace returns the numbers of one database, as of now. It locks the shards one after the other.
func (db *DB) Keyspace(dbi int) KeyspaceStats {
	var s KeyspaceStats
	var sum int64
	for _, sh := range db.shards {
		sh.lock.Lock()
		if sp := sh.spaces[dbi]; sp != nil {
			sum += sp.count(&s, max(db.clock.Micros(), sh.last)/1000)
		}
		sh.lock.Unlock()
	}
	s.finish(sum)
	return s
}

// finish computes the numbers that follow from the sums over all shards and from the sum of the keys'
// remaining times in ms.
func (s *KeyspaceStats) finish(sum int64) {
	if s.Expires > 0 && sum > 0 {
		s.AvgTTL = time.Duration(sum/int64(s.Expires)) * time.Millisecond
	}
	s.Expires -= s.Due
}

// Histogram counts durations in buckets that are at most 12.5 % wide. The zero
// Histogram is empty.
type Histogram struct {
	Count int64
	Sum   int64 // us
	Max   int64 // us
	bins  [histBins]int64
}

const histBins = 8 * 40 // up to 2^40 us, twelve days

func histBin(us int64) int {
	if us < 8 {
		return int(max(us, 0))
	}
	e := bits.Len64(uint64(us)) - 1 // at least 3
	return min(8*(e-2)+int(us>>(e-3))-8, histBins-1)
}

func histFloor(bin int) int64 {
	if bin < 8 {
		return int64(bin)
	}
	e := bin/8 + 2
	return int64(8+bin%8) << (e - 3)
}

func (h *Histogram) record(us int64) {
	h.Count++
	h.Sum += us
	h.Max = max(h.Max, us)
	h.bins[histBin(us)]++
}

func (h *Histogram) add(o *Histogram) {
	if o.Count == 0 {
		return
	}
	h.Count += o.Count
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
	for i, n := range o.bins[:histBin(o.Max)+1] {
		h.bins[i] += n
	}
}

// Quantile returns the duration, in us, that the share q of all durations does not exceed; it is
// exact to the width of a bucket. It returns 0 if the histogram is empty.
func (h *Histogram) Quantile(q float64) int64 {
	if h.Count == 0 {
		return 0
	}
	rank := int64(q * float64(h.Count))
	for i, n := range h.bins {
		if rank -= n; rank < 0 {
			return min(histFloor(i+1)-1, h.Max)
		}
	}
	return h.Max
}

// Each calls f for every bucket that is not empty: durations from lo to hi us,
// hi not included.
func (h *Histogram) Each(f func(lo, hi, count int64)) {
	if h.Count == 0 {
		return
	}
	for i, n := range h.bins {
		if n > 0 {
			f(histFloor(i), histFloor(i+1), n)
		}
	}
}

// Dirty returns the number of changes, as Redis counts them, for save points. It takes no lock, and
// does not count transactions that have not ended.
func (db *DB) Dirty() int64 {
	var n int64
	for _, sh := range db.shards {
		n += sh.dirty.Load()
	}
	return n
}

// Changes returns the number of changes of the transaction so far, which Dirty counts when the transaction ends.
func (tx *Tx) Changes() int { return tx.dirty }

// countDirty adds changes. The shard is locked.
func (sh *shard) countDirty(n int) { sh.dirty.Store(sh.dirty.Load() + int64(n)) }

// ActiveExpiry reports whether active expiry is on; see SetActiveExpiry.
func (db *DB) ActiveExpiry() bool { return !db.noActive.Load() }
