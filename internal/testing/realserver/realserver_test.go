package realserver

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

func TestAServerAnswersWhileTheTestRunsAndIsGoneAfterwards(t *testing.T) {
	var addr string
	t.Run("running", func(t *testing.T) {
		addr = Start(t, "redis-server")
		if err := ping(addr); err != nil {
			t.Fatal(err)
		}
	})
	if addr != "" && ping(addr) == nil {
		t.Fatal("the server outlived its test")
	}
}

func TestAServerThatCannotBeFetchedIsSkipped(t *testing.T) {
	t.Setenv(requireEnv, "1")
	t.Setenv(withoutEnv, "other "+Redis8)
	t.Setenv(programsEnv, "1")
	t.Setenv("PATH", t.TempDir())
	if !skipped(t, Redis8) {
		t.Error("a program of " + withoutEnv + " is missing, and the test was not skipped")
	}
}

func TestWithoutAProgramATestIsSkipped(t *testing.T) {
	t.Setenv(requireEnv, "")
	t.Setenv(programsEnv, "1")
	if !skipped(t, "no-such-server") {
		t.Error("a program is missing, and the test was not skipped")
	}
}

func TestShortTestsStartNoOtherProgram(t *testing.T) {
	t.Setenv(requireEnv, "1")
	t.Setenv(programsEnv, "")
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := os.WriteFile(filepath.Join(dir, Redis7), []byte("#!/no/such/shell"), 0o755); err != nil {
		t.Fatal(err)
	}
	if tier.Short() != skipped(t, Redis7) {
		t.Errorf("-short is %v, and the test was skipped: %v", tier.Short(), !tier.Short())
	}
	if got := find(t, filepath.Join(dir, ebbName)); got != filepath.Join(dir, ebbName) {
		t.Errorf("ebb was found at %q", got)
	}
}

// skipped reports whether a test that needs a program is skipped.
func skipped(t *testing.T, program string) bool {
	p := &probe{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Program(p, program)
	}()
	<-done
	return p.skipped
}

// probe is a test that ends alone.
type probe struct {
	testing.TB
	skipped bool
}

func (p *probe) Skip(...any) {
	p.skipped = true
	runtime.Goexit()
}

func (p *probe) Fatalf(string, ...any) { runtime.Goexit() }
