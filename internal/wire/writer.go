package wire

import (
	"strconv"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/resp"
)

// Writer appends replies to Buf, as RESP2 or RESP3 by Proto. The zero value writes RESP2.
// It checks nothing: the caller of Array(3) must write three replies after it. No method
// allocates except to grow Buf, and no method keeps its arguments. A Writer is not safe
// for concurrent use.
//
// After Collect it builds a Value instead and does not change Buf.
type Writer struct {
	Buf   []byte
	Proto int // 3, or RESP2 for anything else

	collecting bool
	nodes      []resp.Value // see collect.go
	bound      Bound        // of CollectSome
	used       int          // bytes of the nodes
	cut        bool         // something was left out
}

// OK replies +OK.
func (w *Writer) OK() {
	if w.collecting {
		w.add(resp.Value{Kind: resp.KindStatus, Str: "OK"})
		return
	}
	w.Buf = append(w.Buf, "+OK\r\n"...)
}

// Simple replies a status. Line breaks in s become spaces.
func (w *Writer) Simple(s string) {
	if w.collecting {
		w.add(resp.Value{Kind: resp.KindStatus, Str: cleantext.Reply(s)})
		return
	}
	w.line('+', cleantext.Reply(s))
}

// Error replies an error: its code, a space, its text. Line breaks at the end
// of s are dropped, others become spaces.
func (w *Writer) Error(s string) {
	for len(s) > 0 && (s[len(s)-1] == '\n' || s[len(s)-1] == '\r') {
		s = s[:len(s)-1]
	}
	if w.collecting {
		w.add(resp.Value{Kind: resp.KindError, Str: cleantext.Reply(s)})
		return
	}
	w.line('-', cleantext.Reply(s))
}

// Int replies an integer.
func (w *Writer) Int(n int64) {
	if w.collecting {
		w.add(resp.Value{Kind: resp.KindInt, Int: n})
		return
	}
	w.number(':', n)
}

// Bulk replies a string of any bytes. A nil slice is the empty string, not
// Null.
func (w *Writer) Bulk(b []byte) {
	if w.collecting {
		if limit := w.bound.Part; limit > 0 && len(b) > limit {
			w.add(resp.Value{Kind: resp.KindBulk, Str: string(b[:limit]), Int: int64(len(b))})
			w.cut = true
			return
		}
		w.add(resp.Value{Kind: resp.KindBulk, Str: string(b)})
		return
	}
	w.number('$', int64(len(b)))
	w.Buf = append(w.Buf, b...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// BulkBegin replies a string of n bytes to a Writer with a Bound that cuts such a string, of which b is the beginning.
func (w *Writer) BulkBegin(b []byte, n int) {
	if n == len(b) {
		w.Bulk(b)
		return
	}
	w.add(resp.Value{Kind: resp.KindBulk, Str: string(b), Int: int64(n)})
	w.cut = true
}

// BulkAround writes the header and the line end of a bulk string of n bytes, and returns
// the position in Buf where the string belongs. The caller sends the string without
// copying it into Buf. BulkAround must not be called after Collect.
func (w *Writer) BulkAround(n int) (at int) {
	w.number('$', int64(n))
	at = len(w.Buf)
	w.Buf = append(w.Buf, '\r', '\n')
	return at
}

// BulkString replies a string of any bytes.
func (w *Writer) BulkString(s string) {
	if w.collecting {
		w.add(resp.Value{Kind: resp.KindBulk, Str: s})
		return
	}
	w.number('$', int64(len(s)))
	w.Buf = append(w.Buf, s...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// BulkInt replies n as a bulk string of its decimal digits.
func (w *Writer) BulkInt(n int64) {
	if w.collecting {
		w.add(resp.Value{Kind: resp.KindBulk, Str: strconv.FormatInt(n, 10)})
		return
	}
	var text [20]byte
	w.Bulk(strconv.AppendInt(text[:0], n, 10))
}

// Null replies the absence of a value: _ or, in RESP2, $-1.
func (w *Writer) Null() {
	switch {
	case w.collecting:
		w.add(resp.Value{Kind: resp.KindNull})
	case w.Proto == 3:
		w.Buf = append(w.Buf, "_\r\n"...)
	default:
		w.Buf = append(w.Buf, "$-1\r\n"...)
	}
}

// NullArray replies the absence of an array: _ or, in RESP2, *-1.
func (w *Writer) NullArray() {
	switch {
	case w.Proto == 3:
		w.Null()
	case w.collecting:
		w.add(resp.Value{Kind: resp.KindNullArray})
	default:
		w.Buf = append(w.Buf, "*-1\r\n"...)
	}
}

// Array announces that the next n replies form an array.
func (w *Writer) Array(n int) { w.aggregate(resp.KindArray, n) }

// Map announces n pairs: the next 2n replies. In RESP2 it is a flat array.
func (w *Writer) Map(n int) { w.aggregate(resp.KindMap, n) }

// Set announces that the next n replies form a set; in RESP2, an array.
func (w *Writer) Set(n int) { w.aggregate(resp.KindSet, n) }

// Push announces that the next n replies form a message outside the order of
// requests and replies; in RESP2, an array.
func (w *Writer) Push(n int) { w.aggregate(resp.KindPush, n) }

// Attribute announces n pairs of attributes of the reply that follows them,
// and reports whether to write them: RESP2 has none, so there it does nothing
// and returns false.
func (w *Writer) Attribute(n int) bool {
	if w.Proto != 3 {
		return false
	}
	w.aggregate(kindAttribute, n)
	return true
}

// Double replies a floating-point number, spelled as numeral.AppendDouble does; in
// RESP2, as a bulk string.
func (w *Writer) Double(f float64) {
	if w.collecting && w.Proto == 3 {
		w.add(resp.Value{Kind: resp.KindDouble, Float: f})
		return
	}
	var text [40]byte
	b := numeral.AppendDouble(text[:0], f)
	if w.Proto != 3 {
		w.Bulk(b)
		return
	}
	w.Buf = append(w.Buf, ',')
	w.Buf = append(w.Buf, b...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Bool replies true or false; in RESP2, 1 or 0.
func (w *Writer) Bool(b bool) {
	switch {
	case w.Proto != 3 && b:
		w.Int(1)
	case w.Proto != 3:
		w.Int(0)
	case w.collecting:
		v := resp.Value{Kind: resp.KindBool}
		if b {
			v.Int = 1
		}
		w.add(v)
	case b:
		w.Buf = append(w.Buf, "#t\r\n"...)
	default:
		w.Buf = append(w.Buf, "#f\r\n"...)
	}
}

// BigNumber replies an integer beyond 64 bits in decimal; in RESP2, as a bulk
// string.
func (w *Writer) BigNumber(digits string) {
	switch {
	case w.Proto != 3:
		w.BulkString(digits)
	case w.collecting:
		w.add(resp.Value{Kind: resp.KindBigNumber, Str: cleantext.Reply(digits)})
	default:
		w.line('(', cleantext.Reply(digits))
	}
}

// Verbatim replies a text meant to be shown as it is. format is three bytes,
// "txt" or "mkd"; RESP2 drops it and has a bulk string.
func (w *Writer) Verbatim(format, text string) {
	switch {
	case w.Proto != 3:
		w.BulkString(text)
	case w.collecting:
		w.add(resp.Value{Kind: resp.KindVerbatim, Str: text, Format: verbatimFormat(format)})
	default:
		w.number('=', int64(len(text)+4))
		f := verbatimFormat(format)
		w.Buf = append(w.Buf, f[0], f[1], f[2], ':')
		w.Buf = append(w.Buf, text...)
		w.Buf = append(w.Buf, '\r', '\n')
	}
}

// verbatimFormat cuts or fills a format to the three bytes the protocol has.
func verbatimFormat(format string) (f [3]byte) {
	f = [3]byte{' ', ' ', ' '}
	copy(f[:], format)
	return f
}

func (w *Writer) aggregate(kind resp.Kind, n int) {
	if w.Proto != 3 {
		n *= widthOf(kind)
		kind = resp.KindArray
	}
	if w.collecting {
		w.add(resp.Value{Kind: kind, Int: int64(n)})
		return
	}
	w.number(sigilOf(kind), int64(n))
}

// number writes a header. It is fast for one digit, which most headers have.
func (w *Writer) number(sigil byte, n int64) {
	if n >= 0 && n <= 9 {
		w.Buf = append(w.Buf, sigil, '0'+byte(n), '\r', '\n')
		return
	}
	if n >= 10 && n <= 99 { // the length of most members and values
		w.Buf = append(w.Buf, sigil, '0'+byte(n/10), '0'+byte(n%10), '\r', '\n')
		return
	}
	w.Buf = append(w.Buf, sigil)
	w.Buf = strconv.AppendInt(w.Buf, n, 10)
	w.Buf = append(w.Buf, '\r', '\n')
}

func (w *Writer) line(sigil byte, s string) {
	w.Buf = append(w.Buf, sigil)
	w.Buf = append(w.Buf, s...)
	w.Buf = append(w.Buf, '\r', '\n')
}
