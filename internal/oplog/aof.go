package oplog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// AOFError describes the first error in a file of commands.
type AOFError struct {
	Good      int64 // the bytes up to the end of the last whole command or transaction
	Offset    int64 // the position of the error
	Truncated bool  // the file ends too early, and is valid up to its end
	Reason    string
}

func (e *AOFError) Error() string {
	return fmt.Sprintf("%s at offset %d; the file is good up to %d", e.Reason, e.Offset, e.Good)
}

// Tail describes a file of commands after a complete read.
type Tail struct {
	Good     int64 // the bytes up to the end of the last whole command or transaction
	Commands int64 // the number of visited commands
	Time     int64 // time of the newest annotation in seconds since 1970; 0: none
}

// aofBuffer is the number of bytes that a read requests. Arguments lie in the buffers, so a caller
// that keeps an argument keeps a buffer of this size.
const aofBuffer = 256 << 10

// ReadAOF calls visit for each command of a file of commands, with the offset after it. It visits
// the commands of a transaction, from MULTI to EXEC, after it has read all of them. visit may keep
// the arguments, which do not change. ReadAOF ends and returns the error if visit returns one.
//
// Errors: an *AOFError. It has Truncated set if the file ends within a command or a transaction, or
// in zeros, which some file systems leave in place of lost bytes.
func ReadAOF(r io.Reader, visit func(args [][]byte, end int64) error) (Tail, error) {
	s := aofScanner{r: r, visit: visit}
	return s.tail, s.scan()
}

// aofScanner reads a file of commands.
type aofScanner struct {
	r     io.Reader
	visit func([][]byte, int64) error
	tail  Tail

	buf  []byte // bytes that are read and not yet parsed
	base int64  // offset of buf[0]
	free []byte // the free bytes after buf
	eof  bool
	args [][]byte // memory for arguments, in use up to its length

	multi bool // within a transaction
	held  []heldCommand
}

type heldCommand struct {
	args [][]byte
	end  int64
}

// errShort means that the file ends before the end of the command.
var errShort = errors.New("the file ends within a command")

func (s *aofScanner) scan() error {
	for {
		n, args, err := s.parse()
		switch {
		case err == nil:
		case errors.Is(err, errShort) && !s.eof:
			if err := s.fill(); err != nil {
				return err
			}
			continue
		case errors.Is(err, io.EOF) && !s.multi:
			return nil
		default:
			return s.wrong(n, err)
		}
		s.buf, s.base = s.buf[n:], s.base+int64(n)
		if err := s.command(args); err != nil {
			return err
		}
	}
}

// wrong returns the error for a command that is invalid at n.
func (s *aofScanner) wrong(n int, err error) error {
	e := &AOFError{Good: s.tail.Good, Offset: s.base + int64(n), Reason: err.Error()}
	switch {
	case errors.Is(err, io.EOF):
		e.Truncated, e.Reason = true, "the file ends within a transaction"
	case errors.Is(err, errShort):
		e.Truncated, e.Offset = true, s.base+int64(len(s.buf))
	default:
		zeros, err := s.zeros(n)
		if err != nil {
			return err
		}
		if zeros {
			e.Truncated, e.Reason = true, "the file ends in zeros"
		}
	}
	return e
}

// zeros reports whether the file has only zeros from n to its end.
func (s *aofScanner) zeros(n int) (bool, error) {
	for {
		if n == len(s.buf) || len(bytes.Trim(s.buf[n:], "\x00")) > 0 {
			return false, nil
		}
		if s.eof {
			return true, nil
		}
		s.buf, n = s.buf[len(s.buf)-1:], 0 // keep one zero, so that the loop continues
		if err := s.fill(); err != nil {
			return false, err
		}
	}
}

// fill reads more bytes after buf. If buf has no free space, fill copies it and leaves the old buffer unchanged,
// because arguments lie in it. The size follows from the bytes in the file, not from the lengths that the file gives.
func (s *aofScanner) fill() error {
	if len(s.free) == 0 {
		b := make([]byte, max(aofBuffer, 2*len(s.buf)))
		n := copy(b, s.buf)
		s.buf, s.free = b[:n], b[n:]
	}
	n, err := s.r.Read(s.free)
	s.buf, s.free = s.buf[:len(s.buf)+n], s.free[n:]
	if errors.Is(err, io.EOF) {
		s.eof, err = true, nil
	}
	return err
}

// command visits a command, or keeps it until its transaction is complete. args is nil for an annotation.
func (s *aofScanner) command(args [][]byte) error {
	switch {
	case args == nil: // an annotation
		if !s.multi {
			s.tail.Good = s.base
		}
		return nil
	case isCommand(args, "multi"):
		if s.multi {
			return &AOFError{Good: s.tail.Good, Offset: s.base, Reason: "the file has a MULTI within a transaction, which ends"}
		}
		s.multi = true
	case s.multi && isCommand(args, "exec"):
		s.multi = false
	}
	s.held = append(s.held, heldCommand{args, s.base})
	if s.multi {
		return nil
	}
	for _, c := range s.held {
		if err := s.visit(c.args, c.end); err != nil {
			return err
		}
		s.tail.Commands++
	}
	clear(s.held)
	s.held, s.tail.Good = s.held[:0], s.base
	return nil
}

func isCommand(args [][]byte, name string) bool {
	return len(args) == 1 && len(args[0]) == len(name) && strings.EqualFold(string(args[0]), name)
}

// parse reads a command or an annotation from buf; an annotation has no arguments. n is its length, or the position
// of an error. It returns io.EOF at the end of the file.
func (s *aofScanner) parse() (n int, args [][]byte, err error) {
	b := s.buf
	switch {
	case len(b) == 0 && s.eof:
		return 0, nil, io.EOF
	case len(b) == 0:
		return 0, nil, errShort
	case b[0] == '#':
		return s.annotation(b)
	}
	count, n, err := aofLine(b, 0, '*')
	if err != nil {
		return n, nil, err
	}
	if count < 1 {
		return 1, nil, errors.New("the file has a command without arguments")
	}
	if len(s.args)+16 > cap(s.args) {
		s.args = make([][]byte, 0, 1024)
	}
	args = s.args[len(s.args):]
	for range count {
		at := n
		var size int
		if size, n, err = aofLine(b, n, '$'); err != nil {
			return n, nil, err
		}
		if len(b)-n < size+2 {
			return n, nil, errShort
		}
		if b[n+size] != '\r' || b[n+size+1] != '\n' {
			if n += size; b[n] == '\r' {
				n++
			}
			return n, nil, fmt.Errorf("the file has no line end behind the argument of %d bytes at offset %d", size, s.base+int64(at))
		}
		args = append(args, b[n:n+size:n+size])
		n += size + 2
	}
	if k := len(s.args) + len(args); k <= cap(s.args) { // the arguments lie in s.args
		s.args = s.args[:k]
	}
	return n, args[:len(args):len(args)], nil
}

// annotation reads a line that begins with #.
func (s *aofScanner) annotation(b []byte) (n int, args [][]byte, err error) {
	n = bytes.IndexByte(b, '\n') + 1
	if n == 0 {
		return 0, nil, errShort
	}
	if t, ok := bytes.CutPrefix(b[:n], []byte("#TS:")); ok {
		v, err := strconv.ParseInt(string(bytes.TrimRight(t, "\r\n")), 10, 64)
		if err != nil {
			return 0, nil, errors.New("the file has an annotation #TS: without a time")
		}
		s.tail.Time = max(s.tail.Time, v)
	}
	return n, nil, nil
}

// maxAOFNumber is above every valid count and length. Redis's default limit of an argument is 512 MB.
const maxAOFNumber = 1 << 40

// aofLine reads a mark, a number and a line end at b[n:]. end is the position after them, or the position of an
// error.
func aofLine(b []byte, n int, mark byte) (v, end int, err error) {
	if n == len(b) {
		return 0, n, errShort
	}
	if b[n] != mark {
		return 0, n, fmt.Errorf("the file has %q where %q should be", b[n], mark)
	}
	for n++; n < len(b); n++ {
		switch c := b[n]; {
		case '0' <= c && c <= '9' && v < maxAOFNumber:
			v = v*10 + int(c-'0')
		case c != '\r' || b[n-1] == mark:
			return 0, n, fmt.Errorf("the file has %q in a number", c)
		case n+1 == len(b):
			return 0, n, errShort
		case b[n+1] != '\n':
			return 0, n + 1, fmt.Errorf("the file has %q where a line should end", b[n+1])
		default:
			return v, n + 2, nil
		}
	}
	return 0, n, errShort
}
