package rdb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// memFile is a file in memory that can be corrected.
type memFile struct{ bytes.Buffer }

func (f *memFile) WriteAt(b []byte, at int64) (int, error) { return copy(f.Bytes()[at:], b), nil }

// record is a key of a file, its value as a recorder has it.
type record struct {
	db                   int
	key                  string
	deadline, idle, freq int64
	value                *recorder
}

func (r record) String() string {
	return fmt.Sprintf("db%d %q deadline %d idle %d freq %d: %s %q", r.db, r.key, r.deadline, r.idle, r.freq, r.value.kind, r.value.flat())
}

// readFile reads and decodes all of a file.
func readFile(r io.Reader, o ReaderOptions) (all []record, err error) {
	return readAll(NewReader(r, o))
}

// readAll is readFile for a Reader.
func readAll(rd *Reader) (all []record, err error) {
	var d Decoder
	for {
		e, err := rd.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		rec := &recorder{}
		if err := d.Entry(e, rec); err != nil {
			return all, err
		}
		all = append(all, record{e.DB, string(e.Key), e.Deadline, e.Idle, e.Freq, rec})
	}
}

func drawRecord(t *rapid.T) record {
	r := record{db: rapid.IntRange(0, 2).Draw(t, "db"), idle: -1, freq: -1, value: drawValue(t)}
	r.key = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "12", "-5000", strings.Repeat("long", 30)})).Draw(t, "key")
	r.deadline = rapid.SampledFrom([]int64{0, 0, 1, 1_900_000_000_000}).Draw(t, "deadline")
	switch rapid.IntRange(0, 4).Draw(t, "clock") {
	case 0:
		r.idle = rapid.Int64Range(0, 1<<20).Draw(t, "idle")
	case 1:
		r.freq = rapid.Int64Range(0, 255).Draw(t, "freq")
	}
	return r
}

// writeFile writes records as a snapshot does.
func writeFile(t *rapid.T, w *Writer, all []record, compress bool) {
	e := Encoder{Compress: compress}
	w.Header(0)
	w.Aux("redis-ver", "7.0.15")
	w.Function([]byte("#!lua name=lib\n"))
	for _, r := range all {
		e.Key = []byte(r.key)
		e.Record(r.deadline, r.idle, r.freq)
		e.Buf = encodeRecorder(t, &e, r.value)
		if rapid.Bool().Draw(t, "flush") {
			if err := errors.Join(w.Records(r.db, e.Buf), w.Raise(e.Version())); err != nil {
				t.Fatal(err)
			}
			e.Reset(e.Buf[:0])
			continue
		}
		_ = w.Records(r.db, e.Buf)
		_ = w.Raise(e.Version())
		e.Reset(nil)
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreReadBack(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(drawRecord), 0, 20).Draw(t, "records")
		f := &memFile{}
		w := NewWriter(f, WriterOptions{Checksum: rapid.Bool().Draw(t, "sum"), Compress: true, Patch: f})
		writeFile(t, w, all, rapid.Bool().Draw(t, "compress"))
		if w.Written() != int64(f.Len()) {
			t.Fatalf("%d bytes written, of %d", w.Written(), f.Len())
		}
		lowest := "REDIS0010"
		for _, r := range all {
			if r.value.kind == "hash" && slices.ContainsFunc(r.value.parts, func(p []string) bool { return p[2] != "0" }) {
				lowest = "REDIS0012"
			}
		}
		if got := f.String()[:headerSize]; got != lowest {
			t.Fatalf("the header is %s, not %s", got, lowest)
		}
		var from io.Reader = bytes.NewReader(f.Bytes())
		if rapid.Bool().Draw(t, "bytewise") {
			from = iotest.OneByteReader(from)
		}
		got, err := readFile(from, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(all) {
			t.Fatalf("got  %v\nwant %v", got, all)
		}
	})
}

// TestLargeValuesCrossBlocks reads values larger than a block, and many around
// its end, and keeps the bytes that it received while the Reader continues.
func TestLargeValuesCrossBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Checksum: true})
	w.Header(PlainVersion)
	var e Encoder
	sizes := []int{3 * block, 0, 1, block - 20}
	for range 3000 {
		sizes = append(sizes, rng.IntN(2000))
	}
	for i, n := range sizes {
		e.Key = fmt.Append(nil, "key:", i)
		e.Record(int64(i), -1, -1)
		e.String(bytes.Repeat([]byte{'a' + byte(i%26)}, n))
	}
	_ = w.Records(0, e.Buf)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	rd := NewReader(bytes.NewReader(f.Bytes()), ReaderOptions{})
	var kept []Entry
	for {
		en, err := rd.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, *en)
	}
	var d Decoder
	for i, en := range kept {
		r := &recorder{}
		if err := d.Entry(&en, r); err != nil {
			t.Fatal(i, err)
		}
		if string(en.Key) != fmt.Sprint("key:", i) || en.Deadline != int64(i) ||
			r.parts[0][0] != strings.Repeat(string(rune('a'+i%26)), sizes[i]) {
			t.Fatalf("entry %d: %q of %d bytes", i, en.Key, len(r.parts[0][0]))
		}
	}
	if len(kept) != len(sizes) || rd.Offset() != int64(f.Len()) {
		t.Fatal(len(kept), rd.Offset())
	}
}

func TestWhatFollowsAFileIsLeft(t *testing.T) {
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Checksum: true})
	w.Header(PlainVersion)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	f.WriteString("*1\r\n$4\r\nPING\r\n")
	r := bytes.NewReader(f.Bytes())
	rd := NewReader(r, ReaderOptions{})
	if _, err := rd.Next(); err != io.EOF {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(io.MultiReader(bytes.NewReader(rd.Rest()), r))
	if string(rest) != "*1\r\n$4\r\nPING\r\n" {
		t.Fatalf("%q is left", rest)
	}
}

func TestChecksumsAddUp(t *testing.T) {
	b := make([]byte, 10*lane+1)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for _, n := range []int{0, 1, 7, 8, 9, lane, 12345} {
		if crcZeros(Checksum(0, b), int64(n)) != Checksum(0, append(slices.Clone(b), make([]byte, n)...)) {
			t.Error(n, "zeros")
		}
		if c := crcZeros(Checksum(7, b), int64(n)); crcZeros(c, -int64(n)) != Checksum(7, b) ||
			crcBefore(Checksum(7, b[:min(n, len(b))]), b[:min(n, len(b))]) != 7 {
			t.Error(n, "zeros are not taken back")
		}
	}
	var slow uint64
	for _, c := range b {
		slow = jonesBy8[0][byte(slow)^c] ^ slow>>8
	}
	if Checksum(0, b) != slow {
		t.Error("eight bytes at once give another sum")
	}
}

func BenchmarkChecksum(b *testing.B) {
	buf := make([]byte, 1<<20)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		Checksum(0, buf)
	}
}
