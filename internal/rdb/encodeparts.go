package rdb

import "encoding/binary"

// An Encoder can write a large value without having all of it in memory: with Drain set, it passes
// on the complete bytes between two elements.
//
// The number of nodes of a list and of a stream stands before them. The Encoder fills it in when it
// writes the value as a whole. When it writes in parts, the caller must pass the number, from an
// earlier run whose bytes it discards. The bytes are the same in both cases, except for the values
// of modules, which are in parts.

// drainAt is the number of bytes from which on the Encoder calls Drain. A file takes them in one
// write, and a buffer for them stays in the processor's cache.
const drainAt = 256 << 10

// drain passes the written bytes to Drain. The Encoder does not read or change them later, because
// it collects and patches small containers before.
func (e *Encoder) drain() {
	if e.Drain != nil && len(e.Buf) >= drainAt {
		e.Drain(e.Buf)
		e.Buf = e.Buf[:0]
	}
}

// NodeCount returns the number of nodes of the list or stream that was written last.
func (e *Encoder) NodeCount() int { return e.nodes }

// knownNodes writes the number of nodes that follow, as endCounted does for many.
func (e *Encoder) knownNodes() {
	e.Buf = binary.BigEndian.AppendUint32(append(e.Buf, 0x80), uint32(e.Nodes))
}

// overflows reports whether a container that began as a small one must be written now, because it
// cannot stay packed and is large.
func (e *Encoder) overflows() bool { return e.Drain != nil && e.wide && len(e.pack.b) >= drainAt }
