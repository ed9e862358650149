package engine

import (
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/clock"
)

// pace limits the effect of a snapshot's walk on other work. While transactions use the engine, the
// walk rests after each piece of work, for twice as long as the piece took. On an idle engine it
// never rests.
//
//	busy   work 100 us ─▶ rest 200 us ─▶ work ...
//	idle   work ──────────────────────────────▶
//
// A thread that waits for a processor because of the walk waits for one piece. If the walk never
// rested, the system would preempt its thread after some milliseconds, and other threads would wait
// that long. If the walk held a shard at that moment, they would also wait until the system runs
// the walk's thread again. For the same reason the walk's thread does not have a lower priority:
// that makes the longest waits several times as long. Figures are in docs/design/snapshots.md.
//
// pace measures elapsed time: on a busy machine pieces take longer, and so do rests. On a machine
// with little to do, Go's sleeps end up to a millisecond late, and the walk would get a twelfth of a
// processor instead of a third. It works for longer after such a rest.
//
// Except for seen, only the walk uses pace.
type pace struct {
	busy   atomic.Bool // a transaction has begun since the walk last checked
	from   int64       // us: the start of the piece
	quiet  int64       // us: from this instant on, the engine counts as idle
	credit int64       // us: the excess of earlier rests; the next ones are shorter
}

const (
	// pacePiece is the shortest time of a piece of work, in us. Longer pieces have a noticeable
	// effect on clients; pieces of half the length have no smaller effect.
	pacePiece = 100
	// paceRest is the time that the walk rests for each us of work. A third of a
	// processor is enough to finish before a forked redis-server would.
	paceRest = 2
	// paceLongest bounds a rest, in us: a piece may have waited for the disk.
	paceLongest = 1000
	// paceCredit bounds credit, in us, and so a piece after a rest that was too long to three times pacePiece.
	paceCredit = 2 * pacePiece * paceRest
	// paceQuiet is the time without transactions, in us, after which the engine counts as idle. It
	// is longer than the time for which the system may keep a client off the processor. Otherwise
	// the walk would mistake such a pause for an idle engine.
	paceQuiet = 20_000
)

// seen records that a transaction begins. Any goroutine may call it.
func (p *pace) seen() {
	if !p.busy.Load() { // most calls find busy set, and so do not write to a shared cache line
		p.busy.Store(true)
	}
}

// due returns the time for which the walk has to rest at the instant now, in us; 0: it need not rest.
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
	rest = min(worked*paceRest, paceLongest)
	paid := min(p.credit, rest)
	p.credit -= paid
	return rest - paid
}

// rested records that a rest has ended, which was planned for due us.
func (p *pace) rested(due, now int64) {
	p.credit = max(min(now-p.from-due, paceCredit), 0)
	p.from = now
}

// rest rests if a piece of work is done and others use the engine. The caller must hold no lock.
func (p *pace) rest(clock clock.Clock) {
	if us := p.due(clock.Micros()); us > 0 {
		time.Sleep(time.Duration(us) * time.Microsecond)
		p.rested(us, clock.Micros())
	}
}
