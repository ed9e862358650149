package engine

import (
	"sync/atomic"
	"time"
)

// pace limits the effect of a snapshot's walk on other work. While others use the engine,
// the walk rests after each piece of work, for twice as long as the piece took; on an
// idle engine it never rests.
//
//	busy   work 100 us ─▶ rest 200 us ─▶ work ...
//	idle   work ──────────────────────────────▶
//
// A thread that has to wait for a processor because of the walk waits for a piece of it.
// If the walk never rested, the system would take its thread off the processor after some
// milliseconds instead, and others would wait that long; if the walk held a shard then,
// they would wait for its next turn too. So its thread has no lower priority either,
// which makes the longest waits several times as long. Figures are in
// docs/design/snapshots.md.
//
// Time is the clock's: on a busy machine pieces take longer, and so do rests. Except for
// seen, pace belongs to the walk.
type pace struct {
	busy  atomic.Bool // a transaction has begun since the walk last looked
	from  int64       // us: the piece began
	quiet int64       // us: from then on the engine is idle
}

const (
	// pacePiece is the least time of a piece of work, in us: longer pieces have a
	// noticeable effect, and half as long ones have no smaller one.
	pacePiece = 100
	// paceRest is the time that the walk rests for each us of work. A third of a
	// processor is enough to finish before a forked redis-server would.
	paceRest = 2
	// paceLongest bounds a rest, in us: a piece may have waited for the disk.
	paceLongest = 1000
	// paceQuiet is the time without transactions, in us, after which the engine counts as
	// idle. It is longer than the time for which the system may keep a client from its
	// processor, or else the walk would take that pause for an idle engine.
	paceQuiet = 20_000
)

// seen notes that a transaction begins. Any goroutine may call it.
func (p *pace) seen() {
	if !p.busy.Load() { // most calls find it set, and write to no memory that others read
		p.busy.Store(true)
	}
}

// due returns the time that the walk has to rest at an instant, in us; 0: none.
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

// rest rests if a piece of work is done and others use the engine. The caller has locked
// nothing.
func (p *pace) rest(clock Clock) {
	if us := p.due(clock.Micros()); us > 0 {
		time.Sleep(time.Duration(us) * time.Microsecond)
		p.from = clock.Micros()
	}
}
