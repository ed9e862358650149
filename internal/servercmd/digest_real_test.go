package servercmd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// fuzzer makes random requests on keys of a fixed type each.
type fuzzer struct{ rng *rand.Rand }

func (f *fuzzer) n(n int) int { return f.rng.IntN(n) }

// item returns a field, member or value: often a number, sometimes long.
func (f *fuzzer) item() string {
	switch f.n(8) {
	case 0:
		return strconv.FormatInt(f.rng.Int64()>>f.n(64), 10)
	case 1:
		return strings.Repeat(string(rune('a'+f.n(26))), f.n(90))
	case 2:
		return fmt.Sprint(f.rng.NormFloat64())
	case 3:
		return []string{"", "007", "-0", "+1", "\x00\xff", "1.50", "-1", "9223372036854775808"}[f.n(8)]
	}
	return fmt.Sprint("item", f.n(40))
}

// score returns any score except -0, which Redis loses in its small layout only.
func (f *fuzzer) score() string {
	switch f.n(8) {
	case 0:
		return []string{"inf", "-inf", "0", "1e300", "4.9e-324", "1e17", "123456789012345678", "0.1"}[f.n(8)]
	case 1:
		return strconv.FormatFloat(math.Float64frombits(f.rng.Uint64()>>2), 'g', -1, 64)
	case 2:
		return fmt.Sprint(f.n(10))
	}
	return strconv.FormatFloat(f.rng.NormFloat64()*math.Pow(10, float64(f.n(30)-10)), 'g', -1, 64)
}

// some returns up to 12 results of one.
func (f *fuzzer) some(one func() []string) (all []string) {
	for range 1 + f.n(12) {
		all = append(all, one()...)
	}
	return all
}

// change returns a request that changes data.
func (f *fuzzer) change() []string {
	id := fmt.Sprint(f.n(4))
	items := func() []string { return []string{f.item()} }
	with := func(args []string, more []string) []string { return append(args, more...) }
	switch f.n(20) {
	case 0, 1:
		return []string{"SET", "str" + id, f.item()}
	case 2, 3, 4:
		return with([]string{"HSET", "hash" + id}, f.some(func() []string { return []string{f.item(), f.item()} }))
	case 5:
		return with([]string{"HDEL", "hash" + id}, f.some(items))
	case 6:
		return []string{"HINCRBYFLOAT", "hash" + id, f.item(), "0.5"}
	case 7, 8:
		return with([]string{[]string{"RPUSH", "LPUSH"}[f.n(2)], "list" + id}, f.some(items))
	case 9:
		return []string{"LPOP", "list" + id}
	case 10, 11:
		return with([]string{"SADD", "set" + id}, f.some(items))
	case 12:
		return []string{"SADD", "ints" + id, fmt.Sprint(f.n(100)), strconv.FormatInt(f.rng.Int64()>>f.n(64), 10)}
	case 13:
		return with([]string{"SREM", "set" + id}, f.some(items))
	case 14, 15:
		return with([]string{"ZADD", "zset" + id}, f.some(func() []string { return []string{f.score(), f.item()} }))
	case 16:
		return with([]string{"ZREM", "zset" + id}, f.some(items))
	case 17:
		return with([]string{"XADD", "stream" + id, fmt.Sprint(f.n(1000), "-", f.n(9)+1)},
			f.some(func() []string { return []string{f.item(), f.item()} }))
	case 18:
		return []string{"EXPIRE", []string{"str", "hash", "list", "set", "zset", "stream"}[f.n(6)] + id, "1000"}
	}
	return []string{"SELECT", fmt.Sprint(f.n(3))}
}

// Equal data has equal digests on both servers, in small and large layouts.
func TestDigestsAreThoseOfRedis(t *testing.T) {
	tier.Sequential(t)
	table, err := DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	f := &fuzzer{rand.New(rand.NewPCG(3, 4))}
	var requests [][]string
	for round := range 40 {
		requests = append(requests, []string{"FLUSHALL"})
		entries := fmt.Sprint([]int{0, 4, 512}[round%3])
		for _, kind := range []string{"hash", "zset"} {
			requests = append(requests, []string{"CONFIG", "SET", kind + "-max-listpack-entries", entries})
		}
		for range 120 {
			if args := f.change(); table.Lookup([]byte(args[0])) != nil {
				requests = append(requests, args)
			}
		}
		values := []string{"DEBUG", "DIGEST-VALUE", "nothing"}
		for _, kind := range []string{"str", "hash", "list", "set", "ints", "zset", "stream"} {
			for id := range 4 {
				values = append(values, fmt.Sprint(kind, id))
			}
		}
		requests = append(requests, values, []string{"DEBUG", "DIGEST"})
	}
	beside(t, requests)
}
