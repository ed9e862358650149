package arena

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	// MinChunk and MaxChunk bound the sizes that AllocChunk accepts.
	MinChunk = 1 << 10
	MaxChunk = SlabSize

	chunkShift = 10                     // a chunk reference counts KiB
	slabChunks = SlabSize / MinChunk    // smallest chunks in a slab: 64
	slabBits   = slabShift - chunkShift // of a reference, within a slab
	numSizes   = slabBits + 1
	leafBits   = 12
	leafSize   = 1 << leafBits
	chunkSlabs = 1 << 24 // slabs in all: 1 TiB
	noSlab     = 0       // slab 0 is never used: reference 0 means none
)

// Chunks lends the memory of large containers. A container keeps its chunks
// when its key is renamed or moved to another shard, so all shards share one
// Chunks, and a chunk never moves.
//
//	reference (4 bytes) = slab number << 6 | KiB in the slab
//	slab 64 KiB    cut into chunks of one size, 1 to 64 KiB; a bit each: free
//
// It is safe for concurrent use: AllocChunk and FreeChunk take a lock, for
// every few hundred elements that a container gains or loses; Bytes takes none.
type Chunks struct {
	pool *Pool
	dir  [chunkSlabs / leafSize]atomic.Pointer[chunkLeaf]

	mu    sync.Mutex
	slabs []chunkSlab
	spare []uint32         // slab numbers to use again
	open  [numSizes]uint32 // first slab of each size that has a free chunk
	live  int              // bytes lent
}

// chunkLeaf is where slabs begin. An entry is written before the first
// reference into its slab is handed out.
type chunkLeaf [leafSize]unsafe.Pointer

// chunkSlab is the bookkeeping of one slab.
type chunkSlab struct {
	free       uint64 // a bit for each free chunk
	next, prev uint32 // in the list of slabs of its size that have one
}

// NewChunks returns a Chunks that takes slabs from pool.
func NewChunks(pool *Pool) *Chunks {
	return &Chunks{pool: pool, slabs: make([]chunkSlab, 1)}
}

// MaxChunk returns the largest size that AllocChunk accepts.
func (c *Chunks) MaxChunk() int { return MaxChunk }

// Live returns the bytes lent.
func (c *Chunks) Live() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

// AllocChunk returns zeroed memory of size bytes, a power of two from MinChunk
// to MaxChunk; 0 if the 1 TiB that references reach is used up. O(size).
func (c *Chunks) AllocChunk(size int) uint32 {
	k := bits.TrailingZeros(uint(size / MinChunk))
	c.mu.Lock()
	n := c.open[k]
	if n == noSlab {
		if n = c.addSlab(k); n == noSlab {
			c.mu.Unlock()
			return 0
		}
	}
	s := &c.slabs[n]
	i := bits.TrailingZeros64(s.free)
	s.free &^= 1 << i
	if s.free == 0 {
		c.unlink(k, n)
	}
	c.live += size
	c.mu.Unlock()
	ref := n<<slabBits | uint32(i)<<k
	clear(c.Bytes(ref, size))
	return ref
}

// FreeChunk takes back what AllocChunk(size) returned. O(1).
func (c *Chunks) FreeChunk(ref uint32, size int) {
	k := bits.TrailingZeros(uint(size / MinChunk))
	if poison {
		poisonSlot(c.Bytes(ref, size))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := ref >> slabBits
	s := &c.slabs[n]
	c.live -= size
	if s.free == 0 {
		c.link(k, n)
	}
	s.free |= 1 << (ref & (slabChunks - 1) >> k)
	// The last slab of its size stays, for a container that grows and shrinks
	// around a chunk's edge.
	if s.free == allFree(k) && (s.next != noSlab || s.prev != noSlab || k == numSizes-1) {
		c.unlink(k, n)
		c.pool.Put(*c.base(n))
		*c.base(n) = nil
		c.spare = append(c.spare, n)
	}
}

// Bytes returns the first n bytes of a chunk: the memory itself.
func (c *Chunks) Bytes(ref uint32, n int) []byte {
	p := *c.base(ref >> slabBits)
	return unsafe.Slice((*byte)(unsafe.Add(p, (ref&(slabChunks-1))<<chunkShift)), n)
}

// Outside does nothing: a container reports the memory that it takes from the Go heap,
// and counts it in its own size.
func (c *Chunks) Outside(int) {}

// base returns where the beginning of slab n is kept.
func (c *Chunks) base(n uint32) *unsafe.Pointer {
	return &c.dir[n>>leafBits].Load()[n&(leafSize-1)]
}

// allFree returns the free bits of an empty slab of chunks of size k.
func allFree(k int) uint64 { return 1<<(slabChunks>>k) - 1 }

func (c *Chunks) addSlab(k int) uint32 {
	var n uint32
	if i := len(c.spare); i > 0 {
		n = c.spare[i-1]
		c.spare = c.spare[:i-1]
	} else {
		if len(c.slabs) == chunkSlabs {
			return noSlab
		}
		n = uint32(len(c.slabs))
		c.slabs = append(c.slabs, chunkSlab{})
		if c.dir[n>>leafBits].Load() == nil {
			c.dir[n>>leafBits].Store(new(chunkLeaf))
		}
	}
	*c.base(n) = c.pool.Get()
	c.slabs[n].free = allFree(k)
	c.link(k, n)
	return n
}

func (c *Chunks) link(k int, n uint32) {
	head := c.open[k]
	c.slabs[n].next, c.slabs[n].prev = head, noSlab
	if head != noSlab {
		c.slabs[head].prev = n
	}
	c.open[k] = n
}

func (c *Chunks) unlink(k int, n uint32) {
	s := &c.slabs[n]
	if s.prev != noSlab {
		c.slabs[s.prev].next = s.next
	} else {
		c.open[k] = s.next
	}
	if s.next != noSlab {
		c.slabs[s.next].prev = s.prev
	}
	s.next, s.prev = noSlab, noSlab
}
