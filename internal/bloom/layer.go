package bloom

import (
	"math"

	"github.com/ebbdb/ebb/internal/chunk"
)

// pieceBytes is the size of a piece of a layer that has several: a chunk. All bits of an item lie
// in one, so that a lookup needs one translation of addresses. Much smaller pieces would fill
// unevenly, which raises the error rate. With 64 KiB the effect is within a percent, which shape
// adds.
const (
	pieceBytes = 1 << 16
	pieceBits  = 8 * pieceBytes
)

// layer is a Bloom filter of a fixed size.
type layer struct {
	capacity int64
	count    int64
	nbits    uint32 // the number of bits of each piece
	npieces  uint32
	k        uint8 // bits set for an item
	pieces   []piece
}

// piece is a part of a layer's bits. bits is nil until one of them is set.
type piece struct {
	bits []byte
	ref  uint32 // the chunk, 0: on the Go heap
	lent bool   // a frozen copy shares the bits, if the filter has a loan
}

// layerBytes and tableEntry estimate the bytes of a layer and of the table entry of a piece.
const (
	layerBytes = 64
	tableEntry = 32
)

func (l *layer) bytes() int64    { return int64(l.npieces) * int64(l.nbits/8) }
func (l *layer) tableBytes() int { return layerBytes + len(l.pieces)*tableEntry }

// shape computes the size for capacity items at an error rate.
//
// The filter counts only items that it did not find. Such an item sets more bits than an average
// one: k(1-q)/(1-q^k) if the share q of the bits is set. Integrating dq/dn, the filter reaches q =
// p^(1/k) with n items if m = kn / (q + q^2/2 + ... + q^k/k). The sum of the textbook is infinite,
// and equals -ln(1-q). For large k there is no difference.
//
// shape adds a little for effects that the formula neglects: 64 bits in small layers, for the
// variance of the number of set bits, and 1/128 in large ones, for the variance of the number of
// items per piece.
func (l *layer) shape(capacity int64, rate float64) {
	k := min(max(math.Ceil(-math.Log2(rate)), 1), 62)
	q, power, sum := math.Pow(rate, 1/k), 1.0, 0.0
	for j := 1.0; j <= k; j++ {
		power *= q
		sum += power / j
	}
	m := k * float64(capacity) / sum
	l.capacity, l.k = capacity, uint8(k)
	if m += 64; m <= pieceBits {
		l.npieces, l.nbits = 1, (uint32(m)+63)/64*64
		return
	}
	l.nbits = pieceBits
	l.npieces = uint32(min(math.Ceil((m+m/128)/pieceBits), 1<<31))
}

// golden is the step of a sequence of Steele, Lea and Flood's SplitMix64 (2014). Each number of the
// sequence gives two positions. Double hashing would need two multiplications less for each, but is
// not good enough for small layers: in a layer of m bits, about every m-th item would set all its
// bits close together.
const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (l *layer) place(h Hash) uint64 {
	if l.npieces == 1 {
		return 0
	}
	return mulHi(h.hi, uint64(l.npieces))
}

// has reports whether all bits of an item are set.
func (l *layer) has(h Hash) bool {
	b := l.pieces[l.place(h)].bits
	if len(b) == 0 {
		return false
	}
	n, x := uint64(l.nbits), h.lo
	for k := l.k; ; k -= 2 {
		x += golden
		z := mix(x)
		i := z >> 32 * n >> 32
		if b[i>>3]&(1<<(i&7)) == 0 {
			return false
		}
		if k == 1 {
			return true
		}
		i = z & (1<<32 - 1) * n >> 32
		if b[i>>3]&(1<<(i&7)) == 0 {
			return false
		}
		if k == 2 {
			return true
		}
	}
}

// set sets the bits of an item. It returns the number of bytes that it has allocated; ok is false
// if there was no memory.
func (l *layer) set(h Hash, f *Filter) (took int, ok bool) {
	p := l.place(h)
	if took, ok = l.touch(p, f.mem); !ok {
		return 0, false
	}
	f.own(&l.pieces[p])
	b, n, x, z := l.pieces[p].bits, uint64(l.nbits), h.lo, uint64(0)
	for k := range l.k {
		if k&1 == 0 {
			x += golden
			z = mix(x)
		} else {
			z <<= 32
		}
		i := z >> 32 * n >> 32
		b[i>>3] |= 1 << (i & 7)
	}
	return took, true
}

// touch allocates a piece if it does not exist.
func (l *layer) touch(p uint64, mem chunk.Memory) (took int, ok bool) {
	x := &l.pieces[p]
	switch {
	case x.bits != nil:
		return 0, true
	case l.nbits < pieceBits:
		x.bits = make([]byte, l.nbits/8)
		mem.Outside(len(x.bits))
	default:
		if x.ref = mem.AllocChunk(pieceBytes); x.ref == 0 {
			return 0, false
		}
		x.bits = mem.Bytes(x.ref, pieceBytes)
	}
	return len(x.bits), true
}

// free frees up to budget pieces from the end.
func (l *layer) free(f *Filter, budget int) (freed int) {
	for len(l.pieces) > 0 && freed < budget {
		if x := &l.pieces[len(l.pieces)-1]; x.bits != nil {
			f.releaseBits(x)
			*x = piece{}
			freed++
		}
		l.pieces = l.pieces[:len(l.pieces)-1]
	}
	return freed
}

// copyFrom copies the bits of another layer of the same shape.
func (l *layer) copyFrom(o *layer, mem chunk.Memory) (ok bool) {
	for p := range o.pieces {
		if o.pieces[p].bits == nil {
			continue
		}
		if _, ok := l.touch(uint64(p), mem); !ok {
			return false
		}
		copy(l.pieces[p].bits, o.pieces[p].bits)
	}
	return true
}
