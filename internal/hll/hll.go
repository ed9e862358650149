// Package hll reads and writes HyperLogLogs: sketches that estimate how many different elements
// were added to them, in at most 12 KiB and with a standard error of 0.81 %. A sketch is byte for
// byte the string that Redis stores.
//
//	image    "HYLL" [encoding 1][unused 3][cached estimate 8] registers
//	dense    16384 registers of 6 bits, the lowest bits of a byte first: 12288 bytes
//	sparse   opcodes, each for a run of registers, 16384 in all:
//	           00nnnnnn            ZERO    n+1 registers are 0
//	           01nnnnnn nnnnnnnn   XZERO   n+1 registers are 0
//	           1vvvvvnn            VAL     n+1 registers are v+1
//
// The low 14 bits of an element's hash select a register. The register stores the highest position
// of the lowest set bit among the other 50 bits of all elements.
//
// The cached estimate is little-endian; its highest bit says that it is out of date. Every Add that
// changes a register sets it.
//
// Sketches come from clients, so the package does not trust them: Valid checks the header, and
// functions that walk the opcodes return ErrCorrupt if these do not make up 16384 registers. The
// package allocates only with append.
//
// Start reading at Add, then Count.
package hll

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

const (
	// Registers is the number of a sketch's registers.
	Registers = 1 << indexBits

	// HeaderSize and DenseSize are the bytes of an image's header, and of a
	// dense image.
	HeaderSize = 16
	DenseSize  = HeaderSize + Registers*registerBits/8

	indexBits    = 14
	hashBits     = 64 - indexBits // the bits in which the position of the lowest set bit is counted
	registerBits = 6
	registerMax  = 1<<registerBits - 1

	magic       = "HYLL"
	encodingOff = 4
	cacheOff    = 8
	staleOff    = cacheOff + 7 // the byte with the bit that marks the estimate as out of date
	stale       = 0x80
)

// Encoding is the encoding of a sketch's registers.
type Encoding uint8

// These are the encodings, as they stand in an image.
const (
	Dense Encoding = iota
	Sparse
)

// String returns the encoding's name in PFDEBUG ENCODING.
func (e Encoding) String() string { return [...]string{"dense", "sparse"}[e] }

// ErrCorrupt: the opcodes of a sparse sketch do not make up 16384 registers.
var ErrCorrupt = errors.New("corrupted HLL object")

// New appends an empty sketch, which is sparse, to dst[:0].
func New(dst []byte) []byte {
	var head [HeaderSize]byte
	copy(head[:], magic)
	head[encodingOff] = byte(Sparse)
	return appendZeros(append(dst[:0], head[:]...), Registers)
}

// Valid reports whether an image begins with the header of a sketch and, if it is dense, has the
// right length. O(1).
func Valid(img []byte) bool {
	if len(img) < HeaderSize || string(img[:len(magic)]) != magic {
		return false
	}
	switch EncodingOf(img) {
	case Dense:
		return len(img) == DenseSize
	case Sparse:
		return true
	}
	return false
}

// EncodingOf returns the encoding of a valid image.
func EncodingOf(img []byte) Encoding { return Encoding(img[encodingOff]) }

// Cached returns the cached estimate of a valid image; ok is false if it is out of date.
func Cached(img []byte) (n uint64, ok bool) {
	return binary.LittleEndian.Uint64(img[cacheOff:]), img[staleOff]&stale == 0
}

// Cache stores an estimate in an image.
func Cache(img []byte, n uint64) { binary.LittleEndian.PutUint64(img[cacheOff:], n) }

// Invalidate marks the cached estimate of an image as out of date.
func Invalidate(img []byte) { img[staleOff] |= stale }

// Locate returns the register of an element and the value that the element
// raises it to, 1 to 51.
func Locate(elem []byte) (register int, value uint8) {
	h := murmur(elem)
	return int(h & (Registers - 1)), uint8(bits.TrailingZeros64(h>>indexBits|1<<hashBits) + 1)
}

// Raise raises a register of a valid image to value, if it is lower, and reports whether it was. As
// with append, the image may move unless its capacity allows three more bytes, or DenseSize. It
// becomes dense if value is above 32, or if it would grow beyond limit bytes. O(1) if it is dense,
// else O(opcodes). Errors: ErrCorrupt, and only the capacity of a sparse image may have changed.
func Raise(img []byte, register int, value uint8, limit int) (_ []byte, raised bool, err error) {
	if EncodingOf(img) == Dense {
		raised = raise(img[HeaderSize:], register, value)
		if raised {
			Invalidate(img)
		}
		return img, raised, nil
	}
	var c cursor
	return c.raise(img, register, value, limit)
}

// Raises reports whether Raise would change a valid image. O(1) if it is dense,
// O(opcodes) if not.
func Raises(img []byte, register int, value uint8) (bool, error) {
	if EncodingOf(img) == Dense {
		return get(img[HeaderSize:], register) < value, nil
	}
	op, ok := cursor{}.seek(img[HeaderSize:], register)
	if !ok {
		return false, ErrCorrupt
	}
	return op.value < value, nil
}

// ToDense appends a valid image in dense form to dst[:0], which is other memory, and returns it. It
// keeps the cached estimate.
func ToDense(dst, img []byte) ([]byte, error) {
	if EncodingOf(img) == Dense {
		return append(dst[:0], img...), nil
	}
	if cap(dst) < DenseSize {
		dst = make([]byte, DenseSize)
	}
	dst = dst[:DenseSize]
	copy(dst, img[:HeaderSize])
	dst[encodingOff] = byte(Dense)
	regs := dst[HeaderSize:]
	clear(regs)
	err := Walk(img, func(op Op) {
		for i := op.First; op.Value > 0 && i < op.First+op.Len; i++ {
			raise(regs, i, op.Value)
		}
	})
	if err != nil {
		return nil, err
	}
	return dst, nil
}

// get returns a register of a dense image.
func get(regs []byte, i int) uint8 {
	at, shift := i*registerBits/8, uint(i*registerBits%8)
	v := regs[at] >> shift
	if shift > 8-registerBits {
		v |= regs[at+1] << (8 - shift)
	}
	return v & registerMax
}

// raise raises a register of a dense image, and reports whether it was lower.
func raise(regs []byte, i int, v uint8) bool {
	if get(regs, i) >= v {
		return false
	}
	at, shift := i*registerBits/8, uint(i*registerBits%8)
	regs[at] = regs[at]&^(registerMax<<shift) | v<<shift
	if shift > 8-registerBits {
		regs[at+1] = regs[at+1]&^(registerMax>>(8-shift)) | v>>(8-shift)
	}
	return true
}

// murmur is Austin Appleby's MurmurHash64A with Redis's seed, little-endian.
func murmur(b []byte) uint64 {
	const (
		seed = 0xadc83b19
		mul  = 0xc6a4a7935bd1e995
		rot  = 47
	)
	h := uint64(seed) ^ uint64(len(b))*mul
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * mul
		k = (k ^ k>>rot) * mul
		h = (h ^ k) * mul
	}
	if len(b) > 0 {
		var tail uint64
		for i, c := range b {
			tail |= uint64(c) << (8 * i)
		}
		h = (h ^ tail) * mul
	}
	h = (h ^ h>>rot) * mul
	return h ^ h>>rot
}
