//go:build linux

package crashtest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

var torn = flag.Int("crash.torn", 7, "distance of the bytes at which the last record is cut; 1: at each")

// Faults that a server finds when it starts.

// file returns the path of the one append-only file that a pattern names.
func (f *faulty) file(pattern string) string {
	f.t.Helper()
	found, _ := filepath.Glob(filepath.Join(f.data, "appendonlydir", pattern))
	if len(found) != 1 {
		f.t.Fatalf("%s names %q", pattern, found)
	}
	return found[0]
}

func (f *faulty) read(name string) []byte {
	f.t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

func (f *faulty) write(name string, b []byte) {
	f.t.Helper()
	if err := os.WriteFile(name, b, 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// rewrite has the files rewritten, so that there is a base with data.
func (f *faulty) rewrite() {
	f.t.Helper()
	ctx := f.t.Context()
	if err := f.c.BgRewriteAOF(ctx).Err(); err != nil {
		f.t.Fatal(err)
	}
	for strings.Contains(f.c.Info(ctx, "persistence").Val(), "aof_rewrite_in_progress:1") {
		pause()
	}
}

// lived returns a server that has n keys, half of them in the base, and was killed.
func lived(t *testing.T, n int, args ...string) *faulty {
	t.Helper()
	f := newFaulty(t, realserver.Ebb(t), args...)
	f.Start()
	f.sets(n / 2)
	f.rewrite()
	f.sets(n - n/2)
	f.Kill()
	return f
}

// TestATornRecordAtTheEndIsCutOffOrRefused starts a server on files that end within
// the last record, a transaction, after each number of bytes.
func TestATornRecordAtTheEndIsCutOffOrRefused(t *testing.T) {
	f := lived(t, 10)
	name := f.file("*.incr.aof")
	whole := len(f.read(name))
	f.Start()
	if _, err := f.c.MSet(t.Context(), "a", "1", "b", "1").Result(); err != nil {
		t.Fatal(err)
	}
	p := f.c.TxPipeline()
	p.Incr(t.Context(), "a")
	p.Incr(t.Context(), "b")
	start := len(f.read(name)) // of the transaction, which is the last record
	if _, err := p.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Kill()
	all := f.read(name)
	if start <= whole || len(all) <= start {
		t.Fatalf("the file has grown from %d to %d to %d", whole, start, len(all))
	}
	starts, began, said := 0, time.Now(), [2]string{}
	for size := start; size <= len(all); size++ {
		if size > start+1 && size < len(all)-1 && (size-start)%*torn != 0 {
			continue
		}
		starts++
		isTorn := size > start && size < len(all)
		f.write(name, all[:size])
		if isTorn {
			f.Args("--aof-load-truncated", "no")
			said[1] = f.refuses("good up to "+strconv.Itoa(start), "aof-load-truncated", "ebb check --fix", filepath.Base(name))
			if got := f.read(name); !bytes.Equal(got, all[:size]) {
				t.Fatalf("a refused start has changed the file, %d bytes", size)
			}
			f.Args("--aof-load-truncated", "yes")
		}
		f.forget()
		f.Start()
		if isTorn {
			said[0] = f.said("was cut off", filepath.Base(name), "bytes="+strconv.Itoa(size-start))
		}
		want := "1"
		if size == len(all) {
			want = "2"
		}
		if a, b := f.c.Get(t.Context(), "a").Val(), f.c.Get(t.Context(), "b").Val(); a != want || b != want {
			t.Errorf("%d of %d bytes: a=%q b=%q, want %s", size-start, len(all)-start, a, b, want)
		}
		if n := f.holds(); n != 2 {
			t.Errorf("%d keys too many", n-2)
		}
		f.Kill()
	}
	t.Logf("%d starts in %v, a record of %d bytes", 2*starts, time.Since(began).Round(time.Millisecond), len(all)-start)
	f.row("torn last record, aof-load-truncated yes", said[0], "the torn transaction, whole; nothing before it")
	f.row("the same, aof-load-truncated no", said[1], "nothing: the start is refused, the file left as it is")
}

func TestAMissingFileIsNamed(t *testing.T) {
	f := lived(t, 10)
	for _, pattern := range []string{"*.base.rdb", "*.incr.aof"} {
		name := f.file(pattern)
		if err := os.Rename(name, name+".away"); err != nil {
			t.Fatal(err)
		}
		said := f.refuses("is missing", name, "manifest", "put it back")
		f.row("the manifest names a missing file, "+pattern, said, "nothing: the start is refused")
		if err := os.Rename(name+".away", name); err != nil {
			t.Fatal(err)
		}
	}
	name := f.file("*.manifest")
	b := f.read(name)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	f.row("the manifest is missing", f.refuses("manifest", "is missing", "put the manifest back"), "nothing: the start is refused")
	f.write(name, []byte("file x seq one type b\n"))
	f.row("a line of the manifest is damaged", f.refuses("manifest", "line 1", "seq is not a number from 1"), "nothing: the start is refused")
	f.write(name, b)
	f.again()
}

func TestTwoServersDoNotShareADirectory(t *testing.T) {
	f := lived(t, 4)
	f.Start()
	second := newFaulty(t, realserver.Ebb(t))
	second.Args("--dir", f.data)
	said := second.refuses(f.data, strconv.Itoa(f.Pid()))
	f.sets(3)
	f.row("two servers on one directory", said, "nothing: the second does not start, the first goes on")
	f.Kill()
	second.Start() // what a killed server had locked is free
	second.Kill()
	f.again()
}

func TestAClockThatIsBehindTheFiles(t *testing.T) {
	f := lived(t, 10)
	f.Start()
	if err := f.c.Set(t.Context(), "lease", "x", 30*time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	f.Kill()
	name := f.file("*.incr.aof")
	age := func(ahead time.Duration) time.Time {
		at := time.Now().Add(ahead)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
		return at
	}

	age(3 * time.Hour)
	said := f.refuses("the clock is behind the data", "--accept-clock yes", "3h0m0s later")
	f.row("the clock is 3 h behind the files", said, "nothing: the start is refused")
	f.Start("--accept-clock", "yes")
	now, err := f.c.Time(t.Context()).Result()
	if d := time.Since(now); err != nil || d > time.Minute || d < -time.Minute {
		t.Errorf("the clock was accepted, and it is %v, %v", now, err)
	}
	if ttl := f.c.PTTL(t.Context(), "lease").Val(); ttl < 28*time.Minute || ttl > 30*time.Minute {
		t.Errorf("the lease has %v", ttl)
	}
	f.row("the same, --accept-clock yes", f.said("accepted"), fmt.Sprintf("nothing of %d", f.acked))
	f.Kill()

	at := age(10 * time.Minute)
	f.Start()
	f.holds()
	if now, err := f.c.Time(t.Context()).Result(); err != nil || now.Before(at.Add(-time.Second)) {
		t.Errorf("it is %v, the files are of %v, %v", now, at, err)
	}
	if ttl := f.c.PTTL(t.Context(), "lease").Val(); ttl > 20*time.Minute {
		t.Errorf("the lease has %v: time has run back", ttl)
	}
	f.row("the clock is 10 min behind the files", f.said("time goes on from theirs"), "nothing: time does not run back")
}

// TestACorruptByteInTheMiddleIsFound changes one byte of each file.
func TestACorruptByteInTheMiddleIsFound(t *testing.T) {
	f := lived(t, 40)
	damage := func(pattern string, at func(b []byte) int, words ...string) {
		name := f.file(pattern)
		good := f.read(name)
		bad := bytes.Clone(good)
		bad[at(bad)] ^= 0x15
		f.write(name, bad)
		f.row("a corrupt byte in the middle of "+pattern, f.refuses(append([]string{name}, words...)...), "nothing: the start is refused")
		if !bytes.Equal(f.read(name), bad) {
			t.Error("a refused start has changed the file")
		}
		out, err := exec.Command(realserver.Ebb(t), "check", name).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "offset") {
			t.Errorf("ebb check: %v, %s", err, out)
		}
		f.write(name, good)
	}
	middle := func(b []byte) int { return len(b) / 2 }
	damage("*.base.rdb", middle, "offset", "ebb check")
	length := func(b []byte) int { return len(b)/2 + bytes.Index(b[len(b)/2:], []byte("\r\n$100")) + 3 }
	damage("*.incr.aof", length, "good up to", "ebb check", "copy the file")
	f.again()
}

// asNobody returns a program that runs ebb without the rights of root.
func asNobody(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		return realserver.Ebb(t)
	}
	setpriv := realserver.Program(t, "setpriv")
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(realserver.Ebb(t))
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s --reuid=65534 --regid=65534 --clear-groups %s/program \"$@\"\n", setpriv, dir)
	for name, b := range map[string][]byte{"program": program, "ebb": []byte(script)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "ebb")
}

// chmod sets the rights of the data directory, or of what is in it.
func (f *faulty) chmod(mode os.FileMode, path ...string) {
	f.t.Helper()
	if err := os.Chmod(filepath.Join(append([]string{f.data}, path...)...), mode); err != nil {
		f.t.Fatal(err)
	}
}

func TestADirectoryThatMayNotBeWrittenIsRefused(t *testing.T) {
	f := newFaulty(t, asNobody(t))
	if os.Getuid() == 0 {
		if err := os.Chown(f.data, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	f.chmod(0o555)
	f.row("a read-only directory", f.refuses("nothing can be kept in the directory", "permission denied", f.data),
		"nothing: the start is refused")
	f.chmod(0o755)
	f.Start()
	f.sets(10)

	// The files may be appended to, but none can be made.
	f.chmod(0o555)
	f.chmod(0o555, "appendonlydir")
	f.sets(5)
	if err := f.c.Save(t.Context()).Err(); err == nil {
		t.Error("SAVE has made a file")
	}
	f.forget()
	f.rewrite()
	f.sets(5)
	said := f.said("permission denied", "rewrit")
	info := f.c.Info(t.Context(), "persistence").Val()
	has(t, info, "aof_last_bgrewrite_status:err", "aof_last_write_status:ok")
	// Under save points a save that fails has writes refused, until one succeeds.
	ctx := t.Context()
	if err := f.c.ConfigSet(ctx, "save", "3600 1").Err(); err != nil {
		t.Fatal(err)
	}
	_ = f.c.BgSave(ctx).Err()
	err := f.set(100)
	for began := time.Now(); err == nil && time.Since(began) < tier.Patience; err = f.set(100) {
		pause()
	}
	if err == nil || !strings.HasPrefix(err.Error(), "MISCONF Redis is configured to save RDB snapshots") {
		t.Errorf("after a save that failed, a write: %v", err)
	}
	has(t, f.c.Info(ctx, "persistence").Val(), "rdb_last_bgsave_status:err")
	f.holds()
	f.chmod(0o755)
	f.chmod(0o755, "appendonlydir")
	if err := f.c.BgSave(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	f.recovers()
	f.row("the directory becomes read-only", said+"; after BGSAVE: "+fmt.Sprint(err),
		fmt.Sprintf("nothing of %d; writes again after a BGSAVE that succeeded", f.acked))
	f.again()
	f.Kill()

	name := f.file("*.incr.aof")
	for _, mode := range []os.FileMode{0o000, 0o444} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		f.row(fmt.Sprintf("an increment with rights %03o", mode), f.refuses("permission denied", name), "nothing: the start is refused")
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	f.again()
}
