package reactor

import "math/bits"

// Buffers come in powers of two from 512 bytes (a typical partial request, and ten
// thousand of them are 5 MB) to 1 MiB; the pool does not keep larger ones, because they
// are rare and would hold memory.
const (
	minClass   = 9
	maxClass   = 20
	poolBudget = 4 << 20 // bytes kept per loop: four large values in flight
)

// pool recycles the private buffers of one loop's connections.
type pool struct {
	free [maxClass - minClass + 1][][]byte
	kept int
}

// get returns a buffer of at least n bytes; its length is its capacity.
func (p *pool) get(n int) []byte {
	class := max(bits.Len(uint(max(n, 1)-1)), minClass)
	if class > maxClass {
		return make([]byte, n)
	}
	f := &p.free[class-minClass]
	if k := len(*f); k > 0 {
		b := (*f)[k-1]
		(*f)[k-1] = nil
		*f = (*f)[:k-1]
		p.kept -= len(b)
		return b
	}
	return make([]byte, 1<<class)
}

// put takes back a buffer that get returned. It drops buffers of other sizes.
func (p *pool) put(b []byte) {
	b = b[:cap(b)]
	class := bits.Len(uint(len(b))) - 1
	if class < minClass || class > maxClass || len(b) != 1<<class || p.kept+len(b) > poolBudget {
		return
	}
	p.free[class-minClass] = append(p.free[class-minClass], b)
	p.kept += len(b)
}

// trim drops the kept buffers.
func (p *pool) trim() { *p = pool{} }
