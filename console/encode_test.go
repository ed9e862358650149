package console

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ebbdb/ebb/resp"
)

func FuzzABlobKeepsItsBytes(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\xff\xfe", "a\u202eb", "\ufeffx", "zero\u200bwidth", "\u2028", "é漢字😀", "\xed\xa0\x80", "\ufffd",
		"<script>alert(1)</script>", "a\nb", `"\`, "__proto__", "\u00ad", "\u061c", strings.Repeat("k", 70000)} {
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
		if text := replyText(whole, hide); strings.Contains(text, "secret") == hide || !strings.Contains(text, "(integer) 9007199254740993") {
			t.Errorf("values hidden %v: %s", hide, text)
		}
	}
}
