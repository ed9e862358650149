package ebb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/resp"
)

func TestIntegersAreTheSameEverywhere(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		ints := func(want ebb.Ints, got ebb.Ints, err error) {
			t.Helper()
			if err != nil || got != want {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		}
		got, err := c.Ints(ctx, "INCRBY", "n", "41")
		ints(ebb.Ints{N: 1, At: [6]int64{41}}, got, err)
		got, err = c.Ints(ctx, "GET", "n")
		ints(ebb.Ints{N: 1, At: [6]int64{41}}, got, err)
		got, err = c.Ints(ctx, "GET", "missing")
		ints(ebb.Ints{}, got, err)
		got, err = c.Ints(ctx, "MGET", "n", "n")
		ints(ebb.Ints{N: 2, At: [6]int64{41, 41}}, got, err)
		got, err = c.Ints(ctx, "LRANGE", "missing", "0", "-1")
		ints(ebb.Ints{}, got, err)

		s := ebb.NewScript("return {redis.call('INCRBY', KEYS[1], ARGV[1]), 7}")
		for n := int64(43); n < 46; n++ { // the first finds out that the script is not known
			got, err = c.ScriptInts(ctx, s, 1, "n", "1")
			ints(ebb.Ints{N: 2, At: [6]int64{n - 1, 7}}, got, err)
		}

		for want, words := range map[error][]string{
			resp.ErrType:    {"LRANGE", "letters", "0", "-1"},
			ebb.ErrArgument: {},
			ebb.ErrStateful: {"multi"},
		} {
			_, err := c.Do(ctx, "RPUSH", "letters", "a")
			must(t, err)
			if _, err := c.Ints(ctx, words...); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", words, err, want)
			}
		}
		if _, err := c.Ints(ctx, "CLIENT", "REPLY", "OFF"); !errors.Is(err, ebb.ErrStateful) {
			t.Errorf("CLIENT REPLY: %v", err)
		}
		_, err = c.Do(ctx, "DEL", "letters")
		must(t, err)
		_, err = c.Do(ctx, "RPUSH", "numbers", 1, 2, 3, 4, 5, 6, 7)
		must(t, err)
		if _, err := c.Ints(ctx, "LRANGE", "numbers", "0", "-1"); !errors.Is(err, resp.ErrType) {
			t.Errorf("seven integers: %v", err)
		}
		var refused ebb.ReplyError
		if _, err := c.Ints(ctx, "INCR", "numbers"); !errors.As(err, &refused) || refused.Code() != "WRONGTYPE" {
			t.Errorf("INCR of a list: %v", err)
		}
		over, cancel := context.WithTimeout(ctx, -time.Second)
		defer cancel()
		if _, err := c.ScriptInts(over, s, 1, "n", "1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a context that has ended: %v", err)
		}
	})
}
