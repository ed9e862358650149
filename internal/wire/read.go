package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/resp"
)

// ErrBadReply is in the chain of errors about bytes that are not a RESP reply, and about a
// reply beyond the limits. The caller can no longer use the connection.
var ErrBadReply = errors.New("malformed reply")

// These are the bounds of ReadLimits where a field is 0; defaultMaxBulk is the fourth.
const (
	defaultMaxBytes  = 4 << 30
	defaultMaxValues = 16 << 20
	defaultMaxDepth  = 128
)

// ReadLimits bound the memory that a server can make a client hold. The zero value allows
// every reply that Redis sends.
type ReadLimits struct {
	MaxBulk   int   // bytes in one string or line; default 512 MiB
	MaxBytes  int64 // bytes in all strings of one reply; default 4 GiB
	MaxValues int   // values in one reply, nested ones included; default 16 Mi
	MaxDepth  int   // aggregates inside each other; default 128
}

// ReadValue reads one reply, RESP2 or RESP3, under the default limits.
func ReadValue(r *bufio.Reader) (resp.Value, error) {
	return ReadLimits{}.Read(r)
}

// Read reads one reply. Attributes become the Attrs of the value after them. An error
// reply is a Value, not an error. An error that Read returns comes from r (io.EOF only
// before the first byte) or wraps ErrBadReply. Memory grows with the bytes that arrive, by
// at most about 100 bytes for each, and never with the lengths a server declares.
func (l ReadLimits) Read(r *bufio.Reader) (resp.Value, error) {
	d := decoder{
		r:        r,
		maxBulk:  orDefault(l.MaxBulk, defaultMaxBulk),
		left:     orDefault(l.MaxValues, defaultMaxValues),
		maxDepth: orDefault(l.MaxDepth, defaultMaxDepth),
		bytes:    l.MaxBytes,
	}
	if d.bytes == 0 {
		d.bytes = defaultMaxBytes
	}
	if _, err := r.Peek(1); err != nil {
		return resp.Value{}, err
	}
	v, err := d.value(0)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return resp.Value{}, err
	}
	return v, nil
}

type decoder struct {
	r        *bufio.Reader
	long     []byte // a line that is longer than r's buffer
	maxBulk  int
	maxDepth int
	left     int   // values the reply may still have
	bytes    int64 // bytes its strings and lines may still have
}

func (d *decoder) value(depth int) (resp.Value, error) {
	var attrs []resp.Value
	for {
		if d.left--; d.left < 0 {
			return resp.Value{}, bad("too many values")
		}
		line, err := d.line()
		if err != nil {
			return resp.Value{}, err
		}
		if len(line) == 0 {
			return resp.Value{}, bad("empty line")
		}
		if line[0] != '|' {
			v, err := d.body(line[0], line[1:], depth)
			v.Attrs = attrs
			return v, err
		}
		a, err := d.elements(kindAttribute, line[1:], depth)
		if err != nil {
			return resp.Value{}, err
		}
		attrs = append(attrs, a.Elems...)
	}
}

// body decodes the value that begins with line. line is valid until the next read.
func (d *decoder) body(sigil byte, line []byte, depth int) (resp.Value, error) {
	switch sigil {
	case '+':
		return resp.Value{Kind: resp.KindStatus, Str: string(line)}, nil
	case '-':
		return resp.Value{Kind: resp.KindError, Str: string(line)}, nil
	case '(':
		return resp.Value{Kind: resp.KindBigNumber, Str: string(line)}, nil
	case ':':
		return integer(line)
	case ',':
		return double(line)
	case '#':
		return boolean(line)
	case '_':
		return resp.Value{Kind: resp.KindNull}, nil
	case '$':
		return d.str(resp.KindBulk, line)
	case '!':
		return d.str(resp.KindError, line)
	case '=':
		return d.verbatim(line)
	case '*':
		return d.elements(resp.KindArray, line, depth)
	case '%':
		return d.elements(resp.KindMap, line, depth)
	case '~':
		return d.elements(resp.KindSet, line, depth)
	case '>':
		return d.elements(resp.KindPush, line, depth)
	}
	return resp.Value{}, bad("unknown type %q", sigil)
}

func integer(line []byte) (resp.Value, error) {
	digits := line
	if len(line) > 1 && line[0] == '+' && line[1] != '-' {
		digits = line[1:]
	}
	n, ok := numeral.ParseInt(digits)
	if !ok {
		return resp.Value{}, bad("integer %.32q", line)
	}
	return resp.Value{Kind: resp.KindInt, Int: n}, nil
}

// double decodes a floating-point number. Str gets its text if numeral.AppendDouble would write
// another: Redis before 7.2 sends 3.1000000000000001, and redis-cli shows it.
func double(line []byte) (resp.Value, error) {
	v := resp.Value{Kind: resp.KindDouble}
	f, ok := numeral.ParseDouble(line)
	if !ok {
		if !bytes.EqualFold(line, []byte("nan")) && !bytes.EqualFold(line, []byte("-nan")) {
			return resp.Value{}, bad("double %.32q", line)
		}
		f = math.NaN()
	}
	v.Float = f
	var text [40]byte
	if string(numeral.AppendDouble(text[:0], f)) != string(line) {
		v.Str = string(line)
	}
	return v, nil
}

func boolean(line []byte) (resp.Value, error) {
	switch string(line) {
	case "t":
		return resp.Value{Kind: resp.KindBool, Int: 1}, nil
	case "f":
		return resp.Value{Kind: resp.KindBool}, nil
	}
	return resp.Value{}, bad("boolean %.32q", line)
}

func (d *decoder) str(kind resp.Kind, line []byte) (resp.Value, error) {
	n, err := length(line, d.maxBulk)
	if err != nil {
		return resp.Value{}, err
	}
	if n < 0 {
		return resp.Value{Kind: resp.KindNull}, nil
	}
	s, err := d.text(n)
	return resp.Value{Kind: kind, Str: s}, err
}

func (d *decoder) verbatim(line []byte) (resp.Value, error) {
	v, err := d.str(resp.KindVerbatim, line)
	if err != nil {
		return v, err
	}
	if len(v.Str) < 4 || v.Str[3] != ':' {
		return resp.Value{}, bad("verbatim string without a format")
	}
	copy(v.Format[:], v.Str)
	v.Str = v.Str[4:]
	return v, nil
}

// elements decodes the values that an aggregate's header announces.
func (d *decoder) elements(kind resp.Kind, line []byte, depth int) (resp.Value, error) {
	n, err := length(line, d.left/widthOf(kind))
	switch {
	case err != nil:
		return resp.Value{}, err
	case n < 0 && kind == resp.KindArray:
		return resp.Value{Kind: resp.KindNullArray}, nil
	case n < 0:
		return resp.Value{Kind: resp.KindNull}, nil
	case depth >= d.maxDepth:
		return resp.Value{}, bad("nested too deeply")
	}
	v := resp.Value{Kind: kind}
	n *= widthOf(kind)
	if n > 0 {
		v.Elems = make([]resp.Value, 0, min(n, 8))
	}
	for range n {
		e, err := d.value(depth + 1)
		if err != nil {
			return resp.Value{}, err
		}
		v.Elems = append(v.Elems, e)
	}
	return v, nil
}

// length reads a declared length up to limit; -1 is a null.
func length(line []byte, limit int) (int, error) {
	n, ok := numeral.ParseInt(line)
	if !ok || n < -1 || n > int64(limit) {
		return 0, bad("length %.32q", line)
	}
	return int(n), nil
}

// text reads n bytes and the line end after them. Its memory grows as the bytes arrive.
func (d *decoder) text(n int) (string, error) {
	if d.bytes -= int64(n); d.bytes < 0 {
		return "", bad("too many bytes")
	}
	var b strings.Builder
	b.Grow(min(n, 16<<10))
	for b.Len() < n {
		chunk, err := d.r.Peek(min(n-b.Len(), max(d.r.Buffered(), 1)))
		if err != nil {
			return "", err
		}
		b.Write(chunk)
		_, _ = d.r.Discard(len(chunk)) // cannot fail: the bytes are buffered
	}
	end, err := d.r.Peek(2)
	if err != nil {
		return "", err
	}
	if string(end) != "\r\n" {
		return "", bad("string without its end")
	}
	_, _ = d.r.Discard(2)
	return b.String(), nil
}

// line reads a line without its CRLF, valid until the next read.
func (d *decoder) line() ([]byte, error) {
	line, err := d.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line, err = d.longLine(line)
	}
	if err != nil {
		return nil, err
	}
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return nil, bad("line without CRLF")
	}
	if d.bytes -= int64(len(line)); d.bytes < 0 {
		return nil, bad("too many bytes")
	}
	return line[:len(line)-2], nil
}

func (d *decoder) longLine(start []byte) ([]byte, error) {
	d.long = append(d.long[:0], start...)
	for len(d.long) <= d.maxBulk {
		part, err := d.r.ReadSlice('\n')
		d.long = append(d.long, part...)
		if err != bufio.ErrBufferFull {
			return d.long, err
		}
	}
	return nil, bad("line too long")
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBadReply}, args...)...)
}
