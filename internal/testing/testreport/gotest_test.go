package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAFailureIsRepeatedAsTheStepRanIt(t *testing.T) {
	for _, name := range []string{"EBB_FULL", "EBB_SEED", "EBB_BACKENDS", "EBB_PROGRAMS"} {
		t.Setenv(name, "")
	}
	t.Setenv("EBB_SEED", "1")
	if got, want := repeats(".", []string{"go", "test", "-json", "-parallel=8", "./..."}), "EBB_SEED=1 go test"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	t.Setenv("EBB_FULL", "1")
	t.Setenv("EBB_BACKENDS", "redis")
	got := repeats("contrib/gin", []string{"go", "test", "-json", "-race", "-short", "./..."})
	if want := "cd contrib/gin && EBB_FULL=1 EBB_SEED=1 EBB_BACKENDS=redis go test -race -short"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A signal that ends the tests ends git too, if it runs then.
func TestWhatFailedIsRecordedThoughGitFailsAfterwards(t *testing.T) {
	dir := t.TempDir()
	git, results := filepath.Join(dir, "git"), filepath.Join(dir, "results")
	if err := os.Symlink("/bin/true", git); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("CI", "true")
	t.Setenv("EBB_BASE", "HEAD")
	t.Setenv("results", results)
	events := `{"Action":"fail","Package":"m/a","Test":"TestX"}` + "\n" + `{"Action":"fail","Package":"m/a"}`
	err := newReport(io.Discard).test(".", []string{"sh", "-c", "ln -sf /bin/false " + git + "; echo '" + events + "'"}, false,
		func() bool { return true })
	if err != errFailed {
		t.Error(err)
	}
	if all, err := readResults(results); err != nil || len(all) != 1 || len(all[0].Failures) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// The user's configuration of git may leave out the prefixes of a diff's files.
func TestChangesDoNotDependOnTheConfigurationOfGit(t *testing.T) {
	for _, name := range []string{"diff.noprefix", "diff.mnemonicPrefix", "core.quotePath"} {
		t.Setenv("GIT_CONFIG_COUNT", "1")
		t.Setenv("GIT_CONFIG_KEY_0", name)
		t.Setenv("GIT_CONFIG_VALUE_0", "true")
		if got, err := git("config", "--get", name); err != nil || got != "false\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := git("rev-parse", "nosuch"); err == nil || !strings.Contains(err.Error(), "unknown revision") {
		t.Error(err)
	}
}

func TestAFolderIsTestedOnce(t *testing.T) {
	got := each([]string{"contrib/rueidis", "redisson", "contrib/gin/", "contrib/rueidis/", "."})
	if want := []string{"contrib/rueidis", "redisson", "contrib/gin", "."}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
