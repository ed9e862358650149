package engine

import "time"

// The distribution of the deadlines of a whole engine, computed from the slots of the wheels.

// DueSurvey counts the deadlines of all databases by the time at which they fall due.
type DueSurvey struct {
	At int64 // the instant at which it begins, ms since 1970

	Keys       DueCounts // keys with a deadline
	Containers DueCounts // containers, by the time at which their next item falls due

	Leased int64 // locks and semaphores, which live until the end of their last lease
}

// DueCounts has one count for each interval. Each series begins at the survey's instant: Minutes[0] is the
// sum of Seconds, Hours[0] that of Minutes, Days[0] that of the first 24 of Hours. A deadline on a boundary
// belongs to the later interval.
type DueCounts struct {
	Due     int64     // deadlines that have passed; the keys and items are not removed yet
	Seconds [60]int64 // of the next minute
	Minutes [60]int64 // of the next hour
	Hours   [48]int64 // of the next two days
	Days    [31]int64 // of the next 31 days, 24 hours each
	Later   int64     // after these
}

const (
	second = int64(1000) // ms
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour

	// dueParts is the number of intervals into which a survey sorts future deadlines: the seconds, the minutes
	// and hours and days after them, and all later ones.
	dueParts = 60 + 59 + 47 + 29 + 1
	// surveyFew is the number of entries of a wheel that a survey reads one by one. It makes a survey of some
	// hundred keys exact, and costs a microsecond for each wheel.
	surveyFew = 64
)

// dueBounds returns the end of each interval except the last.
func dueBounds(at int64) []int64 {
	b := make([]int64, 1, dueParts)
	b[0] = at
	for _, s := range [...]struct{ from, to, unit int64 }{{1, 60, second}, {2, 60, minute}, {2, 48, hour}, {3, 31, day}} {
		for i := s.from; i <= s.to; i++ {
			b = append(b, at+i*s.unit)
		}
	}
	return b
}

// fold assigns the counts, one for each bound of dueBounds, to the fields of c.
func (c *DueCounts) fold(counts []int64) {
	c.Due = counts[0]
	counts = counts[1:]
	take := func(dst []int64) {
		n := copy(dst, counts)
		counts = counts[n:]
	}
	total := func(counts []int64) (n int64) {
		for _, x := range counts {
			n += x
		}
		return n
	}
	take(c.Seconds[:])
	c.Minutes[0] = total(c.Seconds[:])
	take(c.Minutes[1:])
	c.Hours[0] = total(c.Minutes[:])
	take(c.Hours[1:])
	c.Days[0], c.Days[1] = total(c.Hours[:24]), total(c.Hours[24:])
	take(c.Days[2:])
	c.Later = counts[0]
}

// DueSurvey counts the deadlines of all databases by the time at which they fall due. It adds up slots of the
// wheels and reads at most 64 entries of a wheel: O(slots that hold entries), some 10 us for each shard with
// 100,000 deadlines. It locks one shard at a time, unless the transaction holds them.
//
// An interval may be off by the content of the slots, one a level, that its ends cut: 256 ms of deadlines
// within a minute, 65 s within hours, 4.7 hours within weeks. The sum of all intervals is exact. A limiter
// may count early by up to an eighth of its time, and a limiter with waiting clients counts as a container.
func (tx *Tx) DueSurvey() *DueSurvey {
	at := tx.ms
	if !tx.Begun() {
		at = tx.db.clock.Micros() / 1000
	}
	v := newDueSurvey(at)
	tx.eachShard(v.look)
	return v.done()
}

// dueSurvey is a DueSurvey that is computed shard by shard.
type dueSurvey struct {
	at               int64
	bounds           []int64
	keys, containers [1 + dueParts]int64
	leased           int64
}

func newDueSurvey(at int64) *dueSurvey { return &dueSurvey{at: at, bounds: dueBounds(at)} }

// look adds the deadlines of a shard, which is locked.
func (v *dueSurvey) look(sh *shard) {
	for _, sp := range sh.spaces {
		if sp == nil {
			continue
		}
		if sp.due != nil {
			sp.due.Histogram(v.bounds, v.keys[:], surveyFew)
		}
		if sp.next != nil {
			sp.next.Histogram(v.bounds, v.containers[:], surveyFew)
		}
		v.leased += int64(sp.index.count(Lock) + sp.index.count(Semaphore))
	}
}

func (v *dueSurvey) done() *DueSurvey {
	d := &DueSurvey{At: v.at, Leased: v.leased}
	d.Keys.fold(v.keys[:])
	d.Containers.fold(v.containers[:])
	return d
}

// SurveyDue does the work of Tx.DueSurvey without a transaction.
func (db *DB) SurveyDue() *DueSurvey {
	tx := db.txs.Get().(*Tx)
	defer db.txs.Put(tx)
	return tx.DueSurvey()
}

// TrySurveyDue does the work of SurveyDue for a caller that must not wait for locks, which a script might
// hold for ever. It returns nil if another transaction holds a shard during all of its tries, which take up
// to 3 ms. The survey begins at the last multiple of unit ms, in the middle of an interval. So the intervals
// of two surveys have the same bounds, and a deadline at a full second counts in the interval that begins
// there.
func (db *DB) TrySurveyDue(unit int64) *DueSurvey {
	const rounds = 7
	at := db.clock.Micros() / 1000
	v, todo := newDueSurvey(at-at%unit), db.all()
	for round, pause := 0, surveyPause; todo != 0; round, pause = round+1, 2*pause {
		if round == rounds {
			return nil
		}
		if round > 0 {
			time.Sleep(pause)
		}
		for i, sh := range db.shards {
			if todo&(1<<i) != 0 && sh.lock.TryLock() {
				v.look(sh)
				sh.lock.Unlock()
				todo &^= 1 << i
			}
		}
	}
	return v.done()
}
