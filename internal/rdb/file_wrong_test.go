package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// fileOf builds a file without a checksum.
func fileOf(magic string, parts ...any) []byte {
	b := []byte(magic)
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case string: // with its length
			b = append(append(b, byte(len(p))), p...)
		case []byte:
			b = append(b, p...)
		}
	}
	b = append(b, opEOF)
	if len(magic) == headerSize && (magic[0] != 'R' || magic > "REDIS0004") {
		b = append(b, make([]byte, crcSize)...)
	}
	return b
}

func little(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// longLength is a length of 8 bytes.
func longLength(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{0x81}, n) }

// aModule is a value of a module: an int, a float, a double, a string.
func aModule(name string) []byte {
	b := append([]byte{}, longLength(moduleID(name))...)
	b = append(b, 1, 5, 2, 6, 3, 0, 0, 0, 0, 4)
	b = append(append(b, little(0)...), 5, 1, 'x', 0)
	return b
}

func TestDialectsAndOldPartsAreRead(t *testing.T) {
	field := func(deadline uint64) []byte { return append([]byte{1, 'f', 1, 'v'}, little(deadline)...) }
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"the first version": {fileOf("REDIS0001", opSelect, 0, 0, "k", "v"), `db0 "k" deadline 0 idle -1 freq -1: string ["v"]`},
		"seconds": {fileOf("REDIS0002", opSeconds, []byte{0x10, 0, 0, 0}, 0, "k", "v"),
			`db0 "k" deadline 16000 idle -1 freq -1: string ["v"]`},
		"seconds before 1970": {fileOf("REDIS0002", opSeconds, []byte{0xff, 0xff, 0xff, 0xff}, 0, "k", "v"),
			`db0 "k" deadline 1 idle -1 freq -1: string ["v"]`},
		"clocks": {fileOf("REDIS0009", opIdle, 9, opDeadline, little(7), opFreq, 8, 0, "k", "v"),
			`db0 "k" deadline 7 idle 9 freq 8: string ["v"]`},
		"slots of Valkey": {fileOf("VALKEY080", opSlotImport, "job", 2, 1, 2, 3, 4, opSlotInfo, 1, 2, 3, 0, "k", "v"),
			`db0 "k" deadline 0 idle -1 ` +
				`freq -1: string ["v"]`},
		"slots of Valkey 9.2": {fileOf("VALKEY081", opSlotImport, "job", 1, 1, 2, 0, "k", "v"),
			`db0 "k" deadline 0 idle -1 freq -1: string ["v"]`},
		"fields of Valkey 9.2": {fileOf("VALKEY081", 22, "k", 1, field(5000)), `db0 "k" deadline 0 idle -1 freq -1: hash ["f" "v" "5000"]`},
		"fields of Valkey":     {fileOf("VALKEY080", 22, "k", 1, field(5000)), `db0 "k" deadline 0 idle -1 freq -1: hash ["f" "v" "5000"]`},
		"a field without one":  {fileOf("VALKEY080", 22, "k", 1, field(1<<64-1)), `db0 "k" deadline 0 idle -1 freq -1: hash ["f" "v" "0"]`},
		"fields of Redis": {fileOf("REDIS0012", 24, "k", little(5000), 1, 1, "f", "v"),
			`db0 "k" deadline 0 idle -1 freq -1: hash ["f" "v" "5000"]`},
		"an early fields hash": {fileOf("REDIS0012", 22, "k", 1, 6, "f", "v"), `db0 "k" deadline 0 idle -1 freq -1: hash ["f" "v" "6"]`},
		"what modules keep": {fileOf("REDIS0010", opModuleAux, longLength(moduleID("test-type")), 2, 1, 1, 7, 0, 0, "k", "v"),
			`db0 "k" deadline 0 ` +
				`idle -1 freq -1: string ["v"]`},
		"a module of ours": {fileOf("REDIS0010", 7, "k", longLength(moduleID("ebb-bloom")), 5, "data", 0),
			`db0 "k" deadline 0 idle -1 freq -1: module ` +
				`["ebb-bloom" "data"]`},
	} {
		all, err := readFile(bytes.NewReader(c.file), ReaderOptions{})
		if err != nil || len(all) != 1 || all[0].String() != c.want {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	for name, c := range old() {
		f := fileOf("REDIS0009", int(c.value[0]), "k", c.value[1:])
		if all, err := readFile(bytes.NewReader(f), ReaderOptions{}); err != nil || len(all) != 1 || !slices.Equal(all[0].value.flat(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStrangersAreNamedOrLeftOut(t *testing.T) {
	f := fileOf("REDIS0010", 7, "strange", aModule("ReJSON-RL"), 0, "k", "v")
	if _, err := readFile(bytes.NewReader(f), ReaderOptions{}); err == nil || !strings.Contains(err.Error(), `"ReJSON-RL"`) ||
		!strings.Contains(err.Error(),
			`key "strange"`) {
		t.Error(err)
	}
	var left []string
	all, err := readFile(bytes.NewReader(f), ReaderOptions{UnknownModule: func(module string, db int, key []byte) error {
		left = append(left, fmt.Sprint(module, db, string(key)))
		return nil
	}})
	if err != nil || len(all) != 1 || all[0].key != "k" || !slices.Equal(left, []string{"ReJSON-RL0strange"}) {
		t.Error(all, left, err)
	}
}

func TestWhatIsWrongWithAFileIsSaid(t *testing.T) {
	bomb := append([]byte{0xc3, 2}, append(longLength(1<<40), 0, 'a')...)
	for what, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":        {nil, "at offset 0: not an RDB file: unexpected EOF"},
		"something else": {[]byte("hello, world"), `at offset 9: rdb: bad data format: not an RDB file: it begins with "hello, wo"`},
		"no version":     {[]byte("REDIS00x1 "), `at offset 9: rdb: bad data format: not an RDB file: it begins with "REDIS00x1"`},
		"version 0": {fileOf("REDIS0000"), "at offset 9: rdb: bad data format: a file of Redis in version 0, of which we read 1 to 12, and up " +
			"to 79 what those have"},
		"a newer Redis": {fileOf("REDIS0080"), "at offset 9: rdb: bad data format: a file of Redis in version 80, of " +
			"which we read 1 to 12, and up to 79 what those have"},
		"a newer type": {fileOf("REDIS0014", 28, "k"), `at offset 12, in the value of key "k" of database 0: rdb: bad data format: type 28 (an ` +
			`array) of Redis in version 14 is not known`},
		"a newer opcode": {fileOf("REDIS0014", 241), "at offset 10: rdb: bad data format: opcode 241 (a key that is " +
			"not to be evicted) of a Redis file in version 14 is not known"},
		"a newer Valkey":  {fileOf("VALKEY082"), "at offset 9: rdb: bad data format: a file of Valkey in version 82, of which we read 80 and 81"},
		"an older Valkey": {fileOf("VALKEY079"), "at offset 9: rdb: bad data format: a file of Valkey in version 79, of which we read 80 and 81"},
		"a path hash": {fileOf("VALKEY081", 23, "k"),
			`at offset 12, in the value of key "k" of database 0: rdb: bad data format: type 23 (a path ` +
				`hash) of Valkey in version 81 is not known`},
		"a command in it": {fileOf("VALKEY081", 242, "*1\r\n$4\r\nPING\r\n"),
			"at offset 10: rdb: bad data format: opcode 242 (a command from a " +
				"synchronisation without a fork) of a Valkey file in version 81 is not known"},
		"early functions": {fileOf("REDIS0010", opOldFunction),
			"at offset 10: rdb: bad data format: functions in the form of Redis 7.0's release candidates"},
		"slots in Redis": {fileOf("REDIS0010", opSlotImport),
			"at offset 10: rdb: bad data format: no opcode of a Redis file in version 10 is 243"},
		"no opcode": {fileOf("REDIS0010", 230), "at offset 10: rdb: bad data format: no opcode of a Redis file in version 10 is 230"},
		"no type": {fileOf("REDIS0010", 8, "k"), `at offset 12, in the value of key "k" of database 0: rdb: bad data format: type 8 of Redis ` +
			`in version 10 is not known`},
		"a type too new": {fileOf("REDIS0010", 20, "k"), `at offset 10: rdb: bad data format: type 20 in version 10`},
		"types of Redis": {fileOf("VALKEY080", 24, "k"),
			`at offset 12, in the value of key "k" of database 0: rdb: bad data format: type 24 of ` +
				`Valkey in version 80 is not known`},
		"the database": {fileOf("REDIS0010", opSelect, longLength(1<<40)), "at offset 19: rdb: bad data format: database 1099511627776"},
		"an early module": {fileOf("REDIS0010", 6, "k"),
			`at offset 12, in the value of key "k" of database 0: rdb: bad data format: type 6 of Redis ` +
				`in version 10 is not known`},
		"no string": {fileOf("REDIS0010", 0, "k", 0xc9), `at offset 13, in the value of key "k" of database 0: rdb: bad data format: no string ` +
			`has the form 9`},
		"no length": {fileOf("REDIS0010", 0, "k", 0x90), `at offset 13, in the value of key "k" of database 0: rdb: bad data format: no length ` +
			`begins with 0x90`},
		"an impossible size": {fileOf("REDIS0010", 0, "k", longLength(1<<63)),
			`at offset 21, in the value of key "k" of database 0: rdb: bad data ` +
				`format: a length of 9223372036854775808 bytes`},
		"a lying size": {fileOf("REDIS0010", 0, "k", longLength(1<<61)), `at offset 30, in the value of key "k" of database 0: unexpected EOF`},
		"a lying count": {fileOf("REDIS0010", 2, "k", longLength(1<<61), "a")[:23],
			`at offset 23, in the value of key "k" of database 0: unexpected EOF`},
		"a bomb": {fileOf("REDIS0010", 0, "k", bomb), `at offset 25, in the value of key "k" of database 0: rdb: bad data format: a compressed ` +
			`string of 1099511627776 bytes is too long`},
		"a value's inside": {fileOf("REDIS0010", 2, "k", 2, "a", "a"),
			`at offset 17, in the value of key "k" of database 0: rdb: bad data format: twice the same`},
	} {
		_, err := readFile(bytes.NewReader(c.file), ReaderOptions{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", what, err, c.want)
		}
	}
}

// TestEveryCutAndEveryChangedBitIsFound: the checksum, or what it stands on, finds
// all of them.
func TestEveryCutAndEveryChangedBitIsFound(t *testing.T) {
	file, _ := plainCopy(t, realFile(t, "redis80-cluster"))
	for i := range file {
		_, err := readFile(bytes.NewReader(file[:i]), ReaderOptions{})
		var where *FileError
		if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &where) || where.Offset != int64(i) {
			t.Errorf("%d of %d bytes: %v", i, len(file), err)
		}
		for bit := range 8 {
			wrong := slices.Clone(file)
			wrong[i] ^= 1 << bit
			if _, err := readFile(bytes.NewReader(wrong), ReaderOptions{}); err == nil {
				t.Errorf("bit %d of byte %d", bit, i)
			}
		}
	}
}

// failing gives some bytes and then an error.
type failing struct{ b []byte }

var errBroken = errors.New("the disk is broken")

func (f *failing) Read(p []byte) (int, error) {
	if len(f.b) == 0 {
		return 0, errBroken
	}
	n := copy(p, f.b[:1])
	f.b = f.b[n:]
	return n, nil
}

func TestErrorsOfReadingAndWritingComeBack(t *testing.T) {
	if _, err := readFile(&failing{fileOf("REDIS0010", 0, "k")[:12]}, ReaderOptions{}); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	stop := errors.New("enough")
	f := fileOf("REDIS0010", opAux, "k", "v")
	if _, err := readFile(bytes.NewReader(f), ReaderOptions{Aux: func(_, _ []byte) error { return stop }}); err != stop {
		t.Error(err)
	}
	w := NewWriter(brokenWriter{}, WriterOptions{Checksum: true})
	w.Header(PlainVersion)
	if err := w.Records(0, make([]byte, 2*smallWrites)); err != errBroken || w.End() != errBroken || w.Err() != errBroken {
		t.Error(err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// FuzzReader reads what comes: it never panics, and what it holds is bounded by
// what is there.
func FuzzReader(f *testing.F) {
	f.Add(realFile(f, "redis80-cluster"))
	f.Add(realFile(f, "valkey81-cluster"))
	for _, s := range samples(f, "redis80") {
		if value, _, err := Open(s.Dump); err == nil && len(value) < 500 { // large ones fuzz slowly
			f.Add(fileOf("REDIS0012", opDeadline, little(farAway), int(value[0]), "k", value[1:]))
		}
	}
	for _, c := range old() {
		f.Add(fileOf("REDIS0009", int(c.value[0]), "k", c.value[1:]))
	}
	f.Add(fileOf("VALKEY080", opSlotImport, "job", 1, 3, 4, 22, "k", 1, "f", "v", little(5)))
	f.Add(fileOf("REDIS0010", opModuleAux, longLength(moduleID("test-type")), 2, 1, 1, 7, 0, 7, "k", aModule("ebb-bloom")))
	f.Add(fileOf("VALKEY081", 23, "k", 1, "/a", 1, "f", "v"))
	f.Add(fileOf("VALKEY081", 242, "*1"))
	for _, name := range []string{"valkey92-lz4", "valkey92-zstd"} {
		f.Add(realFile(f, name))
	}
	small := realFile(f, "valkey81-cluster")
	for _, with := range []Compression{LZ4, Zstandard} {
		f.Add(enveloped(f, with, small))
		f.Add(enveloped(f, with, enveloped(f, with, small)))
		f.Add(enveloped(f, with, small[:len(small)/2]))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		rd := NewReader(bytes.NewReader(file), ReaderOptions{UnknownModule: func(string, int, []byte) error { return nil }})
		rd.limit = 1 << 20
		d := Decoder{MaxString: 1 << 24}
		for {
			e, err := rd.Next()
			limit := len(file)
			if rd.packed != nil {
				limit = max(1<<20, maxDensity*len(file))
			}
			if len(rd.buf) > 2*max(block, limit) {
				t.Fatalf("a block of %d bytes for a file of %d", len(rd.buf), len(file))
			}
			if err != nil || rd.offset() > 4<<20 { // some bytes of Zstandard are many entries
				return
			}
			if err := d.Entry(e, &recorder{}); err != nil && !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Checksum: true})
	w.Header(PlainVersion)
	var e Encoder
	for i := range 100_000 {
		e.Key = fmt.Appendf(nil, "key:%09d", i)
		e.Record(farAway, -1, -1)
		e.String([]byte("a value of thirty-two bytes here"))
	}
	_ = w.Records(0, e.Buf)
	_ = w.End()
	b.SetBytes(int64(f.Len()))
	b.ReportAllocs()
	for b.Loop() {
		rd := NewReader(bytes.NewReader(f.Bytes()), ReaderOptions{})
		for {
			if _, err := rd.Next(); err != nil {
				break
			}
		}
	}
}
