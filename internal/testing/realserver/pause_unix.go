//go:build unix

package realserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// Pause suspends the program, as kill -STOP does. Its connections stay open, the system
// still accepts bytes for it, and it does not reply until Resume.
func (p *Process) Pause(t testing.TB) {
	t.Helper()
	p.send(t, syscall.SIGSTOP)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.After(tier.Patience); p.cmd != nil && !stands(p.cmd.Process.Pid); {
		select {
		case <-look.C:
		case <-end:
			t.Fatalf("%s does not stop", p.path)
		}
	}
}

// stands reports whether all threads of a process have stopped. The signal takes a moment,
// in which some threads still run. Without /proc it reports true.
func stands(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, name := range tasks {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// Resume lets the program continue after Pause.
func (p *Process) Resume(t testing.TB) {
	t.Helper()
	p.send(t, syscall.SIGCONT)
}

func (p *Process) send(t testing.TB, s syscall.Signal) {
	t.Helper()
	if p.cmd == nil {
		return
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Errorf("%s: %v: %v", p.path, s, err)
	}
}
