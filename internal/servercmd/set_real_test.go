package servercmd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// SORT puts the members into an order that both servers share.
func TestSetsAreCombinedAsByRedis(t *testing.T) {
	tier.Sequential(t)
	rng := rand.New(rand.NewPCG(1, 7))
	keys := []string{"a", "b", "c", "d", "{a}e"}
	key := func() string { return keys[rng.IntN(len(keys))] }
	var requests [][]string
	for round := range 3 {
		reach := []int{8, 200, 2000}[round]
		member := func() string {
			if rng.IntN(20) == 0 {
				return fmt.Sprint("m", rng.IntN(reach))
			}
			return fmt.Sprint(rng.IntN(reach) - reach/3)
		}
		requests = append(requests, []string{"FLUSHALL"})
		for range 700 {
			k := key()
			args := []string{"SADD", k}
			switch rng.IntN(12) {
			case 0:
				args = []string{"SINTERSTORE", k, key(), key()}
			case 1:
				args = []string{"SUNIONSTORE", k, key(), key(), key()}
			case 2:
				args = []string{"SDIFFSTORE", k, key(), key()}
			case 3:
				args = []string{"SINTERCARD", "3", key(), key(), k, "LIMIT", fmt.Sprint(rng.IntN(reach))}
			case 4:
				args = []string{"SMOVE", k, key(), member()}
			case 5:
				args = []string{"SMISMEMBER", k, member(), member(), member()}
			case 6, 7:
				args[0] = "SREM"
				fallthrough
			default:
				for range 1 + rng.IntN(reach/4+1) {
					args = append(args, member())
				}
			}
			requests = append(requests, args, []string{"SCARD", k}, []string{"SORT", k, "ALPHA"})
		}
	}
	beside(t, requests)
}
