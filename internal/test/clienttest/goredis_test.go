package clienttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// goRedis is the program as go-redis plays it. The first error ends it.
type goRedis struct {
	t   *testing.T
	ctx context.Context
	c   *redis.Client
	out strings.Builder
}

func playGoRedis(t *testing.T, addr string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := &goRedis{t: t, ctx: ctx, c: redis.NewClient(&redis.Options{Addr: addr})}
	defer p.c.Close()
	for _, part := range []func(){p.strings, p.expiry, p.numbersAndKeys, p.scan, p.errors, p.pipelines, p.transactions, p.events} {
		part()
	}
	return p.out.String()
}

func (p *goRedis) say(name string, value any) { fmt.Fprintf(&p.out, "%s: %v\n", name, value) }

// text returns the result of a command as a text: its value, "nil", or the error.
func text[T any](v T, err error) string {
	switch {
	case errors.Is(err, redis.Nil):
		return "nil"
	case err != nil:
		return err.Error()
	}
	return fmt.Sprint(v)
}

func number(ok bool, err error) string {
	if err != nil {
		return err.Error()
	}
	if ok {
		return "1"
	}
	return "0"
}

// seconds prints a TTL as the server sent it: go-redis leaves -1 and -2 as
// nanoseconds. One of which a busy machine may have spent a little counts whole.
func seconds(whole time.Duration) func(d time.Duration, err error) string {
	return func(d time.Duration, err error) string {
		if d > whole/2 && d < whole {
			d = whole
		}
		if d >= 0 {
			d /= time.Second
		}
		return text(int64(d), err)
	}
}

func (p *goRedis) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *goRedis) strings() {
	c, ctx := p.c, p.ctx
	p.say("ping", text(c.Ping(ctx).Result()))
	p.say("set", text(c.Set(ctx, "greeting", "hello", 0).Result()))
	p.say("get", text(c.Get(ctx, "greeting").Result()))
	p.say("get missing", text(c.Get(ctx, "missing").Result()))
	p.say("set nx", text(c.SetArgs(ctx, "greeting", "other", redis.SetArgs{Mode: "NX"}).Result()))
	p.say("set get", text(c.SetArgs(ctx, "greeting", "hello", redis.SetArgs{Get: true}).Result()))
	var every [256]byte
	for i := range every {
		every[i] = byte(i)
	}
	p.must(c.Set(ctx, "binary", every[:], 0).Err())
	back, err := c.Get(ctx, "binary").Bytes()
	p.must(err)
	same := "different"
	if string(back) == string(every[:]) {
		same = "the same"
	}
	p.say("binary", fmt.Sprintf("%d bytes, %s", len(back), same))
	p.must(c.Set(ctx, "big", strings.Repeat("x", 1<<20), 0).Err())
	big, err := c.Get(ctx, "big").Result()
	p.must(err)
	p.say("big", fmt.Sprint(len(big), " bytes"))
}

func (p *goRedis) expiry() {
	c, ctx := p.c, p.ctx
	p.must(c.Set(ctx, "k", "v", 100*time.Second).Err())
	p.say("set ex", seconds(100*time.Second)(c.TTL(ctx, "k").Result()))
	p.say("expire", number(c.Expire(ctx, "k", 50*time.Second).Result()))
	p.say("ttl", seconds(50*time.Second)(c.TTL(ctx, "k").Result()))
	p.say("expire missing", number(c.Expire(ctx, "missing", 50*time.Second).Result()))
	p.say("persist", number(c.Persist(ctx, "k").Result()))
	p.say("ttl without", seconds(0)(c.TTL(ctx, "k").Result()))
	p.say("ttl missing", seconds(0)(c.TTL(ctx, "missing").Result()))
	p.say("getex", text(c.GetEx(ctx, "k", time.Minute).Result()))
	left, err := c.PTTL(ctx, "k").Result()
	p.must(err)
	if left > 50*time.Second && left <= time.Minute {
		p.say("pttl in range", "yes")
	} else {
		p.say("pttl in range", left)
	}
}

func (p *goRedis) numbersAndKeys() {
	c, ctx := p.c, p.ctx
	p.must(c.MSet(ctx, "m1", 1, "m2", 2).Err())
	values, err := c.MGet(ctx, "m1", "m2", "m3").Result()
	p.must(err)
	p.say("mget", strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), "<nil>", "nil"))
	p.must(c.Set(ctx, "n", 42, 0).Err())
	p.say("incr", text(c.Incr(ctx, "n").Result()))
	p.say("incrby", text(c.IncrBy(ctx, "n", 10).Result()))
	p.must(c.Set(ctx, "f", "10.5", 0).Err())
	p.say("incrbyfloat", text(c.IncrByFloat(ctx, "f", 0.1).Result()))
	p.say("append", text(c.Append(ctx, "greeting", " world").Result()))
	p.say("getrange", text(c.GetRange(ctx, "greeting", 0, 4).Result()))
	p.say("del", text(c.Del(ctx, "greeting").Result()))
	p.say("exists", text(c.Exists(ctx, "greeting").Result()))
}

func (p *goRedis) scan() {
	var pairs []any
	for i := range 1000 {
		pairs = append(pairs, fmt.Sprint("item:", i), i)
	}
	p.must(p.c.MSet(p.ctx, pairs...).Err())
	count := func(name string, it *redis.ScanIterator) {
		seen := map[string]bool{}
		for it.Next(p.ctx) {
			seen[it.Val()] = true
		}
		p.must(it.Err())
		p.say(name, fmt.Sprintf("%d of 1000", len(seen)))
	}
	count("scan", p.c.Scan(p.ctx, 0, "item:*", 100).Iterator())
	count("scan type", p.c.ScanType(p.ctx, 0, "item:*", 100, "string").Iterator())
}

func (p *goRedis) errors() {
	p.must(p.c.Set(p.ctx, "word", "abc", 0).Err())
	p.say("wrong type", text(p.c.Incr(p.ctx, "word").Result()))
	said := text(p.c.Do(p.ctx, "NOSUCHCOMMAND").Result())
	p.say("unknown command", said[:min(len(said), 19)])
}

func (p *goRedis) pipelines() {
	replies, err := p.c.Pipelined(p.ctx, func(b redis.Pipeliner) error {
		b.Set(p.ctx, "count", 0, 0)
		for range 100 {
			b.Incr(p.ctx, "count")
		}
		b.Get(p.ctx, "count")
		return nil
	})
	p.must(err)
	p.say("pipeline", fmt.Sprintf("%d replies, the last %s", len(replies), replies[len(replies)-1].(*redis.StringCmd).Val()))
	var a, b *redis.StatusCmd
	var n *redis.IntCmd
	_, _ = p.c.Pipelined(p.ctx, func(batch redis.Pipeliner) error { // returns the first error, which n has
		a, n, b = batch.Set(p.ctx, "a", 1, 0), batch.Incr(p.ctx, "word"), batch.Set(p.ctx, "b", 2, 0)
		return nil
	})
	p.say("pipeline error", strings.Join([]string{text(a.Result()), text(n.Result()), text(b.Result())}, ", "))
}

func (p *goRedis) transactions() {
	c, ctx := p.c, p.ctx
	var set *redis.StatusCmd
	var one, two *redis.IntCmd
	var get *redis.StringCmd
	_, err := c.TxPipelined(ctx, func(b redis.Pipeliner) error {
		set, one, two, get = b.Set(ctx, "t", 0, 0), b.Incr(ctx, "t"), b.Incr(ctx, "t"), b.Get(ctx, "t")
		return nil
	})
	p.must(err)
	p.say("multi", fmt.Sprint(set.Val(), " ", one.Val(), two.Val(), " ", get.Val()))
	err = c.Watch(ctx, func(tx *redis.Tx) error {
		p.must(c.Set(ctx, "t", "other", 0).Err())
		_, err := tx.TxPipelined(ctx, func(b redis.Pipeliner) error { return b.Set(ctx, "t", "mine", 0).Err() })
		return err
	}, "t")
	if errors.Is(err, redis.TxFailedErr) {
		p.say("watch", "nil")
	} else {
		p.say("watch", err)
	}
	conn := c.Conn()
	defer conn.Close()
	for _, request := range []string{"MULTI", "SET never 1", "DISCARD"} {
		var args []any
		for word := range strings.FieldsSeq(request) {
			args = append(args, word)
		}
		p.must(conn.Do(ctx, args...).Err())
	}
	p.say("discard", text(c.Get(ctx, "never").Result()))
}

func (p *goRedis) events() {
	p.must(p.c.ConfigSet(p.ctx, "notify-keyspace-events", "KEA").Err())
	sub := p.c.PSubscribe(p.ctx, "__key*@0__:*")
	defer sub.Close()
	_, err := sub.Receive(p.ctx) // the subscription has taken effect
	p.must(err)
	p.must(p.c.Set(p.ctx, "fleeting", "v", 50*time.Millisecond).Err())
	for {
		m, err := sub.ReceiveMessage(p.ctx)
		p.must(err)
		kind, event, _ := strings.Cut(strings.TrimPrefix(m.Channel, "__"), "@0__:")
		if kind == "keyspace" {
			event = m.Payload
		}
		p.say("event", kind+" "+event)
		if kind == "keyevent" && event == "expired" {
			break
		}
	}
	p.say("expired", text(p.c.Exists(p.ctx, "fleeting").Result()))
}
