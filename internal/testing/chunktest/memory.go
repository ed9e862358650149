// Package chunktest has a chunk.Memory for tests: it counts what is held, can
// run out, and poisons what is given back so that a stale reader shows.
package chunktest

import (
	"fmt"
	"sync"
)

// poison fills freed chunks: an odd byte, so that headers, counts and
// references read from it are absurd.
const poison = 0xDB

// Memory is a chunk.Memory on the Go heap. The zero Memory has chunks of up to
// 64 KiB and no limit. It is safe for concurrent use.
type Memory struct {
	Max   int // largest chunk in bytes; 0 means 64 KiB
	Limit int // bytes of chunks that may be held; 0 means no limit

	mu     sync.RWMutex
	chunks map[uint32][]byte
	last   uint32
	held   int
	out    int
}

// AllocChunk implements chunk.Memory.
func (m *Memory) AllocChunk(size int) uint32 {
	if size < 1<<10 || size > m.MaxChunk() || size&(size-1) != 0 {
		panic(fmt.Sprintf("chunktest: a chunk of %d bytes", size))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Limit != 0 && m.held+size > m.Limit {
		return 0
	}
	if m.chunks == nil {
		m.chunks = make(map[uint32][]byte)
	}
	m.last++
	m.chunks[m.last] = make([]byte, size)
	m.held += size
	return m.last
}

// FreeChunk implements chunk.Memory.
func (m *Memory) FreeChunk(ref uint32, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.chunks[ref]
	if !ok || len(b) != size {
		panic(fmt.Sprintf("chunktest: chunk %d of %d bytes freed as %d", ref, len(b), size))
	}
	for i := range b {
		b[i] = poison
	}
	delete(m.chunks, ref)
	m.held -= size
}

// Bytes implements chunk.Memory.
func (m *Memory) Bytes(ref uint32, n int) []byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.chunks[ref][:n:n]
}

// MaxChunk implements chunk.Memory.
func (m *Memory) MaxChunk() int {
	if m.Max == 0 {
		return 64 << 10
	}
	return m.Max
}

// Outside implements chunk.Memory.
func (m *Memory) Outside(delta int) { m.out += delta }

// Held returns the bytes of the chunks not given back.
func (m *Memory) Held() int { return m.held }

// Taken returns the bytes reported through Outside.
func (m *Memory) Taken() int { return m.out }
