package engine

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/rdb"
)

// The snapshot writes the record of a large container while it encodes it. So it needs a few buffers of 256
// KiB, or some copies of the container's largest item, whatever the container's size. The format of lists and
// streams begins with the number of nodes, so the snapshot encodes them twice: the first time without
// compression, to count the nodes.
//
// The marks of a delay queue are the exception: the snapshot collects all of them, to sort them.

// partRoom is the first size of the buffers for parts, in bytes: two parts of 256 KiB each, and
// some more.
const partRoom = 640 << 10

// wholeRecord is the greatest size, in bytes, of a container that the snapshot encodes in memory,
// in one pass.
const wholeRecord = 1 << 20

// errNodes: the two passes over a frozen container found different numbers of nodes.
var errNodes = errors.New("a value has changed while it was written: this is a bug")

// writeInParts writes the record of a container as writeLarge does. After an error the walk over the
// container continues, but writes nothing.
func (s *snapshot) writeInParts(ctx context.Context, w *rdb.Writer, p piece) (err error) {
	l, e := p.large, &s.enc
	if cap(e.Buf) < partRoom {
		e.Buf = make([]byte, 0, partRoom)
	}
	h := l.hit()
	counted := s.inNodes(h)
	if counted {
		e.Nodes = s.countNodes(h)
	}
	l.begin(e)
	e.Drain = func(b []byte) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			e.Compress = false // the output is discarded
			return
		}
		if e.Version() > rdb.PlainVersion {
			_ = w.Raise(e.Version())
		}
		err = w.Records(p.db, b)
		s.rest()
	}
	s.tx.encodeValue(e, h)
	e.Drain(e.Buf)
	e.Drain = nil
	if cap(e.Buf) > keepDump {
		e.Buf = nil
	}
	if err == nil && counted && e.NodeCount() != e.Nodes {
		err = errNodes
	}
	return err
}

// inNodes reports whether the file stores a value in nodes: a list or a stream.
func (s *snapshot) inNodes(h *hit) bool {
	k := h.r.Kind()
	return k == Stream || k == List && (s.o.Plain || s.tx.nextIn(h) == 0)
}

// countNodes returns the number of nodes that the file needs for a value. It costs a walk over the value, and
// uses s.enc.
func (s *snapshot) countNodes(h *hit) int {
	e := &s.enc
	e.Reset(e.Buf[:0])
	e.Compress, e.Drain = false, func([]byte) {}
	s.tx.encodeValue(e, h)
	e.Compress, e.Drain = !s.o.NoCompress, nil
	return e.NodeCount()
}
