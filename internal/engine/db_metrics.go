package engine

import (
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/wheel"
)

// Horizons are the spans, in ms, within which a Survey counts future deadlines.
var Horizons = [...]int64{second, minute, hour, day, 7 * day, 30 * day}

// Survey is the state of an engine in numbers, all shards together, for monitoring.
type Survey struct {
	Counters   Counters
	Databases  []DatabaseSurvey
	Keys       DeadlineSurvey // keys with a deadline
	Containers DeadlineSurvey // containers that have an item with a deadline
	Queues     QueueSurvey    // delay queues
	Used       int64          // living bytes
	Protected  ProtectedMemory
	Rules      []RuleSurvey // the expiry rules
	Waiting    int64        // places in the lines of keys; a waiting command has one for each of its keys
	Stale      int          // shards that stayed locked; their numbers are from an earlier survey
}

// DatabaseSurvey describes one database. Due of KeyspaceStats is an estimate, as
// DeadlineSurvey.Due is.
type DatabaseSurvey struct {
	KeyspaceStats
	Tables    int64 // bytes of its tables
	Deadlines int64 // bytes of the wheels' share in its records
}

// QueueSurvey describes the delay queues of all databases.
type QueueSurvey struct {
	Queues int64
	Jobs   int64 // in them, whatever their state
	Leased int64 // of these, jobs with a consumer, and jobs whose expired lease is not yet reclaimed
	Ready  int64 // of these, due and without a consumer; counted in at most 1,024 queues of each shard and database
}

// surveyQueues is the number of queues of a shard and database whose ready jobs a survey
// counts; a queue costs a fraction of a microsecond.
const surveyQueues = 1024

func (q *QueueSurvey) add(sp *space, now int64) {
	for h := range sp.queues {
		b := sp.exts[h].box.(queueBox)
		q.Jobs += int64(b.Len())
		q.Leased += int64(b.Leased())
		if q.Queues++; q.Queues <= surveyQueues {
			q.Ready += int64(b.Ready(now))
		}
	}
}

func (q *QueueSurvey) sum(o *QueueSurvey) {
	q.Queues += o.Queues
	q.Jobs += o.Jobs
	q.Leased += o.Leased
	q.Ready += o.Ready
}

// RuleSurvey counts the work of an expiry rule since it was set.
type RuleSurvey struct {
	Database         int
	Name             string
	Fired, Suspended int64 // see RuleState
}

// DeadlineSurvey describes the entries of wheels. The numbers are sums over the wheels' slots. They
// are exact up to 256 ms ahead. Where a horizon further ahead lies within a slot, the survey counts
// the slot's entries as spread evenly over the slot.
type DeadlineSurvey struct {
	Entries int64
	Due     int64                // of these, the deadlines that have passed
	Ahead   [len(Horizons)]int64 // of these, the deadlines within each of Horizons, due or not
}

// Surveyor takes surveys of a DB. It locks one shard at a time, for a few microseconds,
// and waits for none of them. A script may lock a shard for longer than all rounds take;
// for such a shard the survey has the numbers of an earlier one. A Surveyor is safe for
// concurrent use; it takes one survey after the other.
type Surveyor struct {
	db *DB

	mu    sync.Mutex // guards the fields below
	parts []surveyPart
}

// surveyPart holds the last numbers of one shard.
type surveyPart struct {
	seen             bool // the current survey has counted the shard
	counters         Counters
	spaces           []spacePart // by database
	keys, containers DeadlineSurvey
	queues           QueueSurvey
	protected        ProtectedMemory
}

// spacePart holds the numbers of one database in one shard.
type spacePart struct {
	DatabaseSurvey
	ttls int64 // sum of the keys' remaining times, ms
}

// NewSurveyor returns a surveyor without numbers of earlier surveys. It takes some 20 KB for each
// shard.
func (db *DB) NewSurveyor() *Surveyor {
	s := &Surveyor{db: db, parts: make([]surveyPart, len(db.shards))}
	for i := range s.parts {
		s.parts[i].spaces = make([]spacePart, db.ndb)
	}
	return s
}

const (
	// surveyRounds is the number of times that a survey tries to lock a shard. surveyPause is the pause
	// after the first round; each further pause is twice as long. Commands lock a shard
	// for microseconds, so a survey rarely needs the second round. All pauses together
	// take 26 ms: long enough for all but the longest commands, and short for a
	// monitoring system.
	surveyRounds = 10
	surveyPause  = 50 * time.Microsecond
)

// Survey returns the current numbers. It costs some microseconds for each shard and database in use, and up
// to 26 ms of pauses while shards are locked. The caller must not hold any shard. Safe for concurrent use.
func (s *Surveyor) Survey() *Survey {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.parts {
		s.parts[i].seen = false
	}
	pause := surveyPause
	for round := 1; !s.round() && round < surveyRounds; round++ {
		time.Sleep(pause)
		pause *= 2
	}
	return s.sum()
}

// round counts the shards that the survey has not counted yet and that are unlocked, and reports whether it
// has counted all.
func (s *Surveyor) round() (all bool) {
	all = true
	for i, sh := range s.db.shards {
		switch p := &s.parts[i]; {
		case p.seen:
		case sh.lock.TryLock():
			p.look(sh)
			sh.lock.Unlock()
		default:
			all = false
		}
	}
	return all
}

// look records the current numbers of a shard, which is locked.
func (p *surveyPart) look(sh *shard) {
	p.seen = true
	p.counters = Counters{}
	sh.addTo(&p.counters)
	p.keys, p.containers, p.queues = DeadlineSurvey{}, DeadlineSurvey{}, QueueSurvey{}
	sh.publish()
	p.protected = sh.protected()
	now := max(sh.db.clock.Micros(), sh.last) / 1000
	for i, sp := range sh.spaces {
		d := &p.spaces[i]
		*d = spacePart{}
		if sp == nil {
			continue
		}
		d.Keys = sp.tab.Len()
		d.Tables = int64(sp.tables())
		if sp.due != nil {
			due := p.keys.add(sp.due, now)
			d.Keys -= due
			d.Due += due
			d.Expires = sp.due.Len()
			d.ttls = sp.ttls - int64(sp.due.Len())*now
			d.Deadlines = int64(sp.due.Len()) * entrySize
		}
		if sp.next != nil {
			p.containers.add(sp.next, now)
		}
		p.queues.add(sp, now)
	}
}

// add adds the entries of a wheel as of now, in ms, and returns the number of due entries. It moves nothing.
// O(slots in use).
func (d *DeadlineSurvey) add(w *wheel.Wheel, now int64) (due int) {
	now = max(now, w.Time())
	var bounds [1 + len(Horizons)]int64
	var counts [len(bounds)]int
	bounds[0] = now
	for i, h := range Horizons {
		bounds[1+i] = now + h
	}
	w.Forecast(w.Time(), bounds[:], counts[:])
	due = w.Ripe() + counts[0]
	d.Entries += int64(w.Len())
	d.Due += int64(due)
	n := int64(due)
	for i := range d.Ahead {
		n += int64(counts[1+i])
		d.Ahead[i] += n
	}
	return due
}

// sum adds the shards' parts up.
func (s *Surveyor) sum() *Survey {
	v := &Survey{Databases: make([]DatabaseSurvey, s.db.ndb), Used: s.db.used.Load(), Waiting: s.db.waits.Load()}
	ttls := make([]int64, s.db.ndb)
	for i := range s.parts {
		p := &s.parts[i]
		if !p.seen {
			v.Stale++
		}
		v.Counters.add(&p.counters)
		v.Keys.sum(&p.keys)
		v.Containers.sum(&p.containers)
		v.Queues.sum(&p.queues)
		v.Protected.add(p.protected)
		for n := range p.spaces {
			from, to := &p.spaces[n], &v.Databases[n]
			to.Keys += from.Keys
			to.Expires += from.Expires
			to.Due += from.Due
			to.Tables += from.Tables
			to.Deadlines += from.Deadlines
			ttls[n] += from.ttls
		}
	}
	for n := range v.Databases {
		v.Databases[n].finish(ttls[n])
	}
	v.Rules = s.db.surveyRules()
	return v
}

// surveyRules returns the numbers of the rules of all databases. It locks nothing.
func (db *DB) surveyRules() (all []RuleSurvey) {
	b := db.book.Load()
	if b == nil {
		return nil
	}
	for i, rs := range b.sets {
		if rs == nil {
			continue
		}
		for _, r := range rs.rules {
			all = append(all, RuleSurvey{i, r.Name, r.fired.Load(), r.suspended.Load()})
		}
	}
	return all
}

func (d *DeadlineSurvey) sum(o *DeadlineSurvey) {
	d.Entries += o.Entries
	d.Due += o.Due
	for i := range d.Ahead {
		d.Ahead[i] += o.Ahead[i]
	}
}
