package clienttest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

// go-redis understands the replies of every command about Bloom filters, in both
// protocols.
func TestGoRedisUnderstandsBloomFilters(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			c := redis.NewClient(&redis.Options{Addr: startEbb(t), Protocol: protocol})
			defer c.Close()
			b := &bloomPlay{T: t, c: c}
			b.adding()
			b.informing()
			b.moving()
		})
	}
}

type bloomPlay struct {
	*testing.T
	c *redis.Client
}

func same[V comparable](t *testing.T, what string, want V) func(V, error) {
	t.Helper()
	return func(got V, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: %v, %v, not %v", what, got, err, want)
		}
	}
}

func (b *bloomPlay) adding() {
	c, ctx, t := b.c, b.Context(), b.T
	same(t, "reserve", "OK")(c.BFReserve(ctx, "r", 0.001, 2000).Result())
	same(t, "reserve expansion", "OK")(c.BFReserveExpansion(ctx, "e", 0.001, 2000, 3).Result())
	same(t, "reserve nonscaling", "OK")(c.BFReserveNonScaling(ctx, "n", 0.001, 2).Result())
	same(t, "reserve with args", "OK")(c.BFReserveWithArgs(ctx, "w",
		&redis.BFReserveOptions{Capacity: 2000, Error: 0.001, Expansion: 3}).Result())
	if err := c.BFReserve(ctx, "r", 0.001, 2000).Err(); err == nil || err.Error() != "ERR item exists" {
		t.Error(err)
	}
	same(t, "add", true)(c.BFAdd(ctx, "r", "a").Result())
	same(t, "add again", false)(c.BFAdd(ctx, "r", "a").Result())
	same(t, "exists", true)(c.BFExists(ctx, "r", "a").Result())
	same(t, "exists not", false)(c.BFExists(ctx, "r", "b").Result())
	many := func(v []bool, err error) (string, error) { return fmt.Sprint(v), err }
	same(t, "madd", "[false true true]")(many(c.BFMAdd(ctx, "r", "a", "b", "c").Result()))
	same(t, "mexists", "[true false]")(many(c.BFMExists(ctx, "r", "a", "x").Result()))
	same(t, "insert", "[true true]")(many(c.BFInsert(ctx, "i", &redis.BFInsertOptions{Capacity: 2000, Error: 0.001, Expansion: 3},
		"a", "b").Result()))
	err := c.BFInsert(ctx, "nothing", &redis.BFInsertOptions{Capacity: 2000, Error: 0.001, Expansion: 3, NoCreate: true}, "a").Err()
	if err == nil || err.Error() != "ERR not found" {
		t.Error(err)
	}
	same(t, "card", int64(3))(c.BFCard(ctx, "r").Result())
}

func (b *bloomPlay) informing() {
	c, ctx, t := b.c, b.Context(), b.T
	i, err := c.BFInfo(ctx, "i").Result()
	if want := (redis.BFInfo{Capacity: 2000, Size: i.Size, Filters: 1, ItemsInserted: 2, ExpansionRate: 3}); err != nil || i != want {
		t.Error(i, err)
	}
	for _, one := range []struct {
		cmd  *redis.BFInfoCmd
		want redis.BFInfo
	}{
		{c.BFInfoCapacity(ctx, "i"), redis.BFInfo{Capacity: 2000}}, {c.BFInfoSize(ctx, "i"), redis.BFInfo{Size: i.Size}},
		{c.BFInfoFilters(ctx, "i"), redis.BFInfo{Filters: 1}}, {c.BFInfoItems(ctx, "i"), redis.BFInfo{ItemsInserted: 2}},
		{c.BFInfoExpansion(ctx, "i"), redis.BFInfo{ExpansionRate: 3}},
	} {
		if got, err := one.cmd.Result(); err != nil || got != one.want {
			t.Error(one.cmd, got, err)
		}
	}
	if err := c.BFInfo(ctx, "n").Err(); !errors.Is(err, redis.Nil) { // go-redis has no place for no expansion
		t.Error(err)
	}
}

func (b *bloomPlay) moving() {
	c, ctx, t := b.c, b.Context(), b.T
	for i := range 1000 {
		c.BFAdd(ctx, "w", i)
	}
	parts := 0
	for at := int64(0); ; parts++ {
		d, err := c.BFScanDump(ctx, "w", at).Result()
		if err != nil {
			t.Fatal(err)
		}
		if at = d.Iter; at == 0 {
			break
		}
		same(t, "loadchunk", "OK")(c.BFLoadChunk(ctx, "copy", d.Iter, d.Data).Result())
	}
	if parts != 2 {
		t.Error(parts, "parts")
	}
	for i := range 1000 {
		same(t, "copied", true)(c.BFExists(ctx, "copy", i).Result())
	}
	same(t, "type", "MBbloom--")(c.Type(ctx, "copy").Result())
}

const bloomExpected = `create True
add 1 0
madd [0, 1]
insert [1, 1]
exists 1 0 [1, 0]
info 500 1 2 3
loadchunk b'OK'
loadchunk b'OK'
copied [1, 1, 0]
`

func TestPythonUnderstandsBloomFilters(t *testing.T) {
	if got := python(t, "python/bloom.py", startEbb(t)); got != bloomExpected {
		t.Errorf("%s", got)
	}
}
