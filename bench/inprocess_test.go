package bench

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"golang.org/x/time/rate"
)

// clients is the number of keys that the limiters in process know.
const clients = 100_000

var clientNames = sync.OnceValue(func() []string {
	all := make([]string, clients)
	for i := range all {
		all[i] = "client-" + strconv.Itoa(i)
	}
	return all
})

// Limiters in this process, one for all and 100,000 used at random, by one and by 64
// goroutines. A map of rate.Limiter under a mutex is what programs commonly use; unlike
// the others it never removes a key.
func BenchmarkLimiterInProcess(b *testing.B) {
	contenders := append(oursInProcess(),
		inProcess{"x-time-rate", func(b *testing.B) func(string) bool {
			var mu sync.Mutex
			all := map[string]*rate.Limiter{}
			return func(key string) bool {
				mu.Lock()
				l := all[key]
				if l == nil {
					l = rate.NewLimiter(many, many)
					all[key] = l
				}
				mu.Unlock()
				return l.Allow()
			}
		}},
		inProcess{"go-limiter", func(b *testing.B) func(string) bool {
			s, err := memorystore.New(&memorystore.Config{Tokens: many, Interval: time.Minute})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close(context.Background()) })
			return func(key string) bool {
				_, _, _, ok, err := s.Take(context.Background(), key)
				return ok && err == nil
			}
		}})
	for _, keys := range []int{1, clients} {
		for _, n := range []int{1, 64} {
			for _, c := range contenders {
				b.Run("keys="+strconv.Itoa(keys)+"/c="+strconv.Itoa(n)+"/"+c.name, func(b *testing.B) {
					allow, names := c.open(b), clientNames()
					seeds := make([]struct {
						x uint32
						_ [60]byte // a cache line each
					}, n)
					spread(b, n, func(_ context.Context, worker int) error {
						x := &seeds[worker].x
						*x = *x*1664525 + 1013904223
						if !allow(names[int(*x>>8)%keys]) {
							return errRefused
						}
						return nil
					})
				})
			}
		}
	}
}

// inProcess is a limiter without a server.
type inProcess struct {
	name string
	open func(b *testing.B) func(key string) bool
}
