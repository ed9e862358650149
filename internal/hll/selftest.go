package hll

import (
	"encoding/binary"
	"fmt"
	"math"
)

// selfTestElements is the number of elements that SelfTest adds: enough for both encodings and for
// every regime of the estimator except the saturated one.
const selfTestElements = 100_000

// SelfTest adds elements to a sketch that starts sparse and to one that is dense
// from the start, and returns an error if an estimate is off by more than eight
// standard errors, or the two sketches differ. It takes a few milliseconds.
func SelfTest() error {
	sparse := New(make([]byte, 0, DenseSize))
	dense, err := ToDense(nil, sparse)
	if err != nil {
		return err
	}
	const limit = 3000 // bytes
	var elem [8]byte
	for n, check := 1, 1; n <= selfTestElements; n++ {
		binary.LittleEndian.PutUint64(elem[:], uint64(n)*0x9E3779B97F4A7C15)
		register, value := Locate(elem[:])
		if sparse, _, err = Raise(sparse, register, value, limit); err != nil {
			return err
		}
		if dense, _, err = Raise(dense, register, value, limit); err != nil {
			return err
		}
		if n != check {
			continue
		}
		check *= 10
		a, err := Count(sparse)
		if err != nil {
			return err
		}
		b, err := Count(dense)
		if err != nil {
			return err
		}
		// 1.04 / sqrt(Registers) is the standard error.
		if off := math.Abs(float64(a) - float64(n)); a != b || off > math.Ceil(8*1.04/math.Sqrt(Registers)*float64(n)) {
			return fmt.Errorf("%d elements are counted as %d where the sketch is sparse and %d where it is dense", n, a, b)
		}
	}
	return nil
}
