package crashfs

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
)

// inode is a file's bytes, or a directory.
type inode struct {
	data     []byte  // what is read
	disk     []byte  // what was synced
	pending  []piece // what leads from disk to data
	ops      int     // pieces that came to disk
	modified int64
	dir      bool
}

// piece is a write at the end of a file, or a cut.
type piece struct {
	bytes []byte
	cut   int64 // the size, if bytes is nil
	lost  bool  // a sync of it failed: only the size arrives
}

func (p piece) apply(b []byte) []byte {
	switch {
	case p.bytes == nil && p.cut <= int64(len(b)):
		return b[:p.cut]
	case p.bytes == nil:
		return append(b, make([]byte, p.cut-int64(len(b)))...)
	case p.lost:
		return append(b, make([]byte, len(p.bytes))...)
	}
	return append(b, p.bytes...)
}

func (n *inode) write(b []byte) {
	p := piece{bytes: slices.Clone(b)}
	n.data = p.apply(n.data)
	n.pending = append(n.pending, p)
}

func (n *inode) truncate(size int64) {
	p := piece{cut: size}
	n.data = p.apply(n.data)
	n.pending = append(n.pending, p)
}

// sync brings the first pieces to disk, but not what a failed sync has lost.
func (n *inode) sync(pieces int) {
	if pieces <= 0 {
		return // another sync has brought them
	}
	for _, p := range n.pending[:pieces] {
		n.disk = p.apply(n.disk)
	}
	n.pending = slices.Delete(n.pending, 0, pieces)
	n.ops += pieces
}

// drop drops the bytes of a failed sync: the system believes that they were
// written, and they were not.
func (n *inode) drop() {
	for i := range n.pending {
		n.pending[i].lost = true
	}
}

// crash returns what is left of the file after a power cut.
func (n *inode) crash(r *rand.Rand) *inode {
	b := slices.Clone(n.disk)
	arrived := r.IntN(len(n.pending) + 1)
	for _, p := range n.pending[:arrived] {
		b = p.apply(b)
	}
	if arrived < len(n.pending) {
		if p := n.pending[arrived]; len(p.bytes) > 0 {
			p.bytes = p.bytes[:r.IntN(len(p.bytes)+1)]
			p.lost = p.lost || r.IntN(4) == 0
			b = p.apply(b)
		}
	}
	return &inode{data: b, disk: slices.Clone(b), modified: n.modified, dir: n.dir}
}

// file is an open file.
type file struct {
	fs     *FS
	n      *inode
	name   string
	closed bool
}

func (h *file) usable(op Op) (short int, err error) {
	if h.closed {
		return 0, pathError(op, h.name, fs.ErrClosed)
	}
	return h.fs.beginWrite(op, h.name)
}

// Write implements disk.File.
func (h *file) Write(b []byte) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	n := len(b)
	short, err := h.usable(OpWrite)
	if err != nil {
		n = min(short, n)
	} else if h.fs.capacity >= 0 {
		if room := max(h.fs.capacity-h.fs.used(), 0); int64(n) > room {
			n, err = int(room), pathError(OpWrite, h.name, syscall.ENOSPC)
		}
	}
	if n > 0 {
		h.n.write(b[:n])
		h.n.modified = h.fs.now
	}
	return n, err
}

// Sync implements disk.File. It covers what was written before it began.
func (h *file) Sync() error {
	h.fs.mu.Lock()
	upTo, d := h.n.ops+len(h.n.pending), h.fs.syncTime
	h.fs.mu.Unlock()
	if d > 0 {
		time.Sleep(d)
	}
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if _, err := h.usable(OpSync); err != nil {
		if !h.fs.dead {
			h.n.drop()
		}
		return err
	}
	h.n.sync(upTo - h.n.ops)
	return nil
}

// Truncate implements disk.File.
func (h *file) Truncate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if _, err := h.usable(OpTruncate); err != nil {
		return err
	}
	h.n.truncate(size)
	return nil
}

// Close implements disk.File.
func (h *file) Close() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.closed {
		return pathError(OpWrite, h.name, fs.ErrClosed)
	}
	h.closed = true
	return nil
}

// reader is a file as it was when it was opened.
type reader struct{ *bytes.Reader }

func newReader(b []byte) disk.Reader { return reader{bytes.NewReader(b)} }

// Close implements disk.Reader.
func (reader) Close() error { return nil }
