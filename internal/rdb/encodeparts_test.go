package rdb

import (
	"bytes"
	"fmt"
	"testing"
)

// larges are values that Drain is for, and some that are small.
func larges() map[string]func(e *Encoder) {
	text := func(i, n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d:", i), n) }
	hash := func(n, size int, earliest int64) func(e *Encoder) {
		return func(e *Encoder) {
			e.BeginHash(n, earliest)
			for i := range n {
				e.Field(text(i, 1), text(i, size), earliest*int64(i%2))
			}
			e.EndHash()
		}
	}
	set := func(n, size int) func(e *Encoder) {
		return func(e *Encoder) {
			e.BeginSet(n)
			for i := range n {
				e.Member(text(i, size))
			}
			e.EndSet()
		}
	}
	zset := func(n, size int) func(e *Encoder) {
		return func(e *Encoder) {
			e.BeginZSet(n)
			for i := range n {
				e.Scored(text(i, size), float64(i)/4)
			}
			e.EndZSet()
		}
	}
	list := func(n, size int) func(e *Encoder) {
		return func(e *Encoder) {
			e.BeginList()
			for i := range n {
				e.Element(text(i, size))
			}
			e.EndList()
		}
	}
	return map[string]func(e *Encoder){
		"hash of many": hash(60_000, 5, 0), "hash of long": hash(100, 20_000, 0), "hash of few": hash(100, 5, 0),
		"hash with deadlines": hash(30_000, 10, 1_700_000_000_000),
		"set of many":         set(60_000, 5), "set of long": set(100, 20_000), "set of few": set(100, 5),
		"zset of many": zset(60_000, 5), "zset of long": zset(100, 20_000), "zset of few": zset(100, 5),
		"list of many": list(60_000, 5), "list of long": list(100, 20_000),
		"stream": largeStream,
	}
}

func largeStream(e *Encoder) {
	const n = 20_000
	e.BeginStream()
	id := func(i int) StreamID { return StreamID{uint64(i + 1), 0} }
	for i := range n {
		e.Entry(id(i), [][]byte{[]byte("field"), fmt.Appendf(nil, "value %d", i)})
	}
	e.EndEntries(StreamInfo{Last: id(n), Added: n}, 1)
	e.Group(Group{Name: []byte("g"), Last: id(n), Read: n, Pending: n})
	for i := range n {
		e.Pending(Pending{ID: id(i), Delivered: 1, Count: 1})
	}
	e.Consumers(1)
	e.Consumer(Consumer{Name: []byte("c"), Seen: 1, Pending: n})
	for i := range n {
		e.Owned(id(i))
	}
}

// encodeInParts encodes a value by a Drain, and returns the bytes and the most that
// the Encoder held.
func encodeInParts(compress bool, value func(e *Encoder)) (all []byte, peak int) {
	e := Encoder{Key: []byte("key"), Drain: func([]byte) {}}
	value(&e)
	nodes := e.NodeCount()
	e = Encoder{Key: []byte("key"), Compress: compress, Nodes: nodes}
	e.Drain = func(b []byte) {
		peak = max(peak, cap(e.Buf)+cap(e.pack.b))
		all = append(all, b...)
	}
	e.Record(5, -1, -1)
	value(&e)
	e.Drain(e.Buf)
	return all, peak
}

func TestALargeValueInPartsHasTheSameBytes(t *testing.T) {
	for name, value := range larges() {
		for _, compress := range []bool{false, true} {
			whole := Encoder{Key: []byte("key"), Compress: compress}
			whole.Record(5, -1, -1)
			value(&whole)
			got, peak := encodeInParts(compress, value)
			same := bytes.Equal(got, whole.Buf)
			if len(whole.Buf) < 64<<10 && name[:4] == "list" {
				same = len(got) == len(whole.Buf)+4 // the number of nodes is shorter
			}
			if !same {
				t.Errorf("%s, compressed %v: %d bytes, want %d", name, compress, len(got), len(whole.Buf))
			}
			t.Logf("%s, compressed %v: %d bytes, of which %d are held", name, compress, len(got), peak)
			if peak > 2<<20 {
				t.Errorf("%s, compressed %v: %d of %d bytes are held", name, compress, peak, len(got))
			}
		}
	}
}

func TestAModulesValueIsReadFromItsParts(t *testing.T) {
	var want []byte
	write := func(e *Encoder) {
		var b []byte
		want = want[:0]
		e.BeginModule("ebb-queue")
		for i := range 100_000 {
			text := fmt.Appendf(nil, "job %d, ", i%7)
			want, b = append(want, text...), e.Spill(append(b, text...))
		}
		e.EndModule(b)
	}
	for _, compress := range []bool{false, true} {
		got, peak := encodeInParts(compress, write)
		if peak > 2<<20 {
			t.Errorf("%d of %d bytes are held", peak, len(got))
		}
		var file bytes.Buffer
		w := NewWriter(&file, WriterOptions{Checksum: true})
		w.Header(PlainVersion)
		_ = w.Records(0, got)
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		entry, err := NewReader(&file, ReaderOptions{}).Next()
		if err != nil {
			t.Fatal(err)
		}
		r := new(recorder)
		// Each part may be as long as a string, all of them may be longer.
		d := Decoder{MaxString: 512 << 10}
		if err := d.Entry(entry, r); err != nil || len(r.parts) != 1 || r.parts[0][0] != "ebb-queue" || r.parts[0][1] != string(want) {
			t.Fatalf("compressed %v: the value is another, %v", compress, err)
		}
	}
}

// TestALargeEntryIsMovedSeldom: a block is copied when it is full, and must not be
// full again with the next element.
func TestALargeEntryIsMovedSeldom(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, WriterOptions{})
	w.Header(PlainVersion)
	all, _ := encodeInParts(false, larges()["set of many"])
	_ = w.Records(0, all)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(1, func() {
		if e, err := NewReader(bytes.NewReader(file.Bytes()), ReaderOptions{}).Next(); err != nil || len(e.Value) < 1<<20 {
			t.Fatal(err)
		}
	})
	if n > 30 {
		t.Errorf("%v allocations for %d bytes", n, file.Len())
	}
}
