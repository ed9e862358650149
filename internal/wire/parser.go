package wire

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/numeral"
)

// Limits bound the memory that a client can make the parser hold. The zero value has
// Redis's limits.
type Limits struct {
	MaxBulk         int  // bytes in one argument; default 512 MiB (proto-max-bulk-len)
	MaxArgs         int  // arguments in one request; default 1024*1024
	MaxInline       int  // bytes in an inline request or a header line; default 64 KiB
	Unauthenticated bool // the client is not logged in yet: at most 10 arguments of at most 16 KiB
}

const (
	defaultMaxBulk   = 512 << 20
	defaultMaxArgs   = 1 << 20
	defaultMaxInline = 64 << 10

	unauthMaxArgs = 10
	unauthMaxBulk = 16384

	// keepArgs is the number of argument slots that a parser keeps between requests. Their
	// 24 KiB are enough for any ordinary command, and an idle connection does not keep the
	// memory that one giant MSET needed.
	keepArgs = 1024
)

// A ProtocolError says that the stream cannot be understood from here on. The server
// replies "-ERR " and the text, then closes the connection.
type ProtocolError string

// Error returns the text Redis sends after "ERR ".
func (e ProtocolError) Error() string { return "Protocol error: " + string(e) }

// The protocol errors that carry no detail of their own. The other one is
// "expected '$', got 'x'".
const (
	ErrMultibulkLength   ProtocolError = "invalid multibulk length"
	ErrBulkLength        ProtocolError = "invalid bulk length"
	ErrMultibulkTooLong  ProtocolError = "too big mbulk count string"
	ErrBulkTooLong       ProtocolError = "too big bulk count string"
	ErrInlineTooLong     ProtocolError = "too big inline request"
	ErrUnbalancedQuotes  ProtocolError = "unbalanced quotes in request"
	ErrUnauthMultibulk   ProtocolError = "unauthenticated multibulk length"
	ErrUnauthBulk        ProtocolError = "unauthenticated bulk length"
	errIncompleteRequest ProtocolError = "incomplete" // never leaves the package
)

// Parser splits the bytes of a client into requests, in place: arrays of bulk
// strings, and inline commands. The zero value is ready and has Redis's limits,
// which may be changed between calls. A Parser belongs to one connection and
// is not safe for concurrent use.
//
// It tolerates what Redis tolerates: it skips the byte after a header's CR and the two
// bytes after an argument without a check, and a negative array length is an empty
// request.
type Parser struct {
	Limits

	args [][]byte
	text []byte // unquoted inline arguments

	// The fields below describe the request that has arrived in part. All positions count
	// from the start of buf, so the caller may move the bytes between calls.
	pending bool
	left    int    // arguments still to come; -1 before the header is read
	bulk    int    // length of the argument at pos; -1 before its header is read
	pos     int    // bytes before it are parsed
	scanned int    // there is no line end between pos and here
	spans   []span // the arguments that are complete
}

type span struct{ start, end int }

// Next returns the arguments of the request at the start of buf, and its length n. With n
// == 0 and no error the request is incomplete: call again with the same bytes, at the same
// or another address, and more bytes after them. A request without arguments (a blank
// inline line, *0, *-1) has n > 0 and no args. An error is a ProtocolError, and the stream
// is of no further use.
//
// The args alias buf or the parser's own memory and are valid until the next call, or
// until buf changes. Next reads every byte once, in whatever pieces they arrive, and
// allocates nothing once its slices have the size that the client's requests need.
func (p *Parser) Next(buf []byte) (args [][]byte, n int, err error) {
	if !p.pending {
		if n := p.whole(buf); n > 0 {
			return p.args, n, nil
		}
		if len(buf) == 0 {
			clear(p.args[:cap(p.args)]) // an idle client must not keep a buffer alive
			return nil, 0, nil
		}
		p.begin()
	}
	n, err = p.resume(buf)
	switch {
	case err == errIncompleteRequest:
		return nil, 0, nil
	case err != nil:
		p.pending = false
		return nil, 0, err
	}
	p.pending = false
	return p.args, n, nil
}

// Want returns the least length, in bytes from the start of buf, of the request that Next
// found incomplete, or 0 if its headers do not say it yet. Only the client's word stands
// behind the number, and it can be as large as MaxBulk: grow a buffer towards it as bytes
// arrive, not at once.
func (p *Parser) Want() int {
	if !p.pending || p.left < 0 {
		return 0
	}
	const least = len("$0\r\n\r\n")
	if p.bulk >= 0 {
		return p.pos + p.bulk + 2 + (p.left-1)*least
	}
	return max(p.pos+p.left*least, p.scanned+2) // the header may be a long one
}

// Reset forgets a partial request, for a parser that goes to another stream.
func (p *Parser) Reset() { p.pending = false }

// whole parses a complete, well-formed array request straight into p.args and returns its
// length. It returns 0 for everything else, and resume parses that from the start. whole
// must accept only what resume would accept.
func (p *Parser) whole(buf []byte) int {
	if cap(p.args) > keepArgs {
		p.args = nil
	}
	if len(buf) < 4 || buf[0] != '*' {
		return 0
	}
	count, i := shortHeader(buf, 1)
	if i == 0 || count > p.maxArgs() {
		return 0
	}
	maxBulk := p.maxBulk()
	args := p.args[:0]
	for range count {
		if len(buf)-i < len("$0\r\n\r\n") || buf[i] != '$' {
			return 0
		}
		var size, start int
		head := buf[i+1 : i+6]
		tens, ones := int(head[0]-'0'), int(head[1]-'0')
		switch {
		case tens <= 9 && head[1] == '\r': // most arguments are shorter than 10 bytes,
			size, start = tens, i+4
		case tens >= 1 && tens <= 9 && ones <= 9 && head[2] == '\r': // or than 100
			size, start = tens*10+ones, i+5
		default:
			size, start = shortHeader(buf, i+1)
		}
		if start == 0 || size > maxBulk || size > len(buf)-start-2 {
			return 0
		}
		end := start + size
		args = append(args, buf[start:end:end])
		i = end + 2
	}
	p.args = args
	return i
}

// shortHeader reads an unsigned number of one to nine digits and the two bytes that end
// its line. It returns the position after them, or 0 if a byte is missing or the header
// has another form.
func shortHeader(buf []byte, i int) (n, next int) {
	start := i
	for ; i < len(buf); i++ {
		d := buf[i] - '0'
		if d > 9 {
			break
		}
		n = n*10 + int(d)
	}
	digits := i - start
	if digits < 1 || digits > 9 || i+1 >= len(buf) || buf[i] != '\r' {
		return 0, 0
	}
	if buf[start] == '0' && digits > 1 {
		return 0, 0
	}
	return n, i + 2
}

// maxArgs and maxBulk return the limits in force; a client that is not logged in has
// smaller ones.
func (p *Parser) maxArgs() int {
	n := orDefault(p.MaxArgs, defaultMaxArgs)
	if p.Unauthenticated {
		n = min(n, unauthMaxArgs)
	}
	return n
}

func (p *Parser) maxBulk() int {
	n := orDefault(p.MaxBulk, defaultMaxBulk)
	if p.Unauthenticated {
		n = min(n, unauthMaxBulk)
	}
	return n
}

func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}

func (p *Parser) begin() {
	p.pending = true
	p.left, p.bulk, p.pos, p.scanned = -1, -1, 0, 0
	p.spans = p.spans[:0]
	if cap(p.spans) > keepArgs {
		p.spans = nil
	}
}

// resume continues the pending request at p.pos.
func (p *Parser) resume(buf []byte) (n int, err error) {
	if p.left < 0 {
		if len(buf) == 0 {
			return 0, errIncompleteRequest
		}
		if buf[0] != '*' {
			return p.inline(buf)
		}
		if err := p.arrayHeader(buf); err != nil {
			return 0, err
		}
	}
	for p.left > 0 {
		if p.bulk < 0 {
			if err := p.bulkHeader(buf); err != nil {
				return 0, err
			}
		}
		if len(buf)-p.pos < p.bulk+2 {
			return 0, errIncompleteRequest
		}
		p.spans = append(p.spans, span{p.pos, p.pos + p.bulk})
		p.pos += p.bulk + 2
		p.scanned = p.pos
		p.bulk = -1
		p.left--
	}
	p.args = p.args[:0]
	for _, s := range p.spans {
		p.args = append(p.args, buf[s.start:s.end:s.end])
	}
	return p.pos, nil
}

func (p *Parser) arrayHeader(buf []byte) error {
	line, err := p.line(buf, '\r', ErrMultibulkTooLong)
	if err != nil {
		return err
	}
	n, ok := numeral.ParseInt(line[1:])
	switch {
	case !ok || n > int64(orDefault(p.MaxArgs, defaultMaxArgs)):
		return ErrMultibulkLength
	case n > unauthMaxArgs && p.Unauthenticated:
		return ErrUnauthMultibulk
	}
	p.left = int(max(n, 0))
	return nil
}

func (p *Parser) bulkHeader(buf []byte) error {
	at := p.pos
	line, err := p.line(buf, '\r', ErrBulkTooLong)
	if err != nil {
		return err
	}
	if len(line) == 0 || line[0] != '$' {
		got := []byte("expected '$', got 'x'")
		got[len(got)-2] = buf[at]
		return ProtocolError(got)
	}
	n, ok := numeral.ParseInt(line[1:])
	switch {
	case !ok || n < 0 || n > int64(orDefault(p.MaxBulk, defaultMaxBulk)):
		return ErrBulkLength
	case n > unauthMaxBulk && p.Unauthenticated:
		return ErrUnauthBulk
	}
	p.bulk = int(n)
	return nil
}

// line returns the line at p.pos without its end and moves p.pos to the byte after it. A
// line ends at the byte end; after a CR one more byte belongs to it.
func (p *Parser) line(buf []byte, end byte, tooLong ProtocolError) ([]byte, error) {
	from := max(p.scanned, p.pos)
	limit := p.pos + orDefault(p.MaxInline, defaultMaxInline) + 1 // a line end may stand right behind MaxInline bytes
	i := bytes.IndexByte(buf[from:min(len(buf), limit)], end)
	if i < 0 {
		if len(buf) >= limit {
			return nil, tooLong
		}
		p.scanned = len(buf)
		return nil, errIncompleteRequest
	}
	i += from
	next := i + 1
	if end == '\r' {
		next++
	}
	if next > len(buf) {
		p.scanned = i
		return nil, errIncompleteRequest
	}
	line := buf[p.pos:i]
	p.pos, p.scanned = next, next
	return line, nil
}
