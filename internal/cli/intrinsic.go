package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"
)

// intrinsic measures how long this machine stops a busy program: it runs a loop and
// records the longest turn. It needs no server. A server on this machine cannot have a
// lower maximum latency.
func (c *client) intrinsic() int {
	ctx, stop := signal.NotifyContext(c.ctx, os.Interrupt)
	defer stop()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	runs, worst, took := busy(ctx, c.opt.Intrinsic, func(worst time.Duration) {
		fmt.Fprintf(c.env.Out, "Max latency so far: %d microseconds.\n", worst.Microseconds())
	})
	average := float64(took) / float64(runs)
	fmt.Fprintf(c.env.Out, "\n%d total runs (avg latency: %.4f microseconds / %.2f nanoseconds per run).\n", runs, average/1e3, average)
	fmt.Fprintf(c.env.Out, "Worst run took %.0fx longer than the average latency.\n", float64(worst)/average)
	return 0
}

// busy runs the loop for d, or until ctx ends, and at least one turn. It calls tell for
// each turn that was longer than all before it by a microsecond.
func busy(ctx context.Context, d time.Duration, tell func(worst time.Duration)) (runs int64, worst, took time.Duration) {
	began := time.Now() // Since reads the monotonic clock
	word := uint64(began.UnixNano()) | 1
	for took < d || runs == 0 {
		for range 24 { // some 50 ns of work, so that a turn is more than a look at the clock
			word ^= word << 13
			word ^= word >> 7
			word ^= word << 17
		}
		now := time.Since(began)
		turn := now - took
		took = now
		runs++
		if turn.Microseconds() > worst.Microseconds() {
			worst = turn
			tell(worst)
		}
		if runs%1024 == 0 && ctx.Err() != nil {
			break
		}
	}
	if word == 0 { // it never is; the loop has a result, so that the compiler keeps it
		tell(0)
	}
	return runs, max(worst, 1), took
}
