// Package chunk is the memory of one large container: a hash, set or sorted set too big for a
// packed record. It has two forms.
//
//	Heap   records of any size, named by 4-byte references
//
//	       ref = piece number << 13 | granule          (8-byte granules)
//
//	       piece 1   1 KiB  [hdr payload][hdr payload][dead    ][hdr ...
//	       piece 2   1 KiB  [hdr payload][hdr payload           ][hdr ...
//	       piece 9   2 KiB  pieces grow with the container, up to 64 KiB
//
//	       hdr, 2 bytes:  live 1 | big 1 | mark 1 | pad 3 | granules 10
//
//	Array  cells of one size, dense, named by their number: hash buckets,
//	       tree nodes. It grows and shrinks at its end only.
//
// Both take their memory as chunks from a Memory and never move a chunk, so a reader gets the
// memory itself. Records move only in Heap.Resize and Heap.Compact, which report the move. Array
// cells never move.
//
// Invariants of a Heap: the records of a piece lie end to end from 0 to used; used bytes are live
// or dead; a piece that is neither being filled, refilled nor evacuated is in the list for its
// share of dead bytes; the heap frees an entirely dead piece at once (it reuses the one being
// filled from its start).
//
// Both can be frozen (Freeze): a read-only copy shares the chunks, and the live one copies a chunk
// before its first write to it. So every write to a Heap's records goes through Edit, Alloc, Free,
// SetMark, Stretch, Cut, Resize and Compact, and every write to an Array's cells through Push, Edit
// and Own. See Loan.
//
// Only a Loan has a lock. For everything else the owner holds the shard's lock. Start reading at
// Heap.Alloc.
package chunk

import "errors"

// MinSize is the smallest chunk that the package requests from a Memory, in bytes. Smaller ones
// would cost more in bookkeeping (48 bytes a chunk) than they save in slack.
const MinSize = 1 << 10

// maxSize is the largest chunk a 13-bit granule number can address.
const maxSize = 1 << 16

// ErrNoMemory says that the Memory had no free chunk. The operation that returns it has changed
// nothing.
var ErrNoMemory = errors.New("chunk: memory limit reached")

// Memory allocates chunks. A chunk's size is a power of two from MinSize to MaxChunk; it is zeroed,
// aligned to 8 bytes and stays where it is until freed.
type Memory interface {
	// AllocChunk returns a chunk of size bytes, or 0 if there is none left.
	AllocChunk(size int) uint32
	// FreeChunk frees a chunk of AllocChunk(size).
	FreeChunk(ref uint32, size int)
	// Bytes returns the first n bytes of a chunk: the memory, not a copy.
	Bytes(ref uint32, n int) []byte
	// MaxChunk returns the largest size AllocChunk accepts: a power of two
	// from MinSize on, constant over the Memory's life.
	MaxChunk() int
	// Outside is called with the bytes taken from the Go heap (negative: freed) for records that
	// are too large for a chunk, so that the Memory can count them.
	Outside(delta int)
}

// largest returns the largest chunk size this package uses on m.
func largest(m Memory) int { return min(m.MaxChunk(), maxSize) }
