package conn

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"
)

// Scored is a member of a sorted set and its score.
type Scored struct {
	Member string
	Score  float64
}

// ZAdd adds members to a sorted set, or changes their scores, and returns the number of new members. O(n log
// N) for n of N members.
func (c *Conn) ZAdd(ctx context.Context, key string, members ...Scored) (int64, error) {
	args := append(make([]any, 0, 2+2*len(members)), "ZADD", key)
	for _, m := range members {
		args = append(args, score(m.Score), m.Member)
	}
	return number(c.Do(ctx, args...))
}

// ZRem removes members, and returns the number of members that existed. A sorted set without members is
// deleted. O(n log N) for n of N members.
func (c *Conn) ZRem(ctx context.Context, key string, members ...string) (int64, error) {
	return number(c.Do(ctx, withTexts(members, "ZREM", key)...))
}

// ZScore returns the score of a member, or ErrNil if there is no such member or key. O(1).
func (c *Conn) ZScore(ctx context.Context, key, member string) (float64, error) {
	v, err := c.Do(ctx, "ZSCORE", key, member)
	switch {
	case err != nil:
		return 0, err
	case v.IsNull():
		return 0, ErrNil
	}
	return v.AsFloat()
}

// ZIncrBy adds by, which may be negative, to the score of a member, which starts at 0, and returns the sum.
// O(log N) for N members.
func (c *Conn) ZIncrBy(ctx context.Context, key string, by float64, member string) (float64, error) {
	v, err := c.Do(ctx, "ZINCRBY", key, score(by), member)
	if err != nil {
		return 0, err
	}
	return v.AsFloat()
}

// ZCard returns the number of members of a sorted set; 0 if there is no such key. O(1).
func (c *Conn) ZCard(ctx context.Context, key string) (int64, error) {
	return number(c.Do(ctx, "ZCARD", key))
}

// ZRange returns the members from rank start to stop, both included, lowest score first;
// members of one score are in the order of their bytes. 0 is the first, -1 the last. It
// returns none if there is no such key. O(log N + n) for n of N members.
func (c *Conn) ZRange(ctx context.Context, key string, start, stop int64) ([]string, error) {
	return texts(c.Do(ctx, "ZRANGE", key, start, stop))
}

// ZRangeWithScores returns the members as ZRange does, with their scores.
func (c *Conn) ZRangeWithScores(ctx context.Context, key string, start, stop int64) ([]Scored, error) {
	return scoreds(c.Do(ctx, "ZRANGE", key, start, stop, "WITHSCORES"))
}

// ZRangeByScore returns the members whose score is from low to high, both included, lowest
// first, and their scores; math.Inf means no bound. O(log N + n) for n of N members.
func (c *Conn) ZRangeByScore(ctx context.Context, key string, low, high float64) ([]Scored, error) {
	return scoreds(c.Do(ctx, "ZRANGEBYSCORE", key, score(low), score(high), "WITHSCORES"))
}

// score returns the text of a score.
func score(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "+inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// scoreds reads members with their scores: pairs in RESP3, a flat array in RESP2.
func scoreds(v Value, err error) ([]Scored, error) {
	if err != nil {
		return nil, err
	}
	if len(v.Elems) > 0 && len(v.Elems[0].Elems) == 2 {
		flat := make([]Value, 0, 2*len(v.Elems))
		for _, pair := range v.Elems {
			flat = append(flat, pair.Elems...)
		}
		v.Elems = flat
	}
	if len(v.Elems)%2 != 0 {
		return nil, fmt.Errorf("ebb: members with scores: the reply has %d elements, which is not an even number", len(v.Elems))
	}
	all := make([]Scored, len(v.Elems)/2)
	for i := range all {
		all[i].Member = v.Elems[2*i].String()
		if all[i].Score, err = v.Elems[2*i+1].AsFloat(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ZScan yields the members of a sorted set that match a pattern, all members if it is "" or
// "*", with their scores, in no particular order; none if there is no such key. A member
// that is in the set from beginning to end is yielded; a member that is added or removed
// meanwhile may be, and a member may be yielded twice. The iteration ends with the first
// error. Each round trip reads some 200 members; the whole costs O(n) for n members.
func (c *Conn) ZScan(ctx context.Context, key, pattern string) iter.Seq2[Scored, error] {
	return scan(ctx, c, []any{"ZSCAN", key}, pattern, 2, func(of []Value) (Scored, error) {
		score, err := of[1].AsFloat()
		return Scored{of[0].Str, score}, err
	})
}
