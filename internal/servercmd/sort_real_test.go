package servercmd

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestSortAgreesWithRedis sorts random containers in random ways.
func TestSortAgreesWithRedis(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, seed))
	var requests [][]string
	number := func() string {
		return []string{"1", "2", "10", "-3", "2.5", "1e3", "0x1f", "inf", "", " 4", "+7", ".5"}[rng.IntN(12)]
	}
	for round := range 60 {
		requests = append(requests, []string{"FLUSHALL"})
		for _, key := range []string{"l", "z", "s"} {
			for i := range rng.IntN(12) {
				elem := number()
				if round%3 == 0 {
					elem = string(rune('a' + rng.IntN(8)))
				}
				switch key {
				case "l":
					requests = append(requests, []string{"RPUSH", key, elem})
				case "z":
					requests = append(requests, []string{"ZADD", key, strconv.Itoa(i), elem})
				default:
					requests = append(requests, []string{"SADD", key, elem})
				}
				if rng.IntN(2) == 0 {
					requests = append(requests, []string{"SET", "w_" + elem, number()}, []string{"HSET", "h_" + elem, "f", number()})
				}
			}
		}
		for range 20 {
			requests = append(requests, randomSort(rng), []string{"LRANGE", "d", "0", "-1"})
		}
	}
	beside(t, requests)
}

// randomSort returns a random SORT whose result has only one possible order. It neither sorts a set without
// an order, nor by weights that may be equal as bytes.
func randomSort(rng *rand.Rand) []string {
	key := []string{"l", "z", "s", "none"}[rng.IntN(4)]
	args := []string{"SORT", key}
	by := false
	switch rng.IntN(5) {
	case 0:
		args, by = append(args, "BY", "w_*"), true
	case 1:
		args, by = append(args, "BY", "h_*->f"), true
	case 2:
		if key != "s" {
			args = append(args, "BY", "nosort")
		}
	}
	if rng.IntN(2) == 0 && !by {
		args = append(args, "ALPHA")
	}
	if rng.IntN(2) == 0 {
		args = append(args, "DESC")
	}
	if rng.IntN(2) == 0 {
		args = append(args, "LIMIT", strconv.Itoa(rng.IntN(14)-2), strconv.Itoa(rng.IntN(14)-2))
	}
	for range rng.IntN(3) {
		args = append(args, "GET", []string{"#", "w_*", "h_*->f", "h_*->g", "nothing"}[rng.IntN(5)])
	}
	if rng.IntN(3) == 0 {
		args = append(args, "STORE", "d")
	}
	return args
}
