package remote

import (
	"context"
	"sync"
	"time"
)

// Later runs once more what takes back the effects of calls that got no answer. The end of a connection does not prove that the
// server has read the commands that were sent on it: a proxy that closes both sides when one of them ends may still hold the command, and
// passes it on after what took it back on another connection. So this is repeated when the command has certainly arrived.
// The zero value works. Its methods are safe for concurrent use.
type Later struct {
	mu      sync.Mutex // guards what follows
	closed  bool
	planned map[*repeat]struct{}
	going   sync.WaitGroup // one for each planned repeat, and each that runs

	life context.Context // nil before the first; ends some time after Close
	end  context.CancelFunc
}

// repeat is a function that runs when its timer fires.
type repeat struct {
	n     int // the number of pauses before
	fn    func(life context.Context)
	timer *time.Timer
}

// laterPauses are the times from one run of a function to the next: 250 ms and 2 s after the call. A proxy passes on what it has
// within milliseconds; one that waits for a congested connection to the server may take a second.
var laterPauses = [...]time.Duration{250 * time.Millisecond, 1750 * time.Millisecond}

const (
	// mostLater is the limit of planned repeats, some 300 bytes each. More are dropped: their leases end by themselves.
	mostLater = 1 << 14
	// laterGrace is the time that Close gives to repeats beyond the first pause.
	laterGrace = 250 * time.Millisecond
)

// Run has fn run after each of the pauses, in a goroutine that Close waits for. The context of fn ends with the driver.
func (l *Later) Run(fn func(life context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.planned) < mostLater {
		l.plan(&repeat{fn: fn})
	}
}

// plan starts the timer of a repeat. The caller holds mu.
func (l *Later) plan(r *repeat) {
	if l.closed {
		return
	}
	if l.planned == nil {
		l.planned = map[*repeat]struct{}{}
		l.life, l.end = context.WithCancel(context.Background())
	}
	l.planned[r] = struct{}{}
	l.going.Add(1)
	r.timer = time.AfterFunc(laterPauses[r.n], func() { l.run(r) })
}

// run calls the function, and plans the next call.
func (l *Later) run(r *repeat) {
	defer l.going.Done()
	r.fn(l.life)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.planned, r)
	if r.n++; r.n < len(laterPauses) {
		l.plan(r)
	}
}

// Close waits for the repeats of the first pause, which a program that ends at once needs as well, and drops the others. The
// calls of the driver must still be allowed.
func (l *Later) Close() {
	l.mu.Lock()
	l.closed = true
	for r := range l.planned {
		if r.n > 0 && r.timer.Stop() {
			delete(l.planned, r)
			l.going.Done()
		}
	}
	if len(l.planned) > 0 {
		defer time.AfterFunc(laterPauses[0]+laterGrace, l.end).Stop()
	}
	l.mu.Unlock()
	l.going.Wait()
	if l.end != nil {
		l.end()
	}
}
