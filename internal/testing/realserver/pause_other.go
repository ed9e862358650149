//go:build !unix

package realserver

import "testing"

// Pause ends the test, because this system cannot suspend a process.
func (p *Process) Pause(t testing.TB) {
	t.Helper()
	Require(t, "this system cannot pause a process")
}

// Resume does nothing.
func (p *Process) Resume(testing.TB) {}
