package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/rdbtest"
)

// enveloped puts bytes into an envelope as Valkey does.
func enveloped(t interface{ Fatal(...any) }, with Compression, file []byte) []byte {
	if with == LZ4 {
		return rdbtest.LZ4(t, file)
	}
	return rdbtest.Zstandard(t, file)
}

func TestCompressedFilesAreReadBack(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(drawRecord), 0, 20).Draw(t, "records")
		f := &memFile{}
		w := NewWriter(f, WriterOptions{Checksum: true, Compress: true, Patch: f})
		writeFile(t, w, all, rapid.Bool().Draw(t, "compress"))
		with := rapid.SampledFrom([]Compression{LZ4, Zstandard}).Draw(t, "with")
		sums := rapid.Bool().Draw(t, "sums")
		var file []byte
		if with == LZ4 {
			size := rapid.SampledFrom([]lz4.BlockSize{lz4.Block64Kb, lz4.Block256Kb, lz4.Block4Mb}).Draw(t, "size")
			file = rdbtest.LZ4(t, f.Bytes(), lz4.ChecksumOption(sums), lz4.BlockChecksumOption(sums), lz4.BlockSizeOption(size))
		} else {
			level := rapid.SampledFrom([]zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBestCompression}).Draw(t, "level")
			file = rdbtest.Zstandard(t, f.Bytes(), zstd.WithEncoderCRC(sums), zstd.WithEncoderLevel(level),
				zstd.WithSingleSegment(rapid.Bool().Draw(t, "single")))
		}
		tail := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 40, 100_000}).Draw(t, "tail"))
		from := io.MultiReader(bytes.NewReader(file), strings.NewReader(tail))
		if rapid.Bool().Draw(t, "bytewise") {
			from = iotest.OneByteReader(from)
		}
		if rapid.Bool().Draw(t, "eager") {
			from = iotest.DataErrReader(from)
		}
		rd := NewReader(from, ReaderOptions{})
		got, err := readAll(rd)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(all) {
			t.Fatalf("got  %v\nwant %v", got, all)
		}
		rest, err := io.ReadAll(io.MultiReader(bytes.NewReader(slices.Clone(rd.Rest())), from))
		if err != nil || string(rest) != tail || rd.Offset() != int64(len(file)) {
			t.Fatalf("%d bytes follow offset %d, %v; there are %d behind %d", len(rest), rd.Offset(), err, len(tail), len(file))
		}
	})
}

// TestLargeCompressedFilesAreRead reads one of many blocks.
func TestLargeCompressedFilesAreRead(t *testing.T) {
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Checksum: true})
	w.Header(PlainVersion)
	var e Encoder
	const keys = 20_000
	for i := range keys {
		e.Key = fmt.Appendf(nil, "key:%09d", i*7919)
		e.Record(0, -1, -1)
		e.String(bytes.Repeat([]byte{byte(i), byte(i >> 8), 'x'}, 50+i%3000/10))
	}
	_ = w.Records(0, e.Buf)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	for _, with := range []Compression{LZ4, Zstandard} {
		all, err := readFile(bytes.NewReader(enveloped(t, with, f.Bytes())), ReaderOptions{})
		if err != nil || len(all) != keys || all[keys-1].key != fmt.Sprintf("key:%09d", (keys-1)*7919) {
			t.Errorf("%s: %d keys, %v", with, len(all), err)
		}
	}
}

func TestWhatIsWrongWithAnEnvelopeIsSaid(t *testing.T) {
	inner := fileOf("VALKEY081", 0, "k", "v")
	good := map[Compression][]byte{LZ4: enveloped(t, LZ4, inner), Zstandard: enveloped(t, Zstandard, inner)}
	changed := func(with Compression, at int, to byte) []byte {
		b := slices.Clone(good[with])
		b[at] = to
		return b
	}
	header := func(b ...byte) []byte { return append([]byte{'V', 'C', 'S', 1, 2, 0, 1, 0x28, 0xb5, 0x2f, 0xfd}, b...) }
	const bad = "rdb: bad data format: "
	for what, c := range map[string]struct {
		file []byte
		want string
	}{
		"another version": {changed(LZ4, 3, 2), "at offset 3: " + bad + "a compressed file in version 2 of the envelope, of which we read 1"},
		"another algorithm": {changed(LZ4, 4, 9), "at offset 4: " + bad + "a file compressed by algorithm 9, of which we " +
			"know 1 (LZ4) and 2 (Zstandard)"},
		"no algorithm": {changed(LZ4, 4, 0), "at offset 4: " + bad + "a file compressed by algorithm 0, of which we " +
			"know 1 (LZ4) and 2 (Zstandard)"},
		"a flag":   {changed(LZ4, 5, 1), "at offset 5: " + bad + "byte 5 of an envelope is 0x01, and should be 0"},
		"a stream": {changed(LZ4, 6, 2), "at offset 6: " + bad + "a compressed replication stream stands where an RDB file should"},
		"another kind": {changed(LZ4, 6, 3), "at offset 6: " + bad + "an envelope holds something of kind 3, of " +
			"which we know 1 (an RDB file)"},
		"not LZ4": {changed(LZ4, 7, 5), "at offset 0 of what the LZ4 file holds up to its offset 13: " + bad +
			"no LZ4 frame begins with 0x184d2205"},
		"an LZ4 dictionary": {changed(LZ4, 11, good[LZ4][11]|1), "at offset 0 of what the LZ4 file holds up to its " +
			"offset 13: " + bad + "the LZ4 frame needs a dictionary"},
		"an LZ4 version": {changed(LZ4, 11, 0x80), "at offset 0 of what the LZ4 file holds up to its " +
			"offset 13: " + bad + "an LZ4 frame in version 2, of which we read 1"},
		"an LZ4 block size": {changed(LZ4, 12, 0x30), "at offset 0 of what the LZ4 file holds up to its offset 13: " + bad +
			"no LZ4 frame has blocks of size 3"},
		"an LZ4 header's sum": {changed(LZ4, 13, good[LZ4][13]+1), "at offset 0 of what the LZ4 file holds up to its " +
			"offset 14: " + bad + "the LZ4 frame is damaged: lz4: invalid header checksum"},
		"a large LZ4 block": {changed(LZ4, 16, 2), "at offset 0 of what the LZ4 file holds up to its offset 18: " + bad + "an LZ4 block of"},
		"not Zstandard": {changed(Zstandard, 7, 5), "at offset 0 of what the Zstandard file holds up to its " +
			"offset 12: " + bad + "no Zstandard frame begins with 0xfd2fb505"},
		"a large window": {header(0, 0xff, 0, 0, 0), "at offset 0 of what the Zstandard file holds up to its " +
			"offset 13: " + bad + "the Zstandard frame needs a window of 4123168604160 bytes, of which we give 8388608"},
		"a large segment": {header(0xe0, 0, 0, 0, 0, 1, 0, 0, 0, 0), "at offset 0 of what the Zstandard file holds up to its " +
			"offset 20: " + bad + "the Zstandard frame needs a window of 4294967296 bytes, of which we give 8388608"},
		"a dictionary": {header(1, 0x50, 7, 0, 0, 0), "at offset 0 of what the Zstandard file holds up to its " +
			"offset 14: " + bad + "the Zstandard frame needs a dictionary"},
		"a block's form": {header(0, 0x50, 6, 0, 0), "at offset 0 of what the Zstandard file holds up to its " +
			"offset 16: " + bad + "no Zstandard block has the form 3"},
		"a large block": {header(0, 0x50, 0, 0, 0xf0), "at offset 0 of what the Zstandard file holds up to its " +
			"offset 16: " + bad + "a Zstandard block of 1966080 bytes, of which 131072 are allowed"},
		"one in the other": {enveloped(t, LZ4, good[LZ4]), fmt.Sprintf("at offset 9 of what the LZ4 file holds up to its "+
			"offset %d: "+bad+"an envelope stands in an envelope", len(enveloped(t, LZ4, good[LZ4])))},
		"something else in it": {enveloped(t, LZ4, []byte("hello, world")), "at offset 9 of what the LZ4 file holds up to its " +
			"offset 42: " + bad + `not an RDB file: it begins with "hello, wo"`},
		"a part in it": {enveloped(t, LZ4, inner[:len(inner)-9]), "at offset 14 of what the LZ4 file holds up to its " +
			"offset 44: " + bad + "the LZ4 frame ends before the RDB file in it does"},
		"nothing in it": {enveloped(t, LZ4, nil), "at offset 0 of what the LZ4 file holds up to its " +
			"offset 22: " + bad + "the LZ4 frame ends before the RDB file in it does"},
		"more in it": {enveloped(t, LZ4, append(slices.Clone(inner), "more"...)),
			fmt.Sprintf("at offset %d of what the LZ4 file holds up to its "+
				"offset 57: "+bad+"4 bytes or more follow the end of the RDB file in its envelope", len(inner))},
		"a value in it": {enveloped(t, LZ4, fileOf("REDIS0010", 2, "k", 2, "a", "a")),
			`at offset 17 of what the LZ4 file holds, in the value of key ` +
				`"k" of database 0: ` + bad + "twice the same"},
		"a draft's magic": {[]byte("VKCS\x01\x01\x01\x00\x04\x22\x4d\x18"),
			"at offset 9: " + bad + `not an RDB file: it begins with "VKCS\x01\x01\x01\x00\x04"`},
	} {
		_, err := readFile(bytes.NewReader(c.file), ReaderOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", what, err, c.want)
		}
		if !errors.Is(err, ErrFormat) {
			t.Errorf("%s: not an ErrFormat", what)
		}
	}
}

// TestEveryCutAndEveryChangedBitOfACompressedFileIsFound: a cut is known for one, as a
// connection that broke leaves it. Some bits of Zstandard's header only say how much memory
// is needed, or nothing: then the data is right.
func TestEveryCutAndEveryChangedBitOfACompressedFileIsFound(t *testing.T) {
	plain, _ := plainCopy(t, realFile(t, "redis80-cluster"))
	for _, with := range []Compression{LZ4, Zstandard} {
		file := enveloped(t, with, plain)
		want, err := readFile(bytes.NewReader(file), ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range file {
			if _, err := readFile(bytes.NewReader(file[:i]), ReaderOptions{}); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %d of %d bytes: %v", with, i, len(file), err)
			}
			if _, err := readFile(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(file[:i]))), ReaderOptions{}); i > 1 &&
				!errors.Is(err, iotest.ErrTimeout) {
				t.Errorf("%s: %d of %d bytes of what broke: %v", with, i, len(file), err)
			}
			for bit := range 8 {
				wrong := slices.Clone(file)
				wrong[i] ^= 1 << bit
				got, err := readFile(bytes.NewReader(wrong), ReaderOptions{})
				if err == nil && (with == LZ4 || i != 11 && i != 12 || fmt.Sprint(got) != fmt.Sprint(want)) {
					t.Errorf("%s: bit %d of byte %d", with, bit, i)
				}
			}
		}
	}
}

// endless gives a head, and then blocks for ever.
type endless struct {
	head, block []byte
	next        []byte
}

func (x *endless) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(x.next) == 0 {
			x.next = x.block
		}
		from := &x.head
		if len(x.head) == 0 {
			from = &x.next
		}
		m := copy(b[n:], *from)
		n, *from = n+m, (*from)[m:]
	}
	return n, nil
}

// TestABombIsRefused: four bytes of Zstandard stand for 128 KiB of zeros. Memory is
// bounded by what a key may take, whatever its length says.
func TestABombIsRefused(t *testing.T) {
	start := []byte{'V', 'C', 'S', 1, 2, 0, 1, 0x28, 0xb5, 0x2f, 0xfd, 0, 0x50}
	inner := append([]byte("VALKEY081\x00\x01k"), longLength(1<<40)...)
	raw := len(inner) << 3
	bomb := &endless{head: append(append(start, byte(raw), byte(raw>>8), 0), inner...), block: []byte{2, 0, 16, 0}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rd := NewReader(bomb, ReaderOptions{})
	rd.limit = 8 << 20
	_, err := rd.Next()
	runtime.ReadMemStats(&after)
	if err == nil || !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "are allowed: the Zstandard file gave") ||
		!strings.Contains(err.Error(),
			`key "k"`) {
		t.Fatal(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
		t.Errorf("it took %d MiB", took>>20)
	}
}

// TestManyTextsAreABombToo: the receiver keeps texts and functions, so that all of them have one bound.
func TestManyTextsAreABombToo(t *testing.T) {
	const size = 1 << 20
	inner := []byte("REDIS0010")
	for range 40 {
		inner = append(binary.BigEndian.AppendUint32(append(inner, opFunction, 0x80), size), make([]byte, size)...)
	}
	inner = append(inner, opEOF, 0, 0, 0, 0, 0, 0, 0, 0)
	for with, refused := range map[Compression]bool{Zstandard: true, LZ4: false} {
		functions := 0
		rd := NewReader(bytes.NewReader(enveloped(t, with, inner)), ReaderOptions{Function: func([]byte) error { functions++; return nil }})
		rd.Bound(8 << 20)
		_, err := rd.Next()
		if got := err != io.EOF; got != refused || refused && (functions != 8 || !strings.Contains(err.Error(), "texts and functions of")) {
			t.Errorf("%s: %d functions of a MiB, %v", with, functions, err)
		}
	}
}

// TestWhatLZ4GivesIsNotABomb: no string of an LZ4 file is refused for its length.
func TestWhatLZ4GivesIsNotABomb(t *testing.T) {
	const size = 20 << 20
	inner := append([]byte("VALKEY081\x00\x01k"), binary.BigEndian.AppendUint64([]byte{0x81}, size)...)
	inner = append(append(inner, make([]byte, size)...), opEOF, 0, 0, 0, 0, 0, 0, 0, 0)
	rd := NewReader(bytes.NewReader(enveloped(t, LZ4, inner)), ReaderOptions{})
	rd.limit = 1 << 20
	if e, err := rd.Next(); err != nil || len(e.Value) < size {
		t.Fatal(err)
	}
	if _, err := rd.Next(); err != io.EOF {
		t.Fatal(err)
	}
}

// TestAnEnvelopeReadsNoByteBehindItsFrame: what follows comes from a socket, where it may
// never come.
func TestAnEnvelopeReadsNoByteBehindItsFrame(t *testing.T) {
	inner := fileOf("VALKEY081", 0, "k", "v")
	for _, with := range []Compression{LZ4, Zstandard} {
		r, w := io.Pipe()
		go func() { _, _ = w.Write(enveloped(t, with, inner)) }() // and nothing more, no end either
		rd := NewReader(r, ReaderOptions{})
		if all, err := readAll(rd); err != nil || len(all) != 1 {
			t.Errorf("%s: %v, %v", with, all, err)
		}
		_ = r.Close()
	}
}
