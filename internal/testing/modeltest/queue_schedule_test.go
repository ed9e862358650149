package modeltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/cron"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// modelSchedule is a schedule with fixed spans, as its model knows it.
type modelSchedule struct {
	engine.QueueSchedule
	jobs map[int64]bool // the occurrences that must be in the queue
}

// scheduleModel has one queue with schedules, and plays the time of each by adding spans.
type scheduleModel struct {
	db      *engine.DB
	clock   *clock.Manual
	replica *Replica
	all     map[string]*modelSchedule
	maxLen  int64
	active  bool // the reclaimer runs; otherwise the next command notices what has passed
}

var scheduleKey = []byte("q")

func (m *scheduleModel) now() int64 { return m.clock.Micros() / 1000 }

func (m *scheduleModel) do(f func(tx *engine.Tx)) {
	tx := m.db.BeginAll(0)
	defer tx.Commit()
	f(tx)
}

// TestSchedulesRunEachOccurrenceOnce steps through random times with random schedules and workers, and
// compares the queue with occurrences that it counts one by one. A replica that follows the log has the
// same queue after each step.
func TestSchedulesRunEachOccurrenceOnce(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &scheduleModel{clock: clock.NewManual(time.UnixMilli(1_700_000_000_000)), all: map[string]*modelSchedule{}}
		m.db = engine.Open(engine.Options{Databases: 1, Shards: 2, Clock: m.clock, RecordEffects: true})
		defer m.db.Close()
		var err error
		if m.replica, err = NewReplica(); err != nil {
			t.Fatal(err)
		}
		defer m.replica.Close()
		m.active = rapid.Bool().Draw(t, "active")
		m.db.SetActiveExpiry(m.active)
		t.Repeat(map[string]func(*rapid.T){
			"":           m.check,
			"schedule":   m.schedule,
			"unschedule": m.unschedule,
			"advance":    m.advance,
			"advance2":   m.advance,
			"advance3":   m.advance,
			"work":       m.work,
			"limit":      m.limit,
			"restore":    m.restore,
		})
	})
}

func (m *scheduleModel) schedule(t *rapid.T) {
	s := engine.QueueSchedule{Name: []byte(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")), Payload: []byte("p")}
	now := m.now()
	s.Every = rapid.Int64Range(engine.MinScheduleSpan, 40).Draw(t, "every")
	if rapid.Bool().Draw(t, "bounded") {
		s.From = now + rapid.Int64Range(-100, 100).Draw(t, "from")
		s.Until = now + rapid.Int64Range(1, 300).Draw(t, "until")
	}
	s.Late = max(0, rapid.Int64Range(-30, 30).Draw(t, "late"))
	s.Overlap = rapid.Bool().Draw(t, "overlap")
	s.Priority = uint8(rapid.IntRange(0, 9).Draw(t, "priority"))

	want := s
	jobs, old := map[int64]bool{}, m.all[string(s.Name)]
	if old != nil {
		jobs = old.jobs
		if old.Next == 0 {
			old = nil // it has ended, and its jobs stay
		}
	}
	same := old != nil && old.Every == s.Every && old.Until == s.Until && (s.From == 0 || s.From == old.From)
	if old != nil {
		want.Last = old.Last
	}
	if same {
		want.From, want.Next, want.Runs, want.Skipped, want.TooLate = old.From, old.Next, old.Runs, old.Skipped, old.TooLate
	} else {
		if want.From == 0 {
			want.From = now
			want.Next = now + s.Every
		} else {
			for want.Next = want.From; want.Next <= now; want.Next += want.Every {
			}
		}
		if want.Until != 0 && want.Next > want.Until {
			want.Next = 0
		}
	}
	m.do(func(tx *engine.Tx) {
		next, err := tx.QueueSchedule(scheduleKey, &s)
		if want.Next == 0 {
			if err == nil {
				t.Fatalf("schedule %q: next %d, want an error", s.Name, next)
			}
			return
		}
		if err != nil || next != want.Next {
			t.Fatalf("schedule %q: %d, %v, want %d", s.Name, next, err, want.Next)
		}
		m.all[string(s.Name)] = &modelSchedule{want, jobs}
	})
}

func (m *scheduleModel) unschedule(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
	m.do(func(tx *engine.Tx) {
		s := m.all[name]
		n, err := tx.QueueUnschedule(scheduleKey, [][]byte{[]byte(name)})
		if err != nil || (n == 1) != (s != nil && s.Next != 0) {
			t.Fatalf("unschedule %q: %d, %v", name, n, err)
		}
		if s != nil {
			s.Next = 0
		}
	})
}

// advance moves the time, and plays the schedules by the order of their occurrences.
func (m *scheduleModel) advance(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.Int64Range(1, 150).Draw(t, "ms")) * time.Millisecond)
	m.do(func(tx *engine.Tx) { tx.Exists(scheduleKey) })
	now := m.now()
	for {
		var s *modelSchedule
		for _, name := range slices.Sorted(maps.Keys(m.all)) {
			if c := m.all[name]; c.Next != 0 && c.Next <= now && (s == nil || c.Next < s.Next) {
				s = c
			}
		}
		switch {
		case s == nil:
			return
		case m.active: // virtual time stops at each occurrence
			m.tick(s, s.Next)
		default:
			m.tick(s, now)
		}
	}
}

// tick plays what happens to a schedule that is due.
func (m *scheduleModel) tick(s *modelSchedule, now int64) {
	last := s.Next
	for next := last + s.Every; next <= now && (s.Until == 0 || next <= s.Until); next += s.Every {
		last = next
		s.Skipped++
	}
	switch {
	case s.Late > 0 && now-last > s.Late:
		s.TooLate++
	case m.maxLen > 0 && m.count() >= int(m.maxLen), !s.Overlap && s.jobs[s.Last], s.jobs[last]:
		s.Skipped++
	default:
		s.jobs[last] = true
		s.Last = last
		s.Runs++
	}
	s.Next = last + s.Every
	if s.Until != 0 && s.Next > s.Until {
		s.Next = 0
	}
}

func (m *scheduleModel) count() (n int) {
	for _, s := range m.all {
		n += len(s.jobs)
	}
	return n
}

// work does a job.
func (m *scheduleModel) work(t *rapid.T) {
	m.do(func(tx *engine.Tx) {
		var id string
		var token int64
		n, err := tx.QueuePop(scheduleKey, 1, 1000, func(j engine.Job) { id, token = string(j.ID), j.Token })
		if err != nil || (n == 1) != (m.count() > 0) {
			t.Fatalf("pop: %d, %v, want one of %d jobs", n, err, m.count())
		}
		if n == 0 {
			return
		}
		var name string
		var due int64
		if _, err := fmt.Sscanf(id, "%1s@%d", &name, &due); err != nil || !m.all[name].jobs[due] {
			t.Fatalf("job %q, %v", id, err)
		}
		delete(m.all[name].jobs, due)
		if ok, err := tx.QueueAck(scheduleKey, []byte(id), token); !ok || err != nil {
			t.Fatalf("ack of %q: %v, %v", id, ok, err)
		}
	})
}

func (m *scheduleModel) limit(t *rapid.T) {
	n := rapid.Int64Range(0, 4).Draw(t, "limit")
	m.do(func(tx *engine.Tx) {
		if err := tx.QueueConfigure(scheduleKey, engine.QueueConfig{MaxLen: n}); err != nil {
			t.Fatal(err)
		}
	})
	m.maxLen = n
}

// restore dumps the queue and restores it under its key.
func (m *scheduleModel) restore(t *rapid.T) {
	m.do(func(tx *engine.Tx) {
		b, ok := tx.Dump(nil, scheduleKey)
		if !ok {
			return
		}
		if err := tx.Restore(scheduleKey, b, engine.RestoreOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
		if again, _ := tx.Dump(nil, scheduleKey); !bytes.Equal(again, b) {
			t.Fatalf("%q became %q", b, again)
		}
	})
}

// state returns what a schedule and its model have in common.
func state(s *engine.QueueSchedule) string {
	return fmt.Sprint(s.Rule, s.Next, s.Last, s.Runs, s.Skipped, s.TooLate)
}

func (m *scheduleModel) check(t *rapid.T) {
	m.do(func(tx *engine.Tx) {
		want := map[string]bool{}
		living := 0
		for name, s := range m.all {
			for due := range s.jobs {
				want[fmt.Sprintf("%s@%d", name, due)] = true
			}
			got, err := tx.QueueScheduleOf(scheduleKey, []byte(name))
			if err != nil || (got != nil) != (s.Next != 0) {
				t.Fatalf("schedule %q: %+v, %v, want %+v", name, got, err, s.QueueSchedule)
			}
			if got == nil {
				continue
			}
			living++
			if g, w := state(got), state(&s.QueueSchedule); g != w {
				t.Fatalf("schedule %q: rule, next, last, runs, skipped, late: %s, want %s", name, g, w)
			}
		}
		jobs := map[string]bool{}
		if err := tx.QueuePeek(scheduleKey, engine.JobPage{Count: 1000}, func(j engine.Job) { jobs[string(j.ID)] = true }); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(jobs, want) {
			t.Fatalf("jobs %v, want %v", jobs, want)
		}
		if info, _, err := tx.QueueInfo(scheduleKey); err != nil || info.Schedules != living {
			t.Fatalf("%d schedules, %v, want %d", info.Schedules, err, living)
		}
	})
	if err := m.db.Check(); err != nil {
		t.Fatal(err)
	}
	if err := m.replica.Follow(m.db); err != nil {
		t.Fatal(err)
	}
}

// TestSchedulesOfUnknownZonesAreKept loads a queue from a machine whose table of time zones has one more zone. The queue
// is there, its schedule too, and the occurrence that the other machine has computed runs.
func TestSchedulesOfUnknownZonesAreKept(t *testing.T) {
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	db := engine.Open(engine.Options{Databases: 1, Shards: 2, Clock: clock})
	defer db.Close()
	m := &scheduleModel{db: db}
	const known, unknown = "CET", "CEX" // short, so that compression leaves it in one piece
	var next int64
	m.do(func(tx *engine.Tx) {
		s := &engine.QueueSchedule{Name: []byte("n"), Rule: cron.Rule{Cron: "0 12 * * *", Zone: known}}
		var err error
		if next, err = tx.QueueSchedule(scheduleKey, s); err != nil {
			t.Fatal(err)
		}
		b, _ := tx.Dump(nil, scheduleKey)
		if bytes.Count(b, []byte(known)) != 1 {
			t.Fatalf("the payload %q has no zone", b)
		}
		b = bytes.Replace(b, []byte(known), []byte(unknown), 1)
		b = binary.LittleEndian.AppendUint64(b[:len(b)-8], rdb.Checksum(0, b[:len(b)-8]))
		if err := tx.Restore(scheduleKey, b, engine.RestoreOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
	})
	clock.Advance(time.UnixMilli(next + 1).Sub(time.UnixMicro(clock.Micros())))
	m.do(func(tx *engine.Tx) {
		j, ok, err := tx.QueueGet(scheduleKey, fmt.Appendf(nil, "n@%d", next))
		if err != nil || !ok || j.Due != next {
			t.Errorf("job %+v, %v, %v", j, ok, err)
		}
		s, err := tx.QueueScheduleOf(scheduleKey, []byte("n"))
		if err != nil || s == nil || s.Zone != unknown || s.Runs != 1 {
			t.Errorf("schedule %+v, %v", s, err)
		}
	})
	if err := db.Check(); err != nil {
		t.Error(err)
	}
}
