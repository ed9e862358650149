//go:build !race

package engine

import (
	"testing"
	"time"
)

// Under the race detector pools lose what they hold, so this is not tested there.
func TestSingleOperationsAllocateNothing(t *testing.T) {
	db := Open(Options{Clock: NewManualClock(epoch)})
	defer db.Close()
	key, other, val, buf := []byte("key"), []byte("other"), []byte("some value of ordinary size"), make([]byte, 0, 100)
	for name, f := range map[string]func(){
		"Set":        func() { _ = db.Set(0, key, val, 0) },
		"Set TTL":    func() { _ = db.Set(0, key, val, time.Minute) },
		"Get":        func() { buf, _, _ = db.Get(0, key, buf[:0]) },
		"Get missed": func() { buf, _, _ = db.Get(0, other, buf[:0]) },
		"Expire":     func() { db.Expire(0, key, time.Hour) },
		"TTL":        func() { db.TTL(0, key) },
		"Set Del":    func() { _ = db.Set(0, key, val, time.Minute); db.Del(0, key) },
	} {
		f()
		if n := testing.AllocsPerRun(200, f); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
