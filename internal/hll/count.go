package hll

import (
	"encoding/binary"
	"math"
)

// Set holds the registers of a sketch, one per byte. It is used to unite several sketches.
type Set [Registers]uint8

// Unite raises the registers to those of a valid image. After ErrCorrupt, some of the registers are
// raised. O(registers).
func (s *Set) Unite(img []byte) error {
	if EncodingOf(img) == Dense {
		eachGroup(img[HeaderSize:], func(i int, w uint64) {
			g := (*[8]uint8)(s[i*8:])
			for j := range g {
				g[j] = max(g[j], uint8(w>>(registerBits*j))&registerMax)
			}
		})
		return nil
	}
	return Walk(img, func(op Op) {
		if op.Value > 0 {
			for i, v := range s[op.First : op.First+op.Len] {
				s[op.First+i] = max(v, op.Value)
			}
		}
	})
}

// RaiseAll raises all registers of a valid image to those of the set, under the
// rules of Raise. O(registers).
func (s *Set) RaiseAll(img []byte, limit int) ([]byte, error) {
	var c cursor
	var err error
	for i, v := range s {
		switch {
		case v == 0:
		case EncodingOf(img) == Dense:
			raise(img[HeaderSize:], i, v)
		default:
			if img, _, err = c.raise(img, i, v, limit); err != nil {
				return img, err
			}
		}
	}
	Invalidate(img)
	return img, nil
}

// Count estimates how many different elements were added to the sketches that
// are united in the set. O(registers).
func (s *Set) Count() uint64 {
	var h, odd histogram
	for i := 0; i < len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		if w == 0 { // most words, if the sketches are sparse
			h[0] += 8
			continue
		}
		for range 4 {
			h[w&registerMax]++
			odd[w>>8&registerMax]++
			w >>= 16
		}
	}
	h.add(&odd)
	return h.estimate()
}

// Count estimates how many different elements were added to a valid image. It ignores the cached
// estimate. O(registers) if it is dense, else O(opcodes).
func Count(img []byte) (uint64, error) {
	var h histogram
	if EncodingOf(img) == Dense {
		var odd histogram // a second histogram, so that equal neighbours do not wait for each other
		eachGroup(img[HeaderSize:], func(_ int, w uint64) {
			for range 4 {
				h[w&registerMax]++
				odd[w>>registerBits&registerMax]++
				w >>= 2 * registerBits
			}
		})
		h.add(&odd)
		return h.estimate(), nil
	}
	if !h.sparse(img[HeaderSize:]) {
		return 0, ErrCorrupt
	}
	return h.estimate(), nil
}

// sparse adds the registers of opcodes, and reports whether they are 16384.
func (h *histogram) sparse(ops []byte) bool {
	at := 0
	for i := 0; i < len(ops); i++ {
		b := ops[i]
		n := int(lengths[b])
		if n > Registers { // an XZERO
			var size int
			if _, n, size = decode(ops[i:]); size == 0 {
				return false
			}
			i++
		}
		value := (b>>2&(sparseMax-1) + 1) & -(b >> 7) // 0 unless it is a VAL; a branch would be mispredicted often
		h[value] += int32(n)
		at += n
	}
	return at == Registers
}

// eachGroup calls visit for every eight registers of a dense image, which lie in
// the low 48 bits of w.
func eachGroup(regs []byte, visit func(i int, w uint64)) {
	const size = registerBits // bytes of 8 registers
	last := len(regs)/size - 1
	for i := range last {
		visit(i, binary.LittleEndian.Uint64(regs[i*size:]))
	}
	visit(last, binary.LittleEndian.Uint64(regs[len(regs)-8:])>>16)
}

// histogram counts the registers with each value.
type histogram [registerMax + 1]int32

// add adds the counts of another histogram.
func (h *histogram) add(o *histogram) {
	for i, n := range o {
		h[i] += n
	}
}

// estimate is the estimator of Otmar Ertl, "New cardinality estimation
// algorithms for HyperLogLog sketches" (arXiv:1702.01284), algorithm 6: it needs
// no thresholds and no tables of biases. The conversions keep products from
// being fused with sums, so that all processors round alike.
func (h *histogram) estimate() uint64 {
	const m = Registers
	z := m * tau((m-float64(h[hashBits+1]))/m)
	for j := hashBits; j >= 1; j-- {
		z = float64(z+float64(h[j])) * 0.5
	}
	z += float64(m * sigma(float64(h[0])/m))
	const alpha = 0.5 / math.Ln2
	if n := math.Round(alpha * m * m / z); n < 1<<63 {
		return uint64(n)
	}
	return 1 << 63 // no elements give these registers
}

// sigma returns x + the sum of x^(2^k) 2^(k-1) over k from 1 on.
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for {
		x *= x
		before := z
		z += float64(x * y)
		y += y
		if z == before {
			return z
		}
	}
}

// tau returns (1 - x - the sum of (1 - x^(2^-k))^2 2^-k over k from 1 on) / 3.
func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		z -= float64(float64((1-x)*(1-x)) * y)
		if z == before {
			return z / 3
		}
	}
}
