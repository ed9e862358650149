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
	slabBits   = slabShift - chunkShift // the bits of a reference that count within a slab
	numSizes   = slabBits + 1
	leafBits   = 12
	leafSize   = 1 << leafBits
	chunkSlabs = 1 << 24 // the number of slabs: 1 TiB in all
	noSlab     = 0       // slab 0 is never used: reference 0 means none

	// populateFrom is the smallest chunk that AllocChunk populates if its slab is new: for fewer pages a system call does not pay.
	populateFrom = 16 << 10
)

// Chunks allocates the memory of large containers. A container keeps its chunks when its key is
// renamed or moved to another shard, so all shards share one Chunks, and a chunk never moves.
//
//	reference (4 bytes) = slab number << 6 | KiB in the slab
//	slab 64 KiB    cut into chunks of one size, 1 to 64 KiB; a bit each: free
//
// It is safe for concurrent use: AllocChunk and FreeChunk take a lock, but a container calls them
// only once for every few hundred elements that it gains or loses. Bytes takes no lock.
type Chunks struct {
	pool *Pool
	dir  [chunkSlabs / leafSize]atomic.Pointer[chunkLeaf]

	mu    sync.Mutex
	slabs []chunkSlab
	spare []uint32         // slab numbers to use again
	open  [numSizes]uint32 // first slab of each size that has a free chunk
	live  int              // bytes of allocated chunks
	limit int              // the greatest number of them; 0: no limit
}

// chunkLeaf holds the addresses of slabs. AllocChunk writes an entry before it returns the first
// reference into the slab.
type chunkLeaf [leafSize]unsafe.Pointer

// chunkSlab is the bookkeeping of one slab.
type chunkSlab struct {
	free       uint64 // a bit for each free chunk
	next, prev uint32 // links of the list of slabs of its size that have a free chunk
}

// NewChunks returns a Chunks that takes slabs from pool.
func NewChunks(pool *Pool) *Chunks {
	return &Chunks{pool: pool, slabs: make([]chunkSlab, 1)}
}

// MaxChunk returns the largest size that AllocChunk accepts.
func (c *Chunks) MaxChunk() int { return MaxChunk }

// Live returns the bytes of allocated chunks.
func (c *Chunks) Live() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

// Limit makes AllocChunk fail where more bytes would be allocated; 0 ends the limit. Tests
// use it to run out of memory.
func (c *Chunks) Limit(bytes int) {
	c.mu.Lock()
	c.limit = bytes
	c.mu.Unlock()
}

// AllocChunk returns zeroed memory of size bytes, a power of two from MinChunk to MaxChunk; 0 if
// the 1 TiB that references can address is used up. O(size).
func (c *Chunks) AllocChunk(size int) uint32 {
	k := bits.TrailingZeros(uint(size / MinChunk))
	c.mu.Lock()
	if c.limit > 0 && c.live+size > c.limit {
		c.mu.Unlock()
		return 0
	}
	n := c.open[k]
	added := n == noSlab
	if added {
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
	b := c.Bytes(ref, size)
	if added && size >= populateFrom {
		populate(b)
	}
	clear(b)
	return ref
}

// FreeChunk frees a chunk that AllocChunk(size) returned. O(1).
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
	// Keep the last slab of its size, for a container that grows and shrinks around a chunk's edge.
	if s.free == allFree(k) && (s.next != noSlab || s.prev != noSlab || k == numSizes-1) {
		c.unlink(k, n)
		c.pool.Put(*c.base(n))
		*c.base(n) = nil
		c.spare = append(c.spare, n)
	}
}

// Bytes returns the first n bytes of a chunk: the memory itself, not a copy. It takes no lock.
func (c *Chunks) Bytes(ref uint32, n int) []byte {
	p := *c.base(ref >> slabBits)
	return unsafe.Slice((*byte)(unsafe.Add(p, (ref&(slabChunks-1))<<chunkShift)), n)
}

// Outside implements chunk.Memory and does nothing, because a container counts its memory on the Go
// heap in its own size.
func (c *Chunks) Outside(int) {}

// base returns a pointer to the address of slab n.
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
