package redisson

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// javaMap is a client that keeps to the layout on its own: plain commands, its own
// packing, its own clock.
type javaMap struct {
	t    *testing.T
	c    *redis.Client
	name string
}

func newJavaMap(t *testing.T, b *backends.Backend, name string) *javaMap {
	t.Helper()
	o, err := redis.ParseURL(b.URL())
	ok(t, err)
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return &javaMap{t, c, name}
}

func (j *javaMap) now(ctx context.Context) float64 {
	now, err := j.c.Time(ctx).Result()
	ok(j.t, err)
	return float64(now.UnixMilli())
}

func (j *javaMap) put(ctx context.Context, key, value string, ttl, idle time.Duration) {
	j.t.Helper()
	packed := binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(idle.Milliseconds())))
	packed = binary.LittleEndian.AppendUint64(packed, uint64(len(value)))
	ok(j.t, j.c.HSet(ctx, j.name, key, append(packed, value...)).Err())
	if ttl > 0 {
		ok(j.t, j.c.ZAdd(ctx, "redisson__timeout__set:{"+j.name+"}", redis.Z{Score: j.now(ctx) + float64(ttl.Milliseconds()), Member: key}).Err())
	}
	if idle > 0 {
		ok(j.t, j.c.ZAdd(ctx, "redisson__idle__set:{"+j.name+"}", redis.Z{Score: j.now(ctx) + float64(idle.Milliseconds()), Member: key}).Err())
	}
}

func (j *javaMap) get(ctx context.Context, key string) (string, bool) {
	j.t.Helper()
	packed, err := j.c.HGet(ctx, j.name, key).Result()
	if err == redis.Nil {
		return "", false
	}
	ok(j.t, err)
	now := j.now(ctx)
	for _, set := range []string{"redisson__timeout__set:{", "redisson__idle__set:{"} {
		at, err := j.c.ZScore(ctx, set+j.name+"}", key).Result()
		if err == nil && at <= now {
			return "", false
		}
	}
	n := binary.LittleEndian.Uint64([]byte(packed)[8:16])
	return packed[16 : 16+n], true
}

// remote are the kinds that a client of another process reaches.
func remote(b *backends.Backend) bool {
	return strings.HasPrefix(b.URL(), "redis://") && !strings.Contains(b.URL(), ",")
}

func TestAMapIsSharedWithJava(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		if !remote(b) {
			return
		}
		ctx, name := b.Context(), strings.NewReplacer("/", ":").Replace(b.Name("m"))
		j := newJavaMap(t, b, name)
		m := must(NewMapCache(b.Conn, name, expmap.Options[string, string]{}))(t)
		idle := must(NewMapCache(b.Conn, name, expmap.Options[string, string]{IdleTTL: time.Hour}))(t)

		j.put(ctx, "theirs", "1", time.Hour, 30*time.Minute)
		j.put(ctx, "brief", "2", 50*time.Millisecond, 0)
		j.put(ctx, "ever", "3", 0, 0)
		ok(t, m.Set(ctx, "ours", "4", time.Hour))
		ok(t, idle.Set(ctx, "ours idle", "5", 0))
		ok(t, m.Set(ctx, "ours brief", "", 50*time.Millisecond))
		for key, want := range map[string]string{"theirs": "1", "ever": "3", "ours": "4", "ours idle": "5"} {
			if v, ok, err := m.Get(ctx, key); v != want || !ok || err != nil {
				t.Error("we read", key, v, ok, err)
			}
			if v, ok := j.get(ctx, key); v != want || !ok {
				t.Error("they read", key, v, ok)
			}
		}
		b.Pass(80 * time.Millisecond)
		for _, key := range []string{"brief", "ours brief"} {
			if _, ok, err := m.Get(ctx, key); ok || err != nil {
				t.Error("we read", key, err)
			}
			if _, ok := j.get(ctx, key); ok {
				t.Error("they read", key)
			}
		}
		if n, err := m.Len(ctx); n != 4 || err != nil {
			t.Error(n, err)
		}
		if d, ok, err := m.TTL(ctx, "theirs"); !ok || err != nil || d > 30*time.Minute || d < 29*time.Minute {
			t.Error("idle time counts:", d, ok, err)
		}
		if n, err := j.c.HLen(ctx, name).Result(); n != 4 || err != nil {
			t.Error("dead entries are swept:", n, err)
		}
		if n, err := m.Remove(ctx, "theirs", "ours", "ours idle", "ever"); n != 4 || err != nil {
			t.Error(n, err)
		}
		if n, err := j.c.Exists(ctx, name, "redisson__timeout__set:{"+name+"}", "redisson__idle__set:{"+name+"}").Result(); n != 0 || err != nil {
			t.Error("something is left:", n, err)
		}
	})
}

// The bytes of what a map in Redisson's layout writes, put together by hand: 1.8e6 ms
// as a double is 0x413B774000000000.
func TestTheBytesOfAMapAreRedissons(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		for _, f := range []struct {
			idle  time.Duration
			value string
			want  string
		}{
			{0, "ann", "0000000000000000" + "0300000000000000" + "616e6e"},
			{30 * time.Minute, "ann", "0000000040773b41" + "0300000000000000" + "616e6e"},
			{30 * time.Minute, "", "0000000040773b41" + "0000000000000000"},
		} {
			m := must(NewMapCache(b.Conn, "cache", expmap.Options[string, string]{IdleTTL: f.idle}))(t)
			ok(t, m.Clear(ctx))
			ok(t, m.Set(ctx, "k", f.value, 10*time.Second))
			v, err := b.Do(ctx, "HGET", "cache", "k")
			if got := hex.EncodeToString([]byte(v.Str)); got != f.want || err != nil {
				t.Errorf("%v %q: %s %v, want %s", f.idle, f.value, got, err, f.want)
			}
			now := time.Now().UnixMilli()
			v, err = b.Do(ctx, "ZSCORE", "redisson__timeout__set:{cache}", "k")
			if v.String() != strconv.FormatInt(now+10_000, 10) || err != nil {
				t.Error(v, err)
			}
			v, err = b.Do(ctx, "ZSCORE", "redisson__idle__set:{cache}", "k")
			if err != nil || f.idle == 0 != v.IsNull() || f.idle > 0 && v.String() != strconv.FormatInt(now+f.idle.Milliseconds(), 10) {
				t.Error(v, err)
			}
		}
		tagged := must(NewMapCache(b.Conn, "shop:{cache}", expmap.Options[string, string]{}))(t)
		ok(t, tagged.Set(ctx, "k", "v", time.Hour))
		if n, err := b.Exists(ctx, "shop:{cache}", "redisson__timeout__set:shop:{cache}"); n != 2 || err != nil {
			t.Error(n, err)
		}
	})
}
