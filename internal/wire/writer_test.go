package wire

import (
	"bufio"
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/resp"
)

// replies has every method of Writer, with its bytes in both protocols.
var replies = []struct {
	name  string
	write func(w *Writer)
	resp2 string
	resp3 string // "" if the same
}{
	{"ok", func(w *Writer) { w.OK() }, "+OK\r\n", ""},
	{"simple", func(w *Writer) { w.Simple("QUEUED") }, "+QUEUED\r\n", ""},
	{"simple forging a reply", func(w *Writer) { w.Simple("a\r\n:1") }, "+a  :1\r\n", ""},
	{"error", func(w *Writer) { w.Error("ERR x") }, "-ERR x\r\n", ""},
	{"error forging a reply", func(w *Writer) { w.Error("ERR x\r\n+OK\r\n") }, "-ERR x  +OK\r\n", ""},
	{"int", func(w *Writer) { w.Int(9); w.Int(10); w.Int(-1) }, ":9\r\n:10\r\n:-1\r\n", ""},
	{"least int", func(w *Writer) { w.Int(math.MinInt64) }, ":-9223372036854775808\r\n", ""},
	{"bulk", func(w *Writer) { w.Bulk([]byte("a\r\n")) }, "$3\r\na\r\n\r\n", ""},
	{"nil bulk", func(w *Writer) { w.Bulk(nil) }, "$0\r\n\r\n", ""},
	{"bulk string", func(w *Writer) { w.BulkString("0123456789") }, "$10\r\n0123456789\r\n", ""},
	{"bulk int", func(w *Writer) { w.BulkInt(-12) }, "$3\r\n-12\r\n", ""},
	{"null", func(w *Writer) { w.Null() }, "$-1\r\n", "_\r\n"},
	{"null array", func(w *Writer) { w.NullArray() }, "*-1\r\n", "_\r\n"},
	{"array", func(w *Writer) { w.Array(2); w.Int(1); w.Array(0) }, "*2\r\n:1\r\n*0\r\n", ""},
	{"map", func(w *Writer) { w.Map(1); w.BulkString("a"); w.Int(1) }, "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n"},
	{"set", func(w *Writer) { w.Set(1); w.Int(1) }, "*1\r\n:1\r\n", "~1\r\n:1\r\n"},
	{"push", func(w *Writer) { w.Push(1); w.Int(1) }, "*1\r\n:1\r\n", ">1\r\n:1\r\n"},
	{"attribute", func(w *Writer) {
		if w.Attribute(1) {
			w.Simple("ttl")
			w.Int(5)
		}
		w.Int(1)
	}, ":1\r\n", "|1\r\n+ttl\r\n:5\r\n:1\r\n"},
	{"attribute inside", func(w *Writer) {
		w.Array(2)
		w.Int(1)
		if w.Attribute(1) {
			w.Simple("a")
			w.Int(5)
		}
		w.Int(2)
	}, "*2\r\n:1\r\n:2\r\n", "*2\r\n:1\r\n|1\r\n+a\r\n:5\r\n:2\r\n"},
	{"double", func(w *Writer) { w.Double(3.1) }, "$3\r\n3.1\r\n", ",3.1\r\n"},
	{"infinite double", func(w *Writer) { w.Double(math.Inf(-1)) }, "$4\r\n-inf\r\n", ",-inf\r\n"},
	{"bool", func(w *Writer) { w.Bool(true); w.Bool(false) }, ":1\r\n:0\r\n", "#t\r\n#f\r\n"},
	{"big number", func(w *Writer) { w.BigNumber("123") }, "$3\r\n123\r\n", "(123\r\n"},
	{"verbatim", func(w *Writer) { w.Verbatim("txt", "a b") }, "$3\r\na b\r\n", "=7\r\ntxt:a b\r\n"},
	{"verbatim of odd format", func(w *Writer) { w.Verbatim("md", "a") }, "$1\r\na\r\n", "=5\r\nmd :a\r\n"},
	{"raw", func(w *Writer) { w.Array(2); w.Raw([]byte(":1\r\n+OK\r\n")) }, "*2\r\n:1\r\n+OK\r\n", ""},
	{"array later", func(w *Writer) {
		l := w.ArrayLater()
		for range 9 {
			w.Int(7)
		}
		w.Patch(l, 9)
	}, "*9\r\n" + strings.Repeat(":7\r\n", 9), ""},
	{"empty array later", func(w *Writer) { w.Patch(w.ArrayLater(), 0) }, "*0\r\n", ""},
	{"long array later", func(w *Writer) {
		w.OK()
		l := w.ArrayLater()
		for range 1234 {
			w.Int(7)
		}
		w.Patch(l, 1234)
		w.OK()
	}, "+OK\r\n*1234\r\n" + strings.Repeat(":7\r\n", 1234) + "+OK\r\n", ""},
	{"nested later", func(w *Writer) {
		outer := w.ArrayLater()
		for range 10 {
			inner := w.SetLater()
			for range 10 {
				w.Int(7)
			}
			w.Patch(inner, 10)
		}
		w.Patch(outer, 10)
	}, "*10\r\n" + strings.Repeat("*10\r\n"+strings.Repeat(":7\r\n", 10), 10),
		"*10\r\n" + strings.Repeat("~10\r\n"+strings.Repeat(":7\r\n", 10), 10)},
	{"map later", func(w *Writer) {
		l := w.MapLater()
		for range 10 {
			w.Int(7)
		}
		w.Patch(l, 5)
	}, "*10\r\n" + strings.Repeat(":7\r\n", 10), "%5\r\n" + strings.Repeat(":7\r\n", 10)},
	{"push later", func(w *Writer) { l := w.PushLater(); w.OK(); w.Patch(l, 1) }, "*1\r\n+OK\r\n", ">1\r\n+OK\r\n"},
	{"rollback", func(w *Writer) {
		w.OK()
		m := w.Mark()
		w.Array(3)
		w.BulkString("a")
		if !w.Wrote(m) {
			panic("nothing written")
		}
		w.Rollback(m)
		if w.Wrote(m) {
			panic("something written")
		}
		w.Error("ERR x")
	}, "+OK\r\n-ERR x\r\n", ""},
}

func TestWriterSpeaksBothProtocols(t *testing.T) {
	for _, tt := range replies {
		for _, proto := range []int{0, 2, 3} {
			want := tt.resp2
			if proto == 3 && tt.resp3 != "" {
				want = tt.resp3
			}
			w := Writer{Proto: proto}
			tt.write(&w)
			if string(w.Buf) != want {
				t.Errorf("%s, protocol %d: %.200q, want %.200q", tt.name, proto, w.Buf, want)
			}
		}
	}
}

func TestCollectedIsWhatTheBytesMean(t *testing.T) {
	for _, tt := range replies {
		for _, proto := range []int{2, 3} {
			w := Writer{Proto: proto}
			tt.write(&w)
			want := decodeAll(t, w.Buf)
			w.Buf = nil
			w.Collect()
			tt.write(&w)
			got := w.Values()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, protocol %d: collected %v, decoded %v", tt.name, proto, got, want)
			}
			if w.Buf != nil {
				t.Errorf("%s: collecting wrote bytes", tt.name)
			}
			again := Writer{Proto: 3}
			for _, v := range got {
				again.Append(v)
			}
			if back := decodeAll(t, again.Buf); !reflect.DeepEqual(dropForm(back), dropForm(want)) {
				t.Errorf("%s: appended %v, want %v", tt.name, back, want)
			}
		}
	}
}

// dropForm makes the two nulls of RESP2 the one of RESP3.
func dropForm(vs []resp.Value) []resp.Value {
	out := make([]resp.Value, len(vs))
	for i, v := range vs {
		if v.Kind == resp.KindNullArray {
			v.Kind = resp.KindNull
		}
		v.Elems, v.Attrs = dropForm(v.Elems), dropForm(v.Attrs)
		out[i] = v
	}
	return out
}

func decodeAll(t testing.TB, data []byte) (all []resp.Value) {
	t.Helper()
	src := bytes.NewReader(data)
	r := bufio.NewReader(src)
	for src.Len() > 0 || r.Buffered() > 0 {
		v, err := ReadValue(r)
		if err != nil {
			t.Fatalf("%.200q: %v", data, err)
		}
		all = append(all, v)
	}
	return all
}

func TestCollectedBytesAreTheirOwn(t *testing.T) {
	var w Writer
	w.Collect()
	b := []byte("before")
	w.Bulk(b)
	copy(b, "after!")
	if v := w.Value(); v.Str != "before" {
		t.Errorf("the value changed with its source: %q", v.Str)
	}
}

func TestAnIncompleteCollectedReplyHasNulls(t *testing.T) {
	w := Writer{Proto: 3}
	w.Collect()
	if v := w.Value(); v.Kind != resp.KindNone || !v.IsNull() {
		t.Errorf("no reply: %v", v)
	}
	w.Map(2)
	w.Int(1)
	if v := w.Value(); len(v.Elems) != 4 || !v.Elems[3].IsNull() {
		t.Errorf("an incomplete map: %v", v)
	}
	w.Raw([]byte("nonsense"))
	if v := w.Value(); v.Err() == nil {
		t.Errorf("raw nonsense: %v", v)
	}
	if v := w.Value(); v.Kind != resp.KindNone || !w.Collecting() {
		t.Errorf("a value is returned twice: %v", v)
	}
}

func TestWriterAllocatesNothing(t *testing.T) {
	w := Writer{Buf: make([]byte, 0, 4096), Proto: 3}
	value := []byte("value")
	allocs := testing.AllocsPerRun(100, func() {
		w.Buf = w.Buf[:0]
		l := w.ArrayLater()
		for range 12 {
			w.Bulk(value)
		}
		w.Patch(l, 12)
		w.Map(3)
		w.Int(12345)
		w.BulkInt(12345)
		w.Double(3.14159)
		w.Verbatim("txt", "x")
		w.Error("ERR x")
		w.Null()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkWriter(b *testing.B) {
	value := bytes.Repeat([]byte("x"), 32)
	var w Writer
	b.ReportAllocs()
	for b.Loop() {
		if len(w.Buf) > 16<<10 {
			w.Buf = w.Buf[:0]
		}
		w.Bulk(value)
	}
}
