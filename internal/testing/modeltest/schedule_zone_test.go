package modeltest

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/cron"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

// TestTheLogOfASchedulesZoneThatIsUnknown replays the log of a server that knows one more time zone. The schedule is
// declared twice, because the second time it goes on.
func TestTheLogOfASchedulesZoneThatIsUnknown(t *testing.T) {
	db := engine.Open(engine.Options{Clock: clock.NewManual(transcript.Start), Shards: 16, RecordEffects: true})
	defer db.Close()
	key := []byte("q")
	rule := cron.Rule{Cron: "0 12 * * *", Zone: "CET"}
	var next int64
	for _, payload := range []string{"a", "b"} {
		tx := db.BeginAll(0)
		at, err := tx.QueueSchedule(key, &engine.QueueSchedule{Name: []byte("n"), Payload: []byte(payload), Rule: rule})
		tx.Commit()
		if err != nil || next != 0 && at != next {
			t.Fatal(at, next, err)
		}
		next = at
	}
	effects := db.Drain()
	patched := 0
	for _, e := range effects {
		for i, a := range e.Args {
			if string(a) == rule.Zone {
				e.Args[i] = []byte("CEX")
				patched++
			}
		}
	}
	if patched != 2 {
		t.Fatalf("%d effects have a zone, of %d", patched, len(effects))
	}

	r, err := NewReplica()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.svc.Replay(effects); err != nil {
		t.Fatal(err)
	}
	tx := r.db.BeginAll(0)
	defer tx.Commit()
	s, err := tx.QueueScheduleOf(key, []byte("n"))
	if err != nil || s == nil || s.Zone != "CEX" || string(s.Payload) != "b" || s.Next != next {
		t.Fatalf("schedule %+v, %v; next %v", s, err, time.UnixMilli(next))
	}
}
