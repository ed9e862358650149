package oplog

import (
	"errors"
	"fmt"
	"strconv"
)

// Plain translates a stream for redis-server 7.0 without changing its offsets: it overwrites commands that
// redis-server does not know with commands of the same length that have no effect. The caller passes the stream to
// Next in pieces, starting at the beginning of a command.
//
//	*4 $9 LOCK.TAKE $3 key $2 me $4 5000   ──▶   *2 $4 PING $33 ____________
//
// Next keeps an incomplete command until the piece with its end, so it returns only complete commands.
type Plain struct {
	// Knows selects the commands that Plain keeps, in addition to those of Redis 7.0.
	Knows Dialect

	held []byte // the beginning of a command
	at   int    // the position in held up to which scan has parsed it
	args int    // arguments still to come after at; -1: the head of a command comes next
	out  []byte
}

// A Dialect selects the commands that a plain replica knows besides those of Redis 7.0.
type Dialect uint8

// The dialects. Redis8 and Valkey9 know deadlines of hash fields, Valkey9 also the commands that only Valkey has.
const (
	Redis7 Dialect = iota
	Redis8
	Valkey9

	noDialect // for commands that only later servers know
)

// ErrForeign means that the stream has a command about plain data that the replica does not know; such a stream comes
// from another master. Plain must not overwrite the command, because the replica would then have different data.
var ErrForeign = errors.New("oplog: the stream has a command about plain data that this replica does not know")

// ErrNotAStream means that the bytes do not begin with a command.
var ErrNotAStream = errors.New("oplog: the bytes do not begin with a command")

// Next translates the next piece of the stream. It returns b itself, or a buffer that is valid until the next call.
// O(commands), plus a copy of the piece if it overwrites a command.
//
// Errors: ErrNotAStream, ErrForeign; after an error the caller must not call Next again.
func (p *Plain) Next(b []byte) ([]byte, error) {
	if len(p.held) > 0 {
		p.held = append(p.held, b...)
		b = p.held
	} else {
		p.at, p.args = 0, -1
	}
	p.out = p.out[:0]
	done, from := 0, 0 // b[from:done] holds complete commands that stay unchanged
	for {
		end, whole, err := p.scan(b, done)
		if err != nil {
			return nil, err
		}
		if !whole {
			break
		}
		stays, err := p.stays(nameOf(b[done:end]))
		if err != nil {
			return nil, err
		}
		if !stays {
			p.out = append(p.out, b[from:done]...)
			p.out = appendIdle(p.out, end-done)
			from = end
		}
		done, p.at, p.args = end, end, -1
	}
	return p.settle(b, from, done), nil
}

// settle stores the incomplete command at the end, and returns the commands before it.
func (p *Plain) settle(b []byte, from, done int) []byte {
	out := b[from:done]
	if len(p.out) > 0 {
		p.out = append(p.out, out...)
		out = p.out
	} else if len(p.held) > 0 {
		p.out = append(p.out, out...) // p.held is about to change
		out = p.out
	}
	rest := b[done:]
	p.at -= done
	switch {
	case len(rest) == 0 && cap(p.held) > blockSize:
		p.held = nil // drop the buffer of a large command
	case len(p.held) > 0:
		p.held = p.held[:copy(p.held, rest)]
	default:
		p.held = append(p.held[:0], rest...)
	}
	return out
}

// scan looks for the end of the command that begins at b[start:], and continues where the last call stopped. An empty
// line between commands counts as a command.
func (p *Plain) scan(b []byte, start int) (end int, whole bool, err error) {
	if p.args < 0 {
		if p.at = start; start == len(b) {
			return 0, false, nil
		}
		if b[start] == '\n' || b[start] == '\r' {
			return start + 1, true, nil
		}
		n, next, ok, err := number(b, start, '*')
		if !ok {
			return 0, false, err
		}
		p.at, p.args = next, n
	}
	for p.args > 0 {
		n, next, ok, err := number(b, p.at, '$')
		if !ok {
			return 0, false, err
		}
		if next+n+2 > len(b) {
			return 0, false, nil
		}
		p.at = next + n + 2
		p.args--
	}
	return p.at, true, nil
}

// number reads the line with a number that begins at b[i].
func number(b []byte, i int, kind byte) (n, next int, ok bool, err error) {
	if i >= len(b) {
		return 0, 0, false, nil
	}
	if b[i] != kind {
		return 0, 0, false, ErrNotAStream
	}
	for i++; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if n = n*10 + int(b[i]-'0'); n > 1<<40 {
			return 0, 0, false, ErrNotAStream
		}
	}
	if i+2 > len(b) {
		return 0, 0, false, nil
	}
	if b[i] != '\r' || b[i+1] != '\n' {
		return 0, 0, false, ErrNotAStream
	}
	return n, i + 2, true, nil
}

// nameOf returns the first argument of a complete command, or nil.
func nameOf(command []byte) []byte {
	n, i, ok, _ := number(command, 0, '*')
	if !ok || n == 0 {
		return nil
	}
	l, i, _, _ := number(command, i, '$')
	return command[i : i+l]
}

// appendIdle appends n bytes without an effect in redis-server. Usually that is one PING with an argument. For some
// total lengths, at which the number of digits of the argument's length changes, there is no such PING; EXISTS fits
// then. For fewer bytes than the shortest PING with an argument, it appends empty lines, which a server skips.
func appendIdle(b []byte, n int) []byte {
	const ping = "*1\r\n$4\r\nPING\r\n"
	if filled, ok := appendFilled(b, "PING", n); ok {
		return filled
	}
	if filled, ok := appendFilled(b, "EXISTS", n); ok {
		return filled
	}
	if n >= len(ping) {
		b = append(b, ping...)
		n -= len(ping)
	}
	for range n {
		b = append(b, '\n')
	}
	return b
}

// appendFilled appends a command with one argument in exactly n bytes. It reports whether that is possible.
func appendFilled(b []byte, name string, n int) (_ []byte, ok bool) {
	head := len("*2\r\n$4\r\n") + len(name) + len("\r\n")
	for digits := 1; digits < 12; digits++ {
		size := n - head - len("$\r\n\r\n") - digits
		if size < 0 {
			return b, false
		}
		if len(strconv.Itoa(size)) != digits {
			continue
		}
		b = append(b, "*2\r\n$"...)
		b = strconv.AppendInt(b, int64(len(name)), 10)
		b = append(b, '\r', '\n')
		b = append(b, name...)
		b = append(b, "\r\n$"...)
		b = strconv.AppendInt(b, int64(size), 10)
		b = append(b, '\r', '\n')
		for range size {
			b = append(b, '_')
		}
		return append(b, '\r', '\n'), true
	}
	return b, false
}

// stays reports whether the replica receives commands with a name. Names in ebb's log are in capitals; those in
// another master's stream are as its clients wrote them.
func (p *Plain) stays(name []byte) (bool, error) {
	var b [20]byte
	if len(name) > len(b) {
		return false, nil
	}
	for i, c := range name {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		b[i] = c
	}
	capitals := b[:len(name)]
	if len(name) == 0 || plainNames[string(capitals)] {
		return true, nil
	}
	newer, ok := newerNames[string(capitals)]
	switch {
	case !ok:
		return false, nil
	case p.Knows >= newer.lowest:
		return true, nil
	case newer.logged:
		return false, nil // for the replica these fields have no deadlines
	}
	return false, fmt.Errorf("%w: %s", ErrForeign, capitals)
}

// newerName is a command about plain data that Redis 7.0 does not know.
type newerName struct {
	lowest Dialect // the first dialect that knows it
	// logged reports that ebb's own log has the command. A replica that does not know it misses only a deadline. All
	// other commands come from another master.
	logged bool
}
