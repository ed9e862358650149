package engine

import (
	"testing"

	"github.com/ebbdb/ebb/clock"
)

// Setting, reading and taking the deadlines of fields and members allocates nothing in either layout, and
// neither does writing a field over a dead one.
func TestItemDeadlinesAllocateNothing(t *testing.T) {
	for name, l := range map[string]Layout{"small": defaultLayout(), "large": {}} {
		t.Run(name, func(t *testing.T) { noAllocations(t, l) })
	}
}

func noAllocations(t *testing.T, l Layout) {
	clock := clock.NewManual(epoch)
	db := Open(Options{Databases: 1, Shards: 1, Clock: clock})
	defer db.Close()
	db.SetLayout(l)
	db.SetActiveExpiry(false)
	tx := db.BeginAll(0)
	defer tx.Commit()
	h, s, f := []byte("h"), []byte("s"), []byte("field")
	pair, items := [][]byte{f, []byte("value")}, [][]byte{f}
	_, _ = tx.HSet(h, [][]byte{[]byte("other"), []byte("1"), f, []byte("2")})
	_, _ = tx.SAdd(s, [][]byte{[]byte("other"), f})
	code, deadline := func(int) {}, func(int64) {}
	soon := ItemOptions{Deadline: tx.Millis() + 1000}
	for name, run := range map[string]func(){
		"HExpire":    func() { _ = tx.HExpire(h, items, soon.Deadline, 0, code) },
		"HDeadlines": func() { _ = tx.HDeadlines(h, items, deadline) },
		"HPersist":   func() { _ = tx.HPersist(h, items, code) },
		"HSetEx":     func() { _, _ = tx.HSetEx(h, pair, soon) },
		"HSet":       func() { _, _ = tx.HSet(h, pair) },
		"SExpire":    func() { _ = tx.SExpire(s, items, soon.Deadline, 0, code) },
		"SDeadlines": func() { _ = tx.SDeadlines(s, items, deadline) },
		"SPersist":   func() { _ = tx.SPersist(s, items, code) },
	} {
		run()
		if n := testing.AllocsPerRun(100, run); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
