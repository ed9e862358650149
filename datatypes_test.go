package ebb_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/embedded"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
)

// typed gives a word of an example the Go type that a program would use.
func typed(word string) any {
	if n, err := strconv.ParseInt(word, 10, 64); err == nil && strconv.FormatInt(n, 10) == word {
		return n
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil && strconv.FormatFloat(f, 'g', -1, 64) == word {
		return f
	}
	if len(word)%2 == 1 {
		return []byte(word)
	}
	return word
}

// Every command of the table runs through Do, with its examples' arguments as Go
// values. What they reply is checked where the examples are played.
func TestEveryCommandCanBeCalledEmbedded(t *testing.T) {
	tier.Sequential(t)
	table, err := servercmd.DefaultTable()
	must(t, err)
	var called, refused, waited int
	for id := range table.Len() {
		spec := table.Spec(id)
		if spec.Examples == "" {
			continue
		}
		clock := clock.NewManual(time.Unix(1700000000, 0))
		c, err := ebb.Open(t.Context(), "mem://", ebb.Options{Clock: clock})
		must(t, err)
		for _, line := range strings.Split(spec.Examples, "\n") {
			request, is := strings.CutPrefix(line, "> ")
			if !is || strings.Contains(request, "$") {
				continue
			}
			words, _ := wire.SplitArgs(request)
			args := make([]any, len(words))
			for i, w := range words {
				args[i] = typed(w)
			}
			v, err := callForAWhile(c, spec, args)
			switch {
			case errors.Is(err, ebb.ErrStateful):
				refused++
			case errors.Is(err, context.Canceled):
				waited++
			case err != v.Err():
				t.Errorf("%s: the error is %v, the reply %v", request, err, v)
			case err != nil && strings.Contains(err.Error(), "unknown command") && !strings.Contains(strings.ToLower(request), "nosuch"):
				t.Errorf("%s: %v", request, err)
			default:
				called++
			}
		}
		must(t, c.Close())
	}
	t.Logf("%d calls, %d refused because they change a connection, %d waited", called, refused, waited)
	if called < 800 {
		t.Errorf("only %d calls", called)
	}
}

// callForAWhile runs Do, and ends it when the command waits for an event that will not
// come.
func callForAWhile(c *ebb.Conn, spec *command.Spec, args []any) (ebb.Value, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !spec.Has(command.Blocking) {
		return c.Do(ctx, args...)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil && embedded.Of(c).DB().Waiters() == 0 {
			_, _ = c.Do(ctx, "PING")
		}
		cancel()
	})
	v, err := c.Do(ctx, args...)
	cancel()
	watching.Wait()
	return v, err
}

// Replies come as the kinds of RESP3, in process as from a server.
func TestDataTypesComeAsTheirKinds(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		do := func(args ...any) ebb.Value {
			t.Helper()
			v, err := c.Do(ctx, args...)
			must(t, err)
			return v
		}
		words := func(what, want string, v ebb.Value) {
			t.Helper()
			got, err := v.AsStrings()
			if err != nil || strings.Join(got, " ") != want {
				t.Errorf("%s: %v, %v; want %s", what, got, err, want)
			}
		}
		check(t, "HSET", int64(2))(do("HSET", "h", "name", "Ada", "age", 36).AsInt())
		h := do("HGETALL", "h")
		n := 0
		for range h.Pairs {
			n++
		}
		age, ok := h.Get("age")
		check(t, "HGETALL", fmt.Sprint(2, true, "36"))(fmt.Sprint(n, ok, age.Str), nil)
		check(t, "HINCRBYFLOAT", "36.5")(do("HINCRBYFLOAT", "h", "age", 0.5).AsString())
		words("HVALS", "Ada 36.5", do("HVALS", "h"))
		check(t, "RPUSH", int64(3))(do("RPUSH", "l", "a", []byte("b\x00"), 3).AsInt())
		words("LRANGE", "a b\x00 3", do("LRANGE", "l", 0, -1))
		words("BLPOP", "l a", do("BLPOP", "l", 1))
		check(t, "SADD", int64(3))(do("SADD", "s", 3, 1, 2).AsInt())
		words("SMEMBERS", "1 2 3", do("SMEMBERS", "s"))
		check(t, "SISMEMBER", true)(do("SISMEMBER", "s", 3).AsBool())
		check(t, "ZADD", int64(2))(do("ZADD", "z", 1.5, "a", 2, "b").AsInt())
		check(t, "ZSCORE", 1.5)(do("ZSCORE", "z", "a").AsFloat())
		words("ZRANGE", "a b", do("ZRANGE", "z", 0, -1))
		pair := do("ZRANGE", "z", 0, 0, "WITHSCORES").Elems
		if len(pair) == 1 { // RESP3: pairs
			pair = pair[0].Elems
		}
		check(t, "ZRANGE's member", "a")(pair[0].AsString())
		check(t, "ZRANGE's score", 1.5)(pair[1].AsFloat())
		check(t, "XADD", "5-1")(do("XADD", "x", "5-1", "k", "v").AsString())
		entry := do("XRANGE", "x", "-", "+").Elems[0]
		check(t, "XRANGE's id", "5-1")(entry.Elems[0].AsString())
		words("XRANGE's fields", "k v", entry.Elems[1])
		_, ok = do("XINFO", "STREAM", "x").Get("last-generated-id")
		check(t, "XINFO", true)(ok, nil)
		check(t, "PFADD", int64(1))(do("PFADD", "p", "a", "b").AsInt())
		check(t, "PFCOUNT", int64(2))(do("PFCOUNT", "p").AsInt())
		do("GEOADD", "g", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")
		words("GEOSEARCH", "Palermo", do("GEOSEARCH", "g", "FROMLONLAT", 13.4, 38.1, "BYRADIUS", 10, "km"))
		do("RESTORE", "h2", 0, do("DUMP", "h").Str)
		check(t, "RESTORE", "Ada")(do("HGET", "h2", "name").AsString())
		_, err := c.Do(ctx, "LPUSH", "h", "x")
		check(t, "the wrong type", true)(err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE"), nil)
	})
}

// Commands that wait take an element or do nothing, whenever their contexts end.
func TestAnEmbeddedWaitLosesNothing(t *testing.T) {
	const poppers, elements = 8, 4000
	c := open(t, "mem://")
	ctx, stop := context.WithCancel(testContext(t))
	var got, left atomic.Int64
	var seen sync.Map
	take := func(v ebb.Value) {
		words, _ := v.AsStrings()
		job := words[len(words)-1]
		if _, twice := seen.LoadOrStore(job, true); twice {
			t.Errorf("%s came twice", job)
		}
		if got.Add(1) == elements {
			stop()
		}
	}
	var popping sync.WaitGroup
	for i := range poppers {
		popping.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Contexts end at once, soon, or when another does.
				short, cancel := context.WithTimeout(ctx, time.Duration(n%7*(i+1))*10*time.Microsecond)
				var v ebb.Value
				var err error
				switch (n + i) % 3 {
				case 0:
					v, err = c.Do(short, "BLPOP", "other", "queue", 0)
				case 1:
					v, err = c.Block(short, "BRPOP", "queue", 0)
				default:
					v, err = c.Do(short, "BLMPOP", 0, 1, "queue", "LEFT")
					if err == nil && len(v.Elems) == 2 {
						v = v.Elems[1]
					}
				}
				cancel()
				switch {
				case err == nil && !v.IsNull():
					take(v)
				case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
					left.Add(1)
				default:
					t.Errorf("the wait ended with %v, %v", v, err)
					stop()
				}
			}
		})
	}
	for i := range elements {
		if _, err := c.Do(testContext(t), "RPUSH", "queue", i); err != nil {
			t.Error(err)
		}
	}
	<-ctx.Done()
	popping.Wait()
	check(t, "elements that came", int64(elements))(got.Load(), nil)
	check(t, "waits that have no caller", int64(0))(embedded.Of(c).DB().Waiters(), nil)
	if left.Load() == 0 {
		t.Error("no wait was left")
	}
}
