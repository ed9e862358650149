package expset

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/backends"
)

func TestASetIsSharedWithJava(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		if !strings.HasPrefix(b.URL(), "redis://") || strings.Contains(b.URL(), ",") {
			return
		}
		ctx, name := b.Context(), b.Name("s")
		o, err := redis.ParseURL(b.URL())
		must(t, err)
		java := redis.NewClient(o) // plain commands, by the layout
		defer java.Close()
		s := open(t, b.Conn, name, redisson, Options[string]{MaxLen: 3})
		now, err := java.Time(ctx).Result()
		must(t, err)
		add := func(m string, at float64) { must(t, java.ZAdd(ctx, name, redis.Z{Score: at, Member: m}).Err()) }
		add("theirs", float64(now.Add(time.Hour).UnixMilli()))
		add("theirs for ever", 92233720368547758)
		did(t, 1)(s.Add(ctx, 0, "ours for ever"))
		if _, err := s.Add(ctx, 0, "too many"); err == nil {
			t.Error("MaxLen does not hold for what they add")
		}
		add("theirs brief", float64(now.Add(50*time.Millisecond).UnixMilli()))
		if score, err := java.ZScore(ctx, name, "ours for ever").Result(); score != 92233720368547758 || err != nil {
			t.Error(score, err)
		}
		for _, m := range []string{"theirs for ever", "ours for ever"} {
			if d, ok, err := s.TTL(ctx, m); d != ebb.Forever || !ok || err != nil {
				t.Error(m, d, ok, err)
			}
		}
		b.Pass(80 * time.Millisecond)
		has(t, ctx, s, "ours for ever", "theirs", "theirs for ever")
		if d, ok, err := s.TTL(ctx, "theirs"); !ok || err != nil || d > time.Hour || d < 59*time.Minute {
			t.Error(d, ok, err)
		}
		did(t, 1)(open(t, b.Conn, name, redisson, Options[string]{}).Add(ctx, time.Hour, "ours"))
		alive, err := java.ZCount(ctx, name, strconv.FormatInt(now.Add(time.Second).UnixMilli(), 10), "+inf").Result()
		if alive != 4 || err != nil {
			t.Error(alive, err)
		}
		if d, err := java.PTTL(ctx, name).Result(); d != -1 || err != nil {
			t.Error("the key has an end of its own:", d, err)
		}
	})
}

func TestTheScoresAreRedissons(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := open(t, b.Conn, "seen", redisson, Options[string]{})
		did(t, 1)(s.Add(ctx, 10*time.Second, "ann"))
		did(t, 1)(s.Add(ctx, 0, "bob"))
		want := map[string]string{"ann": strconv.FormatInt(time.Now().UnixMilli()+10_000, 10), "bob": "92233720368547760"} // as a double
		for m, score := range want {
			v, err := b.Do(ctx, "ZSCORE", "seen", m)
			if v.String() != score && v.String() != "9.223372036854776e+16" || err != nil {
				t.Error(m, v, err)
			}
		}
	})
}
