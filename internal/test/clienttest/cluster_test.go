package clienttest

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

//go:embed cluster_expected.txt
var clusterExpected string

// Clients for clusters find one, of a single node, and its rules hold.
func TestClusterClientsFindAClusterOfOne(t *testing.T) {
	for _, c := range []struct {
		name string
		play play
	}{
		{"go-redis", clusterByGoRedis},
		{"rueidis", clusterByRueidis},
		{"ioredis", node("node/cluster.js")},
		{"node-redis", node("node/cluster-noderedis.js")},
		{"python3-redis", func(t *testing.T, addr string) string { return python(t, "python/cluster.py", addr) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := c.play(t, startEbbWith(t, "--cluster-enabled", "yes"))
			if diff := cmp.Diff(strings.Split(clusterExpected, "\n"), strings.Split(out, "\n")); diff != "" {
				t.Errorf("(-expected +seen)\n%s", diff)
			}
		})
	}
}

// redis-cli -c follows redirections, of which there are none, and says what the
// rules are.
func TestTheRulesOfAClusterHold(t *testing.T) {
	addr := startEbbWith(t, "--cluster-enabled", "yes")
	for _, s := range []struct{ request, want string }{
		{"SET {a}1 x", "OK\n"}, {"GET {a}1", "x\n"}, {"MGET {a}1 {a}2", "x\n\n"}, {"SELECT 0", "OK\n"},
		{"DEL {a}1 b", "CROSSSLOT Keys in request don't hash to the same slot\n\n"},
		{"SELECT 1", "ERR SELECT is not allowed in cluster mode\n\n"}, {"MOVE {a}1 1", "ERR MOVE is not allowed in cluster mode\n\n"},
		{"SWAPDB 0 1", "ERR SWAPDB is not allowed in cluster mode\n\n"},
		{"COPY {a}1 {a}2 DB 1", "ERR Copying to another database is not allowed in cluster mode\n\n"},
		{"SORT {a}l BY w_*", "ERR BY option of SORT denied in Cluster mode.\n\n"},
		{"SORT {a}l BY nosort GET #", "ERR GET option of SORT denied in Cluster mode.\n\n"},
		{"SSUBSCRIBE a b", "CROSSSLOT Keys in request don't hash to the same slot\n\n"}, {"CLUSTER KEYSLOT {a}1", "15495\n"},
		{"CLUSTER COUNTKEYSINSLOT 15495", "1\n"},
		{"CLUSTER GETKEYSINSLOT 15495 9", "{a}1\n"},
	} {
		if got := redisCLI(t, addr, nil, append([]string{"-c"}, strings.Fields(s.request)...)...); got != s.want {
			t.Errorf("%s: %q, want %q", s.request, got, s.want)
		}
	}
	got := redisCLI(t, addr, strings.NewReader("MULTI\nSET a 1\nSET b 2\nEXEC\nGET a\nMULTI\nSET {b}1 1\nSET {b}2 2\nEXEC\n"))
	if want := "OK\nQUEUED\nQUEUED\nCROSSSLOT Keys in request don't hash to the same slot\n\n\nOK\nQUEUED\nQUEUED\nOK\nOK\n"; got != want {
		t.Errorf("transactions: %q, want %q", got, want)
	}
}

func clusterByGoRedis(t *testing.T, addr string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
	defer c.Close()
	s := transcriber{t: t}
	word := func(name string) func(string, error) { return func(v string, err error) { s.say(name, v, err) } }
	word("set")(c.Set(ctx, "k", "v", 0).Result())
	word("get")(c.Get(ctx, "k").Result())
	word("mset")(c.MSet(ctx, "{a}1", 1, "{a}2", 2).Result())
	values, err := c.MGet(ctx, "{a}1", "{a}2", "{a}3").Result()
	for i := range values {
		if values[i] == nil {
			values[i] = "nil"
		}
	}
	s.say("mget", strings.Trim(fmt.Sprint(values), "[]"), err)
	p := c.Pipeline()
	for i := range 100 {
		p.Set(ctx, fmt.Sprintf("key:%d", i), i, 0)
	}
	replies, err := p.Exec(ctx)
	s.say("other slots", len(replies), err)
	s.say("cross slot", c.MSet(ctx, "a", 1, "b", 2).Err(), nil)
	tx := c.TxPipeline()
	set, incr := tx.Set(ctx, "{t}n", 1, 0), tx.Incr(ctx, "{t}n")
	_, err = tx.Exec(ctx)
	s.say("multi", fmt.Sprint(set.Val(), " ", incr.Val()), err)
	sub := c.SSubscribe(ctx, "news")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.SPublish(ctx, "news", "hello").Err(); err != nil {
		t.Error(err)
	}
	m, err := sub.ReceiveMessage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.say("ssubscribe", m.Channel+" "+m.Payload, nil)
	return s.out.String()
}

func clusterByRueidis(t *testing.T, addr string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Mode() != rueidis.ClientModeCluster {
		t.Errorf("rueidis found no cluster: %v", c.Mode())
	}
	s := transcriber{t: t}
	word := func(name string, b rueidis.Completed) {
		v, err := c.Do(ctx, b).ToString()
		s.say(name, v, err)
	}
	word("set", c.B().Set().Key("k").Value("v").Build())
	word("get", c.B().Get().Key("k").Build())
	word("mset", c.B().Mset().KeyValue().KeyValue("{a}1", "1").KeyValue("{a}2", "2").Build())
	values, err := c.Do(ctx, c.B().Mget().Key("{a}1", "{a}2", "{a}3").Build()).ToArray()
	var words []string
	for _, v := range values {
		word, err := v.ToString()
		if err != nil {
			word = "nil"
		}
		words = append(words, word)
	}
	s.say("mget", strings.Join(words, " "), err)
	var many rueidis.Commands
	for i := range 100 {
		many = append(many, c.B().Set().Key(fmt.Sprintf("key:%d", i)).Value("v").Build())
	}
	n := 0
	for _, r := range c.DoMulti(ctx, many...) {
		if r.Error() == nil {
			n++
		}
	}
	s.say("other slots", n, nil)
	// The builder itself refuses keys of several slots.
	s.say("cross slot", c.Do(ctx, c.B().Arbitrary("MSET").Args("a", "1", "b", "2").Build()).Error(), nil)
	err = c.Dedicated(func(d rueidis.DedicatedClient) error {
		replies := d.DoMulti(ctx, d.B().Multi().Build(), d.B().Set().Key("{t}n").Value("1").Build(), d.B().Incr().Key("{t}n").Build(),
			d.B().Exec().Build())
		done, err := replies[3].ToArray()
		if err != nil {
			return err
		}
		first, _ := done[0].ToString()
		second, err := done[1].AsInt64()
		s.say("multi", fmt.Sprintf("%s %d", first, second), err)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	heard := make(chan rueidis.PubSubMessage, 1)
	ready := make(chan struct{})
	listening, stop := context.WithCancel(rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { close(ready) }))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Receive(listening, c.B().Ssubscribe().Channel("news").Build(), func(m rueidis.PubSubMessage) { heard <- m })
	}()
	<-ready
	if err := c.Do(ctx, c.B().Spublish().Channel("news").Message("hello").Build()).Error(); err != nil {
		t.Error(err)
	}
	m := <-heard
	s.say("ssubscribe", m.Channel+" "+m.Message, nil)
	stop()
	<-ended
	return s.out.String()
}
