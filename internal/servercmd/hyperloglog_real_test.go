package servercmd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// The whole value is compared after every change, and the registers at the end.
func TestHyperLogLogsAreRedisByteForByte(t *testing.T) {
	tier.Sequential(t)
	rng := rand.New(rand.NewPCG(1, 5))
	keys := []string{"a", "b", "c", "d"}
	key := func() string { return keys[rng.IntN(len(keys))] }
	var requests [][]string
	for _, limit := range []int{40, 300, 3000, 12000} {
		requests = append(requests, []string{"FLUSHALL"}, []string{"CONFIG", "SET", "hll-sparse-max-bytes", fmt.Sprint(limit)})
		for range 400 {
			k := key()
			switch rng.IntN(10) {
			case 0:
				requests = append(requests, []string{"PFCOUNT", k})
			case 1:
				requests = append(requests, []string{"PFCOUNT", key(), key(), k})
			case 2:
				requests = append(requests, []string{"PFMERGE", k, key(), key()})
			case 3:
				if rng.IntN(8) == 0 {
					requests = append(requests, []string{"DEL", k})
				} else {
					requests = append(requests, []string{"PFDEBUG", "DECODE", k})
				}
			default:
				args := []string{"PFADD", k}
				for range rng.IntN(20) {
					args = append(args, fmt.Sprint(rng.IntN(3000)))
				}
				requests = append(requests, args)
			}
			requests = append(requests, []string{"GET", k})
		}
		for _, k := range keys {
			requests = append(requests, []string{"PFDEBUG", "ENCODING", k}, []string{"PFDEBUG", "GETREG", k}, []string{"GET", k})
		}
	}
	beside(t, requests)
}

// Redis does not notice that an opcode lacks its second byte, and PFADD may have changed the value before it
// notices a fault, so those are left out.
func TestForeignHyperLogLogsAreTakenAsByRedis(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	var requests [][]string
	for range 500 {
		img := append([]byte("HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"), make([]byte, 0, 40)...)
		left := 16384
		for left > 0 && len(img) < 200 {
			switch rng.IntN(3) {
			case 0:
				n := min(1+rng.IntN(64), left)
				img, left = append(img, byte(n-1)), left-n
			case 1:
				n := min(1+rng.IntN(4), left)
				img, left = append(img, 0x80|byte(rng.IntN(32))<<2|byte(n-1)), left-n
			default:
				n := min(1+rng.IntN(3000), left)
				img, left = append(img, 0x40|byte((n-1)>>8), byte(n-1)), left-n
			}
		}
		if left > 0 && rng.IntN(4) > 0 {
			img = append(img, 0x40|byte((left-1)>>8), byte(left-1))
		}
		requests = append(requests, []string{"SET", "k", string(img)}, []string{"PFCOUNT", "k"}, []string{"GET", "k"},
			[]string{"SET", "k", string(img)}, []string{"PFADD", "k", fmt.Sprint(rng.Int64())}, []string{"GET", "k"},
			[]string{"SET", "k", string(img)}, []string{"PFADD", "m", fmt.Sprint(rng.Int64())}, []string{"PFMERGE", "k", "m"}, []string{"GET", "k"},
			[]string{"PFCOUNT", "m", "k"}, []string{"PFDEBUG", "TODENSE", "k"}, []string{"GET", "k"}, []string{"DEL", "m"})
	}
	beside(t, requests)
}
