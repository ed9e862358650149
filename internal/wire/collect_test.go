package wire

import (
	"strings"
	"testing"
)

func TestACollectedReplyHasABound(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name  string
		bound Bound
		write func(w *Writer)
		want  string // as it is printed
		cut   bool
	}{
		{"no bound", Bound{}, func(w *Writer) { w.Bulk([]byte(long)) }, `"` + long + `"`, false},
		{"short", Bound{1000, 10}, func(w *Writer) { w.Array(2); w.BulkString("a"); w.Int(1) }, "1) \"a\"\n2) (integer) 1", false},
		{"a long string", Bound{1000, 3}, func(w *Writer) { w.Bulk([]byte(long)) }, `"xxx"`, true},
		{"a long text", Bound{1000, 3}, func(w *Writer) { w.BulkString(long) }, `"xxx"`, true},
		{"many", Bound{350, 0}, func(w *Writer) {
			w.Array(5)
			for range 5 {
				w.BulkString("a")
			}
		}, "1) \"a\"\n2) \"a\"", true},
		{"pairs stay pairs", Bound{450, 0}, func(w *Writer) {
			w.Map(3)
			for range 6 {
				w.BulkString("a")
			}
		}, `1# "a" => "a"`, true},
		{"inner and outer", Bound{450, 0}, func(w *Writer) {
			w.Array(2)
			for range 2 {
				w.Array(2)
				w.Int(1)
				w.Int(2)
			}
		}, "1) 1) (integer) 1\n   2) (integer) 2", true},
		{"a length that comes later", Bound{150, 0}, func(w *Writer) {
			w.Int(7)
			l := w.ArrayLater()
			w.Int(1)
			w.Patch(l, 1)
		}, "(integer) 7", true},
		{"taken back", Bound{250, 0}, func(w *Writer) {
			m := w.Mark()
			w.Array(3)
			for range 3 {
				w.BulkString("a")
			}
			w.Rollback(m)
			w.Error("ERR no")
		}, "(error) ERR no", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := Writer{Proto: 3}
			w.CollectSome(c.bound)
			c.write(&w)
			v := w.Value()
			if got := strings.TrimSuffix(string(AppendTTY(nil, v)), "\n"); got != c.want || w.Cut() != c.cut {
				t.Errorf("%q, cut %v; want %q, %v", got, w.Cut(), c.want, c.cut)
			}
			w.Collect()
			w.Bulk([]byte(long))
			if v := w.Value(); v.Str != long || w.Cut() {
				t.Error("the next reply has the bound of the one before")
			}
		})
	}
	w := Writer{Proto: 3}
	w.CollectSome(Bound{1000, 3})
	w.Bulk([]byte(long))
	if v := w.Value(); v.Str != "xxx" || v.Int != 1000 {
		t.Errorf("%q of %d", v.Str, v.Int)
	}
}
