package loadgen

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// pacer sleeps with the precision of the kernel's timers, some ten
// microseconds; the runtime's own sleep is late by up to a millisecond, which
// would drown what is to be measured. It owns its goroutine's thread.
type pacer struct{}

func newPacer() *pacer {
	runtime.LockOSThread()
	// The default slack of 50 us is what timers may be late to save wake-ups.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0)
	return &pacer{}
}

// close gives the thread back, its slack reset.
func (*pacer) close() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
	runtime.UnlockOSThread()
}

// until sleeps until t.
func (*pacer) until(t time.Time) {
	for {
		d := time.Until(t)
		if d <= 0 {
			return
		}
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&ts, nil) // cut short by a signal: the loop goes on
	}
}
