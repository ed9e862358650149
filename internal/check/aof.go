package check

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/oplog"
)

// mostNames is the greatest number of commands that the table lists by name.
const mostNames = 12

// commandCheck has the results so far of the check of one append-only file.
type commandCheck struct {
	db           int
	dbs          map[int]int64
	names        map[string]int64
	transactions int64
}

// commands checks an append-only file whose commands begin at an offset.
func (c *checker) commands(in *input, from int64) {
	s := &commandCheck{dbs: map[int]int64{}, names: map[string]int64{}}
	tail, err := oplog.ReadAOF(in, s.visit)
	s.table(c, tail)
	if err == nil {
		return
	}
	var wrong *oplog.AOFError
	if !errors.As(err, &wrong) {
		c.bad("%v", err)
		return
	}
	c.tail(in, wrong, from)
}

// visit counts a command.
func (s *commandCheck) visit(args [][]byte, _ int64) error {
	name := strings.ToUpper(string(args[0][:min(len(args[0]), 32)]))
	switch name {
	case "MULTI":
		s.transactions++
		return nil
	case "EXEC":
		return nil
	case "SELECT":
		if len(args) == 2 {
			s.db, _ = strconv.Atoi(string(args[1]))
		}
		return nil
	}
	s.dbs[s.db]++
	if _, ok := s.names[name]; !ok && len(s.names) == 1000 { // these are not commands
		name = "others"
	}
	s.names[name]++
	return nil
}

func (s *commandCheck) table(c *checker, tail oplog.Tail) {
	if len(s.dbs) > 0 {
		c.printf("  %8s  %10s", "database", "commands")
	}
	for _, db := range slices.Sorted(maps.Keys(s.dbs)) {
		c.printf("  %8d  %10d", db, s.dbs[db])
	}
	if s.transactions > 0 {
		c.printf("  transactions: %d", s.transactions)
	}
	if tail.Time > 0 {
		c.printf("  newest time: %s", utc(tail.Time))
	}
	names := slices.SortedFunc(maps.Keys(s.names), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.names[b], s.names[a]), cmp.Compare(a, b))
	})
	var list []string
	for i, n := range names {
		if i == mostNames {
			list = append(list, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		list = append(list, fmt.Sprintf("%s %d", printable(n), s.names[n]))
	}
	if len(list) > 0 {
		c.printf("  %s", strings.Join(list, ", "))
	}
}

func printable(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return strconv.Quote(name)
	}
	return name
}

// tail prints what is wrong with a file whose commands begin at from, and repairs the file if that
// is safe.
func (c *checker) tail(in *input, wrong *oplog.AOFError, from int64) {
	good := from + wrong.Good
	lost := in.size - good
	begins := "which begin with " + commandAt(in.at, good)
	c.bad("%s, at offset %d: %d bytes stand behind the last whole command, %s", wrong.Reason, from+wrong.Offset, lost, begins)
	switch {
	case !wrong.Truncated:
		c.printf("  That is not a tail that was cut off: whole commands may follow. To lose them, cut the file to %d bytes.", good)
	case !in.last:
		c.printf("  More data follows in the next file, so it may not be cut off here.")
	case !c.Fix:
		c.printf("  --fix cuts these bytes off.")
	case c.Ask(fmt.Sprintf("Cut the last %d bytes of %s off, from offset %d on, %s?", lost, in.path, good, begins)):
		c.cut(in.path, good, lost)
	default:
		c.printf("  left as it is")
	}
}

// cut truncates a file to size, unless a server uses its directory.
func (c *checker) cut(path string, size, lost int64) {
	unlock, err := c.lock(path)
	if err != nil {
		c.bad("not repaired: %v", err)
		return
	}
	defer unlock()
	if err := c.FS.Truncate(path, size); err != nil {
		c.bad("not repaired: %v", err)
		return
	}
	c.wrong--
	c.printf("  fixed: %d bytes are cut off, %d are left", lost, size)
}

// lock locks the directories that a server with this file would have locked: the file's own, and
// the parent of a directory of append-only files.
func (c *checker) lock(path string) (unlock func(), err error) {
	var held []io.Closer
	unlock = func() {
		for _, h := range held {
			_ = h.Close()
		}
	}
	dir := filepath.Dir(path)
	for _, d := range []string{dir, filepath.Join(dir, "..")} {
		if _, err := c.FS.Stat(filepath.Join(d, disk.LockFile)); err != nil {
			continue // no server has locked it
		}
		h, err := c.FS.Lock(d)
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, h)
	}
	return unlock, nil
}

// commandAt describes the command that begins at an offset, by its name and its first argument, as
// far as the file contains them.
func commandAt(r io.ReaderAt, offset int64) string {
	const enough = 200
	b := make([]byte, enough)
	n, _ := r.ReadAt(b, offset)
	b = b[:n]
	var words []string
	_, rest, _ := bytes.Cut(b, []byte("\r\n"))
	for len(words) < 2 && len(rest) > 0 && rest[0] == '$' {
		head, body, ok := bytes.Cut(rest[1:], []byte("\r\n"))
		size, err := strconv.Atoi(string(head))
		if !ok || err != nil || size < 0 {
			break
		}
		if size > len(body) {
			words = append(words, strconv.Quote(string(body))+"...")
			break
		}
		words = append(words, strconv.Quote(string(body[:size])))
		rest = bytes.TrimPrefix(body[size:], []byte("\r\n"))
	}
	if len(b) == 0 || b[0] != '*' || len(words) == 0 {
		return fmt.Sprintf("the bytes %.40q", b)
	}
	return "the command " + strings.Join(words, " ")
}
