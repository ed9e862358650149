package realserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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

func TestAServerThatCannotBeFetchedIsSkippedAndCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skips")
	t.Setenv(requireEnv, "1")
	t.Setenv(withoutEnv, "other "+Redis8)
	t.Setenv(skipLogEnv, path)
	t.Setenv("PATH", t.TempDir())
	t.Run("skipped", func(t *testing.T) { Start(t, Redis8) })
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), ".ci/servers fetches it") {
		t.Fatalf("the log holds %q, %v", text, err)
	}
}

func TestASkipIsLoggedWithItsReason(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skips")
	t.Setenv(requireEnv, "")
	t.Setenv(skipLogEnv, path)
	t.Run("skipped", func(t *testing.T) { Start(t, "no-such-server") })
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "no-such-server is not installed") {
		t.Fatalf("the log holds %q, %v", text, err)
	}
}
