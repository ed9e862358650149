package rdb

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/rdbtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// The files in testdata were written by SAVE of the servers they are named after.
// Database 0 holds the samples of the same name, of which those with a name that
// ends in 1 have a deadline; databases 1 and 9 hold the keys of this list. Redis 7.0
// kept times of access, Redis 8.0 counters, and Valkey 8.1 wrote no checksum. Valkey 9.1 had
// loaded the file of 8.1, and got two hashes with deadlines. No server of Valkey 9.2 could be
// run: its files are that of 9.1, with the next version and its checksum in it, compressed by
// the programs lz4 (-B4 -BX) and zstd, in envelopes.

// farAway is a deadline in 2100.
const farAway = 4102444800000

func realFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".rdb"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// others are the keys of databases 1 and 9.
func others(name string) []string {
	all := []string{
		`db1 "" deadline 0: string ["empty key"]`,
		`db1 "12345" deadline 0: string ["numeric key"]`,
		`db1 "` + strings.Repeat("k", 100) + `" deadline 0: string ["compressed key"]`,
		`db1 "h" deadline 4102444802000: hash ["a" "1" "0" "b" "2" "0"]`,
		`db1 "past" deadline 0: string ["x"]`,
		`db1 "plain" deadline 4102444800001: string ["value"]`,
		`db1 "short" deadline 0: list ["0" "1" "2" "3" "4"]`,
		`db9 "s" deadline 0: set ["1" "2" "3"]`,
		`db9 "z" deadline 0: zset ["a" "1" "b" "2.5"]`,
	}
	if name == "redis80" || name == "valkey91" {
		fields := `deadline 0: hash ["a" "1" "4102444800003" "b" "2" "4102444800004" "c" "3" "0"]`
		all = append(all, `db1 "timed" `+fields, `db1 "timedbig" `+fields)
	}
	slices.Sort(all)
	return all
}

func TestFilesOfRealServersAreRead(t *testing.T) {
	for name, version := range map[string]int{"redis70": 10, "redis80": 12, "valkey81": 11, "valkey91": 80,
		"valkey92-lz4": 81, "valkey92-zstd": 81} {
		t.Run(name, func(t *testing.T) {
			aux, functions, sizes := map[string]string{}, []string{}, map[int]uint64{}
			o := ReaderOptions{
				Aux:      func(k, v []byte) error { aux[string(k)] = string(v); return nil },
				Function: func(code []byte) error { functions = append(functions, string(code)); return nil },
				Resize:   func(db int, keys, _ uint64) error { sizes[db] = keys; return nil },
			}
			all, err := readFile(bytes.NewReader(realFile(t, name)), o)
			if err != nil {
				t.Fatal(err)
			}
			checkReal(t, name, all)
			slices.Sort(functions)
			if len(functions) != 2 || !strings.HasPrefix(functions[0], "#!lua name=lib1\n") ||
				!strings.HasPrefix(functions[1], "#!lua name=lib2\n") {
				t.Errorf("functions %q", functions)
			}
			if v := aux["redis-ver"] + aux["valkey-ver"]; v == "" || aux["redis-bits"] != "64" {
				t.Errorf("aux %q", aux)
			}
			if sizes[9] != 2 || sizes[0] == 0 {
				t.Errorf("sizes %v", sizes)
			}
			rd := NewReader(bytes.NewReader(realFile(t, name)), ReaderOptions{})
			e, err := rd.Next()
			if err != nil || e.Version != version || (e.Dialect == Valkey) != strings.HasPrefix(name, "valkey") {
				t.Errorf("%+v, %v", e, err)
			}
			if _, with, _ := strings.Cut(name, "-"); with != map[Compression]string{LZ4: "lz4", Zstandard: "zstd"}[rd.Compression()] ||
				e.With != rd.Compression() {
				t.Errorf("compressed with %s", rd.Compression())
			}
		})
	}
}

// checkReal compares a file's keys with what its server was given.
func checkReal(t *testing.T, name string, all []record) {
	t.Helper()
	want := map[string]rdbtest.Payload{}
	from := name
	if strings.HasPrefix(name, "valkey9") {
		name, from = "valkey91", "valkey81" // which it had loaded
	}
	for _, s := range samples(t, from) {
		want[s.Name] = s
	}
	var rest []string
	for _, r := range all {
		if (r.idle >= 0) != (name == "redis70") || (r.freq >= 0) != (name == "redis80") {
			t.Errorf("%q: idle %d, freq %d", r.key, r.idle, r.freq)
		}
		if r.key == "dead" { // it expired since, or before SAVE came to it
			continue
		}
		if r.db != 0 {
			rest = append(rest, fmt.Sprintf("db%d %q deadline %d: %s %q", r.db, r.key, r.deadline, r.value.kind, r.value.flat()))
			continue
		}
		s, ok := want[r.key]
		delete(want, r.key)
		deadline := int64(0)
		if strings.HasSuffix(r.key, "1") {
			deadline = farAway
		}
		v, err := decode(s.Dump)
		if !ok || err != nil || r.value.kind != v.kind || r.deadline != deadline || !slices.Equal(r.value.flat(), v.flat()) {
			t.Errorf("%q is a %s with deadline %d: %.300q", r.key, r.value.kind, r.deadline, r.value.flat())
		}
	}
	for k := range want {
		t.Errorf("%q is missing", k)
	}
	slices.Sort(rest)
	if !slices.Equal(rest, others(name)) {
		t.Errorf("got  %q\nwant %q", rest, others(name))
	}
}

// TestFilesOfClustersAreRead reads what holds the sizes of slots.
func TestFilesOfClustersAreRead(t *testing.T) {
	for _, name := range []string{"redis80-cluster", "valkey81-cluster"} {
		all, err := readFile(bytes.NewReader(realFile(t, name)), ReaderOptions{})
		if err != nil || len(all) != 3 {
			t.Errorf("%s: %d keys, %v", name, len(all), err)
		}
	}
}

// plainCopy writes what a file holds, without fields' deadlines, and returns it
// with the values it wrote.
func plainCopy(t *testing.T, file []byte) ([]byte, map[string]*recorder) {
	t.Helper()
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Checksum: true, Compress: true})
	w.Header(PlainVersion)
	w.Aux("redis-ver", "7.0.15")
	w.Aux("ctime", "1700000000")
	values := map[string]*recorder{}
	var d Decoder
	e := Encoder{Compress: true, Plain: true}
	rd := NewReader(bytes.NewReader(file), ReaderOptions{Function: func(code []byte) error { w.Function(code); return nil }})
	for {
		en, err := rd.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e.Key = en.Key
		e.Record(en.Deadline, -1, -1)
		values[fmt.Sprintf("%d %s", en.DB, en.Key)] = copyValue(t, &d, &e, en)
		if e.Version() != PlainVersion {
			t.Fatalf("%q needs version %d", en.Key, e.Version())
		}
		_ = w.Records(en.DB, e.Buf)
		e.Reset(e.Buf[:0])
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return f.Bytes(), values
}

// copyValue encodes an entry's value and returns what it is without deadlines.
func copyValue(t *testing.T, d *Decoder, e *Encoder, en *Entry) *recorder {
	t.Helper()
	r := &recorder{}
	if err := d.Entry(en, r); err != nil {
		t.Fatal(err)
	}
	if r.kind == "stream" {
		c := &streamCopier{e: *e}
		if err := d.Entry(en, c); err != nil {
			t.Fatal(err)
		}
		c.flush()
		*e = c.e
		return r
	}
	for _, p := range r.parts {
		if r.kind == "hash" {
			p[2] = "0"
		}
	}
	encodeRecorder(t, e, r)
	return r
}

func TestRedisReadsWhatIsWritten(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"redis70", "redis80", "valkey81"} {
		file, values := plainCopy(t, realFile(t, name))
		path := filepath.Join(dir, name+".rdb")
		if err := os.WriteFile(path, file, 0o644); err != nil {
			t.Fatal(err)
		}
		checkRDB(t, path)
		addr := realserver.Start(t, "redis-server", "--dir", dir, "--dbfilename", name+".rdb")
		compareDumps(t, addr, values)
	}
}

// TestRedisReadsPastWhatIsOurs: redis-check-rdb knows no module, and is content with
// what modules write, and with a text between keys.
func TestRedisReadsPastWhatIsOurs(t *testing.T) {
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Checksum: true})
	w.Header(PlainVersion)
	var e Encoder
	e.Key = []byte("filter")
	e.Record(farAway, -1, 200)
	e.Module("ebb-bloom", []byte("bytes of its own"))
	_ = w.Records(0, e.Buf)
	w.Aux("ebb-text", "1")
	e.Reset(nil)
	e.Record(0, 1000, -1)
	e.String([]byte("v"))
	_ = w.Records(3, e.Buf)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "own.rdb")
	if err := os.WriteFile(path, f.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	checkRDB(t, path)
}

func checkRDB(t *testing.T, path string) {
	t.Helper()
	program := realserver.Program(t, "redis-check-rdb")
	if out, err := exec.Command(program, path).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("looks OK")) {
		t.Errorf("%s: %v: %s", path, err, out)
	}
}

// compareDumps requests all values of a server.
func compareDumps(t *testing.T, addr string, values map[string]*recorder) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	r := bufio.NewReader(nc)
	for k, want := range values {
		db, key, _ := strings.Cut(k, " ")
		_, _ = fmt.Fprintf(nc, "*2\r\n$6\r\nSELECT\r\n$%d\r\n%s\r\n*2\r\n$4\r\nDUMP\r\n$%d\r\n%s\r\n", len(db), db, len(key), key)
		if s, err := r.ReadString('\n'); err != nil || s != "+OK\r\n" {
			t.Fatal(s, err)
		}
		s, _ := r.ReadString('\n')
		n, err := strconv.Atoi(strings.Trim(s, "$\r\n"))
		if key == "dead" && n < 0 {
			continue
		}
		if err != nil || n < 0 {
			t.Fatalf("DUMP %s: %q", key, s)
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			t.Fatal(err)
		}
		got, err := decode(b[:n])
		if err != nil || got.kind != want.kind || !slices.Equal(activeWhenSeen(got.flat()), activeWhenSeen(want.flat())) {
			t.Errorf("%s: %v\n got %.300q\nwant %.300q", k, err, got.flat(), want.flat())
		}
	}
}

// TestVersion12IsWrittenWhereItIsNeeded corrects a header, or cannot: then data
// that the version does not hold is refused.
func TestVersion12IsWrittenWhereItIsNeeded(t *testing.T) {
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Checksum: true, Patch: f})
	w.Header(0)
	var e Encoder
	e.Key = []byte("h")
	e.BeginHash(1, farAway)
	e.Field([]byte("a"), []byte("1"), farAway)
	e.EndHash()
	if err := errors.Join(w.Records(0, e.Buf), w.Raise(e.Version()), w.End()); err != nil {
		t.Fatal(err)
	}
	if all, err := readFile(f, ReaderOptions{}); err != nil || len(all) != 1 || all[0].value.parts[0][2] != strconv.Itoa(farAway) {
		t.Fatal(all, err)
	}
	w = NewWriter(io.Discard, WriterOptions{})
	w.Header(PlainVersion)
	if err := w.Raise(e.Version()); err == nil || w.End() != err {
		t.Error("version 10 takes what it does not hold")
	}
}
