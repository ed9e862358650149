package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestAMessageOfACommitFollowsTheRules(t *testing.T) {
	realserver.Program(t, "git")
	script, err := filepath.Abs("../../../.ci/commits")
	if err != nil {
		t.Fatal(err)
	}
	sh := realserver.Program(t, "sh")
	t.Chdir(t.TempDir())
	t.Setenv("EBB_BASE", "HEAD~1")
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "a@example.org")
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := git(args...); err != nil {
			t.Fatal(out, err)
		}
	}
	run("init", "-q")
	run("commit", "-q", "--allow-empty", "-m", "begin")
	const large = 21
	long := "wheel: " + strings.Repeat("ä", 72-len("wheel: "))
	for i, c := range []struct {
		message string
		lines   int
		name    string // of the file
		want    string
	}{
		{"wheel: cascade in batches", 20, "a", ""},
		{"wheel: cascade in batches", large, "a", "changes 21 lines"},
		{"wheel: cascade in batches\n\nWhat was.", large, "a", ""},
		{"wheel: cascade in batches\n\nSigned-off-by: A Person <a@example.org>", large, "a", "changes 21 lines"},
		{long, 1, "a", ""},
		{long + "x", 1, "a", "has 73 columns"},
		{"Expiry is not empty (F1, F4)", 1, "a", "a code"},
		{"wheel: cascade; table: grow in steps", 1, "a", "two matters are two commits"},
		{"wheel: cascade in batches", 1, "x/testdata/rapid/TestX/TestX-1.fail", "/x/testdata/rapid/TestX/TestX-1.fail"},
		{"wheel: what the campaign found", 1, "a", "does not say what has changed"},
		{"queue: how long a job waits is in Info", 1, "a", "does not say what has changed"},
		{"queue: Info has what a job waits for", 1, "a", ""},
		{"resp: maps (RESP3), and PSYNC2 (2)", 1, "a", ""},
	} {
		name := filepath.Join(fmt.Sprint(i), c.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.Repeat("x\n", c.lines)), 0o600); err != nil {
			t.Fatal(err)
		}
		run("add", "-f", ".")
		run("commit", "-q", "-m", c.message)
		out, err := exec.Command(sh, script).CombinedOutput()
		if c.want == "" && (err != nil || len(out) > 0) || c.want != "" && (err == nil || !strings.Contains(string(out), c.want)) {
			t.Errorf("%q: %s, %v, want %q", c.message, out, err, c.want)
		}
	}
}
