// Package check examines files of data and says what is in them, and what is
// wrong where: RDB files, append-only files, manifests, and directories of them.
//
//	Run ── path ── what its first bytes say
//	                 "REDIS", "VALKEY", or "VCS" where Valkey has compressed it:
//	                                    RDB (rdb.go), with commands behind: an old AOF
//	                 "*", "#TS:"        append-only file (aof.go)
//	                 "file "            manifest, and the files it names (dir.go)
//	                 a directory        all of these in it
//
// A file is read once, from start to end; each value of an RDB file is decoded. It
// repairs one thing only: the tail of an append-only file that was cut off in a
// command. Start reading at Run.
package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/rdb"
)

// Options say how to check. Out, FS and Now are needed.
type Options struct {
	FS  disk.FS
	Out io.Writer
	// Now is the time in ms since 1970 that tells which keys have expired.
	Now int64
	// Progress gets the checked share of a file, from 0 to 1, every few hundred KiB; may
	// be nil.
	Progress func(path string, share float64)
	// Value examines a value of ebb's own types more closely; may be nil.
	Value func(e *rdb.Entry) error
	// Fix cuts tails off, after Ask said yes to a question.
	Fix bool
	Ask func(question string) bool
}

// Run checks paths, of files and directories, and reports whether all is well, or
// was made well.
func Run(o Options, paths []string) (ok bool) {
	c := &checker{Options: o}
	for _, p := range paths {
		c.path(p)
	}
	return c.wrong == 0
}

// checker checks one path after another.
type checker struct {
	Options
	wrong  int
	indent string
}

func (c *checker) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Out, c.indent+format+"\n", args...)
}

// bad says what is wrong.
func (c *checker) bad(format string, args ...any) {
	c.wrong++
	c.printf("  WRONG: "+format, args...)
}

// verdict says that nothing was wrong since there were before mistakes.
func (c *checker) verdict(before int) {
	if c.wrong == before {
		c.printf("  ok")
	}
}

func (c *checker) path(p string) {
	i, err := c.FS.Stat(p)
	switch {
	case err != nil:
		c.printf("%s:", p)
		c.bad("%v", err)
	case i.Dir:
		c.directory(p)
	default:
		c.file(p, i.Size, true)
	}
}

// kind is what a file's first bytes say it is.
type kind int

const (
	unknown kind = iota
	snapshot
	commands
	manifest
)

// headSize is as many bytes as tell what a file is.
const headSize = 16

func kindOf(name string, head []byte) kind {
	starts := func(s string) bool { return bytes.HasPrefix(head, []byte(s)) }
	ext := filepath.Ext(name)
	switch {
	case rdb.IsFile(head):
		return snapshot
	case ext == ".manifest" || starts("file "):
		return manifest
	case starts("*") || starts("#TS:") || len(head) == 0 && ext == ".aof":
		return commands
	case ext == ".rdb":
		return snapshot // and the header is what is wrong
	}
	return unknown
}

// file checks a file of any kind. last says that its tail may be cut off: no data
// follows in another file.
func (c *checker) file(path string, size int64, last bool) {
	before := c.wrong
	f, err := c.FS.Open(path)
	if err != nil {
		c.printf("%s:", path)
		c.bad("%v", err)
		return
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, headSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		c.printf("%s:", path)
		c.bad("%v", err)
		return
	}
	in := &input{c: c, path: path, size: size, r: io.MultiReader(bytes.NewReader(head[:n]), f), at: f, last: last}
	switch kindOf(path, head[:n]) {
	case snapshot:
		c.snapshot(in)
	case commands:
		c.printf("%s: append-only file, %d bytes", path, size)
		c.commands(in, 0)
	case manifest:
		c.manifest(path)
		return
	default:
		c.printf("%s:", path)
		c.bad("neither an RDB file, nor an append-only file, nor a manifest: it begins with %q", head[:n])
	}
	c.verdict(before)
}

// input is a file that is read from its start.
type input struct {
	c    *checker
	path string
	size int64
	read int64
	r    io.Reader
	at   io.ReaderAt
	last bool
}

// Read implements io.Reader.
func (in *input) Read(b []byte) (int, error) {
	n, err := in.r.Read(b)
	in.read += int64(n)
	if in.c.Progress != nil && in.size > 0 {
		in.c.Progress(in.path, min(float64(in.read)/float64(in.size), 1))
	}
	return n, err
}
