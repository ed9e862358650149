package embed_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// got returns what a call has returned, and ends the test at an error.
func got[V any](t *testing.T) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func openFiles(t *testing.T, url string) *ebb.Conn {
	t.Helper()
	return got[*ebb.Conn](t)(ebb.Open(t.Context(), url))
}

func TestFilesKeepTheData(t *testing.T) {
	url := "file://" + filepath.ToSlash(t.TempDir()) + "/new/data"
	for _, fsync := range []string{"always", "everysec", "no"} {
		c := openFiles(t, url+"?fsync="+fsync)
		got[ebb.Value](t)(c.Do(t.Context(), "RPUSH", "list", fsync))
		got[ebb.Value](t)(c.Do(t.Context(), "HSET", "user:7", "name", "Ada", "token", "k3Tq9"))
		got[ebb.Value](t)(c.Do(t.Context(), "HPEXPIREAT", "user:7", 4102444800000, "FIELDS", 1, "token"))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}

	c := openFiles(t, url)
	defer c.Close()
	if v := got[ebb.Value](t)(c.Do(t.Context(), "LRANGE", "list", 0, -1)); len(v.Elems) != 3 {
		t.Errorf("list: %v", v)
	}
	if v := got[ebb.Value](t)(c.Do(t.Context(), "HPEXPIRETIME", "user:7", "FIELDS", 2, "name", "token")); len(v.Elems) != 2 ||
		v.Elems[0].Int != -1 || v.Elems[1].Int != 4102444800000 {
		t.Errorf("deadlines: %v", v)
	}
}

func TestARuleAndItsJobsAreThereAfterARestart(t *testing.T) {
	url := "file://" + filepath.ToSlash(t.TempDir())
	c := openFiles(t, url)
	do := func(args ...any) ebb.Value { return got[ebb.Value](t)(c.Do(t.Context(), args...)) }
	do("EXPIRY", "RULE", "SET", "r", "MATCH", "k*", "TO", "QUEUE", "jobs", "PRIORITY", "3", "WITHVALUE")
	do("SET", "k1", "v", "PX", "5")
	first := do("DQ.POP", "jobs", "BLOCK", "0", "LEASE", "1000000").Elems[0]
	do("SET", "k2", "v", "PX", "5")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	c = openFiles(t, url)
	defer func() { _ = c.Close() }()
	if second := do("DQ.POP", "jobs", "BLOCK", "0").Elems[0]; !strings.HasPrefix(second.Elems[0].Str, "r:k2::") ||
		!strings.HasPrefix(second.Elems[1].Str, `{"key":"k2","level":"key","value":"v","deadline":`) {
		t.Errorf("the second job is %v", second)
	}
	if left := do("DQ.PEEK", "jobs", "STATE", "ALL", "COUNT", "9").Elems; len(left) != 2 {
		t.Errorf("the queue has %v", left)
	}
	if v := do("DQ.ACK", "jobs", first.Elems[0].Str, first.Elems[3].Int); v.Int != 1 {
		t.Error("the lease of the first job was lost")
	}
	if r, _ := do("EXPIRY", "RULE", "LIST").Elems[0].Get("queue"); r.Str != "jobs" {
		t.Errorf("the rule's queue is %v", r)
	}
}

func TestAQueueDeliversToItsStreamAfterARestart(t *testing.T) {
	url := "file://" + filepath.ToSlash(t.TempDir())
	c := openFiles(t, url)
	do := func(args ...any) ebb.Value { return got[ebb.Value](t)(c.Do(t.Context(), args...)) }
	do("DQ.CONFIG", "{q}", "DELIVER", "{q}:s")
	do("DQ.ADD", "{q}", "now", "a")
	do("DQ.ADD", "{q}", "soon", "b", "DELAY", "50")
	do("DQ.ADD", "{q}", "later", "c", "DELAY", "1000000")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	c = openFiles(t, url)
	defer func() { _ = c.Close() }()
	last := "0"
	for _, id := range []string{"now", "soon"} {
		do("XREAD", "BLOCK", 0, "COUNT", 1, "STREAMS", "{q}:s", last)
		e := do("XRANGE", "{q}:s", "("+last, "+").Elems[0]
		if last = e.Elems[0].Str; e.Elems[1].Elems[1].Str != id {
			t.Errorf("the entry is %v, want that of %s", e, id)
		}
	}
	if left := do("DQ.PEEK", "{q}", "COUNT", 9).Elems; len(left) != 1 || do("XLEN", "{q}:s").Int != 2 {
		t.Errorf("the queue has %v", left)
	}
}

func TestOneDirectoryIsOneEngine(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		realserver.Require(t, "symbolic links are not allowed here")
	}
	a, b := openFiles(t, "file://"+filepath.ToSlash(dir)), openFiles(t, "file://"+filepath.ToSlash(link)+"?db=3")
	if ebb.EngineOf(a) != ebb.EngineOf(b) {
		t.Error("two engines on one directory")
	}
	if _, err := ebb.Open(t.Context(), "file://"+filepath.ToSlash(dir)+"?fsync=always"); !errors.Is(err, ebb.ErrURL) ||
		!strings.Contains(err.Error(), "open already, with fsync=everysec") {
		t.Errorf("another fsync: %v", err)
	}
	got[ebb.Value](t)(b.Do(t.Context(), "SET", "k", "v"))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if v := got[ebb.Value](t)(b.Do(t.Context(), "GET", "k")); v.Str != "v" {
		t.Errorf("after the other has closed: %v", v)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again := openFiles(t, "file://"+filepath.ToSlash(dir)+"?db=3&fsync=always")
	defer again.Close()
	if v := got[ebb.Value](t)(again.Do(t.Context(), "GET", "k")); v.Str != "v" {
		t.Errorf("opened again: %v", v)
	}
}

// ownerEnv has the test's own program stand for another process.
const ownerEnv = "EBB_TEST_OWNER"

func TestAnotherProcessIsTold(t *testing.T) {
	if dir := os.Getenv(ownerEnv); dir != "" {
		_, err := ebb.Open(t.Context(), "file://"+filepath.ToSlash(dir))
		t.Fatalf("the other process: %v", err)
	}
	dir := t.TempDir()
	c := openFiles(t, "file://"+filepath.ToSlash(dir))
	defer c.Close()
	other := exec.Command(os.Args[0], "-test.run", "^TestAnotherProcessIsTold$")
	other.Env = append(os.Environ(), ownerEnv+"="+dir)
	out, err := other.CombinedOutput()
	pid := got[[]byte](t)(os.ReadFile(filepath.Join(dir, "ebb.lock")))
	if err == nil || !bytes.Contains(out, bytes.TrimSpace(pid)) || !bytes.Contains(out, []byte(ebb.ErrUnavailable.Error())) {
		t.Errorf("it says: %s", out)
	}
}

func TestABackupIsAnRDBFile(t *testing.T) {
	c := openFiles(t, "mem://")
	defer c.Close()
	for i := range 100 {
		got[ebb.Value](t)(c.Do(t.Context(), "SET", i, "v", "PX", 100000))
	}
	var b bytes.Buffer
	if err := ebb.EngineOf(c).Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	r := rdb.NewReader(&b, rdb.ReaderOptions{})
	for n := 0; ; n++ {
		e, err := r.Next()
		if err != nil {
			if n != 100 {
				t.Errorf("%d keys, then %v", n, err)
			}
			break
		}
		if e.Deadline == 0 {
			t.Errorf("%s has no deadline", e.Key)
		}
	}
	if err := (*ebb.Engine)(nil).Backup(t.Context(), &b); !errors.Is(err, ebb.ErrRemote) {
		t.Errorf("remote: %v", err)
	}
	if err := ebb.EngineOf(c).Sync(t.Context()); err != nil {
		t.Errorf("Sync without files: %v", err)
	}
}
