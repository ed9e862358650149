// Package groupsim runs a group of simulated nodes through faults, and checks at each step that no acknowledged write
// is lost.
//
//	schedule ── draws ──▶ writes, crashes, restarts, cuts, delays, promotions ...
//	                          │
//	    node 1 ── shard.Node ─┤── links: in order, delayed, cut in one direction or in both, duplicated
//	    node 2 ── shard.Node ─┤── directory.Directory: commands and answers get lost, are reordered and come twice;
//	    node 3 ── shard.Node ─┘   each node sees its states late
//
// The nodes and the directory are the product's code. The simulator provides the rest: clocks that drift, disks that
// lose unsynced data, the log, links, and the wiring of a server. Every choice is drawn from one seed, so the same
// seed and number give exactly the same schedule.
//
// A schedule has three parts: random steps, or one of the directed sequences of directed.go that random steps seldom
// produce; the end of the faults, when enough nodes are alive; and ten seconds in which the group must acknowledge a
// write. check.go has the invariants, faults.go the rules that a test switches off to check that the simulator
// notices. Start reading at Run.
package groupsim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Result is the outcome of a schedule.
type Result struct {
	Violation string // the broken invariant; "" if none
	History   []Row  // if Run was called with history
	Figures
}

// Figures count the events of a schedule.
type Figures struct {
	Nodes, K  int
	Writes    int           // appended by masters
	Committed int           // the acknowledged ones
	Reads     int           // answered under a lease
	Epochs    uint64        // the epoch at the end
	Crashes   int           // with and without a loss of the disk
	Losses    int           // members in sync that lost data
	Recovered bool          // all members in sync lost data, and Recover accepted that
	Quiet     time.Duration // from the end of the faults to the next acknowledged write
	Sum       uint64        // a checksum of all events: equal for equal schedules
}

// Run runs the schedule of a seed and a number. It reads no clock. With history the result has the schedule's table;
// that does not change the schedule.
func Run(seed, number uint64, f Fault, history bool) (r Result) {
	w := newWorld(rand.New(rand.NewPCG(seed, number)), f, history)
	defer func() {
		r.Figures, r.History = w.Figures, w.history
		r.Epochs = w.shard().Epoch
		if failed := recover(); failed != nil {
			v, ok := failed.(violation)
			if !ok {
				panic(failed)
			}
			r.Violation = string(v)
			w.note(nil, "VIOLATION: %s", r.Violation)
			r.History = w.history
		}
	}()
	w.schedule()
	w.calm()
	return r
}

// violation is the panic value with which a check ends the schedule.
type violation string

// fail ends the schedule with a violation.
func (w *world) fail(format string, args ...any) { panic(violation(fmt.Sprintf(format, args...))) }

// schedule runs the part of the schedule that has faults.
func (w *world) schedule() {
	if w.chance(0.5) {
		w.steps(pick(w, 150, 300, 500))
		return
	}
	w.steps(pick(w, 0, 50, 150))
	if w.chance(0.8) {
		w.heal()
	}
	for _, n := range w.nodes {
		w.start(n)
	}
	w.directed()
	w.steps(pick(w, 0, 100))
}

// pick draws one of several values.
func pick[T any](w *world, all ...T) T { return all[w.rng.IntN(len(all))] }

// chance draws true with a probability.
func (w *world) chance(p float64) bool { return w.rng.Float64() < p }
