package loadgen

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram keeps durations up to 137 s with an error below 1/128. Below
// 128 ns each nanosecond has a bucket; above, each power of two has 128:
//
//	0 1 2 ... 127 | 128 129 ... 255 | 256 258 ... 510 | 512 516 ... 1020 | ...
const (
	subBits = 7
	maxBits = 37
	buckets = (maxBits - subBits + 1) << subBits
)

func bucketOf(v uint64) int {
	v = min(v, 1<<maxBits-1)
	if v < 1<<subBits {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return shift<<subBits + int(v>>shift)
}

// upper returns the largest value of a bucket.
func upper(bucket int) uint64 {
	if bucket < 2<<subBits {
		return uint64(bucket)
	}
	shift := bucket>>subBits - 1
	return uint64(bucket-shift<<subBits+1)<<shift - 1
}

// histogram has one writer; any goroutine may read it with addTo meanwhile.
type histogram struct {
	counts   [buckets]atomic.Uint64
	sum, max atomic.Int64
}

// record counts a duration n times.
func (h *histogram) record(d time.Duration, n uint64) {
	d = max(d, 0)
	h.counts[bucketOf(uint64(d))].Add(n)
	h.sum.Add(int64(d) * int64(n))
	if int64(d) > h.max.Load() {
		h.max.Store(int64(d))
	}
}

// Summary is a distribution of durations. The zero value is empty.
type Summary struct {
	N      uint64
	Max    time.Duration // exact
	sum    time.Duration
	counts []uint64
}

// addTo adds a histogram to a summary.
func (h *histogram) addTo(s *Summary) {
	if s.counts == nil {
		s.counts = make([]uint64, buckets)
	}
	for i := range h.counts {
		n := h.counts[i].Load()
		s.counts[i] += n
		s.N += n
	}
	s.sum += time.Duration(h.sum.Load())
	s.Max = max(s.Max, time.Duration(h.max.Load()))
}

// since returns what s has and an earlier summary of the same had not.
func (s *Summary) since(earlier *Summary) Summary {
	d := Summary{N: s.N - earlier.N, Max: s.Max, sum: s.sum - earlier.sum, counts: append([]uint64(nil), s.counts...)}
	for i, n := range earlier.counts {
		d.counts[i] -= n
	}
	return d
}

// Mean returns the average, 0 if there is nothing.
func (s *Summary) Mean() time.Duration {
	if s.N == 0 {
		return 0
	}
	return s.sum / time.Duration(s.N)
}

// Quantile returns the smallest recorded duration that a share q of all do not
// exceed, within 1/128 and never below the true one; 0 if there is nothing.
func (s *Summary) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(s.N))
	if float64(rank) < q*float64(s.N) || rank == 0 {
		rank++
	}
	seen := uint64(0)
	for i, n := range s.counts {
		if seen += n; seen >= rank {
			return min(time.Duration(upper(i)), s.Max)
		}
	}
	return s.Max
}
