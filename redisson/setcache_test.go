package redisson

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expset"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestASetIsSharedWithJava(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		if !strings.HasPrefix(b.URL(), "redis://") || strings.Contains(b.URL(), ",") {
			return
		}
		ctx, name := b.Context(), b.Name("s")
		o, err := redis.ParseURL(b.URL())
		ok(t, err)
		java := redis.NewClient(o) // plain commands, by the layout
		defer java.Close()
		s := must(NewSetCache(b.Conn, name, expset.Options[string]{MaxLen: 3}))(t)
		now, err := java.Time(ctx).Result()
		ok(t, err)
		add := func(m string, at float64) { ok(t, java.ZAdd(ctx, name, redis.Z{Score: at, Member: m}).Err()) }
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
		did(t, 1)(must(NewSetCache(b.Conn, name, expset.Options[string]{}))(t).Add(ctx, time.Hour, "ours"))
		alive, err := java.ZCount(ctx, name, strconv.FormatInt(now.Add(time.Second).UnixMilli(), 10), "+inf").Result()
		if alive != 4 || err != nil {
			t.Error(alive, err)
		}
		if d, err := java.PTTL(ctx, name).Result(); d != -1 || err != nil {
			t.Error("the key has an end of its own:", d, err)
		}
	})
}

func TestTheScoresOfASetAreRedissons(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := must(NewSetCache(b.Conn, "seen", expset.Options[string]{}))(t)
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

// did checks the result of a call.
func did(t *testing.T, n int64) func(int64, error) {
	return func(got int64, err error) {
		t.Helper()
		if got != n || err != nil {
			t.Errorf("%d %v, want %d", got, err, n)
		}
	}
}

// has checks the members of a set.
func has(t *testing.T, ctx context.Context, s *expset.Set[string], want ...string) {
	t.Helper()
	all := must(s.Members(ctx))(t)
	slices.Sort(all)
	same(t, all, want...)
	var some []string
	for m, err := range s.All(ctx) {
		ok(t, err)
		some = append(some, m)
	}
	slices.Sort(some)
	same(t, slices.Compact(some), want...)
}
