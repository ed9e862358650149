package rueidisebb

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/resp"
)

// hops is the number of redirections that a call follows without a pause.
const hops = 3

// dedicated calls try once with a connection to the node of a key ("": any), and with the
// nodes to which it redirects, because rueidis does not follow redirections for dedicated
// clients. try also reports whether the connection is sound.
func (d *driver) dedicated(ctx context.Context, key string,
	try func(c rueidis.DedicatedClient, ask bool) (remote.Answer, bool)) remote.Answer {
	node, ask := d.client, false
	for hop := 0; ; hop++ {
		a := withDedicated(node, func(c rueidis.DedicatedClient) (remote.Answer, bool) { return try(c, ask) })
		if a.Err != nil || a.Ran || !d.cluster || hop == hops {
			return a
		}
		addr, asking, ok := routing.Redirect(a.V)
		if !ok {
			return a
		}
		next := d.client.Nodes()[addr]
		if next == nil { // a command on the shared connections goes to that node, and rueidis then knows it
			d.answer(ctx, "EXISTS", d.client.Do(ctx, d.client.B().Exists().Key(key).Build()))
			if next = d.client.Nodes()[addr]; next == nil {
				return a
			}
		}
		node, ask = next, asking
	}
}

// withDedicated calls use with a dedicated client. If the client is not sound afterwards, withDedicated
// closes it.
func withDedicated(node rueidis.Client, use func(c rueidis.DedicatedClient) (remote.Answer, bool)) remote.Answer {
	c, release := node.Dedicate()
	sound := false
	defer func() {
		if !sound {
			c.Close()
		}
		release()
	}()
	var a remote.Answer
	a, sound = use(c)
	return a
}

// sendOn runs commands on a dedicated client, once, after ASKING if a node has replied
// ASK. If w is not nil and a command may write, sendOn waits for replicas.
func (d *driver) sendOn(ctx context.Context, c rueidis.DedicatedClient, ask bool, w *wait, cmds ...[]string) []remote.Answer {
	w = w.of(cmds...)
	batch := make([]rueidis.Completed, 0, 2*len(cmds)+1)
	at := make([]int, len(cmds))
	for i, words := range cmds {
		if ask {
			batch = append(batch, c.B().Asking().Build())
		}
		at[i] = len(batch)
		batch = append(batch, d.command(words))
	}
	if w != nil {
		batch = append(batch, w.command(c.B()))
	}
	results := c.DoMulti(ctx, batch...)
	answers := make([]remote.Answer, len(cmds))
	for i, words := range cmds {
		answers[i] = d.answer(ctx, words[0], results[at[i]])
	}
	if w != nil {
		waited := d.answer(ctx, "WAIT", results[len(results)-1])
		for i, words := range cmds {
			if mayWrite(words) {
				answers[i] = w.Check(answers[i], waited)
			}
		}
	}
	return answers
}

// Watch implements conn.Driver.
func (d *driver) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	return d.watch(ctx, fn, keys, nil)
}

func (d *driver) watch(ctx context.Context, fn func(*conn.Watched) error, keys []string, w *wait) error {
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.calls.Leave()
	if _, err := d.oneSlot("Watch", slices.Values(keys)); err != nil {
		return err
	}
	var result error
	inside := false
	v, err := d.policy.Persist(ctx, "WATCH", func() remote.Answer {
		return d.dedicated(ctx, keys[0], func(c rueidis.DedicatedClient, ask bool) (remote.Answer, bool) {
			if ask { // the keys are moving to that node: wait until they are there
				return remote.Answer{V: conn.Value{Kind: resp.KindError, Str: "TRYAGAIN the keys are being moved"}}, true
			}
			watch := c.B().Arbitrary("WATCH").Keys(keys[0]).Args(keys[1:]...).Build()
			a := d.answer(ctx, "WATCH", c.Do(ctx, watch))
			if a.Err != nil || a.V.Err() != nil {
				return a, a.Err == nil
			}
			inside = true
			x := &watching{d: d, c: c, key: keys[0], wait: w, sound: true}
			result = fn(conn.NewWatched(x.do, x.tx))
			return remote.Answer{Ran: true}, x.sound && c.Do(ctx, c.B().Unwatch().Build()).Error() == nil
		})
	})
	switch {
	case inside:
		return result
	case err != nil:
		return err
	}
	return v.Err()
}

// watching is a connection that watches keys. One goroutine uses it.
type watching struct {
	d     *driver
	c     rueidis.DedicatedClient
	key   string // one that is watched
	wait  *wait
	sound bool
}

// do runs one command on the node of the keys.
func (x *watching) do(ctx context.Context, args []any) (conn.Value, error) {
	words, err := texts(args)
	if err != nil {
		return conn.Value{}, err
	}
	if err := x.checkSlot(words); err != nil {
		return conn.Value{}, err
	}
	a := x.d.sendOn(ctx, x.c, false, x.wait, words)[0]
	return x.result(words[0], a)
}

// tx runs commands as one transaction, unless a watched key has changed.
func (x *watching) tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	all, err := allTexts(cmds)
	if err != nil {
		return nil, err
	}
	if err := x.checkSlot(all...); err != nil {
		return nil, err
	}
	replies, a := x.d.execReplicated(ctx, x.c, false, x.wait, all)
	if _, err := x.result("transaction", a); err != nil {
		return nil, err
	}
	return replies, nil
}

// checkSlot returns an error for keys that are in another slot of a cluster.
func (x *watching) checkSlot(cmds ...[]string) error {
	_, err := x.d.oneSlot("Watch", func(yield func(string) bool) {
		if yield(x.key) {
			keysOf(cmds...)(yield)
		}
	})
	return err
}

// result returns the final result of an answer that the driver does not try again.
func (x *watching) result(doing string, a remote.Answer) (conn.Value, error) {
	if a.Err == nil && routing.Untouched(a.V) {
		return a.V, x.d.policy.Refusal(doing, a.V)
	}
	var refused conn.ReplyError
	if a.Err != nil && !errors.Is(a.Err, conn.ErrConflict) && !errors.As(a.Err, &refused) {
		x.sound = false // there was no reply
	}
	return a.V, a.Err
}
