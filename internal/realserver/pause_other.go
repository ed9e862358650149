//go:build !unix

package realserver

import "testing"

// Pause is not to be had on this system.
func (p *Process) Pause(t testing.TB) {
	t.Helper()
	Require(t, "this system cannot pause a process")
}

// Resume is nothing without Pause.
func (p *Process) Resume(testing.TB) {}
