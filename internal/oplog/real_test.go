package oplog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// loadReal loads a server's directory. A snapshot is returned as its keys.
func loadReal(t *testing.T, dir, name string) []string {
	t.Helper()
	files, err := OpenFiles(disk.OS(), filepath.Join(dir, "appendonlydir"), name)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	_, err = files.Load(Loader{
		RDB: func(r io.Reader) ([]byte, error) {
			in := rdb.NewReader(r, rdb.ReaderOptions{})
			for {
				e, err := in.Next()
				if errors.Is(err, io.EOF) {
					return in.Rest(), nil
				}
				if err != nil {
					return nil, err
				}
				all = append(all, "key "+string(e.Key))
			}
		},
		Command: func(args [][]byte, _ Place) error {
			all = append(all, string(bytes.Join(args, []byte(" "))))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// copyDir copies testdata to a directory that the test may change.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// redis-server 7.0.15 wrote the directories in testdata: SET a, RPUSH list, a MULTI, BGREWRITEAOF, and then the
// commands below; the first one with aof-timestamp-enabled, the second one with a space in its name and without
// snapshots.
func TestDirectoriesOfRedisAreLoaded(t *testing.T) {
	const after = "SELECT 3; hset h f v g w; SELECT 0; lpop list; SELECT 3; MULTI; set c two\r\nlines; SELECT 0; incr a; EXEC; SET e 1 PXAT 33000000000000"
	got := loadReal(t, copyDir(t, "testdata/redis-7.0.15/preamble"), "appendonly.aof")
	all := strings.Join(got, "; ")
	if len(got) != 14 || !strings.HasSuffix(all, after) || !strings.Contains(all, "key list") {
		t.Errorf("%q", all)
	}
	got = loadReal(t, copyDir(t, "testdata/redis-7.0.15/plain"), "my file.aof")
	all = strings.Join(got, "; ")
	if !strings.HasSuffix(all, after) || !strings.Contains(all, "RPUSH list x y z; ") {
		t.Errorf("%q", all)
	}
}

// writeDir writes files as ebb does: commands, a rewrite, commands.
func writeDir(t *testing.T, name string, o AppenderOptions) (root string) {
	t.Helper()
	root = t.TempDir()
	files, err := OpenFiles(disk.OS(), filepath.Join(root, "appendonlydir"), name)
	must(t, err)
	l := New(1000)
	a := NewAppender(l, files, o)
	x, err := a.Start(l.Cut())
	must(t, err)
	must(t, x.Wait(context.Background()))
	run := func(db, commands int, text ...string) {
		l.Append(Unit{DB: db, Last: db, Commands: commands, Bytes: request(text...)})
	}
	run(0, 1, "SET lost-in-the-base 1")
	run(2, 2, "SET a 1", "INCR a")
	x = a.BeginRewrite(l.Cut())
	run(2, 1, "INCR a")
	must(t, x.Wait(context.Background()))
	base := filepath.Join(root, "temp-base")
	must(t, disk.WriteFile(disk.OS(), base, request("SELECT 2", "SET a 2", "SELECT 0", "SET base 1")))
	must(t, a.CommitRewrite(base))
	run(0, 3, "SET b 1", "RPUSH list x y", "LPOP list")
	run(2, 1, "INCR a")
	a.BeginRewrite(l.Cut()) // aborted: it leaves a third file
	a.AbortRewrite()
	run(2, 1, "INCR a")
	must(t, a.Close())
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRedisLoadsWhatWeWrite(t *testing.T) {
	for _, name := range []string{"appendonly.aof", "my 'own' file.aof"} {
		for _, policy := range []Policy{EverySec, Always, No} {
			root := writeDir(t, name, AppenderOptions{Policy: policy, Now: func() int64 { return time.Now().UnixMilli() }})
			if name == "appendonly.aof" {
				checkAOF(t, filepath.Join(root, "appendonlydir", name+".manifest"))
			}
			addr := realserver.Start(t, "redis-server", "--dir", root, "--appendonly", "yes", "--appendfilename", name)
			for ask, want := range map[string]string{"GET base": "1", "GET b": "1", "LLEN list": "1", "DBSIZE": "3", "GET lost-in-the-base": "-1"} {
				if got := ask1(t, addr, ask); got != want {
					t.Errorf("%s: %s is %q, want %q", name, ask, got, want)
				}
			}
			if got := ask1(t, addr, "SELECT 2", "GET a"); got != "5" {
				t.Errorf("%s: a is %q after the increments of three files, want 5", name, got)
			}
			ask1(t, addr, "SELECT 1", "SET by-redis 1")
			ask1(t, addr, "SHUTDOWN NOSAVE")
			all := loadReal(t, root, name)
			if got := strings.Join(all[len(all)-2:], "; "); got != "SELECT 1; SET by-redis 1" {
				t.Errorf("Redis went on with %q", got)
			}
		}
	}
}

// checkAOF runs redis-check-aof on a directory.
func checkAOF(t *testing.T, manifest string) {
	t.Helper()
	path := realserver.Program(t, "redis-check-aof")
	if out, err := osexec.Command(path, manifest).CombinedOutput(); err != nil || !strings.Contains(string(out), "valid") {
		t.Errorf("redis-check-aof: %v: %s", err, out)
	}
}

// ask1 sends commands on a new connection, and returns the text of the last reply, or "" if the server closes the
// connection.
func ask1(t *testing.T, addr string, commands ...string) (reply string) {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, tier.Patience)
	must(t, err)
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(tier.Patience)))
	_, err = c.Write(request(commands...))
	must(t, err)
	in := bufio.NewReader(c)
	for range commands {
		line, err := in.ReadString('\n')
		if err != nil {
			return ""
		}
		if reply = strings.TrimSpace(line[1:]); line[0] == '$' && reply != "-1" {
			line, err = in.ReadString('\n')
			must(t, err)
			reply = strings.TrimSpace(line)
		}
	}
	return reply
}
