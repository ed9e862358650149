package console

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ebbdb/ebb/resp"
)

func FuzzABlobKeepsItsBytes(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\xff\xfe", "a\u202eb", "\ufeffx", "zero\u200bwidth", "\u2028", "é漢字😀", "\xed\xa0\x80", "\ufffd",
		"<script>alert(1)</script>", "a\nb", `"\`, "__proto__", "\u00ad", "\u061c", "❤\ufe0f", "x\ufe0f", strings.Repeat("k", 70000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := json.Marshal(bytesOf(string(in)))
		if err != nil {
			t.Fatal(err)
		}
		var back blob
		if err := json.Unmarshal(out, &back); err != nil || back.s != string(in) {
			t.Fatalf("%q became %s and then %q, %v", in, out, back.s, err)
		}
		var x struct{ T, B *string }
		if err := json.Unmarshal(out, &x); err != nil || x.T == nil {
			t.Fatalf("%q became %s, %v", in, out, err)
		}
		for _, r := range *x.T {
			if r < ' ' || r == 0x7f || strings.ContainsRune("\u200b\u200d\u202a\u202e\u2066\u2069\ufeff\u2028", r) {
				t.Fatalf("%q is shown as %q", in, *x.T)
			}
		}
		cut := cutTo(string(in), len(in)/2)
		if !strings.HasPrefix(string(in), cut.s) || len(in) > 1 && cut.n != len(in) {
			t.Fatalf("%q is cut to %+v", in, cut)
		}
		if utf8.Valid(in) && !utf8.ValidString(cut.s) {
			t.Fatalf("%q is cut within a character: %q", in, cut.s)
		}
	})
}

func TestAReaderSeesEachCharacterOfACleanName(t *testing.T) {
	for _, s := range []string{"a b", "漢字", "I ❤\ufe0f"} {
		if !clean(s) {
			t.Errorf("%+q is not clean", s)
		}
	}
	for _, s := range []string{"pay\ufe0f", "pay\u034f", "\u3164", "\u115f", "\u2800", "\u00a0", "\u3000", "\u2028", "a\u202eb", "\u0600",
		"\U000e0041", "\x7f"} {
		if clean(s) {
			t.Errorf("%+q is clean", s)
		}
	}
}

func TestALongNameIsCut(t *testing.T) {
	for n, want := range map[int]string{nameBytes: strings.Repeat("k", nameBytes) + `"}`, nameBytes + 1: strings.Repeat("k", nameBegin) + `","n":131073}`} {
		if got, err := json.Marshal(bytesOf(strings.Repeat("k", n))); err != nil || string(got) != `{"t":"`+want {
			t.Errorf("a name of %d bytes: %.50q of %d bytes, %v", n, got, len(got), err)
		}
	}
	var b blob
	if got, err := json.Marshal(bytesOf(strings.Repeat("\x00", nameBytes+1))); err != nil || json.Unmarshal(got, &b) == nil {
		t.Errorf("a name that is cut is taken as an argument: %.50q, %v", got, err)
	}
}

func TestABlobThatIsCutIsNoArgument(t *testing.T) {
	for _, in := range []string{`{"t":"a","n":100}`, `{"n":5}`, `{}`, `{"b":"%"}`, `"a"`} {
		var b blob
		if err := json.Unmarshal([]byte(in), &b); err == nil {
			t.Errorf("%s is taken as %q", in, b.s)
		}
	}
}

func TestRepliesForJavaScript(t *testing.T) {
	all := []resp.Value{
		{Kind: resp.KindNull}, {Kind: resp.KindBulk, Str: "\x00"}, {Kind: resp.KindInt, Int: 9007199254740993}, {Kind: resp.KindStatus, Str: "OK"},
		{Kind: resp.KindError, Str: "ERR no"}, {Kind: resp.KindBool, Int: 1}, {Kind: resp.KindDouble, Float: 1.5},
		{Kind: resp.KindBigNumber, Str: "123456789012345678901"}, {Kind: resp.KindVerbatim, Format: [3]byte{'t', 'x', 't'}, Str: "hi"},
		{Kind: resp.KindMap, Elems: []resp.Value{{Kind: resp.KindBulk, Str: "k"}, {Kind: resp.KindBulk, Str: "secret"}}},
		{Kind: resp.KindSet, Elems: []resp.Value{{Kind: resp.KindBulk, Str: "m"}}},
	}
	whole := resp.Value{Kind: resp.KindArray, Elems: all}
	for hide, want := range map[bool]string{
		false: `[null,{"b":"AA==","t":"\\x00"},{"i":"9007199254740993"},{"s":"OK"},{"e":"ERR no"},true,{"d":1.5},{"big":"123456789012345678901"},` +
			`{"format":"txt","v":{"t":"hi"}},{"map":[[{"t":"k"},{"t":"secret"}]]},{"set":[{"t":"m"}]}]`,
		true: `[null,{"n":1},{"i":"9007199254740993"},{"s":"OK"},{"e":"ERR no"},true,{"d":1.5},{"big":"123456789012345678901"},` +
			`{"format":"txt","v":{"n":2}},{"map":[[{"t":"k"},{"n":6}]]},{"set":[{"n":1}]}]`,
	} {
		c := &Console{opt: Options{HideValues: hide}}
		got, err := json.Marshal(c.replyJSON(whole))
		if err != nil || string(got) != want {
			t.Errorf("values hidden %v: %s, %v", hide, got, err)
		}
		room := textBytes
		if text := replyText(whole, hide, &room); strings.Contains(text, "secret") == hide || !strings.Contains(text, "(integer) 9007199254740993") {
			t.Errorf("values hidden %v: %s", hide, text)
		}
	}
}

// TestALargeReplyIsCut: a page gets a bounded part of a reply, and the console formats no more than that.
func TestALargeReplyIsCut(t *testing.T) {
	long := resp.Value{Kind: resp.KindBulk, Str: strings.Repeat("\x00", 32<<20)}
	var many, pairs resp.Value
	many.Kind, pairs.Kind = resp.KindArray, resp.KindMap
	for range replyBytes/replyElem + 1 {
		many.Elems = append(many.Elems, resp.Value{Kind: resp.KindBulk, Str: "element"})
		pairs.Elems = append(pairs.Elems, resp.Value{Kind: resp.KindInt, Int: 7})
	}
	deep := resp.Value{Kind: resp.KindArray, Elems: []resp.Value{many, long, pairs}}
	for name, v := range map[string]resp.Value{"long": long, "many": many, "pairs": pairs, "deep": deep, "status": {Kind: resp.KindStatus, Str: long.Str}} {
		for _, hide := range []bool{false, true} {
			room := textBytes
			var text string
			if bytes := allocated(func() { text = replyText(v, hide, &room) }); bytes > 8<<20 {
				t.Errorf("%s, values hidden %v: the text takes %d bytes", name, hide, bytes)
			}
			if len(text) > textBytes+100 || !strings.Contains(text, "... cut: ") && !(hide && name == "long") {
				t.Errorf("%s, values hidden %v: the text has %d bytes, and says that it is cut: %v", name, hide, len(text), strings.Contains(text, "... cut: "))
			}
			short := shortener{room: replyBytes}
			got, err := json.Marshal(replyJSON(short.of(v), hide))
			if err != nil || len(got) > 4*replyBytes {
				t.Errorf("%s, values hidden %v: %d bytes of JSON, %v", name, hide, len(got), err)
			}
			if short.cut != (name != "long") {
				t.Errorf("%s: the JSON says that it is cut: %v", name, short.cut)
			}
		}
	}
	short := shortener{room: replyBytes}
	if got, err := json.Marshal(replyJSON(short.of(long), false)); err != nil || !strings.Contains(string(got), `"n":33554432`) {
		t.Errorf("the JSON does not say how long the string is: %s, %v", got[len(got)-40:], err)
	}
	var room int // another reply of the request has used it up
	if text := replyText(resp.Value{Kind: resp.KindStatus, Str: "OK"}, false, &room); strings.Contains(text, "OK") || !strings.Contains(text, "... cut: ") {
		t.Errorf("without room for it a reply is printed as %q", text)
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
