package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// stay starts a process that stays, with these variables in its environment, and returns its id. ended is closed when it has ended.
func stay(t *testing.T, environment ...string) (id int, ended chan struct{}) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), playEnv+"=a process that stays"), environment...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	})
	return cmd.Process.Pid, ended
}

func TestWhatTestsLeaveIsNamedAndRemoved(t *testing.T) {
	p, parent := place(filepath.Join(t.TempDir(), "place")), adopt()
	if err := p.empty(); err != nil {
		t.Fatal(err)
	}
	if left := p.left(0, parent, nil); left != nil {
		t.Errorf("nothing is left, and it finds %+v", left)
	}
	if err := os.MkdirAll(filepath.Join(string(p), "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	named, namedEnded := stay(t, "EBB_TEST=TestX")
	other, otherEnded := stay(t)
	if left := processes(other); left != nil {
		t.Errorf("of a process without others it finds %v", left)
	}
	left := p.left(0, parent, nil)
	if left == nil {
		t.Fatal("it finds nothing")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || left[0].kind != "files" || left[1].kind != "processes" || !slices.Equal(left[0].lines, []string{"./a", "./a/b"}) {
		t.Fatalf("left are %q", left)
	}
	text := strings.Join(left[1].lines, "\n")
	for _, want := range []string{fmt.Sprintf("%d of TestX: %s", named, os.Args[0]),
		fmt.Sprintf("%d of a test in %s: %s", other, dir, os.Args[0])} {
		if !slices.Contains(left[1].lines, want) {
			t.Errorf("processes are\n%s\nwant %q", text, want)
		}
	}
	<-namedEnded
	<-otherEnded
	if strings.Contains("\n"+text, fmt.Sprintf("\n%d of ", os.Getppid())) {
		t.Errorf("it finds the process that runs the tests:\n%s", text)
	}
	if left := p.left(tier.Patience, parent, nil); left != nil {
		t.Errorf("it is there still: %+v", left)
	}
}

// A server may write its title over its environment, work in another folder, and have a parent that has ended.
func TestAnOrphanOfATestIsFound(t *testing.T) {
	p := place(filepath.Join(t.TempDir(), "place"))
	if err := p.empty(); err != nil {
		t.Fatal(err)
	}
	parent := adopt()
	if parent == 0 {
		t.Fatal("this process adopts none")
	}
	leaves := exec.Command(os.Args[0])
	leaves.Env, leaves.Dir = []string{playEnv + "=a process that leaves another"}, "/"
	out, err := leaves.Output()
	if err != nil {
		t.Fatal(err)
	}
	left := p.left(0, parent, nil)
	if len(left) != 1 || len(left[0].lines) != 1 || !strings.HasPrefix(left[0].lines[0], strings.TrimSpace(string(out))+" of a test in /: ") {
		t.Errorf("left are %+v, want process %s", left, out)
	}
	if left := p.left(tier.Patience, parent, nil); left != nil {
		t.Errorf("it is there still: %+v", left)
	}
}

func TestAProcessIsOfTheTestsThatRanWhenItBegan(t *testing.T) {
	id, _ := stay(t)
	at := began(id)
	if d := time.Since(at); d < 0 || d > tier.Patience {
		t.Fatalf("process %d began %v ago", id, d)
	}
	l, second := &timeline{}, time.Second
	for _, e := range []struct {
		pkg, test string
		from, to  time.Duration // after the process began
	}{
		{"m/a", "TestBefore", -3 * second, -2 * second},
		{"m/a", "TestA", -second, second},
		{"m/b", "TestB", -second, 0},
		{"m/a", "TestAfter", 2 * second, 3 * second},
	} {
		l.add(event{Action: "run", Package: e.pkg, Test: e.test, Time: at.Add(e.from)})
		l.add(event{Action: "run", Package: e.pkg, Test: e.test + "/part", Time: at})
		if e.to != 0 { // else it has not ended
			l.add(event{Action: "pass", Package: e.pkg, Test: e.test, Time: at.Add(e.to)})
		}
	}
	for dir, want := range map[string]string{"/x/a": "[TestA]", "/x/b": "[TestB]", "/x": "[m/a TestA m/b TestB]"} {
		if got := fmt.Sprint(l.at(at, dir)); got != want {
			t.Errorf("in %s it is of %s, want %s", dir, got, want)
		}
	}
	dir, _ := os.Getwd()
	want := fmt.Sprintf("%d of a test in %s, begun in m/a TestA or m/b TestB: ", id, dir)
	if got := describeProcess(id, l); !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAFolderIsOfOneRun(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	work := t.TempDir()
	first, unlock, err := claim(work)
	if err != nil {
		t.Fatal(err)
	}
	second, unlockSecond, err := claim(work)
	if err != nil || second == first {
		t.Fatalf("two runs at a time have %s and %s, %v", first, second, err)
	}
	unlockSecond()
	unlock()
	again, unlock, err := claim(work)
	if err != nil || again != first {
		t.Errorf("after a run it is %s, %v, want %s", again, err, first)
	}
	unlock()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
