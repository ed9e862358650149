package session

import (
	"strconv"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
)

// BenchmarkExpiredEvents removes expired keys whose events one client receives.
func BenchmarkExpiredEvents(b *testing.B) {
	clock := clock.NewManual(time.Unix(1e9, 0))
	hooks := &Hooks{}
	db := engine.Open(engine.Options{Clock: clock, Hooks: hooks})
	defer db.Close()
	svc, err := NewService(Options{DB: db, Table: testTable, Loops: 1}, hooks)
	if err != nil {
		b.Fatal(err)
	}
	defer svc.Close()
	admin := svc.NewSession(nil)
	admin.Do([]byte("CONFIG"), []byte("SET"), []byte("notify-keyspace-events"), []byte("Ex"))
	sub := svc.NewSession(quietConn{})
	sub.Serve([]byte("SUBSCRIBE __keyevent@0__:expired\r\n"), nil)
	const keys = 1000
	var out []byte
	for b.Loop() {
		for i := range keys {
			key := strconv.AppendInt([]byte("probe:"), int64(i), 10)
			tx := db.Begin(0, key)
			_, _, _ = tx.Set(key, []byte("v"), engine.SetOptions{Deadline: clock.Micros()/1000 + 1000}, nil)
			tx.Commit()
		}
		b.StartTimer()
		clock.Advance(2 * time.Second)
		out = sub.TakePushes(out[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/event")
	if len(out) == 0 {
		b.Fatal("no events")
	}
}
