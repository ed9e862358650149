package oplog

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/rdb"
)

// Loader receives the data of Files.Load.
type Loader struct {
	// RDB reads a snapshot from r. It returns the bytes behind the snapshot that it has read too.
	RDB func(r io.Reader) (rest []byte, err error)
	// Command applies a command, which ends at a place in a file. Load passes the commands of a transaction one after
	// another, with MULTI and EXEC. Command may keep the arguments.
	Command func(args [][]byte, end Place) error
	// CutTail truncates a file that ends within a command to its last complete command, if no data follows in a later
	// file: aof-load-truncated. Without CutTail such a file is an error.
	CutTail bool
	// Load calls Progress with the bytes read so far, about every 256 KiB. It may be nil.
	Progress func(read int64)
}

// Place is a position in a file.
type Place struct {
	File   string // the file's path
	Offset int64
}

// String returns the place as it appears in errors.
func (p Place) String() string { return fmt.Sprintf("%s, up to offset %d", p.File, p.Offset) }

// Loaded is the result of Load.
type Loaded struct {
	Commands int64
	Bytes    int64 // bytes that were read
	Cut      int64 // bytes that were cut off; 0: none
	CutFile  string
	Time     int64 // time of the newest annotation in seconds since 1970; 0: none
	Modified int64 // time of the newest file's last change, in ms since 1970
}

// Load reads the parts in order. No appender may be active meanwhile.
//
// Errors name the file and, for an *AOFError, the offset; errors of the Loader's functions are wrapped. If the tail
// of a file could be cut off, the error says how.
func (f *Files) Load(l Loader) (Loaded, error) {
	var sum Loaded
	parts := f.Parts()
	for i, p := range parts {
		err := f.loadPart(p, f.lastWithData(parts[i:]), &l, &sum)
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// lastWithData reports whether all files after the first are empty.
func (f *Files) lastWithData(parts []Part) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range parts[1:] {
		if f.sizes[p.Name] > 0 {
			return false
		}
	}
	return true
}

func (f *Files) loadPart(p Part, last bool, l *Loader, sum *Loaded) error {
	path := f.path(p.Name)
	if i, err := f.fs.Stat(path); err == nil {
		sum.Modified = max(sum.Modified, i.Modified)
	}
	file, err := f.fs.Open(path)
	if err != nil {
		return err
	}
	before := sum.Bytes
	tail, at, err := readPart(path, &counter{file, &sum.Bytes, l.Progress}, l)
	err = errors.Join(err, file.Close())
	sum.Commands += tail.Commands
	sum.Time = max(sum.Time, tail.Time)
	var bad *AOFError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &bad):
		return fmt.Errorf("%s: %w", path, err)
	}
	bad.Good += at
	bad.Offset += at
	if bad.Truncated && last && l.CutTail {
		sum.Cut, sum.CutFile = sum.Bytes-before-bad.Good, path
		return f.cut(p, bad.Good)
	}
	return fmt.Errorf("the append-only file %s: %w: %s", path, bad, f.advice(path, bad, last))
}

// advice returns the remedy for a damaged file.
func (f *Files) advice(path string, e *AOFError, last bool) string {
	switch {
	case e.Truncated && last:
		return fmt.Sprintf("set aof-load-truncated to yes, or cut the file with `ebb check --fix %s`", path)
	case e.Truncated:
		return "other files follow this one, so cutting it would lose the data in between: restore the whole file"
	}
	return fmt.Sprintf("copy the file, then examine it with `ebb check %s`; if you can do without the data behind the good part, cut the file there", path)
}

// cut truncates a file to its last complete command, and syncs it.
func (f *Files) cut(p Part, size int64) error {
	if err := f.fs.Truncate(f.path(p.Name), size); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sizes[p.Name] = size
	f.count()
	return nil
}

// readPart reads a file: a snapshot, commands, or a snapshot and then commands. at is the offset of the commands.
func readPart(path string, r *counter, l *Loader) (tail Tail, at int64, err error) {
	start := *r.read
	head := make([]byte, 8)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return tail, 0, err
	}
	all := io.MultiReader(bytes.NewReader(head[:n]), r)
	if rdb.IsFile(head[:n]) {
		rest, err := l.RDB(all)
		if err != nil {
			return tail, 0, err
		}
		at = *r.read - start - int64(len(rest))
		all = io.MultiReader(bytes.NewReader(rest), r)
	}
	tail, err = ReadAOF(all, func(args [][]byte, end int64) error { return l.Command(args, Place{path, at + end}) })
	return tail, at, err
}

// counter counts the bytes that are read.
type counter struct {
	r        disk.Reader
	read     *int64
	progress func(int64)
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	*c.read += int64(n)
	if c.progress != nil {
		c.progress(*c.read)
	}
	return n, err
}
