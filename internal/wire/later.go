package wire

import (
	"bufio"
	"bytes"
	"strconv"

	"github.com/ebbdb/ebb/resp"
)

// Later is the position of a length that the caller does not know yet.
type Later struct {
	at   int // of the header in Buf, or of the node when collecting
	kind resp.Kind
}

// ArrayLater, MapLater, SetLater and PushLater announce an aggregate whose length Patch
// sets once its elements are written. They reserve a header of one digit. Patch moves the
// bytes after it only if the length has more digits, so a short reply costs nothing and a
// long one costs a single copy.
func (w *Writer) ArrayLater() Later { return w.later(resp.KindArray) }

// MapLater announces a map, as ArrayLater announces an array.
func (w *Writer) MapLater() Later { return w.later(resp.KindMap) }

// SetLater announces a set, as ArrayLater announces an array.
func (w *Writer) SetLater() Later { return w.later(resp.KindSet) }

// PushLater announces a push, as ArrayLater announces an array.
func (w *Writer) PushLater() Later { return w.later(resp.KindPush) }

func (w *Writer) later(kind resp.Kind) Later {
	l := Later{at: len(w.Buf), kind: kind}
	if w.collecting {
		l.at = len(w.nodes)
	}
	w.aggregate(kind, 0)
	return l
}

// Patch sets the length that l stands for: n elements, or n pairs of a map. The caller
// patches an inner aggregate before the outer one.
func (w *Writer) Patch(l Later, n int) {
	if w.Proto != 3 {
		n *= widthOf(l.kind)
	}
	if w.collecting {
		if l.at < len(w.nodes) { // else it was left out
			w.nodes[l.at].Int = int64(n)
		}
		return
	}
	if n >= 0 && n <= 9 {
		w.Buf[l.at+1] = '0' + byte(n)
		return
	}
	var text [20]byte
	digits := strconv.AppendInt(text[:0], int64(n), 10)
	end := len(w.Buf)
	w.Buf = append(w.Buf, digits[1:]...) // makes space; the next line writes the content
	body := l.at + len("*0")
	copy(w.Buf[body+len(digits)-1:], w.Buf[body:end])
	copy(w.Buf[l.at+1:], digits)
}

// Mark is a position in the replies to which Rollback can return.
type Mark struct{ at int }

// Mark returns the current end of the replies.
func (w *Writer) Mark() Mark {
	if w.collecting {
		return Mark{len(w.nodes)}
	}
	return Mark{len(w.Buf)}
}

// Rollback drops everything written since m, for a command that fails after it has written
// a part of its reply. Lengths that were announced before m still count the dropped
// replies: the caller writes a reply in its place. Marks and Laters made after m are void.
func (w *Writer) Rollback(m Mark) {
	if w.collecting {
		clear(w.nodes[m.at:]) // releases their strings
		w.nodes = w.nodes[:m.at]
		if w.bound != (Bound{}) {
			w.recount()
		}
		return
	}
	w.Buf = w.Buf[:m.at]
}

// Wrote reports whether anything was written since m.
func (w *Writer) Wrote(m Mark) bool { return w.Mark() != m }

// Raw appends replies that are already encoded in the Writer's protocol. A Writer that
// collects decodes them; bytes that are not a reply become an error reply.
func (w *Writer) Raw(encoded []byte) {
	if !w.collecting {
		w.Buf = append(w.Buf, encoded...)
		return
	}
	src := bytes.NewReader(encoded)
	r := bufio.NewReader(src)
	for src.Len() > 0 || r.Buffered() > 0 {
		v, err := ReadValue(r)
		if err != nil {
			w.Error("ERR " + err.Error())
			return
		}
		w.addTree(v)
	}
}

// Append replies v, which a client decoded or a Writer collected. In RESP2, a kind that
// RESP2 does not have is written as the method of its name writes it.
func (w *Writer) Append(v resp.Value) {
	if len(v.Attrs) > 0 && w.Attribute(len(v.Attrs)/2) {
		for _, a := range v.Attrs {
			w.Append(a)
		}
	}
	switch v.Kind {
	case resp.KindStatus:
		w.Simple(v.Str)
	case resp.KindError:
		w.Error(v.Str)
	case resp.KindInt:
		w.Int(v.Int)
	case resp.KindBulk:
		w.BulkString(v.Str)
	case resp.KindDouble:
		w.Double(v.Float)
	case resp.KindBool:
		w.Bool(v.Int != 0)
	case resp.KindBigNumber:
		w.BigNumber(v.Str)
	case resp.KindVerbatim:
		w.Verbatim(string(v.Format[:]), v.Str)
	case resp.KindNullArray:
		w.NullArray()
	case resp.KindArray, resp.KindMap, resp.KindSet, resp.KindPush:
		w.aggregate(v.Kind, len(v.Elems)/widthOf(v.Kind))
		for _, e := range v.Elems {
			w.Append(e)
		}
	default:
		w.Null()
	}
}
