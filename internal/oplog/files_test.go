package oplog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
)

// dir returns a disk with files. A path that does not begin with / is in the append-only directory.
func dir(t *testing.T, files map[string]string) *crashfs.FS {
	t.Helper()
	f := crashfs.New(1)
	if err := f.MkdirAll(worldDir); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if !strings.HasPrefix(name, "/") {
			name = worldDir + "/" + name
		}
		w, err := f.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	return f
}

// load opens and loads the files.
func load(f disk.FS, cut bool) (commands int64, sum Loaded, err error) {
	files, err := OpenFiles(f, worldDir, "a.aof")
	if err != nil {
		return 0, sum, err
	}
	sum, err = files.Load(Loader{CutTail: cut, Command: func([][]byte, Place) error { commands++; return nil }})
	return commands, sum, err
}

const twoIncrs = "file a.aof.1.incr.aof seq 1 type i\nfile a.aof.2.incr.aof seq 2 type i\n"

func TestLoadCutsTheLastFileAtAnyByteOfATornRecord(t *testing.T) {
	head := string(request("SELECT 0", "SET a 1"))
	last := string(request("MULTI", "SET key value", "DEL b", "EXEC"))
	for n := 1; n < len(last); n++ {
		for _, empty := range []bool{false, true} { // files without data may follow
			f := dir(t, map[string]string{
				"a.aof.manifest": twoIncrs, "a.aof.1.incr.aof": string(request("SET b 1")), "a.aof.2.incr.aof": head + last[:n],
			})
			name := "a.aof.2.incr.aof"
			if empty {
				f = dir(t, map[string]string{"a.aof.manifest": twoIncrs, "a.aof.1.incr.aof": head + last[:n], "a.aof.2.incr.aof": ""})
				name = "a.aof.1.incr.aof"
			}
			var bad *AOFError
			if _, _, err := load(f, false); !errors.As(err, &bad) || !bad.Truncated || !strings.Contains(err.Error(), "aof-load-truncated") {
				t.Fatalf("cut at %d, aof-load-truncated no: %v", n, err)
			}
			_, sum, err := load(f, true)
			if err != nil || sum.Cut != int64(n) || sum.CutFile != worldDir+"/"+name {
				t.Fatalf("cut at %d: %+v, %v", n, sum, err)
			}
			f = f.Crash()
			if b, _ := f.ReadFile(worldDir + "/" + name); string(b) != head && len(b) > 0 { // the names were never synced
				t.Fatalf("cut at %d: %q is left", n, b)
			}
		}
	}
}

func TestATornFileWithDataBehindItIsRefused(t *testing.T) {
	torn := string(request("SET a 1"))[:10]
	f := dir(t, map[string]string{"a.aof.manifest": twoIncrs, "a.aof.1.incr.aof": torn, "a.aof.2.incr.aof": string(request("SET b 1"))})
	if _, _, err := load(f, true); err == nil || !strings.Contains(err.Error(), "other files follow") {
		t.Errorf("got %v", err)
	}
}

func TestAFileThatIsWrongNamesTheOffset(t *testing.T) {
	first := string(request("SET a 1")) + "nonsense"
	f := dir(t, map[string]string{"a.aof.manifest": twoIncrs, "a.aof.1.incr.aof": first, "a.aof.2.incr.aof": ""})
	_, _, err := load(f, true)
	var bad *AOFError
	if !errors.As(err, &bad) || bad.Good != 27 || !strings.Contains(err.Error(), "a.aof.1.incr.aof") {
		t.Errorf("got %v", err)
	}
}

func TestAListedFileThatIsMissingIsNamed(t *testing.T) {
	f := dir(t, map[string]string{"a.aof.manifest": twoIncrs, "a.aof.1.incr.aof": ""})
	_, _, err := load(f, true)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "a.aof.2.incr.aof is missing") {
		t.Errorf("got %v", err)
	}
}

func TestAMissingManifestBesideDataIsRefused(t *testing.T) {
	f := dir(t, map[string]string{"a.aof.1.incr.aof": string(request("SET a 1"))})
	if _, _, err := load(f, true); err == nil || !strings.Contains(err.Error(), "the manifest /data/appendonlydir/a.aof.manifest is missing") {
		t.Errorf("got %v", err)
	}
	f = dir(t, map[string]string{"a.aof.1.incr.aof": "", "other.aof.1.incr.aof": "x"})
	if _, _, err := load(f, true); err != nil {
		t.Errorf("nothing of ours is lost: %v", err)
	}
}

func TestWhatARewriteLeftIsRemoved(t *testing.T) {
	f := dir(t, map[string]string{
		"a.aof.manifest": "file a.aof.2.base.rdb seq 2 type b\nfile a.aof.1.base.rdb seq 1 type h\nfile a.aof.9.incr.aof seq 9 type h\nfile " +
			"a.aof.10.incr.aof seq 10 type i\n",
		"a.aof.1.base.rdb": "old", "a.aof.2.base.rdb": string(request("SET a 1")), "a.aof.10.incr.aof": string(request("SET b 1")),
		"temp-a.aof.11.incr.aof": "x", "temp-a.aof.manifest": "x", "others": "x",
	})
	n, _, err := load(f, true)
	names, _ := f.ReadDir(worldDir)
	if want := "[a.aof.10.incr.aof a.aof.2.base.rdb a.aof.manifest others]"; err != nil || n != 2 || fmt.Sprint(names) != want {
		t.Errorf("%d commands, %v, %v; want %s", n, err, names, want)
	}
	text, _ := f.ReadFile(worldDir + "/a.aof.manifest")
	if want := "file a.aof.2.base.rdb seq 2 type b\nfile a.aof.10.incr.aof seq 10 type i\n"; string(text) != want {
		t.Errorf("the manifest is %q", text)
	}
}

// An old file is moved into the directory. A power cut at any time loses neither its place nor its data.
func TestAnOldFileBecomesTheBase(t *testing.T) {
	for changes := range 12 {
		f := dir(t, map[string]string{"/data/a.aof": string(request("SET a 1", "SET b 2"))})
		for _, d := range []string{"/", "/data"} {
			if err := f.SyncDir(d); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Truncate("/data/a.aof", int64(len(request("SET a 1", "SET b 2")))); err != nil { // synced
			t.Fatal(err)
		}
		f.DieAfter(changes)
		_, _, err := load(f, true)
		if err != nil && !errors.Is(err, crashfs.ErrDead) {
			t.Fatal(err)
		}
		f = f.Crash()
		files, err := OpenFiles(f, worldDir, "a.aof")
		if err != nil {
			t.Fatalf("after %d changes: %v", changes, err)
		}
		if got := string(files.manifest.Format()); got != "file a.aof seq 1 type b\n" {
			t.Fatalf("after %d changes: %q", changes, got)
		}
		if n, _, err := load(f, false); n != 2 || err != nil {
			t.Fatalf("after %d changes: %d commands, %v", changes, n, err)
		}
	}
}

// A manifest that a start would refuse is not written.
func TestTheNumbersOfFilesHaveAnEnd(t *testing.T) {
	text := fmt.Sprintf("file a.aof.9.incr.aof seq %d type i\n", int64(maxSeq))
	f := dir(t, map[string]string{"a.aof.manifest": text, "a.aof.9.incr.aof": string(request("SET a 1"))})
	files, err := OpenFiles(f, worldDir, "a.aof")
	if err != nil {
		t.Fatal(err)
	}
	next := *files.manifest
	next.Incrs = append(slices.Clone(next.Incrs), files.nextIncr())
	if err := files.save(&next); err == nil || !strings.Contains(err.Error(), "the number of the next append-only file is above") {
		t.Errorf("a further file: %v", err)
	}
	if n, _, err := load(f, false); n != 1 || err != nil {
		t.Errorf("a later start: %d commands, %v", n, err)
	}
}

func TestASnapshotBeforeCommandsIsReadFirst(t *testing.T) {
	commands := string(request("SET a 1"))
	for _, tail := range []string{commands, commands + commands[:9]} {
		f := dir(t, map[string]string{"a.aof.manifest": "file a.aof.1.base.aof seq 1 type b\n", "a.aof.1.base.aof": "REDIS0010 snapshot." + tail})
		files, err := OpenFiles(f, worldDir, "a.aof")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		sum, err := files.Load(Loader{
			CutTail: true,
			RDB: func(r io.Reader) ([]byte, error) {
				b := make([]byte, 24) // some bytes too many
				_, err := io.ReadFull(r, b)
				got = append(got, string(b[:19]))
				return b[19:], err
			},
			Command: func(args [][]byte, _ Place) error { got = append(got, string(args[0])); return nil },
		})
		if want := "[REDIS0010 snapshot. SET]"; err != nil || fmt.Sprint(got) != want || sum.Cut != int64(len(tail)-len(commands)) {
			t.Errorf("%q, %+v, %v; want %s", got, sum, err, want)
		}
	}
}
