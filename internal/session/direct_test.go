package session_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/direct/calls"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// While a gate is closed, no call is direct, whatever commands the gate refuses.
func TestAClosedGateIsADetour(t *testing.T) {
	s := services.Start(t)
	d := calls.New(s, 0)
	defer d.Close()
	s.EachGate(func(gate uint32, set func(closed bool)) {
		if got := services.DirectStates(d, direct.Done); got != nil {
			t.Errorf("before gate %b: %v are not Done", gate, got)
		}
		set(true)
		if got := services.DirectStates(d, direct.Elsewhere); got != nil {
			t.Errorf("gate %b: %v are not Elsewhere", gate, got)
		}
		set(false)
	})
}
