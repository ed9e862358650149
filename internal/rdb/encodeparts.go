package rdb

import "encoding/binary"

// A large value need not be in memory as a whole: with Drain set, an Encoder hands over
// its complete bytes between two elements.
//
// The number of nodes of a list and of a stream stands before them. The Encoder fills it
// in when it writes the value as a whole. When it writes in parts, it must know the
// number first: from a run before, whose bytes it discards. The bytes are the same either
// way, but for modules' values, which are in parts.

// drainAt is how many bytes make Drain worth a call: a file takes them in one write,
// and a buffer for them stays in the processor's cache.
const drainAt = 256 << 10

// drain gives away what is written. Nothing of it is looked at again: what is
// small is collected, and patched, before it comes here.
func (e *Encoder) drain() {
	if e.Drain != nil && len(e.Buf) >= drainAt {
		e.Drain(e.Buf)
		e.Buf = e.Buf[:0]
	}
}

// NodeCount returns how many nodes the list or stream that was written last has.
func (e *Encoder) NodeCount() int { return e.nodes }

// knownNodes writes the number of nodes that follow, as endCounted does for many.
func (e *Encoder) knownNodes() {
	e.Buf = binary.BigEndian.AppendUint32(append(e.Buf, 0x80), uint32(e.Nodes))
}

// overflows reports whether a container that was begun as a small one is to be
// written at once, because it cannot stay packed and has grown.
func (e *Encoder) overflows() bool { return e.Drain != nil && e.wide && len(e.pack.b) >= drainAt }
