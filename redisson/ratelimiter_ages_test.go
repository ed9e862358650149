package redisson

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// ages are the layouts that Redisson's scripts have read and written, one after the other: they know
// nothing of each other.
var ages = []struct {
	name, pack, unpack, random string
}{
	{"3.13.3 to 3.16.3", "struct.pack('fI', ARGV[3], ARGV[1])", "'fI'", "8084288252659522732"},
	{"from 3.16.4", "struct.pack('Bc0I', #ARGV[3], ARGV[3], ARGV[1])", "'Bc0I'", "8 bytes "},
	{"of today", "struct.pack('Bc0I', #ARGV[3], ARGV[3], ARGV[1])", "'Bc0I'", "all of 16 bytes "},
}

// javaScript takes permits as a script of that age does. KEYS rate, value, permits; ARGV
// permits, now, random.
func javaScript(pack, unpack string) *ebb.Script {
	return ebb.NewScript(`
local rate, interval = tonumber(redis.call('HGET', KEYS[1], 'rate')), tonumber(redis.call('HGET', KEYS[1], 'interval'))
local free = redis.call('GET', KEYS[2])
if not free then
  free = rate
  redis.call('SET', KEYS[2], rate)
end
local due, back = tonumber(ARGV[2]) - interval, 0
for _, m in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], 0, due)) do
  local _, n = struct.unpack(` + unpack + `, m)
  back = back + n
end
if back > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], 0, due)
  free = tonumber(free) + back
  redis.call('SET', KEYS[2], string.format('%.0f', free))
end
if tonumber(free) < tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[3], ARGV[2], ` + pack + `)
redis.call('DECRBY', KEYS[2], ARGV[1])
return 1
`)
}

func TestRedissonOfEveryAgeSharesOneLimit(t *testing.T) {
	for _, age := range ages {
		for _, first := range []string{"Java", "Go", "Go that knows"} {
			t.Run(age.name+", first "+first, func(t *testing.T) {
				backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
					ctx := b.Context()
					l, j := limiterOf(t, b, "api", RateLimiterOptions{OldJava: first == "Go that knows" && age.unpack == "'fI'"})
					const rate, interval = 5, 1000
					if _, err := l.TrySetRate(ctx, Rate{Rate: rate, Interval: interval * time.Millisecond}); err != nil {
						t.Fatal(err)
					}
					script := javaScript(age.pack, age.unpack)
					var at []int64 // when a permit was granted, in ms
					granted := map[string]int{}
					ask := func(who string, i int) {
						ok := false
						now := j.now()
						if who == "Java" {
							random := age.random
							if age.unpack == "'fI'" {
								random = fmt.Sprint(8084288252659522732 + int64(i)<<42)
							} else {
								random = fmt.Sprintf("%s%d", random, i%10)[len(fmt.Sprint(i%10)):] + fmt.Sprintf("%06d", i)
							}
							v, err := j.Script(ctx, script, []string{l.name, j.value(), j.permits()}, 1, now, random)
							if err != nil {
								t.Fatal(err)
							}
							ok = v.Int == 1
						} else {
							var err error
							if ok, err = l.TryAcquire(ctx, 1, 0); err != nil {
								t.Fatal(err)
							}
						}
						if ok {
							granted[who]++
							at = append(at, now)
						}
					}
					who := []string{"Java", "Go"}
					if first != "Java" {
						who = []string{"Go", "Java"}
					}
					for i := range 400 {
						ask(who[i%2], i)
						if i%7 == 3 { // what empties the log
							if _, err := l.AvailablePermits(ctx); err != nil {
								t.Fatal(err)
							}
						}
						pause := 50 * time.Millisecond
						if i%40 == 39 {
							pause = 3 * interval * time.Millisecond
						}
						b.Pass(pause)
					}
					for i := rate; i < len(at); i++ {
						if at[i]-at[i-rate] < interval {
							t.Fatalf("grants %d to %d came within %d ms: %v", i-rate, i, at[i]-at[i-rate], granted)
						}
					}
					allowed := int(at[len(at)-1]-at[0])/interval*rate + rate
					t.Logf("granted: %v, allowed: %d", granted, allowed)
					if n := granted["Java"] + granted["Go"]; n > allowed || n < allowed/3 || granted["Java"] == 0 || granted["Go"] == 0 {
						t.Errorf("granted %v, allowed %d", granted, allowed)
					}
				})
			})
		}
	}
}

func TestACounterWithoutALogIsRefused(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		l, j := limiterOf(t, b, "api")
		j.do("HSET", l.name, "rate", "10", "interval", "60000", "type", "0") // as 3.13.2 leaves it
		j.do("SET", j.value(), "3", "PX", "60000")
		if ok, err := l.TryAcquire(b.Context(), 1, 0); ok || !errors.Is(err, ebb.ErrValue) {
			t.Error(ok, err)
		}
		if got := j.do("GET", j.value()).String(); got != "3" {
			t.Error(got)
		}
	})
}
