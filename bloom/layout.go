package bloom

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ebbdb/ebb/conn"
)

// config is the configuration of a filter, which the hash of the script layout stores.
type config struct {
	capacity    int64
	rate        float64
	expansion   int64 // 0: it does not grow
	window      int64 // ms; 0: for ever
	generations int64 // 0 without a window
}

// String is the form in which the configuration is kept.
func (c config) String() string {
	return fmt.Sprintf("1 %d %s %d %d %d", c.capacity, strconv.FormatFloat(c.rate, 'g', -1, 64), c.expansion, c.window, c.generations)
}

// parseConfig parses the result of String.
func parseConfig(s string) (c config, err error) {
	version := 0
	f := strings.Fields(s)
	if len(f) == 6 {
		_, err = fmt.Sscan(s, &version, &c.capacity, &c.rate, &c.expansion, &c.window, &c.generations)
	}
	if version != 1 || err != nil || c.capacity < 1 || !(c.rate > 0 && c.rate < 1) || c.generations < 0 || c.generations > maxGenerations {
		return c, fmt.Errorf("%w: %q is not the configuration of a filter", conn.ErrValue, s)
	}
	return c, nil
}

// slots returns the number of generations that have keys: the present one and those of the window before it.
func (c config) slots() int { return int(c.generations) + 1 }

// layer returns what the n-th layer of a generation is made for: with room for
// growth, rates that halve, whose sum stays below the whole (Almeida, Baquero,
// Preguiça, Hutchison: Scalable Bloom Filters, 2007). The generations that are
// found at a time share the rate evenly, and the capacity; they grow in any case,
// since values may come in bursts.
func (c config) layer(n int) (capacity int64, rate float64) {
	capacity, rate = c.capacity, c.rate
	grows := c.expansion
	if c.window != 0 {
		rate /= float64(c.generations + 1)
		capacity = max(1, (capacity+c.generations-1)/c.generations)
		grows = max(grows, 2)
	}
	if grows == 0 {
		return capacity, rate
	}
	for range n {
		if capacity > math.MaxInt64/grows {
			return math.MaxInt64, math.Ldexp(rate, -n-1)
		}
		capacity *= grows
	}
	return capacity, math.Ldexp(rate, -n-1)
}

// maxBits is the number of bits of a string of 512 MiB, the largest of Redis.
const maxBits = 1 << 32

// shape returns the number of bits of a layer, and how many belong to a value.
//
// k = ceil(log2(1/p)) bits for each value leave half of all bits unset when the
// filter is full, where it is smallest (Bloom, 1970). The rate of values that are found by
// mistake is q^k, where the share q of the bits is set; q = p^(1/k) is reached with
// n values in m = -kn / ln(1-q) bits. 64 more are for the spread of the number of
// bits set in small layers.
func (c config) shape(n int) (capacity int64, m uint64, k int) {
	capacity, rate := c.layer(n)
	f := min(max(math.Ceil(-math.Log2(rate)), 1), 62)
	size := -f*float64(capacity)/math.Log1p(-math.Pow(rate, 1/f)) + 64
	if size > maxBits {
		return capacity, 0, int(f)
	}
	return capacity, uint64(size+63) / 64 * 64, int(f)
}

// hash is the XXH3 hash of a value, with 128 bits.
type hash struct{ hi, lo uint64 }

func hashOf(data []byte) hash {
	h := xxh3.Hash128(data)
	return hash{h.Hi, h.Lo}
}

// places appends the k bits of a value among m: a sequence of SplitMix64 (Steele,
// Lea, Flood: Fast splittable pseudorandom number generators, 2014) that begins at
// one half of the hash and steps by the other. Double hashing would be cheaper,
// and in small layers worse than the rate promises.
func (h hash) places(dst []uint64, m uint64, k int) []uint64 {
	x, step := h.lo, h.hi|1
	for range k {
		x += step
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		i, _ := bits.Mul64(z, m) // evenly on 0 to m-1
		dst = append(dst, i)
	}
	return dst
}
