package check

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// now is a moment in November 2026, after the files in testdata were written.
const now = 1_795_400_000_000

// run checks a path, and returns what is said without the path of dir.
func run(dir, name string, o Options) (said string, ok bool) {
	var out bytes.Buffer
	o.FS, o.Out, o.Now = disk.OS(), &out, now
	ok = Run(o, []string{filepath.Join(dir, name)})
	return strings.ReplaceAll(out.String(), dir+string(filepath.Separator), ""), ok
}

// put writes a file.
func put(t testing.TB, dir, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// want compares what was said with lines.
func want(t *testing.T, what, said string, ok bool, lines ...string) {
	t.Helper()
	text := strings.Join(lines, "\n") + "\n"
	if said != text || ok == strings.Contains(text, "WRONG") && !strings.Contains(text, "fixed") {
		t.Errorf("%s: ok %v; it says\n%s\nand should say\n%s", what, ok, said, text)
	}
}

// copyReal copies the append-only files of redis-server 7.0 to a directory in dir.
func copyReal(t testing.TB, dir string) (incr string) {
	t.Helper()
	for _, name := range []string{"appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof", "appendonly.aof.manifest"} {
		put(t, filepath.Join(dir, "appendonlydir"), name, get(t, filepath.Join("testdata", "redis70", name)))
	}
	return filepath.Join("appendonlydir", "appendonly.aof.2.incr.aof")
}

func TestADirectoryOfRedis(t *testing.T) {
	dir := t.TempDir()
	copyReal(t, dir)
	put(t, filepath.Join(dir, "appendonlydir"), "appendonly.aof.1.base.rdb", []byte("left over"))
	put(t, filepath.Join(dir, "appendonlydir"), "temp-rewrite.aof", []byte("not yet"))
	put(t, dir, "dump.rdb", get(t, "../rdb/testdata/valkey81-cluster.rdb"))
	said, ok := run(dir, "", Options{})
	want(t, "a directory", said, ok,
		"appendonlydir/appendonly.aof.manifest: manifest of a base and increments: 1",
		"  appendonlydir/appendonly.aof.2.base.rdb: RDB file, version 10 of Redis (redis-ver 7.0.15), 123 bytes, written 2026-11-22 10:00:06 UTC",
		"    database  type               keys  with deadline    expired          bytes",
		"           0  string                1              0          0              7",
		"           3  hash                  1              0          0             15",
		"         all                        2              0          0             22",
		"    ok",
		"  appendonlydir/appendonly.aof.2.incr.aof: append-only file, 257 bytes",
		"    database    commands",
		"           0           1",
		"           3           4",
		"    transactions: 1",
		"    SET 2, HSET 1, PEXPIREAT 1, RPUSH 1",
		"    ok",
		"appendonlydir/appendonly.aof.1.base.rdb: no manifest names it, so it is not loaded",
		"dump.rdb: RDB file, version 11 of Valkey (valkey-ver 8.1.1), 179 bytes, written 2026-11-22 09:49:02 UTC",
		"  database  type               keys  with deadline    expired          bytes",
		"         0  string                3              1          0             12",
		"       all                        3              1          0             12",
		"  ok")
}

// TestATailIsCutOffWhereRedisCutsIt cuts the last commands at every byte.
func TestATailIsCutOffWhereRedisCutsIt(t *testing.T) {
	dir := t.TempDir()
	incr := copyReal(t, dir)
	whole := get(t, filepath.Join(dir, incr))
	for n := len(whole); n > 100; n-- {
		if err := os.WriteFile(filepath.Join(dir, incr), whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		said, ok := run(dir, "", Options{})
		if ok {
			continue
		}
		if !strings.Contains(said, "WRONG: the file ends within a") || !strings.Contains(said, "--fix cuts these bytes off.") {
			t.Fatalf("%d bytes: %s", n, said)
		}
		asked := ""
		said, ok = run(dir, "", Options{Fix: true, Ask: func(q string) bool { asked = q; return true }})
		if !ok || !strings.Contains(said, "fixed:") || !strings.HasPrefix(asked, "Cut the last ") {
			t.Fatalf("%d bytes are not repaired: %s", n, said)
		}
		if said, ok = run(dir, "", Options{}); !ok {
			t.Fatalf("%d bytes stay wrong: %s", n, said)
		}
		if n%10 == 0 {
			compareWithRedis(t, whole[:n], get(t, filepath.Join(dir, incr)))
		}
	}
}

// compareWithRedis has redis-check-aof repair a file.
func compareWithRedis(t *testing.T, cut, fixed []byte) {
	t.Helper()
	program := realserver.Program(t, "redis-check-aof")
	name := filepath.Join(t.TempDir(), "cut.aof")
	if err := os.WriteFile(name, cut, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--fix", name)
	cmd.Stdin = strings.NewReader("y\n")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if theirs := get(t, name); !bytes.Equal(theirs, fixed) {
		t.Errorf("of %d bytes Redis keeps %d, and we %d", len(cut), len(theirs), len(fixed))
	}
}

func TestWhatIsWrongWithAppendOnlyFiles(t *testing.T) {
	set := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
	table := "  database    commands\n         0           1\n  SET 1"
	for name, c := range map[string]struct{ file, said string }{
		"empty": {"", "x.aof: append-only file, 0 bytes\n  ok"},
		"annotations": {"#TS:1795400000\r\n" + set, "x.aof: append-only file, 43 bytes\n  database    commands\n" +
			"         0           1\n  newest time: 2026-11-23 02:13:20 UTC\n  SET 1\n  ok"},
		"cut": {set + set[:20], "x.aof: append-only file, 47 bytes\n" + table +
			"\n  WRONG: the file ends within a command, at offset 47: 20 bytes stand behind the last whole command, which " +
			"begin with the command \"SET\" \"k\"\n  --fix cuts these bytes off."},
		"transaction": {set + "*1\r\n$5\r\nMULTI\r\n" + set, "x.aof: append-only file, 69 bytes\n" + table +
			"\n  WRONG: the file ends within a transaction, at offset 69: 42 bytes stand behind the last whole command, " +
			"which begin with the command \"MULTI\"\n  --fix cuts these bytes off."},
		"damaged": {set + "*1\r\n?" + set, "x.aof: append-only file, 59 bytes\n" + table +
			"\n  WRONG: the file has '?' where '$' should be, at offset 31: 32 bytes stand behind the last whole command, which begin " +
			"with the bytes \"*1\\r\\n?*3\\r\\n$3\\r\\nSET\\r\\n$1\\r\\nk\\r\\n$1\\r\\nv\\r\\n\"\n  That is not a tail that was cut off: " +
			"whole commands may follow. To lose them, cut the file to 27 bytes."},
	} {
		dir := t.TempDir()
		put(t, dir, "x.aof", []byte(c.file))
		said, ok := run(dir, "x.aof", Options{})
		want(t, name, said, ok, c.said)
	}
}

// TestOldFilesBeginWithASnapshot reads an append-only file as Redis 4 to 6 wrote it.
func TestOldFilesBeginWithASnapshot(t *testing.T) {
	dir := t.TempDir()
	head := get(t, "../rdb/testdata/redis80-cluster.rdb")
	set := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
	put(t, dir, "appendonly.aof", append(head[:len(head):len(head)], set+"*2\r\n$3"...))
	yes := func(string) bool { return true }
	said, ok := run(dir, "appendonly.aof", Options{Fix: true, Ask: yes})
	want(t, "an old file", said, ok,
		"appendonly.aof: RDB file, version 12 of Redis (redis-ver 8.0.2), 165 bytes, written 2026-11-22 09:48:59 UTC",
		"  database  type               keys  with deadline    expired          bytes",
		"         0  string                3              1          0             12",
		"       all                        3              1          0             12",
		"  and commands from offset 132 on",
		"  database    commands",
		"         0           1",
		"  SET 1",
		"  WRONG: the file ends within a command, at offset 165: 6 bytes stand behind the last whole command, which begin "+
			"with the bytes \"*2\\r\\n$3\"",
		"  fixed: 6 bytes are cut off, 159 are left",
		"  ok")
	if said, ok := run(dir, "appendonly.aof", Options{}); !ok {
		t.Error(said)
	}
	put(t, dir, "x.rdb", append(head, "more"...))
	if said, ok := run(dir, "x.rdb", Options{}); ok || !strings.Contains(said, "WRONG: 4 bytes follow the end at offset 132") {
		t.Error(said)
	}
}

func TestWhatIsWrongWithManifests(t *testing.T) {
	dir := t.TempDir()
	incr := copyReal(t, dir)
	manifest := filepath.Join("appendonlydir", "appendonly.aof.manifest")
	said, ok := run(dir, manifest, Options{})
	if !ok {
		t.Fatal(said)
	}
	text := get(t, filepath.Join(dir, manifest))
	put(t, dir, manifest, append(text, "file appendonly.aof.3.incr.aof seq 3 type i\n"...))
	put(t, filepath.Join(dir, "appendonlydir"), "appendonly.aof.3.incr.aof", []byte("*1\r\n$4\r\nPING\r\n"))
	whole := get(t, filepath.Join(dir, incr))
	put(t, dir, incr, whole[:len(whole)-1])
	said, ok = run(dir, manifest, Options{Fix: true, Ask: func(string) bool { t.Error("asked"); return true }})
	if ok || !strings.Contains(said, "More data follows in the next file, so it may not be cut off here.") {
		t.Error(said)
	}
	for name, c := range map[string]struct{ text, said string }{
		"missing": {string(text) + "file appendonly.aof.4.incr.aof seq 4 type i\n",
			"WRONG: the manifest names appendonly.aof.4.incr.aof, but: "},
		"no number": {"file x seq y type b\n", "WRONG: the manifest of the append-only files is invalid: line 1"},
		"empty":     {"", "WRONG: the manifest of the append-only files is invalid: the file is empty"},
	} {
		put(t, dir, manifest, []byte(c.text))
		if said, ok := run(dir, manifest, Options{}); ok || !strings.Contains(said, c.said) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// TestFixAsksAndRespectsLocks: a no leaves the file as it is, and so does a server
// that has its directory.
func TestFixAsksAndRespectsLocks(t *testing.T) {
	dir := t.TempDir()
	incr := copyReal(t, dir)
	cut := get(t, filepath.Join(dir, incr))[:250]
	put(t, dir, incr, cut)
	no := func(string) bool { return false }
	if said, ok := run(dir, incr, Options{Fix: true, Ask: no}); ok || !strings.Contains(said, "left as it is") {
		t.Error(said)
	}
	lock, err := disk.OS().Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	yes := func(string) bool { return true }
	if said, ok := run(dir, incr, Options{Fix: true, Ask: yes}); ok ||
		!strings.Contains(said, fmt.Sprintf("WRONG: not repaired: the directory %s is "+
			"in use by process %d", dir, os.Getpid())) {
		t.Error(said)
	}
	if !bytes.Equal(get(t, filepath.Join(dir, incr)), cut) {
		t.Error("the file has changed")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if said, ok := run(dir, incr, Options{Fix: true, Ask: yes}); !ok {
		t.Error(said)
	}
}

// snapshotOf writes an RDB file.
func snapshotOf(write func(w *rdb.Writer, e *rdb.Encoder)) []byte {
	var b bytes.Buffer
	w := rdb.NewWriter(&b, rdb.WriterOptions{Checksum: true})
	w.Header(rdb.PlainVersion)
	write(w, &rdb.Encoder{})
	_ = w.End()
	return b.Bytes()
}

// add adds a key whose value write encodes.
func add(w *rdb.Writer, e *rdb.Encoder, db int, key string, deadline int64, write func()) {
	e.Key = []byte(key)
	e.Record(deadline, -1, -1)
	write()
	_ = w.Records(db, e.Buf)
	e.Reset(e.Buf[:0])
}

// TestCompressedFilesAreChecked: with what stands behind the frame.
func TestCompressedFilesAreChecked(t *testing.T) {
	dir := t.TempDir()
	for with, name := range map[string]string{"LZ4": "valkey92-lz4.rdb", "Zstandard": "valkey92-zstd.rdb"} {
		b := get(t, filepath.Join("../rdb/testdata", name))
		put(t, dir, name, b)
		said, ok := run(dir, name, Options{})
		head := fmt.Sprintf("%s: RDB file compressed with %s, version 81 of Valkey (valkey-ver 9.1.2), %d bytes, written 2026-11-23 ",
			name, with, len(b))
		if !ok || !strings.HasPrefix(said, head) || !strings.Contains(said, "\n  libraries of functions: 2\n") ||
			!strings.HasSuffix(said, "\n  ok\n") {
			t.Errorf("%s", said)
		}
		put(t, dir, name, append(slices.Clone(b), "*1\r\n$4\r\nPING\r\n"...))
		if said, ok := run(dir, name, Options{}); !ok || !strings.Contains(said, fmt.Sprintf("\n  and commands from offset %d on\n", len(b))) {
			t.Errorf("%s", said)
		}
		put(t, dir, name, append(slices.Clone(b), "nothing"...))
		if said, ok := run(dir, name, Options{}); ok || !strings.Contains(said,
			fmt.Sprintf("WRONG: 7 bytes follow the end at offset %d", len(b))) {
			t.Errorf("%s", said)
		}
	}
}

func TestWrongValuesAreNamedAndTheRestIsCounted(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "x.rdb", snapshotOf(func(w *rdb.Writer, e *rdb.Encoder) {
		add(w, e, 0, "a", 0, func() { e.String([]byte("v")) })
		add(w, e, 0, "twice", 0, func() { e.BeginSet(2); e.Member([]byte("m")); e.Member([]byte("m")); e.EndSet() })
		add(w, e, 0, "dead", now-1, func() { e.String([]byte("v")) })
		add(w, e, 0, "alive", now, func() { e.String([]byte("v")) })
		add(w, e, 0, "a", 0, func() { e.String([]byte("v")) })
		add(w, e, 2, "a", 0, func() { e.Module("ebb-nonex", []byte("x")) })
		add(w, e, 2, "stranger", 0, func() { e.Module("ReJSON-RL", []byte("x")) })
	}))
	said, ok := run(dir, "x.rdb", Options{})
	want(t, "wrong values", said, ok,
		"x.rdb: RDB file, version 10 of Redis, 118 bytes",
		"  database  type               keys  with deadline    expired          bytes",
		"         0  broken                1              0          0             11",
		"         0  string                3              2          1             19",
		"         2  broken                1              0          0             15",
		"       all                        5              2          1             45",
		`  WRONG: at offset 28, in the value of key "twice" of database 0: rdb: bad data format: the member "m" comes twice`,
		`  WRONG: at offset 66, in the value of key "a" of database 0: the key comes twice`,
		`  WRONG: at offset 86, in the value of key "a" of database 2: rdb: bad data format: there is no type "ebb-nonex"`,
		`  WRONG: values of the module "ReJSON-RL", which ebb cannot load: 1`)
}

func TestDamagedSnapshotsAreFound(t *testing.T) {
	dir := t.TempDir()
	whole := get(t, "../rdb/testdata/redis80-cluster.rdb")
	wrong := bytes.Clone(whole)
	binary.LittleEndian.PutUint64(wrong[len(wrong)-8:], 1)
	for name, c := range map[string]struct {
		file []byte
		said string
	}{
		"a cut":      {whole[:120], "WRONG: at offset 120: unexpected EOF"},
		"a checksum": {wrong, "WRONG: at offset 132: rdb: the checksum is wrong: the file says 0000000000000001, its bytes give f821"},
		"nothing":    {nil, "WRONG: at offset 0: not an RDB file: unexpected EOF"},
		"zeros":      {make([]byte, 100), "it begins with"},
	} {
		put(t, dir, "x.rdb", c.file)
		if said, ok := run(dir, "x.rdb", Options{}); ok || !strings.Contains(said, c.said) {
			t.Errorf("%s: %s", name, said)
		}
	}
	for name, what := range map[string]string{"nowhere": "WRONG: ", "": "WRONG: there are no files of data"} {
		if said, ok := run(t.TempDir(), name, Options{}); ok || !strings.Contains(said, what) {
			t.Errorf("%q: %s", name, said)
		}
	}
}
