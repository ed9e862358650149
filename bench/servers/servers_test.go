package servers

import (
	"errors"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestAServerIsStartedAndStopped(t *testing.T) {
	program := realserver.Program(t, "redis-server")
	s, err := Start(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	if used, err := s.CPU(); err != nil || used < 0 {
		t.Errorf("the CPU time is %v, %v", used, err)
	}
	s.Stop()
	if c, err := s.Dial(t.Context()); err == nil {
		_ = c.Close()
		t.Error("a server that was stopped accepts connections")
	}
	if _, err := Start(t.Context(), program, "--no-such-directive", "x"); !errors.Is(err, errEnded) {
		t.Errorf("a program that ends: %v, want %v", err, errEnded)
	}
}
