package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
)

// eofMark is the length, in bytes, of the mark that ends a snapshot of unknown length.
const eofMark = 40

// backup writes a snapshot of the server into a file, "-" for standard output. The
// snapshot has the data of one instant, and the server continues to serve. backup requests
// it as a replica does, so it works with every server that supports replicas.
func (c *client) backup() int {
	name := c.opt.RDB
	if c.opt.FunctionsRDB != "" {
		name = c.opt.FunctionsRDB
		if _, err := c.conn.do("REPLCONF", "rdb-filter-only", "functions"); err != nil {
			fmt.Fprintf(c.env.Err, "The snapshot failed: the server refuses to send the functions alone: %s\n", describe(err))
			return 1
		}
	}
	if err := c.snapshot(name); err != nil {
		fmt.Fprintf(c.env.Err, "The snapshot failed: %s\n", describe(err))
		return 1
	}
	return 0
}

// snapshot fetches the snapshot. At the end the file is complete, synced and under its
// name, or it does not exist.
func (c *client) snapshot(name string) error {
	// An ebb server sends its own types to clients that can read them; other servers refuse
	// the unknown option, which does no harm.
	for _, args := range [][]string{{"REPLCONF", "capa", "eof", "capa", "ebb"}, {"REPLCONF", "rdb-only", "1"}} {
		_, _ = c.conn.do(args...)
	}
	if err := c.conn.send("SYNC"); err != nil {
		return err
	}
	size, mark, err := c.conn.snapshotHead()
	if err != nil {
		return err
	}
	in := io.Reader(c.conn.r)
	if mark == nil {
		in = io.LimitReader(in, size)
	} else {
		in = &markedReader{r: in, mark: mark}
	}
	if name == "-" {
		_, err = copySnapshot(c.env.Out, in, size, mark == nil, nil)
		return err
	}
	return c.saveSnapshot(name, in, size, mark == nil)
}

func (c *client) saveSnapshot(name string, in io.Reader, size int64, sized bool) error {
	began := time.Now()
	n, err := saveStream(name, func(f *os.File) (int64, error) { return copySnapshot(f, in, size, sized, c.env.Err) })
	if err != nil {
		return err
	}
	fmt.Fprintf(c.env.Err, "%s: %d bytes in %.1f s\n", name, n, time.Since(began).Seconds())
	return nil
}

// saveStream lets fill write a new file, and renames it over the file of that name when it
// is complete and synced. If the name is a link, it replaces the link's target. It writes
// directly to something that is not a file, such as /dev/null or a pipe.
func saveStream(name string, fill func(*os.File) (int64, error)) (n int64, err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return 0, err
		}
		n, err = fill(f)
		return n, errors.Join(err, f.Close())
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".backup-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	n, err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = disk.Replace(disk.OS(), f.Name(), name)
	}
	return n, err
}

// snapshotHead reads the line that precedes a snapshot: its size, or the mark that
// ends it. The server sends empty lines while it prepares one.
func (c *conn) snapshotHead() (size int64, mark []byte, err error) {
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return 0, nil, err
		}
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "":
			continue
		case line[0] == '-':
			return 0, nil, errors.New(line[1:])
		case strings.HasPrefix(line, "$EOF:") && len(line) == len("$EOF:")+eofMark:
			return 0, []byte(line[len("$EOF:"):]), nil
		case line[0] == '$':
			size, err = strconv.ParseInt(line[1:], 10, 64)
			if err != nil || size < 0 {
				return 0, nil, fmt.Errorf("the server announced a snapshot of %q bytes, want a number from 0", line[1:])
			}
			return size, nil, nil
		}
		return 0, nil, fmt.Errorf("the server sent %q where a snapshot must begin", line)
	}
}

// copySnapshot copies a snapshot, and prints its progress once a second.
func copySnapshot(out io.Writer, in io.Reader, size int64, sized bool, tell io.Writer) (n int64, err error) {
	buf := make([]byte, 256<<10)
	reported := time.Now()
	for {
		k, err := in.Read(buf)
		if _, werr := out.Write(buf[:k]); werr != nil {
			return n, werr
		}
		n += int64(k)
		switch {
		case err == io.EOF && sized && n < size:
			return n, io.ErrUnexpectedEOF
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
		if tell != nil && time.Since(reported) >= time.Second {
			reported = time.Now()
			if sized {
				fmt.Fprintf(tell, "%3d %% of %d MiB\n", n*100/max(size, 1), size>>20)
			} else {
				fmt.Fprintf(tell, "%d MiB\n", n>>20)
			}
		}
	}
}

// markedReader reads up to a mark. If the input ends without the mark, it returns
// io.ErrUnexpectedEOF.
type markedReader struct {
	r    io.Reader
	mark []byte
	held []byte // bytes that may be the beginning of the mark
	over bool
}

// Read implements io.Reader.
func (m *markedReader) Read(p []byte) (int, error) {
	for !m.over && len(m.held) <= eofMark {
		buf := make([]byte, max(len(p), 2*eofMark))
		n, err := m.r.Read(buf)
		m.held = append(m.held, buf[:n]...)
		if bytes.HasSuffix(m.held, m.mark) {
			m.held, m.over = m.held[:len(m.held)-eofMark], true
			break
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
	}
	free := len(m.held)
	if !m.over {
		free -= eofMark
	}
	n := copy(p, m.held[:free])
	m.held = m.held[n:]
	if n == 0 && m.over {
		return 0, io.EOF
	}
	return n, nil
}
