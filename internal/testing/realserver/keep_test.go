package realserver

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAProgramIsKeptUnderItsContent(t *testing.T) {
	into := t.TempDir()
	keep := func(content string) string {
		t.Helper()
		path, err := keepIn(into, func(path string) error { return os.WriteFile(path, []byte(content), 0o755) })
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Fatalf("%s has %q, %v, want %q", path, got, err, content)
		}
		return path
	}
	one, again, other := keep("one"), keep("one"), keep("other")
	if one != again || one == other {
		t.Errorf("the paths are %s, %s, and of other content %s", one, again, other)
	}
	long := time.Now().Add(-programAge - time.Hour)
	for _, path := range []string{one, other} {
		if err := os.Chtimes(filepath.Dir(path), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if got := keep("one"); got != one {
		t.Errorf("the path is %s, want %s", got, one)
	}
	left, err := os.ReadDir(into)
	if err != nil || len(left) != 1 || left[0].Name() != filepath.Base(filepath.Dir(one)) {
		t.Errorf("the directory has %v, %v: want only what was used within a week", left, err)
	}
}
