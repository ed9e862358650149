package conn_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

// want fails the test unless err is nil and got is the wanted value.
func want[T comparable](t *testing.T, what string, wanted T) func(got T, err error) {
	return func(got T, err error) {
		t.Helper()
		if got != wanted || err != nil {
			t.Errorf("%s: %v (%v), want %v", what, got, err, wanted)
		}
	}
}

// wantAll works as want does, for lists.
func wantAll[T comparable](t *testing.T, what string, wanted ...T) func(got []T, err error) {
	return func(got []T, err error) {
		t.Helper()
		if !slices.Equal(got, wanted) || err != nil {
			t.Errorf("%s: %v (%v), want %v", what, got, err, wanted)
		}
	}
}

// wantErr fails the test unless the wanted error is in the chain of err.
func wantErr[T any](t *testing.T, what string, wanted error) func(_ T, err error) {
	return func(_ T, err error) {
		t.Helper()
		if !errors.Is(err, wanted) {
			t.Errorf("%s: %v, want %v", what, err, wanted)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wrongType fails the test unless err is the error for a key of another type.
func wrongType(t *testing.T, what string, err error) {
	t.Helper()
	var refused conn.ReplyError
	if !errors.As(err, &refused) || refused.Code() != "WRONGTYPE" {
		t.Errorf("%s of a string: %v, want WRONGTYPE", what, err)
	}
}

func TestHashesAreTheSameEverywhere(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, key := b.Context(), b.Name("hash")
		wantErr[string](t, "HGet of nothing", conn.ErrNil)(b.HGet(ctx, key, "f"))
		if all, err := b.HGetAll(ctx, key); all == nil || len(all) != 0 || err != nil {
			t.Errorf("HGetAll of nothing: %v, %v", all, err)
		}
		want(t, "HSet of three", int64(3))(b.HSet(ctx, key, "a", 1, "b", []byte("two"), "c", "x"))
		want(t, "HSet of one new", int64(1))(b.HSet(ctx, key, "a", 2, "d", ""))
		want(t, "HGet", "2")(b.HGet(ctx, key, "a"))
		want(t, "HGet of an empty value", "")(b.HGet(ctx, key, "d"))
		wantErr[string](t, "HGet of no field", conn.ErrNil)(b.HGet(ctx, key, "e"))
		values, err := b.HMGet(ctx, key, "b", "e", "a")
		must(t, err)
		if len(values) != 3 || values[0].Str != "two" || !values[1].IsNull() || values[2].Str != "2" {
			t.Errorf("HMGet: %v", values)
		}
		all, err := b.HGetAll(ctx, key)
		must(t, err)
		if wanted := map[string]string{"a": "2", "b": "two", "c": "x", "d": ""}; !maps.Equal(all, wanted) {
			t.Errorf("HGetAll: %v, want %v", all, wanted)
		}
		want(t, "HIncrBy", int64(-3))(b.HIncrBy(ctx, key, "a", -5))
		want(t, "HIncrBy of no field", int64(7))(b.HIncrBy(ctx, key, "n", 7))
		want(t, "HExists", true)(b.HExists(ctx, key, "n"))
		want(t, "HExists of no field", false)(b.HExists(ctx, key, "e"))
		want(t, "HLen", int64(5))(b.HLen(ctx, key))
		want(t, "HDel", int64(2))(b.HDel(ctx, key, "a", "e", "n"))
		want(t, "HDel of the rest", int64(3))(b.HDel(ctx, key, "b", "c", "d"))
		want(t, "the key goes", int64(0))(b.Exists(ctx, key))
		must(t, b.Set(ctx, key, "text"))
		_, err = b.HGet(ctx, key, "f")
		wrongType(t, "HGet", err)
		_, err = b.HGetAll(ctx, key)
		wrongType(t, "HGetAll", err)
	})
}

func TestFieldsLiveAsLongAsTheyWereTold(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, key := b.Context(), b.Name("otp")
		if !b.Capabilities().HashFieldTTL {
			if err := b.HSetTTL(ctx, key, "ann", "1", time.Minute); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("HSetTTL: %v", err)
			}
			wantErr[bool](t, "HExpire", errors.ErrUnsupported)(b.HExpire(ctx, key, "ann", time.Minute))
			wantErr[time.Duration](t, "HTTL", errors.ErrUnsupported)(b.HTTL(ctx, key, "ann"))
			want(t, "nothing was set", int64(0))(b.Exists(ctx, key))
			return
		}
		wantErr[time.Duration](t, "HTTL of nothing", conn.ErrNil)(b.HTTL(ctx, key, "ann"))
		want(t, "HExpire of nothing", false)(b.HExpire(ctx, key, "ann", time.Minute))
		if err := b.HSetTTL(ctx, key, "ann", "1", 0); !errors.Is(err, conn.ErrArgument) {
			t.Errorf("HSetTTL for 0: %v", err)
		}
		must(t, b.HSetTTL(ctx, key, "ann", "123456", time.Hour))
		_, err := b.HSet(ctx, key, "bob", 1)
		must(t, err)
		want(t, "HGet", "123456")(b.HGet(ctx, key, "ann"))
		if d, err := b.HTTL(ctx, key, "ann"); d <= 59*time.Minute || d > time.Hour || err != nil {
			t.Errorf("HTTL: %v, %v", d, err)
		}
		want(t, "HTTL without a deadline", conn.Forever)(b.HTTL(ctx, key, "bob"))
		wantErr[time.Duration](t, "HTTL of no field", conn.ErrNil)(b.HTTL(ctx, key, "eve"))
		_, err = b.HSet(ctx, key, "ann", "2")
		must(t, err)
		want(t, "HSet takes the deadline away", conn.Forever)(b.HTTL(ctx, key, "ann"))
		want(t, "HExpire", true)(b.HExpire(ctx, key, "ann", time.Hour))
		want(t, "HIncrBy", int64(3))(b.HIncrBy(ctx, key, "ann", 1))
		if d, err := b.HTTL(ctx, key, "ann"); d <= 59*time.Minute || err != nil {
			t.Errorf("HTTL after HIncrBy: %v, %v", d, err)
		}
		want(t, "HExpire of no field", false)(b.HExpire(ctx, key, "eve", time.Hour))
		want(t, "HExpire to the past", true)(b.HExpire(ctx, key, "ann", -time.Second))
		wantErr[string](t, "the field is gone", conn.ErrNil)(b.HGet(ctx, key, "ann"))
		must(t, b.Set(ctx, key, "text"))
		wrongType(t, "HSetTTL", b.HSetTTL(ctx, key, "ann", "1", time.Minute))
	})
}

func TestFieldsAndMembersEndToTheMillisecond(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		must(t, b.HSetTTL(ctx, "h", "f", "v", 1500*time.Millisecond))
		want(t, "SAddTTL", true)(b.SAddTTL(ctx, "s", "m", 1500*time.Millisecond))
		b.Pass(1500 * time.Millisecond)
		want(t, "HGet", "v")(b.HGet(ctx, "h", "f"))
		want(t, "SIsMember", true)(b.SIsMember(ctx, "s", "m"))
		b.Pass(time.Millisecond)
		wantErr[string](t, "HGet", conn.ErrNil)(b.HGet(ctx, "h", "f"))
		want(t, "SIsMember", false)(b.SIsMember(ctx, "s", "m"))
	})
}

func TestListsAreTheSameEverywhere(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, key := b.Context(), b.Name("list")
		wantErr[string](t, "LPop of nothing", conn.ErrNil)(b.LPop(ctx, key))
		wantErr[string](t, "RPop of nothing", conn.ErrNil)(b.RPop(ctx, key))
		wantAll[string](t, "LRange of nothing")(b.LRange(ctx, key, 0, -1))
		want(t, "LLen of nothing", int64(0))(b.LLen(ctx, key))
		want(t, "RPush", int64(3))(b.RPush(ctx, key, "c", 4, []byte("e")))
		want(t, "LPush", int64(5))(b.LPush(ctx, key, "b", "a"))
		wantAll(t, "LRange", "a", "b", "c", "4", "e")(b.LRange(ctx, key, 0, -1))
		wantAll(t, "LRange of the middle", "b", "c")(b.LRange(ctx, key, 1, 2))
		wantAll(t, "LRange from the end", "4", "e")(b.LRange(ctx, key, -2, -1))
		want(t, "LPop", "a")(b.LPop(ctx, key))
		want(t, "RPop", "e")(b.RPop(ctx, key))
		want(t, "LLen", int64(3))(b.LLen(ctx, key))
		must(t, b.Set(ctx, key, "text"))
		_, err := b.LRange(ctx, key, 0, -1)
		wrongType(t, "LRange", err)
		_, err = b.LPop(ctx, key)
		wrongType(t, "LPop", err)
	})
}

func TestSetsAreTheSameEverywhere(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, key := b.Context(), b.Name("set")
		wantAll[string](t, "SMembers of nothing")(b.SMembers(ctx, key))
		want(t, "SIsMember of nothing", false)(b.SIsMember(ctx, key, "a"))
		want(t, "SAdd", int64(3))(b.SAdd(ctx, key, "a", 2, []byte("c")))
		want(t, "SAdd of one new", int64(1))(b.SAdd(ctx, key, "a", "d"))
		members, err := b.SMembers(ctx, key)
		slices.Sort(members)
		wantAll(t, "SMembers", "2", "a", "c", "d")(members, err)
		want(t, "SIsMember", true)(b.SIsMember(ctx, key, 2))
		want(t, "SCard", int64(4))(b.SCard(ctx, key))
		want(t, "SRem", int64(2))(b.SRem(ctx, key, "a", "x", 2))
		want(t, "SCard after it", int64(2))(b.SCard(ctx, key))
		must(t, b.Set(ctx, key, "text"))
		_, err = b.SMembers(ctx, key)
		wrongType(t, "SMembers", err)
	})
}

func TestMembersLiveAsLongAsTheyWereTold(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, key := b.Context(), b.Name("online")
		if !b.Native() {
			wantErr[bool](t, "SAddTTL", errors.ErrUnsupported)(b.SAddTTL(ctx, key, "ann", time.Minute))
			wantErr[bool](t, "SExpire", errors.ErrUnsupported)(b.SExpire(ctx, key, "ann", time.Minute))
			wantErr[time.Duration](t, "STTL", errors.ErrUnsupported)(b.STTL(ctx, key, "ann"))
			want(t, "nothing was added", int64(0))(b.Exists(ctx, key))
			return
		}
		wantErr[time.Duration](t, "STTL of nothing", conn.ErrNil)(b.STTL(ctx, key, "ann"))
		want(t, "SExpire of nothing", false)(b.SExpire(ctx, key, "ann", time.Minute))
		wantErr[bool](t, "SAddTTL for 0", conn.ErrArgument)(b.SAddTTL(ctx, key, "ann", 0))
		want(t, "SAddTTL", true)(b.SAddTTL(ctx, key, "ann", time.Minute))
		want(t, "SAddTTL again", false)(b.SAddTTL(ctx, key, "ann", time.Hour))
		if d, err := b.STTL(ctx, key, "ann"); d <= 59*time.Minute || d > time.Hour || err != nil {
			t.Errorf("STTL: %v, %v", d, err)
		}
		want(t, "SAdd", int64(1))(b.SAdd(ctx, key, "ann", "bob"))
		if d, err := b.STTL(ctx, key, "ann"); d <= 59*time.Minute || err != nil {
			t.Errorf("SAdd leaves the deadline: %v, %v", d, err)
		}
		want(t, "STTL without a deadline", conn.Forever)(b.STTL(ctx, key, "bob"))
		want(t, "SExpire", true)(b.SExpire(ctx, key, "bob", time.Hour))
		want(t, "SExpire to the past", true)(b.SExpire(ctx, key, "ann", 0))
		wantErr[time.Duration](t, "the member is gone", conn.ErrNil)(b.STTL(ctx, key, "ann"))
	})
}

func TestSortedSetsAreTheSameEverywhere(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, key := b.Context(), b.Name("scores")
		wantErr[float64](t, "ZScore of nothing", conn.ErrNil)(b.ZScore(ctx, key, "ann"))
		wantAll[string](t, "ZRange of nothing")(b.ZRange(ctx, key, 0, -1))
		wantAll[conn.Scored](t, "ZRangeWithScores of nothing")(b.ZRangeWithScores(ctx, key, 0, -1))
		ann, bob, eve, max := conn.Scored{Member: "ann", Score: 1.5}, conn.Scored{Member: "bob", Score: -2},
			conn.Scored{Member: "eve", Score: math.Inf(1)}, conn.Scored{Member: "max", Score: 0.1 + 0.2}
		want(t, "ZAdd", int64(4))(b.ZAdd(ctx, key, ann, bob, eve, max))
		want(t, "ZAdd of one new", int64(1))(b.ZAdd(ctx, key, ann, conn.Scored{Member: "zoe", Score: math.Inf(-1)}))
		want(t, "ZScore", 1.5)(b.ZScore(ctx, key, "ann"))
		want(t, "ZScore of infinity", math.Inf(1))(b.ZScore(ctx, key, "eve"))
		want(t, "ZScore to the last bit", max.Score)(b.ZScore(ctx, key, "max"))
		wantErr[float64](t, "ZScore of no member", conn.ErrNil)(b.ZScore(ctx, key, "x"))
		wantAll(t, "ZRange", "zoe", "bob", "max", "ann", "eve")(b.ZRange(ctx, key, 0, -1))
		wantAll(t, "ZRange of some", "bob", "max")(b.ZRange(ctx, key, 1, 2))
		wantAll(t, "ZRangeWithScores", bob, max, ann)(b.ZRangeWithScores(ctx, key, 1, 3))
		wantAll(t, "ZRangeByScore", bob, max)(b.ZRangeByScore(ctx, key, -2, 1.4))
		wantAll(t, "ZRangeByScore without an end", ann, eve)(b.ZRangeByScore(ctx, key, 1, math.Inf(1)))
		want(t, "ZIncrBy", 1.0)(b.ZIncrBy(ctx, key, -0.5, "ann"))
		want(t, "ZIncrBy of no member", 2.5)(b.ZIncrBy(ctx, key, 2.5, "new"))
		want(t, "ZCard", int64(6))(b.ZCard(ctx, key))
		want(t, "ZRem", int64(2))(b.ZRem(ctx, key, "ann", "x", "new"))
		must(t, b.Set(ctx, key, "text"))
		_, err := b.ZRangeWithScores(ctx, key, 0, -1)
		wrongType(t, "ZRangeWithScores", err)
	})
}
