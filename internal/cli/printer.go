package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// printer writes replies in one format. Each reply is one Write.
type printer struct {
	w         io.Writer
	format    Format
	bulk, end string // delimiters of FormatRaw
	pushes    bool   // show messages that are not replies
	buf       []byte
}

// reply prints a reply. A reply that is text for people is written unchanged, in every
// format.
func (p *printer) reply(v resp.Value, plain bool) {
	p.buf = p.buf[:0]
	switch {
	case plain:
		p.buf = p.raw(p.buf, v)
	case p.format == FormatRaw:
		p.buf = append(p.raw(p.buf, v), p.end...)
	case p.format == FormatCSV:
		p.buf = wire.AppendCSV(p.buf, v)
	case p.format == FormatJSON:
		p.buf = wire.AppendJSON(p.buf, v)
	case p.format == FormatQuotedJSON:
		p.buf = wire.AppendQuotedJSON(p.buf, v)
	default:
		p.buf = wire.AppendTTY(p.buf, v)
	}
	_, _ = p.w.Write(p.buf)
}

// push prints a message that is not a reply, if the user wants such messages.
func (p *printer) push(v resp.Value) {
	if !p.pushes {
		return
	}
	if p.format == FormatTTY && len(v.Elems) == 2 && v.Elems[0].Str == "invalidate" {
		keys, _ := v.Elems[1].AsStrings()
		for i, k := range keys {
			keys[i] = "'" + k + "'"
		}
		fmt.Fprintf(p.w, "-> invalidate: %s\n", strings.Join(keys, ", "))
		return
	}
	p.reply(v, false)
}

// raw appends a reply as it is, with the delimiter between elements.
func (p *printer) raw(dst []byte, v resp.Value) []byte {
	if p.bulk == "\n" || len(v.Elems) == 0 {
		dst = wire.AppendRaw(dst, v)
		return dst[:len(dst)-1] // the line end behind it: p.end may be another
	}
	for i, e := range v.Elems {
		switch {
		case v.Kind == resp.KindMap && i%2 == 1:
			dst = append(dst, ' ')
		case i > 0:
			dst = append(dst, p.bulk...)
		}
		dst = p.raw(dst, e)
	}
	return dst
}
