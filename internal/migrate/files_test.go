package migrate

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/server"
)

func TestFilesAreLoaded(t *testing.T) {
	dir := t.TempDir()
	s, err := server.Start(t.Context(), server.Config{Addr: "127.0.0.1:0", Dir: dir, Fsync: "always"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	from := "redis://" + s.Addr().String()
	c := open(t, from)
	fill(t, c, 100, true)
	c.run(t, "SAVE")
	file := filepath.Join(dir, "dump.rdb")
	to := startEbb(t)
	said, err := step(t, Options{From: []string{file}, To: to}, (*Migration).Follow)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{from}, to)
	mustEqual(t, []string{file}, to)
	open(t, to).run(t, "SET string1 other")
	if said, err := step(t, Options{From: []string{file}, To: to}, (*Migration).Verify); !errors.Is(err, errDiffer) {
		t.Errorf("%v\n%s", err, said)
	}

	c.run(t, "BGREWRITEAOF")
	c.run(t, "SET since-the-rewrite v")
	c.run(t, "MULTI")
	c.run(t, "INCR since-the-rewrite2")
	c.run(t, "EXEC")
	for !strings.Contains(c.run(t, "INFO persistence").Str, "aof_rewrite_in_progress:0") {
		// The rewrite removes the files that it replaces.
	}
	to = startEbb(t)
	if said, err = step(t, Options{From: []string{dir}, To: to}, (*Migration).Follow); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{from}, to)

	short := filepath.Join(t.TempDir(), "short.rdb")
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(short, b[:len(b)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = step(t, Options{From: []string{short}, To: startEbb(t)}, (*Migration).Follow)
	if err == nil || !strings.Contains(err.Error(), "TO holds what came before: ") {
		t.Errorf("half a file: %v", err)
	}
	_, err = step(t, Options{From: []string{filepath.Join(dir, "none")}, To: to}, (*Migration).Follow)
	if err == nil || !strings.Contains(err.Error(), "neither a URL") {
		t.Errorf("no file: %v", err)
	}
}

func TestWhatIsNoURLAndNoFileIsNamed(t *testing.T) {
	_, err := Open(t.Context(), Options{From: []string{"old:6379"}, To: startEbb(t), Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "neither a URL") {
		t.Error("got", err)
	}
}

func TestAFileOfAnotherKindIsNoData(t *testing.T) {
	file, to := filepath.Join(t.TempDir(), "notes.txt"), startEbb(t)
	if err := os.WriteFile(file, []byte("hello world\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{From: []string{file}, To: to}
	if f := findingOf(t, o, "from"); f.Grade != doctor.Act || !strings.Contains(f.Why, `begins with "hello world\n"`) {
		t.Errorf("%+v", f)
	}
	for _, run := range []func(*Migration, context.Context) error{(*Migration).Follow, (*Migration).Verify} {
		if said, err := step(t, o, run); err == nil || !strings.Contains(err.Error(), "neither an RDB file nor an append-only file") {
			t.Errorf("%v\n%s", err, said)
		}
	}
}
