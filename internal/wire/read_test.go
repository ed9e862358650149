package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/resp"
)

func TestReadValueUnderstandsEveryType(t *testing.T) {
	one, two := resp.Value{Kind: resp.KindInt, Int: 1}, resp.Value{Kind: resp.KindInt, Int: 2}
	tests := []struct {
		in   string
		want resp.Value
	}{
		{"+OK\r\n", resp.Value{Kind: resp.KindStatus, Str: "OK"}},
		{"+\r\n", resp.Value{Kind: resp.KindStatus}},
		{"-ERR x\r\n", resp.Value{Kind: resp.KindError, Str: "ERR x"}},
		{"!5\r\nERR\r\n\r\n", resp.Value{Kind: resp.KindError, Str: "ERR\r\n"}},
		{":+7\r\n", resp.Value{Kind: resp.KindInt, Int: 7}},
		{":-7\r\n", resp.Value{Kind: resp.KindInt, Int: -7}},
		{"$3\r\n\r\na\r\n", resp.Value{Kind: resp.KindBulk, Str: "\r\na"}},
		{"$0\r\n\r\n", resp.Value{Kind: resp.KindBulk}},
		{"$-1\r\n", resp.Value{Kind: resp.KindNull}},
		{"*-1\r\n", resp.Value{Kind: resp.KindNullArray}},
		{"_\r\n", resp.Value{Kind: resp.KindNull}},
		{"*2\r\n:1\r\n:2\r\n", resp.Value{Kind: resp.KindArray, Elems: []resp.Value{one, two}}},
		{"*0\r\n", resp.Value{Kind: resp.KindArray}},
		{"%1\r\n:1\r\n:2\r\n", resp.Value{Kind: resp.KindMap, Elems: []resp.Value{one, two}}},
		{"~2\r\n:1\r\n:2\r\n", resp.Value{Kind: resp.KindSet, Elems: []resp.Value{one, two}}},
		{">2\r\n:1\r\n:2\r\n", resp.Value{Kind: resp.KindPush, Elems: []resp.Value{one, two}}},
		{",1.5\r\n", resp.Value{Kind: resp.KindDouble, Float: 1.5}},
		{",3.1000000000000001\r\n", resp.Value{Kind: resp.KindDouble, Float: 3.1, Str: "3.1000000000000001"}},
		{",-inf\r\n", resp.Value{Kind: resp.KindDouble, Float: math.Inf(-1)}},
		{"#t\r\n", resp.Value{Kind: resp.KindBool, Int: 1}},
		{"#f\r\n", resp.Value{Kind: resp.KindBool}},
		{"(-12345678901234567890\r\n", resp.Value{Kind: resp.KindBigNumber, Str: "-12345678901234567890"}},
		{"=5\r\ntxt:a\r\n", resp.Value{Kind: resp.KindVerbatim, Str: "a", Format: [3]byte{'t', 'x', 't'}}},
		{"|1\r\n:1\r\n:2\r\n:1\r\n", resp.Value{Kind: resp.KindInt, Int: 1, Attrs: []resp.Value{one, two}}},
		{"*1\r\n|1\r\n:1\r\n:2\r\n_\r\n", resp.Value{Kind: resp.KindArray,
			Elems: []resp.Value{{Kind: resp.KindNull, Attrs: []resp.Value{one, two}}}}},
	}
	for _, tt := range tests {
		for name, src := range map[string]io.Reader{"whole": strings.NewReader(tt.in),
			"bytewise": iotest.OneByteReader(strings.NewReader(tt.in))} {
			r := bufio.NewReaderSize(src, 16)
			got, err := ReadValue(r)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%q, %s: %v %v, want %v", tt.in, name, got, err, tt.want)
			}
			if _, err := ReadValue(r); err != io.EOF {
				t.Errorf("%q, %s: after the reply: %v", tt.in, name, err)
			}
		}
	}
	if v := decodeAll(t, []byte(",nan\r\n"))[0]; !math.IsNaN(v.Float) {
		t.Errorf("nan: %v", v)
	}
}

func TestReadValueRefusesNonsense(t *testing.T) {
	for _, in := range []string{
		"\r\n", "OK\r\n", "+OK\n", ":\r\n", ":1x\r\n", ":+-1\r\n", ":99999999999999999999\r\n", "$x\r\n", "$-2\r\n", "$1\r\nab\r\n",
		"*-2\r\n", "#x\r\n", ",x\r\n", ",\r\n", "=3\r\ntxt\r\n", "$?\r\n", "*1\r\nx\r\n", "|1\r\nx\r\n", "$536870913\r\n",
		strings.Repeat("*1\r\n", 1000), "*99999999999\r\n",
	} {
		_, err := ReadValue(bufio.NewReader(strings.NewReader(in)))
		if !errors.Is(err, ErrBadReply) {
			t.Errorf("%.40q: %v", in, err)
		}
	}
	for _, in := range []string{"+OK", "$5\r\nab", "*2\r\n:1\r\n", "%1\r\n:1\r\n", "$5\r\n", "|1\r\n:1\r\n:1\r\n", "$1\r\na", "$1\r\na\r"} {
		if _, err := ReadValue(bufio.NewReader(strings.NewReader(in))); err != io.ErrUnexpectedEOF {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestReadValueKeepsItsLimits(t *testing.T) {
	tests := []struct {
		limits ReadLimits
		fits   string
		beyond string
	}{
		{ReadLimits{MaxBulk: 3}, "$3\r\nabc\r\n", "$4\r\nabcd\r\n"},
		{ReadLimits{MaxBulk: 100}, "+" + strings.Repeat("a", 90) + "\r\n", "+" + strings.Repeat("a", 200) + "\r\n"},
		{ReadLimits{MaxValues: 3}, "*2\r\n:1\r\n:1\r\n", "*3\r\n:1\r\n:1\r\n:1\r\n"},
		{ReadLimits{MaxValues: 4}, "%1\r\n:1\r\n*1\r\n:1\r\n", "%1\r\n:1\r\n*1\r\n*1\r\n:1\r\n"},
		{ReadLimits{MaxValues: 4}, "|1\r\n:1\r\n:1\r\n:1\r\n", "|1\r\n:1\r\n:1\r\n|0\r\n:1\r\n"},
		{ReadLimits{MaxDepth: 2}, "*1\r\n*1\r\n:1\r\n", "*1\r\n*1\r\n*1\r\n:1\r\n"},
		{ReadLimits{MaxBytes: 20}, "$6\r\nabcdef\r\n", "*2\r\n$6\r\nabcdef\r\n$6\r\nabcdef\r\n"},
	}
	for _, tt := range tests {
		if _, err := tt.limits.Read(bufio.NewReaderSize(strings.NewReader(tt.fits), 16)); err != nil {
			t.Errorf("%+v: %.40q: %v", tt.limits, tt.fits, err)
		}
		if _, err := tt.limits.Read(bufio.NewReaderSize(strings.NewReader(tt.beyond), 16)); !errors.Is(err, ErrBadReply) {
			t.Errorf("%+v: %.40q: %v", tt.limits, tt.beyond, err)
		}
	}
}

func TestADeclaredReplyReservesNothing(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		for _, in := range []string{"$536870912\r\nabc", "*16000000\r\n:1\r\n", "%8000000\r\n:1\r\n", "=536870912\r\ntxt:", "|8000000\r\n"} {
			if _, err := ReadValue(bufio.NewReader(strings.NewReader(in))); err != io.ErrUnexpectedEOF {
				t.Fatal(in, err)
			}
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("500 lying replies allocated %d bytes", grown)
	}
}

func TestALongStringArrivesWhole(t *testing.T) {
	text := strings.Repeat("0123456789", 50_000)
	var w Writer
	w.BulkString(text)
	w.Simple(text)
	r := bufio.NewReader(iotest.HalfReader(bytes.NewReader(w.Buf)))
	for range 2 {
		v, err := ReadValue(r)
		if err != nil || v.Str != text {
			t.Fatalf("%d bytes, %v", len(v.Str), err)
		}
	}
}

func TestValueHelpers(t *testing.T) {
	get := func(in string) resp.Value { return decodeAll(t, []byte(in))[0] }
	if err := get("-WRONGTYPE Operation\r\n").Err(); err == nil || err.(resp.ReplyError).Code() != "WRONGTYPE" {
		t.Errorf("Err: %v", err)
	}
	if get("+OK\r\n").Err() != nil || resp.ReplyError("LONELY").Code() != "LONELY" {
		t.Error("Err of a status, or Code of one word")
	}
	for _, in := range []string{"$-1\r\n", "*-1\r\n", "_\r\n"} {
		if v := get(in); !v.IsNull() || v.String() != "" {
			t.Errorf("%q is not null: %v", in, v)
		}
	}
	for in, want := range map[string]int64{":5\r\n": 5, "$1\r\n5\r\n": 5, "#t\r\n": 1, "(5\r\n": 5} {
		if n, err := get(in).AsInt(); n != want || err != nil {
			t.Errorf("%q as int: %d, %v", in, n, err)
		}
	}
	for in, want := range map[string]float64{":5\r\n": 5, "$3\r\n5.5\r\n": 5.5, ",5.5\r\n": 5.5, ",inf\r\n": math.Inf(1)} {
		if f, err := get(in).AsFloat(); f != want || err != nil {
			t.Errorf("%q as float: %v, %v", in, f, err)
		}
	}
	for in, want := range map[string]bool{":5\r\n": true, ":0\r\n": false, "#f\r\n": false, "+OK\r\n": true} {
		if b, err := get(in).AsBool(); b != want || err != nil {
			t.Errorf("%q as bool: %v, %v", in, b, err)
		}
	}
	if s, err := get("*2\r\n$1\r\na\r\n_\r\n").AsStrings(); err != nil || !reflect.DeepEqual(s, []string{"a", ""}) {
		t.Errorf("as strings: %q, %v", s, err)
	}
	for _, in := range []string{"*0\r\n", "_\r\n", "$1\r\nx\r\n"} {
		if _, err := get(in).AsInt(); !errors.Is(err, resp.ErrType) {
			t.Errorf("%q as int: %v", in, err)
		}
	}
	var reply resp.ReplyError
	if _, err := get("-ERR x\r\n").AsString(); !errors.As(err, &reply) {
		t.Errorf("an error as string: %v", err)
	}
	for _, in := range []string{"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", "*4\r\n+a\r\n:1\r\n+b\r\n:2\r\n"} {
		m := get(in)
		if v, ok := m.Get("b"); !ok || v.Int != 2 {
			t.Errorf("%q: Get(b) = %v, %v", in, v, ok)
		}
		if _, ok := m.Get("c"); ok {
			t.Errorf("%q has a c", in)
		}
	}
	if s := get("*2\r\n:1\r\n+a\r\n").String(); s != `[1,"a"]` {
		t.Errorf("an array as text: %s", s)
	}
}

// FuzzReadValue decodes what it can, writes it again, and decodes that: both
// values must be the same, and so must the one a collecting Writer builds.
func FuzzReadValue(f *testing.F) {
	for _, tt := range replies {
		f.Add([]byte(tt.resp2))
		f.Add([]byte(tt.resp3))
	}
	for _, tt := range formats {
		f.Add([]byte(tt.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := ReadValue(bufio.NewReaderSize(bytes.NewReader(data), 16))
		if err != nil {
			return
		}
		plain := canonical(first)
		w := Writer{Proto: 3}
		w.Append(plain)
		second := decodeAll(t, w.Buf)
		if len(second) != 1 || string(AppendTTY(nil, second[0])) != string(AppendTTY(nil, plain)) {
			t.Fatalf("%q: read %v, written %q, read %v", data, plain, w.Buf, second)
		}
		w.Collect()
		w.Append(plain)
		collected := w.Value()
		again := Writer{Proto: 3}
		again.Append(collected)
		w = Writer{Proto: 3}
		w.Append(second[0])
		if !bytes.Equal(again.Buf, w.Buf) {
			t.Fatalf("%q: collected %q, decoded %q", data, again.Buf, w.Buf)
		}
	})
}

// canonical drops what a Writer does not keep: line breaks in errors, a
// server's own spelling of doubles, the second form of null.
func canonical(v resp.Value) resp.Value {
	switch v.Kind {
	case resp.KindStatus, resp.KindBigNumber:
		v.Str = cleantext.Reply(v.Str)
	case resp.KindError:
		v.Str = cleantext.Reply(strings.TrimRight(v.Str, "\r\n"))
	case resp.KindDouble:
		v.Str = ""
	case resp.KindNullArray:
		v.Kind = resp.KindNull
	}
	v.Elems, v.Attrs = canonicalAll(v.Elems), canonicalAll(v.Attrs)
	return v
}

func canonicalAll(vs []resp.Value) []resp.Value {
	var out []resp.Value
	for _, v := range vs {
		out = append(out, canonical(v))
	}
	return out
}
