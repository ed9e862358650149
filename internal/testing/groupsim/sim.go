// Package groupsim runs a group of simulated nodes through faults, and checks at each step that nothing is lost that was acknowledged.
//
//	schedule ── draws ──▶ writes, crashes, restarts, cuts, delays, promotions ...
//	                          │
//	    node 1 ── shard.Node ─┤── links: in order, delayed, cut in one direction or in both, duplicated
//	    node 2 ── shard.Node ─┤── directory.Directory: commands and answers get lost, are reordered and come twice;
//	    node 3 ── shard.Node ─┘   each node sees its states late
//
// The nodes and the directory are the product's code, and the simulator is the rest: clocks that drift, disks that lose what is
// not synced, the log, links, and the wiring that a server will have. All is drawn from one seed: the same seed and number are
// the same schedule to the bit.
//
// A schedule has three parts: random steps, or one of the directed sequences in directed.go that random steps seldom meet; the
// end of the faults, when enough nodes live; and ten seconds in which the group must acknowledge a write. check.go has the
// invariants, faults.go the rules that a test switches off to see that the simulator notices. Start reading at Run.
package groupsim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Result is the outcome of a schedule.
type Result struct {
	Violation string // of an invariant; "" if there was none
	History   []Row  // if Run was asked for it
	Figures
}

// Figures say how much a schedule did.
type Figures struct {
	Nodes, K  int
	Writes    int           // appended by masters
	Committed int           // of those, acknowledged
	Reads     int           // answered under a lease
	Epochs    uint64        // the epoch at the end
	Crashes   int           // with and without loss
	Losses    int           // members in sync that lost what they had
	Recovered bool          // all members in sync were lost, and Recover accepted that
	Quiet     time.Duration // from the end of the faults until a write was acknowledged
	Sum       uint64        // of all that happened: equal for equal schedules
}

// Run runs a schedule, which a seed and a number name. It reads no clock. With history the result has its table; the schedule is the
// same with it and without.
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

// violation is the panic value of the checks: it ends a schedule at the step that broke an invariant.
type violation string

// fail ends the schedule.
func (w *world) fail(format string, args ...any) { panic(violation(fmt.Sprintf(format, args...))) }

// schedule runs the part with faults.
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
