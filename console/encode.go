package console

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// blob is a byte string for JavaScript, whose strings are not bytes:
//
//	{"t":"text"}                       clean text
//	{"b":"base64","t":"\\x00 escaped"} other text: the bytes, and the text that redis-cli prints between its quotes
//	{"t":"the first of it","n":90000}  cut; n is the whole length
//	{"n":90000}                        hidden: http-console-values is no
//
// A page shows t as a text node. Text is clean if a reader can see every character of it, in the order of the
// bytes.
type blob struct {
	s      string
	n      int // the whole length, if it is cut or hidden
	cut    bool
	hidden bool
	whole  bool // never cut
}

// bytesOf returns a name: a key, a field, a member, an owner. The console never hides it, and cuts only one that is longer than nameBytes.
func bytesOf(s string) blob { return blob{s: s} }

// wholeOf works as bytesOf does, but never cuts: the page compares the name in the answer with the one that
// it asked for.
func wholeOf(s string) blob { return blob{s: s, whole: true} }

const (
	// nameBytes is the greatest length of a name that a page gets in full; the page needs the full name to open
	// the key. The bound exists because an answer may have many names. A user can open a key by a name that is
	// as long as a request body can hold in base64, up to some 780,000 bytes.
	nameBytes = 128 << 10
	// nameBegin is the number of bytes that a page gets of a longer name.
	nameBegin = 1 << 10
)

// MarshalJSON implements json.Marshaler.
func (b blob) MarshalJSON() ([]byte, error) {
	if b.hidden {
		return append(strconv.AppendInt([]byte(`{"n":`), int64(b.n), 10), '}'), nil
	}
	if !b.cut && !b.whole && len(b.s) > nameBytes {
		b = cutTo(b.s, nameBegin)
	}
	var dst []byte
	if clean(b.s) {
		text, err := json.Marshal(b.s)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, `{"t":`...), text...)
	} else {
		quoted := wire.AppendQuoted(nil, b.s)
		text, err := json.Marshal(string(quoted[1 : len(quoted)-1]))
		if err != nil {
			return nil, err
		}
		dst = append(dst, `{"b":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(b.s))
		dst = append(append(dst, `","t":`...), text...)
	}
	if b.cut {
		dst = strconv.AppendInt(append(dst, `,"n":`...), int64(b.n), 10)
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. It refuses a blob that is cut or hidden, because it does not
// have all bytes.
func (b *blob) UnmarshalJSON(in []byte) error {
	var x struct {
		T *string `json:"t"`
		B *string `json:"b"`
		N *int    `json:"n"`
	}
	if err := json.Unmarshal(in, &x); err != nil {
		return err
	}
	switch {
	case x.N != nil:
		return errors.New(`a byte string has "n": it is cut or hidden, and the console needs all its bytes`)
	case x.B != nil:
		raw, err := base64.StdEncoding.DecodeString(*x.B)
		if err != nil {
			return fmt.Errorf(`"b" of a byte string must be base64: %w`, err)
		}
		b.s = string(raw)
	case x.T != nil:
		b.s = *x.T
	default:
		return errors.New(`a byte string must have "t", its text, or "b", its bytes in base64`)
	}
	return nil
}

// unseen are the classes of characters that are invisible or not recognizable: control and format characters
// (among them direction marks, zero-width characters and the byte order mark), separators, blanks other than
// the space, and characters that fonts omit.
var unseen = []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Z, unicode.Other_Default_Ignorable_Code_Point,
	unicode.Variation_Selector}

const (
	brailleBlank = '\u2800'
	emojiStyle   = '\ufe0f' // a variation selector, visible after a symbol
)

// clean reports whether a reader can see every character of a text, in the order of its bytes: it is valid
// UTF-8 and contains none of unseen. UNCLEAN in ui/lib/bytes.js is the same rule.
func clean(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	before := ' '
	for _, r := range s {
		switch {
		case r < ' ' || r == 0x7f:
			return false
		case r < 0x7f, r == emojiStyle && unicode.Is(unicode.So, before):
		case r == brailleBlank || unicode.In(r, unseen...):
			return false
		}
		before = r
	}
	return true
}

// previewBytes is the number of bytes that a page gets of a value, and of one string in a reply.
const previewBytes = 64 << 10

// cutTo returns at most limit bytes of a value. It does not cut a UTF-8 sequence.
func cutTo(s string, limit int) blob {
	if len(s) <= limit {
		return blob{s: s}
	}
	at := limit
	for back := 1; back < utf8.UTFMax && back <= limit; back++ {
		if utf8.RuneStart(s[limit-back]) {
			if !utf8.FullRuneInString(s[limit-back : limit]) {
				at = limit - back
			}
			break
		}
	}
	return blob{s: s[:at], n: len(s), cut: true}
}

// shown returns a value cut to a preview, or only its length.
func shown(s string, hide bool) blob {
	if hide {
		return blob{n: len(s), hidden: true}
	}
	return cutTo(s, previewBytes)
}

// shownOf works as shown does, for a string of a reply of which the console may have read only the beginning.
func shownOf(v resp.Value, hide bool) blob {
	b := shown(v.Str, hide)
	if whole := int(v.Int); whole > len(v.Str) {
		b.n, b.cut = whole, !hide
	}
	return b
}

// nameOf works as bytesOf does, for a string of a reply.
func nameOf(v resp.Value) blob {
	if whole := int(v.Int); whole > len(v.Str) {
		b := cutTo(v.Str, nameBegin)
		b.n, b.cut = whole, true
		return b
	}
	return bytesOf(v.Str)
}

// replyJSON returns a reply for JavaScript. An int64 and a big number become texts, because a number in
// JavaScript has 53 bits.
func replyJSON(v resp.Value, hide bool) any {
	switch v.Kind {
	case resp.KindStatus:
		return map[string]any{"s": cutTo(v.Str, previewBytes).s}
	case resp.KindError:
		return map[string]any{"e": cutTo(v.Str, previewBytes).s}
	case resp.KindInt:
		return map[string]any{"i": strconv.FormatInt(v.Int, 10)}
	case resp.KindBulk:
		return shownOf(v, hide)
	case resp.KindArray, resp.KindPush:
		return repliesJSON(v.Elems, hide)
	case resp.KindSet:
		return map[string]any{"set": repliesJSON(v.Elems, hide)}
	case resp.KindMap:
		pairs := make([][2]any, 0, len(v.Elems)/2)
		for k, x := range v.Pairs {
			pairs = append(pairs, [2]any{replyJSON(k, hide && k.Kind != resp.KindBulk), replyJSON(x, hide)})
		}
		return map[string]any{"map": pairs}
	case resp.KindDouble:
		return map[string]any{"d": double(v.Float)}
	case resp.KindBool:
		return v.Int != 0
	case resp.KindBigNumber:
		return map[string]any{"big": v.Str}
	case resp.KindVerbatim:
		return map[string]any{"v": shown(v.Str, hide), "format": string(v.Format[:])}
	}
	return nil
}

func repliesJSON(all []resp.Value, hide bool) []any {
	out := make([]any, len(all))
	for i, v := range all {
		out[i] = replyJSON(v, hide)
	}
	return out
}

// double returns a number for JSON, which has no infinities.
func double(f float64) any {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return f
}

// textBytes is the number of bytes that a page gets of the texts of the replies to a request. replyBytes is
// that of the replies themselves, where an element counts as replyElem. A text and its JSON can be many times
// as long as the reply.
const (
	textBytes  = 256 << 10
	replyBytes = 1 << 20
	replyElem  = 16
)

// shortener returns the beginnings of replies. It copies no string.
type shortener struct {
	room    int  // the number of bytes that it may still return
	strings bool // cut bulk strings too; if not set, a bulk string counts as previewBytes at most
	cut     bool // something was left out
}

func (x *shortener) of(v resp.Value) resp.Value {
	x.room -= replyElem
	n := len(v.Str)
	switch {
	case !x.strings && (v.Kind == resp.KindBulk || v.Kind == resp.KindVerbatim):
		n = min(n, previewBytes)
	case n > max(x.room, 0):
		n = max(x.room, 0)
		v.Str, x.cut = v.Str[:n], true
	}
	x.room -= n
	if len(v.Elems) == 0 {
		return v
	}
	elems := make([]resp.Value, 0, min(len(v.Elems), max(x.room, 0)/replyElem+1))
	for _, e := range v.Elems {
		if x.room < replyElem {
			x.cut = true
			break
		}
		elems = append(elems, x.of(e))
	}
	if v.Kind == resp.KindMap {
		elems = elems[:len(elems)&^1]
	}
	v.Elems = elems
	return v
}

// replyText returns a reply as ebb cli prints it, without the last line end. It subtracts the length from
// room, and cuts the text when room is used up.
func replyText(v resp.Value, hide bool, room *int) string {
	short := shortener{room: *room, strings: !hide}
	if v = short.of(v); hide {
		v = hideValues(v)
	}
	text := wire.AppendTTY(nil, v)
	if n := len(text); n > 0 && text[n-1] == '\n' {
		text = text[:n-1]
	}
	if !short.cut && len(text) <= *room {
		*room -= len(text)
		return string(text)
	}
	begin := cutTo(string(text), max(*room, 0)).s
	*room = 0
	return begin + "\n... cut: the console shows " + strconv.Itoa(textBytes>>10) + " KiB of the replies to a request"
}

// hideValues replaces the strings of a reply with their lengths.
func hideValues(v resp.Value) resp.Value {
	switch v.Kind {
	case resp.KindBulk, resp.KindVerbatim:
		return resp.Value{Kind: resp.KindStatus, Str: "(" + strconv.Itoa(max(len(v.Str), int(v.Int))) + " bytes, hidden)"}
	case resp.KindArray, resp.KindPush, resp.KindSet, resp.KindMap:
		elems := make([]resp.Value, len(v.Elems))
		for i, e := range v.Elems {
			if elems[i] = e; v.Kind != resp.KindMap || i%2 == 1 {
				elems[i] = hideValues(e)
			}
		}
		v.Elems = elems
	}
	return v
}

// text64 returns an int64 for JavaScript.
func text64(n int64) string { return strconv.FormatInt(n, 10) }

// member returns the value of a name in a reply of pairs; null if it is missing.
func member(v resp.Value, name string) resp.Value {
	got, _ := v.Get(name)
	return got
}

// scoreText returns a score as the server writes it.
func scoreText(v resp.Value) string {
	if v.Kind == resp.KindDouble {
		return string(numeral.AppendDouble(nil, v.Float))
	}
	return v.Str
}

// pageBytes is the approximate size of the values of a page, which are read whole and cut afterwards.
const pageBytes = 4 << 20

func argvOf(in []blob) [][]byte {
	argv := make([][]byte, len(in))
	for i, b := range in {
		argv[i] = []byte(b.s)
	}
	return argv
}

// decodeKey returns the bytes of a key in a URL.
func decodeKey(s string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	return string(raw), err
}

// encode returns x as JSON. x has no value that cannot be written.
func encode(x any) json.RawMessage {
	b, err := json.Marshal(x)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
