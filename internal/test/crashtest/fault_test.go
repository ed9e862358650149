//go:build linux

package crashtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// Faults that happen to the real program: what it says, what it refuses, and what is
// there afterwards. go test -v prints the table.

// faulty is a server that something happens to. Its data is in a directory of its
// own below the process's, which holds the log.
type faulty struct {
	*realserver.Process
	t     *testing.T
	c     *redis.Client
	data  string
	acked int // keys k1 to k(acked) were acknowledged
}

const ballast = "ballast"

// newFaulty returns a server with append-only files under always, which does not run.
func newFaulty(t *testing.T, path string, args ...string) *faulty {
	t.Helper()
	f := &faulty{t: t, Process: realserver.NewProcess(t, path, "--appendonly", "yes", "--appendfsync", "always", "--save", "")}
	f.data = filepath.Join(f.Process.Dir, "data")
	if err := os.Mkdir(f.data, 0o755); err != nil {
		t.Fatal(err)
	}
	f.Args(append([]string{"--dir", f.data}, args...)...)
	f.c = redis.NewClient(&redis.Options{Addr: f.Addr(), MaxRetries: -1, ReadTimeout: tier.Patience})
	t.Cleanup(func() { _ = f.c.Close() })
	return f
}

// set writes the next key, with a value of the given size.
func (f *faulty) set(size int) error {
	f.t.Helper()
	err := f.c.Set(f.t.Context(), fmt.Sprint("k", f.acked+1), strings.Repeat("x", size), 0).Err()
	if err == nil {
		f.acked++
	}
	return err
}

func (f *faulty) sets(n int) {
	f.t.Helper()
	for range n {
		if err := f.set(100); err != nil {
			f.t.Fatal(err)
		}
	}
}

// holds looks whether all is there that was acknowledged, and returns how many keys there
// are besides: those that were in the files though no client got a reply.
func (f *faulty) holds() (more int64) {
	f.t.Helper()
	ctx := f.t.Context()
	for i := 1; i <= f.acked; i++ {
		if n, err := f.c.StrLen(ctx, fmt.Sprint("k", i)).Result(); err != nil || n == 0 {
			f.t.Fatalf("k%d of %d, which were acknowledged: %d bytes, %v\n%s", i, f.acked, n, err, f.Said())
		}
	}
	n, err := f.c.DBSize(ctx).Result()
	if err != nil {
		f.t.Fatal(err)
	}
	return n - int64(f.acked)
}

// again kills it, starts it again and looks whether all is there.
func (f *faulty) again(args ...string) {
	f.t.Helper()
	f.Kill()
	f.Start(args...)
	f.holds()
}

// refuses fails unless it ends by itself at the start, and says all the words.
func (f *faulty) refuses(words ...string) string {
	f.t.Helper()
	f.forget()
	if err := f.Begin(); err != nil {
		f.t.Fatal(err)
	}
	if status := f.Wait(); status != 1 {
		f.t.Errorf("it ended with status %d: %s", status, f.Said())
	}
	return f.said(words...)
}

// forget drops what it has said so far.
func (f *faulty) forget() {
	if err := os.Truncate(f.Log(), 0); err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
}

// said fails unless it has said all the words, and returns the line of the first.
func (f *faulty) said(words ...string) string {
	f.t.Helper()
	text := f.Said()
	return has(f.t, text, words...)
}

func has(t *testing.T, text string, words ...string) string {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("nothing was said of %q: %s", w, text)
		}
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, words[0]) {
			return strings.TrimSpace(line)
		}
	}
	return text
}

// row prints a row of the table.
func (f *faulty) row(fault, said, lost string) {
	said = strings.ReplaceAll(said, f.data, "DIR")
	f.t.Logf("TABLE %s | %s | %s", fault, said, lost)
}

// refusesWrites writes until that is refused, and fails unless it is with MISCONF
// and the words. Reads go on. It returns what the first heard whose write failed, and
// whose connection is closed then: some may, until the refusal is set.
func (f *faulty) refusesWrites(size int, words ...string) string {
	f.t.Helper()
	const misconf, uncertain = "MISCONF Errors writing to the AOF file: ", "what came of the last commands is not certain"
	var first string
	for range 100_000 {
		err := f.set(size)
		switch {
		case err == nil:
		case first == "":
			first = err.Error()
			has(f.t, first, misconf, uncertain)
		case strings.HasPrefix(err.Error(), misconf) && !strings.Contains(err.Error(), uncertain):
			has(f.t, err.Error(), words...)
			f.onlyReads()
			return first
		}
	}
	f.t.Fatal("writes are not refused")
	return ""
}

// onlyReads looks whether reads go on while writes are refused.
func (f *faulty) onlyReads() {
	f.t.Helper()
	ctx := f.t.Context()
	f.holds()
	if err := f.c.Del(ctx, "k1").Err(); err == nil || !strings.HasPrefix(err.Error(), "MISCONF") {
		f.t.Errorf("a DEL: %v", err)
	}
	if info := f.c.Info(ctx, "persistence").Val(); !strings.Contains(info, "aof_last_write_status:err") {
		f.t.Errorf("INFO says: %s", info)
	}
}

// recovers waits until writes are taken again, and returns how long that took.
func (f *faulty) recovers() time.Duration {
	f.t.Helper()
	began := time.Now()
	for {
		err := f.set(100)
		took := time.Since(began)
		if err == nil {
			return took.Round(10 * time.Millisecond)
		}
		if took > 2*tier.Patience {
			f.t.Fatalf("no service after %v: %v\n%s", took, err, f.Said())
		}
		pause()
	}
}

// pause lets a real process get on.
func pause() { <-time.After(20 * time.Millisecond) }

// needRoot skips a test that may do what it has to as root alone.
func needRoot(t *testing.T, what string) {
	t.Helper()
	if os.Geteuid() != 0 {
		realserver.Require(t, "only root may "+what)
	}
}

// smallDisk mounts a file system of a few MB at the data directory, or skips.
func (f *faulty) smallDisk(size string) {
	f.t.Helper()
	needRoot(f.t, "mount a file system")
	if err := syscall.Mount("tmpfs", f.data, "tmpfs", 0, "size="+size); err != nil {
		realserver.Require(f.t, "a file system cannot be mounted ("+err.Error()+")")
	}
	f.t.Cleanup(func() {
		f.Kill()
		if err := syscall.Unmount(f.data, 0); err != nil {
			f.t.Error(err)
		}
	})
}

// TestAFullDiskRefusesWritesAndNothingAcknowledgedIsLost fills the disk with what
// is written, makes room, and fills it again.
func TestAFullDiskRefusesWritesAndNothingAcknowledgedIsLost(t *testing.T) {
	f := newFaulty(t, realserver.Ebb(t))
	f.smallDisk("4m")
	file := filepath.Join(f.data, ballast)
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	f.Start()
	f.sets(10)
	said := f.refusesWrites(4096, "no space left on device")
	if err := f.c.Save(t.Context()).Err(); err == nil {
		t.Error("SAVE has found room")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	took := f.recovers()
	f.sets(10)
	f.again()
	f.row("full disk (tmpfs of 4 MB, always)", said,
		fmt.Sprintf("nothing of %d acknowledged; writes again %v after there was room", f.acked, took))
	// It is killed while the disk is full: the torn record is cut off at the start.
	f.refusesWrites(4096, "no space left on device")
	f.again()
	f.row("kill -9 on a full disk, and start on it", f.said("no space left on device"), fmt.Sprintf("nothing of %d", f.acked))
}

// TestAFullDiskLosesTheNewestWritesAloneUnderEverySec kills the server when it has refused a write. How old a loss may be is tested in
// virtual time (TestEverySecLosesASecond in internal/durable); here the age is printed.
func TestAFullDiskLosesTheNewestWritesAloneUnderEverySec(t *testing.T) {
	f := newFaulty(t, realserver.Ebb(t), "--appendfsync", "everysec")
	f.smallDisk("2m")
	f.Start()
	var when []time.Time // key k(i+1) was acknowledged
	for f.set(1000) == nil {
		when = append(when, time.Now())
	}
	if err := f.set(1000); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Fatalf("a write: %v", err)
	}
	f.Kill()
	if err := syscall.Mount("tmpfs", f.data, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	f.Start()
	n, err := f.c.DBSize(t.Context()).Result()
	if err != nil || n == 0 {
		t.Fatalf("%d keys, %v", n, err)
	}
	f.acked = min(int(n), len(when))
	lost, age := len(when)-f.acked, time.Duration(0)
	if lost > 0 {
		age = when[len(when)-1].Sub(when[f.acked])
	}
	if more := f.holds(); more > 1 {
		t.Errorf("%d keys are there whose writes were refused", more)
	}
	f.row("full disk, everysec, then kill -9", "MISCONF as above",
		fmt.Sprintf("%d of %d, acknowledged within the last %v", lost, len(when), age.Round(time.Millisecond)))
}

// TestAFileSizeLimitIsAsAFullDisk gives the program the limit of ulimit -f.
func TestAFileSizeLimitIsAsAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ebb")
	script := fmt.Sprintf("#!/bin/sh\nulimit -S -f 200\nexec %s \"$@\"\n", realserver.Ebb(t))
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	f := newFaulty(t, path, "--auto-aof-rewrite-percentage", "0")
	f.Start()
	f.sets(10)
	said := f.refusesWrites(4096, "file too large")
	f.Kill()
	again := newFaulty(t, realserver.Ebb(t), "--dir", f.data)
	again.acked = f.acked
	again.Start()
	again.holds()
	again.sets(5)
	f.row("ulimit -f", said, fmt.Sprintf("nothing of %d", f.acked))
}

// TestAFailedSyncIsHealedByARewriteAlone makes fdatasync and fsync fail with EIO for
// a while, by strace.
func TestAFailedSyncIsHealedByARewriteAlone(t *testing.T) {
	needRoot(t, "trace a program that is not its child")
	strace := realserver.Program(t, "strace")
	f := newFaulty(t, realserver.Ebb(t))
	f.Start()
	f.sets(10)
	before, _ := filepath.Glob(filepath.Join(f.data, "appendonlydir", "*.incr.aof"))
	stop := inject(t, strace, f.Pid(), "fdatasync,fsync:error=EIO")
	said := f.refusesWrites(100, "input/output error", "a rewrite makes new ones")
	// The calls succeed from here on; but the files that may have holes are not
	// trusted again.
	stop()
	took := f.recovers()
	after, _ := filepath.Glob(filepath.Join(f.data, "appendonlydir", "*.incr.aof"))
	if fmt.Sprint(before) == fmt.Sprint(after) {
		t.Errorf("the files are still those whose sync failed: %v", after)
	}
	f.sets(10)
	f.again()
	f.row("EIO on fsync (strace, always)", said,
		fmt.Sprintf("nothing of %d acknowledged; healed by a rewrite %v after syncs worked again", f.acked, took))
}

// inject has system calls of a process fail until stop is called.
func inject(t *testing.T, strace string, pid int, what string) (stop func()) {
	t.Helper()
	calls, _, _ := strings.Cut(what, ":")
	cmd := exec.Command(strace, "-f", "-qq", "-p", fmt.Sprint(pid), "-o", os.DevNull, "-e", "trace="+calls, "-e", "inject="+what)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGINT)
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	for range 3000 { // until all threads are traced
		if traced(pid, cmd.Process.Pid) {
			return stop
		}
		pause()
	}
	realserver.Require(t, "strace cannot attach")
	return stop
}

// traced reports whether a process traces all threads of another.
func traced(pid, by int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, s := range tasks {
		b, err := os.ReadFile(s)
		if err == nil && !strings.Contains(string(b), fmt.Sprintf("TracerPid:\t%d\n", by)) {
			return false
		}
	}
	return len(tasks) > 0
}
