package ebb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb"
)

func TestScriptsRunOnEveryBackend(t *testing.T) {
	take := ebb.NewScript(`
		local left = tonumber(redis.call('GET', KEYS[1]) or ARGV[1])
		if left < tonumber(ARGV[2]) then return redis.error_reply('EMPTY nothing is left of ' .. KEYS[1]) end
		redis.call('SET', KEYS[1], left - ARGV[2], 'PX', 60000)
		return {left - ARGV[2], redis.call('PTTL', KEYS[1])}`)
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		for i := range 3 { // the first time by its text, then by its digest
			v, err := c.Script(ctx, take, []string{"{stock}:apples"}, 10, 4)
			switch {
			case i < 2 && (err != nil || len(v.Elems) != 2 || v.Elems[0].Int != int64(6-4*i) || v.Elems[1].Int < 50000 || v.Elems[1].Int > 60000):
				t.Errorf("call %d: %v, %v", i, v, err)
			case i == 2:
				var refused ebb.ReplyError
				if !errors.As(err, &refused) || refused.Code() != "EMPTY" {
					t.Errorf("got %v, %v; want EMPTY", v, err)
				}
			}
		}
		if _, err := c.ScriptRO(ctx, take, []string{"{stock}:pears"}, 10, 4); err == nil ||
			!strings.Contains(err.Error(), "Write commands are not allowed from read-only scripts") {
			t.Errorf("a script that writes was not refused: %v", err)
		}
		if v, err := c.Script(ctx, ebb.NewScript("return {#ARGV, ARGV[1], ARGV[2]}"), nil, []byte("\x00\xff"), 1.5); err != nil ||
			fmt.Sprintf("%d %q %s", v.Elems[0].Int, v.Elems[1].Str, v.Elems[2].Str) != `2 "\x00\xff" 1.5` {
			t.Errorf("got %v, %v", v, err)
		}
		if _, err := c.Script(ctx, ebb.NewScript("return ("), nil); err == nil ||
			!strings.Contains(err.Error(), "user_script:1: unexpected symbol near '<eof>'") {
			t.Errorf("got %v", err)
		}
	})
}

func TestScriptsInTransactionsAndFromManyGoroutines(t *testing.T) {
	add := ebb.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
	c := open(t, "mem://")
	ctx := testContext(t)
	done := make(chan error)
	for range 8 {
		go func() {
			for range 200 {
				if _, err := c.Script(ctx, add, []string{"n"}, 1); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	var b ebb.Batch
	b.Do("EVAL", add.Text(), 1, "n", 100)
	b.Do("GET", "n")
	vs, err := c.Tx(ctx, &b)
	if err != nil || vs[0].Int != 1700 || vs[1].Str != "1700" {
		t.Errorf("got %v, %v", vs, err)
	}
}

// What a script returns of its arguments is the caller's, though their memory is
// the next call's.
func TestAScriptsResultStaysAsItIs(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		echo := ebb.NewScript("return {ARGV[1], redis.status_reply(ARGV[1]), {err = ARGV[1]}, ARGV[1]:sub(2)}")
		v, err := c.Script(ctx, echo, nil, "the first")
		if err != nil {
			t.Fatal(err)
		}
		raised, _ := c.Script(ctx, ebb.NewScript("error({err = ARGV[1]})"), nil, "the first")
		for range 3 {
			if _, err := c.Script(ctx, echo, nil, "something else"); err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprintf("%s %s %s %s", v.Elems[0].Str, v.Elems[1].Str, v.Elems[2].Str, v.Elems[3].Str); got != "the first the "+
			"first the first he first" {
			t.Errorf("got %q", got)
		}
		if !strings.HasPrefix(raised.Str, "the first script: ") {
			t.Errorf("raised %q", raised.Str)
		}
	})
}
