package session_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// pausingFS is a file system whose append-only increment is read in two pieces. It reports when the reader is
// between them, and when a file is about to be renamed.
type pausingFS struct {
	disk.FS
	at      int64  // of the second piece
	between func() // nil: no report
	rename  func(to string)
}

func (f *pausingFS) Open(name string) (disk.Reader, error) {
	r, err := f.FS.Open(name)
	if err != nil || f.between == nil || !strings.HasSuffix(name, ".incr.aof") {
		return r, err
	}
	return &pausingReader{Reader: r, f: f}, nil
}

func (f *pausingFS) Rename(from, to string) error {
	if f.rename != nil {
		f.rename(filepath.Base(to))
	}
	return f.FS.Rename(from, to)
}

type pausingReader struct {
	disk.Reader
	f *pausingFS
	n int64
}

func (r *pausingReader) Read(b []byte) (int, error) {
	if left := r.f.at - r.n; left > 0 {
		b = b[:min(int64(len(b)), left)]
	} else if left == 0 && r.f.between != nil {
		r.f.between()
		r.f.between = nil
	}
	n, err := r.Reader.Read(b)
	r.n += int64(n)
	return n, err
}

// fileLife is a service on a directory that is started several times.
type fileLife struct {
	t       *testing.T
	dir     string
	fs      *pausingFS
	options []string
	s       *session.Service
	ask     *session.Session
}

func newFileLife(t *testing.T, options ...string) *fileLife {
	f := &fileLife{t: t, dir: t.TempDir(), fs: &pausingFS{FS: disk.OS()}}
	f.options = append([]string{"--dir", f.dir, "--appendonly", "yes", "--save", "", "--enable-debug-command", "yes"}, options...)
	return f
}

// open makes an engine, whose files are not loaded.
func (f *fileLife) open() {
	f.t.Helper()
	f.s = services.Start(f.t, f.options...)
	if err := f.s.OpenFiles(session.FileOptions{AcceptClock: true, FS: f.fs}); err != nil {
		f.t.Fatal(err)
	}
	f.ask = f.s.NewSession(nil)
}

func (f *fileLife) start() {
	f.t.Helper()
	f.open()
	if err := f.s.Load(f.t.Context()); err != nil {
		f.t.Fatalf("a start: %v", err)
	}
}

func (f *fileLife) end() {
	f.t.Helper()
	if err := f.s.Keeper().Close(); err != nil {
		f.t.Error(err)
	}
}

func (f *fileLife) clock() *clock.Manual { return f.s.DB.Clock().(*clock.Manual) }

func (f *fileLife) do(line string) resp.Value {
	f.t.Helper()
	v := f.ask.Do(bytes.Fields([]byte(line))...)
	if v.Err() != nil {
		f.t.Fatalf("%s: %v", line, v.Err())
	}
	return v
}

// increment returns the path of the file that is appended to.
func (f *fileLife) increment() string {
	f.t.Helper()
	all, err := filepath.Glob(filepath.Join(f.dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(all) != 1 {
		f.t.Fatalf("increments %q, %v", all, err)
	}
	return all[0]
}

// write makes files with these commands, and returns the offset of those after the line "--".
func (f *fileLife) write(lines string) (at int64) {
	f.t.Helper()
	f.start()
	f.end()
	out, err := os.OpenFile(f.increment(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	defer out.Close()
	for line := range strings.Lines("SELECT 0\n" + lines) {
		if line = strings.TrimSpace(line); line == "--" {
			if at, err = out.Seek(0, io.SeekEnd); err != nil {
				f.t.Fatal(err)
			}
		} else if line != "" {
			if _, err := out.Write(wire.AppendCommand(nil, strings.Fields(line)...)); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	return at
}

// sameAfterARestart checks that a restart from the files gives the data of the engine.
func (f *fileLife) sameAfterARestart() {
	f.t.Helper()
	want := f.do("DEBUG DIGEST").Str
	keys := f.keys()
	f.end()
	now := f.clock().Micros()
	f.start()
	f.clock().Advance(time.Duration(now-f.clock().Micros()) * time.Microsecond)
	if got := f.do("DEBUG DIGEST").Str; got != want {
		f.t.Errorf("the files give %q, and the engine held %q", f.keys(), keys)
	}
}

func (f *fileLife) keys() []string {
	f.t.Helper()
	keys, err := f.do("KEYS *").AsStrings()
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

// A log whose deadlines have all passed at the start, and whose later commands use the same keys: MSET
// concerns several keys, so all earlier commands have run when the file is read on.
const deadLog = `
	RPUSH l1 a b
	PEXPIREAT l1 1699999999999
	RPUSH l2 a b
	HSET h1 f v g w
	HPEXPIREAT h1 1699999999999 FIELDS 1 f
	SADD s1 a
	PEXPIREAT s1 1699999999999
	ZADD z1 1 a
	PEXPIREAT z1 1699999999999
	LOCK.ACQUIRE k1 me 1000 TOKEN 5 NOW 1699999990000000
	RL.TAKE r1 1 1000 ALGO window NOW 1699999990000000
	SET x 1 PXAT 1699999999999
	MSET m1 1 m2 2
	--
	LSET l1 1 x
	RPUSH l2 c
	HSET h1 f x
	SADD s1 b
	PERSIST s1
	ZADD z1 XX 2 a
	PEXPIREAT l1 1800000000000
	LOCK.RENEW k1 me 5 1000 NOW 1699999990500000
	RL.TAKE r1 1 1000 ALGO window NOW 1699999992500000
	INCR x
	DEL l2
`

// Requests that a server accepts while it loads. Each of them looks up keys.
var duringALoad = []string{
	"WATCH l1 s1 z1 h1 k1 r1 x\nMULTI\nPING\nEXEC",
	"WATCH l1\nDEBUG SET-ACTIVE-EXPIRE 1\nMULTI\nDEBUG OBJECT l1\nDEBUG DIGEST-VALUE l1 s1\nEXEC",
	"DEBUG OBJECT l1", "DEBUG OBJECT h1", "DEBUG OBJECT k1", "DEBUG OBJECT r1", "DEBUG DIGEST-VALUE l1 s1 z1 h1 k1 r1 x", "DEBUG DIGEST",
	"DEBUG SET-ACTIVE-EXPIRE 1", "CONFIG SET maxmemory 1 maxmemory-policy allkeys-random", "INFO everything", "MEMORY STATS", "LATENCY DOCTOR",
	"DEBUG POPULATE 10", "BLPOP l1 0", "BLMOVE l1 l2 LEFT LEFT 0", "BLMOVEM l1 l2 LEFT LEFT 0 EXACTLY 99 OBO", "ZPOPDUE 1 z1 BLOCK 0",
	"ZMOVEDUE z1 l2 LEFT BLOCK 0",
	"XREAD BLOCK 0 STREAMS nothing $", "BZPOPMIN z1 0",
	"EVAL return{redis.call('get',KEYS[1])} 1 x",
	"RL.TAKE r1 1 1000 ALGO window", "LOCK.ACQUIRE k1 you 1000", "SWAPDB 0 1", "RENAME l1 l9", "GET x",
	"OBJECT ENCODING l1", "DBSIZE", "RANDOMKEY",
}

// Whatever clients send while a log is read, and whatever falls due meanwhile: the start succeeds, and memory
// equals the files, now and at the next start.
func TestWhatClientsSendDuringALoadChangesNothing(t *testing.T) {
	tier.Sequential(t)
	for _, lines := range duringALoad {
		t.Run(strings.ReplaceAll(lines, "\n", ";"), func(t *testing.T) {
			f := newFileLife(t)
			f.fs.at = f.write(deadLog)
			f.start()
			want := f.do("DEBUG DIGEST").Str
			f.end()

			f.open()
			client := f.s.NewSession(nil)
			f.fs.between = func() {
				for line := range strings.Lines(lines) {
					client.Do(bytes.Fields([]byte(line))...)
				}
				f.clock().Advance(time.Millisecond) // the reclaimers run
			}
			if err := f.s.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			if f.fs.between != nil {
				t.Fatal("the file was not read in two pieces")
			}
			client.Closed(nil)
			f.do("CONFIG SET maxmemory 0")
			f.do("DEBUG SET-ACTIVE-EXPIRE 1")
			if got := f.do("DEBUG DIGEST").Str; got != want {
				t.Errorf("the start has %q", f.keys())
			}
			f.clock().Advance(time.Millisecond)
			if got, want := f.keys(), []string{"h1", "l1", "m1", "m2", "s1"}; !slices.Equal(got, want) {
				t.Errorf("the start leaves %q, want %q", got, want)
			}
			f.do("RPUSH l1 more")
			f.do("SET x 2")
			f.sameAfterARestart()
		})
	}
}

// A load breaks a watch that began during it, because the watched data was not loaded yet.
func TestALoadBreaksTheWatchesThatItOvertakes(t *testing.T) {
	f := newFileLife(t)
	f.fs.at = f.write(deadLog)
	f.open()
	client := f.s.NewSession(nil)
	f.fs.between = func() { client.Do([]byte("WATCH"), []byte("m1")) }
	if err := f.s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	client.Do([]byte("MULTI"))
	client.Do([]byte("GET"), []byte("m1"))
	if v := client.Do([]byte("EXEC")); !v.IsNull() {
		t.Errorf("EXEC: %v", v)
	}
	f.end()
}

// Data that is dead when the files are loaded is removed with effects, even if the reclaimers run between the
// load and the first append.
func TestWhatDiesBetweenTheLoadAndTheLogIsLogged(t *testing.T) {
	var lines strings.Builder
	for i := range 50 {
		k := "k" + strconv.Itoa(i)
		lines.WriteString("RPUSH " + k + " a b\nPEXPIREAT " + k + " 1699999999999\n")
	}
	lines.WriteString("HSET h f v g w\nHPEXPIREAT h 1699999999999 FIELDS 1 f\nRPUSH l a b c\nLPEXPIREAT l 1699999999999 INDEXES 1 0\n")
	f := newFileLife(t)
	f.write(lines.String())
	f.open()
	if err := f.s.Keeper().Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.clock().Advance(time.Millisecond)
	if err := f.s.Keeper().Start(); err != nil {
		t.Fatal(err)
	}
	f.clock().Advance(time.Millisecond)
	if f.do("RPUSH l d"); f.do("LLEN l").Int != 3 {
		t.Error("the list has not lost its dead element")
	}
	if err := f.s.Keeper().Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(f.increment())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if k := "k" + strconv.Itoa(i); bytes.Count(file, []byte("\r\n"+k+"\r\n")) != 3 {
			t.Errorf("%s has died, and the log does not say so", k)
		}
	}
	f.sameAfterARestart()
}

// The same for the stream that a master continues at the end of its RDB file: replicas that reconnect receive
// the expirations in between.
func TestWhatDiesBetweenAnRDBFileAndTheBacklogIsInTheStream(t *testing.T) {
	f := newFileLife(t, "--appendonly", "no", "--save", "3600 1")
	f.start()
	for i := range 50 {
		f.do("SET k" + strconv.Itoa(i) + " v PXAT 1700000001000")
	}
	f.do("HSET h f v g w")
	f.do("HPEXPIREAT h 1700000001000 FIELDS 1 f")
	f.s.Replication().Restore(strings.Repeat("1", 40), f.s.DB.Log().End(), -1)
	f.do("SAVE")
	f.end()

	f.open()
	if err := f.s.Keeper().Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.clock().Advance(2 * time.Second)
	o := f.s.Keeper().Origin()
	f.s.Replication().Restore(o.ID, o.Offset, o.DB)
	from := f.s.DB.Log().End()
	if err := f.s.Keeper().Start(); err != nil {
		t.Fatal(err)
	}
	f.clock().Advance(time.Millisecond)
	r, err := f.s.DB.Log().ReaderAt(from, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var stream []byte
	for b := r.Next(); b != nil; b = r.Next() {
		stream = append(stream, b...)
	}
	for i := range 50 {
		if k := "\r\nk" + strconv.Itoa(i) + "\r\n"; !bytes.Contains(stream, []byte(k)) {
			t.Errorf("%q has died, and the stream does not say so", k)
		}
	}
	if !bytes.Contains(stream, []byte("HDEL")) {
		t.Error("a field has died, and the stream does not say so")
	}
	f.end()
}

// DEBUG LOADAOF restores the past for a moment: it does not serve a waiting client, which is served
// afterwards.
func TestLOADAOFServesNoWaitingClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFileLife(t)
		f.start()
		for _, line := range []string{"RPUSH q a b", "LSET q 0 c", "DEL q", "RPUSH q2 a b", "LSET q2 1 c", "DEL q2"} {
			f.do(line)
		}
		waiting := f.s.NewSession(nil)
		got := make(chan resp.Value, 1)
		go func() {
			got <- waiting.Do([]byte("BLMPOP"), []byte("0"), []byte("2"), []byte("q"), []byte("q2"), []byte("LEFT"))
		}()
		synctest.Wait()
		f.do("DEBUG LOADAOF")
		synctest.Wait()
		select {
		case v := <-got:
			t.Errorf("the load has served a client: %v", v)
		default:
		}
		f.do("RPUSH q2 z")
		if v := <-got; len(v.Elems) != 2 || v.Elems[1].Elems[0].Str != "z" {
			t.Errorf("got %v", v)
		}
		f.sameAfterARestart()
		f.end()
	})
}

// Data that is dead but not removed when DEBUG RELOAD saves must still exist for the log and the replicas. If
// the file did not contain it, it would only disappear from memory: a key of another type could replace it,
// and the next start would fail with WRONGTYPE.
func TestAReloadKeepsTheDeadUntilTheLogHasThem(t *testing.T) {
	f := newFileLife(t)
	f.start()
	for _, line := range []string{"DEBUG SET-ACTIVE-EXPIRE 0", "RL.TAKE r2 1 1000 ALGO window", "RPUSH l a b", "PEXPIRE l 1000",
		"SADD s a", "PEXPIRE s 1000"} {
		f.do(line)
	}
	f.clock().Advance(time.Minute)
	for _, line := range []string{"DEBUG RELOAD", "RL.RESERVE r2 1 60000 COST 1", "HSET l f v", "ZADD s 1 a"} {
		f.do(line)
	}
	f.sameAfterARestart()
	f.end()
}

// Data that falls due between the save and the load of a reload exists again after it, so the reclaimers must
// not remove it in between: an element of a list would be removed twice.
func TestWhatDiesDuringAReloadGoesOnce(t *testing.T) {
	f := newFileLife(t)
	f.start()
	for _, line := range []string{"RPUSH l a b c", "LPEXPIRE l 1000 INDEXES 1 0", "SET k v PX 1000"} {
		f.do(line)
	}
	f.fs.rename = func(to string) {
		if to == "dump.rdb" {
			f.clock().Advance(2 * time.Second)
		}
	}
	f.do("DEBUG RELOAD")
	f.fs.rename = nil
	f.clock().Advance(time.Second)
	f.sameAfterARestart()
	if n := f.do("LLEN l").Int; n != 2 {
		t.Errorf("the list has %d elements", n)
	}
	f.end()
}
