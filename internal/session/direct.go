package session

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
)

// This file has the service's methods for direct calls, which need no session: see package direct/calls.

// DirectDetour reports whether direct calls have to run as commands, because each of them needs further work.
// Each state is read from one place, and these words are rarely written.
func (s *Service) DirectDetour() bool {
	return s.observed.Load()&^obsSlow|s.gates.closed.Load() != 0 || // MONITOR, HOTKEYS, short slow calls; a closed gate
		s.running.Load() != nil || // a script that may be overdue
		s.DB.Log().Holds().Any() || // replies wait for syncs, or for a group
		!s.acl.Default().User().Unlimited ||
		s.cluster
}

// ScriptRuns reports whether a script has run for longer than scriptSlice.
func (s *Service) ScriptRuns() bool { return s.running.Load() != nil }

// MeasuredDirect records a direct call that stands for n calls of its command; began is its beginning in us.
func (s *Service) MeasuredDirect(spec *command.Spec, n, began int64) {
	us := s.DB.Clock().Micros() - began
	loop := s.stats[len(s.stats)-1]
	loop.Direct.Add(n)
	c := loop.of(spec)
	c.Micros.Add(n * us)
	if s.latency.Load() {
		c.Record(us, n)
	}
}

// PanickedDirect cleans up after a panic of a direct call as dispatchSafely does for a session. A deferred
// function calls it. tx may be nil.
func (s *Service) PanickedDirect(spec *command.Spec, tx *engine.Tx) {
	s.logPanic("of an embedded caller's command", spec, 0)
	if tx != nil && tx.Abandon() {
		s.resyncAll()
	}
}
