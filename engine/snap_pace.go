package engine

import (
	"sync/atomic"
	"time"
)

// pace keeps a snapshot's walk from being noticed. While others use the engine the
// walk rests after each piece of work, for twice as long as that took; where nobody
// does it rests never.
//
//	busy   work 100 us ─▶ rest 200 us ─▶ work ...
//	idle   work ──────────────────────────────▶
//
// Who has to wait for a processor because of the walk waits for a piece of it. A
// thread that never rests is taken off its processor by the system after some
// milliseconds instead, and others wait that long; if it holds a shard then, they
// wait for its next turn as well. So its thread has no lower priority either, which
// makes the longest waits several times as long. Figures are in
// docs/design/snapshots.md.
//
// Time is the clock's, so where the machine is busy pieces take longer and rests
// with them. But for seen, pace belongs to the walk.
type pace struct {
	busy  atomic.Bool // a transaction has begun since this was last looked at
	from  int64       // us: the piece began
	quiet int64       // us: from then on nobody is at work
}

const (
	// pacePiece is how long a piece of work is at least, in us: longer ones are
	// noticed, and half as much is not noticed less.
	pacePiece = 100
	// paceRest is how long the walk rests for each us it has worked. A third of a
	// processor is enough to be through before a forked redis-server would be.
	paceRest = 2
	// paceLongest bounds a rest, in us: a piece may have waited for the disk.
	paceLongest = 1000
	// paceQuiet is for how long, in us, there have been no transactions where nobody is
	// at work. It is longer than what the system may keep a client from its processor
	// for, or else the walk would take this for a reason to go on.
	paceQuiet = 20_000
)

// seen notes that a transaction begins. It may be called by anybody.
func (p *pace) seen() {
	if !p.busy.Load() { // most find it set, and write to no memory that others read
		p.busy.Store(true)
	}
}

// due returns how long the walk has to rest at an instant, in us; 0: not at all.
func (p *pace) due(now int64) (rest int64) {
	worked := now - p.from
	if worked < pacePiece {
		return 0
	}
	p.from = now
	if p.busy.Swap(false) {
		p.quiet = now + paceQuiet
	}
	if now >= p.quiet {
		return 0
	}
	return min(worked*paceRest, paceLongest)
}

// rest rests if a piece of work is done and others are at work. The caller has
// locked nothing.
func (p *pace) rest(clock Clock) {
	if us := p.due(clock.Micros()); us > 0 {
		time.Sleep(time.Duration(us) * time.Microsecond)
		p.from = clock.Micros()
	}
}
