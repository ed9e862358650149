// Package check examines data files: RDB files, append-only files, manifests, the files of a group's
// node, and directories of them. It prints what they contain, and what is wrong at which offset.
//
//	Run ── path ── kind by its first bytes
//	                 "REDIS", "VALKEY", or "VCS" where Valkey has compressed it:
//	                                    RDB (rdb.go); followed by commands: an old AOF
//	                 "*", "#TS:"        append-only file (aof.go)
//	                 "file "            manifest, and the files it names (dir.go)
//	                 by its name        group.state and raft.log of a group's node (group.go)
//	                 a directory        all of these files in it
//
// A file is read once, from start to end; each value of an RDB file is decoded. It repairs only one
// fault: the tail of an append-only file that ends within a command. Start reading at Run.
package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/group/voter"
	"github.com/ebbdb/ebb/internal/rdb"
)

// Options configure Run. Out, FS and Now are required.
type Options struct {
	FS  disk.FS
	Out io.Writer
	// Now is the time, in ms since 1970, that decides which keys have expired.
	Now int64
	// Run calls Progress with the checked share of a file, from 0 to 1, every few hundred KiB; may
	// be nil.
	Progress func(path string, share float64)
	// Value examines a value of ebb's own types more closely; may be nil.
	Value func(e *rdb.Entry) error
	// Fix truncates files with a bad tail, after Ask has returned true.
	Fix bool
	Ask func(question string) bool
}

// Run checks the files and directories at paths, and reports whether all of them are valid or were
// repaired.
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

// bad prints what is wrong.
func (c *checker) bad(format string, args ...any) {
	c.wrong++
	c.printf("  WRONG: "+format, args...)
}

// verdict prints "ok" if the number of mistakes is still before.
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

// kind is the kind of a file, by its first bytes.
type kind int

const (
	unknown kind = iota
	snapshot
	commands
	manifest
	nodeState // group.state
	nodeVotes // raft.log
)

// headSize is the number of bytes that decide the kind of a file.
const headSize = 16

func kindOf(name string, head []byte) kind {
	starts := func(s string) bool { return bytes.HasPrefix(head, []byte(s)) }
	ext := filepath.Ext(name)
	switch {
	case filepath.Base(name) == shard.StateFile:
		return nodeState
	case filepath.Base(name) == voter.FileName:
		return nodeVotes
	case rdb.IsFile(head):
		return snapshot
	case ext == ".manifest" || starts("file "):
		return manifest
	case starts("*") || starts("#TS:") || len(head) == 0 && ext == ".aof":
		return commands
	case ext == ".rdb":
		return snapshot // the header is invalid, and the check reports that
	}
	return unknown
}

// file checks a file of any kind. With last, no data follows in another file, so its tail may be
// cut off.
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
	case nodeState:
		c.groupFile(path, examineState)
		return
	case nodeVotes:
		c.groupFile(path, voter.Examine)
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
