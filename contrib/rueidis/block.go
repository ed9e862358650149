package rueidisebb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

const (
	// firstLook is when a call that waits without an end finds out where it waits: few
	// last as long, and no failover is quicker.
	firstLook = 250 * time.Millisecond
	// letGo is how long a call whose context has ended waits for rueidis to let its
	// connection go, so that the server forgets it. Nothing ends a greeting before
	// ClientOption.Dialer.Timeout; it goes on in the background.
	letGo = 200 * time.Millisecond
)

// timeouts are how long a client waits for servers.
type timeouts struct{ dial, reply time.Duration }

// defaultReadTimeout is that of go-redis, and so of ebb.Open.
const defaultReadTimeout = 3 * time.Second

// setTimeouts takes the timeouts from the options of a client and of the driver. The
// caller calls it before any other method.
func (d *driver) setTimeouts(o rueidis.ClientOption, opts []Options) {
	d.timeouts = timeouts{dial: o.Dialer.Timeout, reply: o.ConnWriteTimeout}
	if d.timeouts.dial <= 0 {
		d.timeouts.dial = rueidis.DefaultDialTimeout
	}
	if len(opts) > 0 && opts[0].ReadTimeout != 0 {
		d.timeouts.reply = opts[0].ReadTimeout
	}
	if d.timeouts.reply == 0 {
		d.timeouts.reply = defaultReadTimeout
	}
	d.ends.reply = d.timeouts.reply
}

// Block implements ebb.Driver. rueidis closes the connection of a command that the
// context has ended, so that the server forgets it.
func (d *driver) Block(ctx context.Context, args []any) (conn.Value, error) {
	words, err := texts(args)
	if err != nil {
		return conn.Value{}, err
	}
	if err := d.enter(ctx); err != nil {
		return conn.Value{}, err
	}
	defer d.calls.Leave()
	return d.blocked(ctx, words, 0, func(ctx context.Context) remote.Answer {
		return d.answer(ctx, words[0], d.client.Do(ctx, d.blocking(words)))
	})
}

// blocked tries to run a command that waits, and then for as long as more says. The
// context of a try ends with Close too, and when the server says nothing.
func (d *driver) blocked(ctx context.Context, words []string, more time.Duration, try func(ctx context.Context) remote.Answer) (conn.Value, error) {
	open, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	v, err := d.policy.Persist(open, words[0], func() remote.Answer {
		p := routing.Liveness{Own: routing.OwnWait(len(words), func(i int) string { return words[i] }), ReadTimeout: d.timeouts.reply, First: firstLook}
		if p.Own > 0 {
			p.Own += more
		}
		at := place{d: d, key: keyOf(words)}
		p.Ping = at.ask
		bounded, end := p.Bound(open)
		defer end()
		a := d.apart(bounded, words[0], func() remote.Answer { return try(endless{bounded}) })
		if cause := routing.LivenessError(open, bounded, a.Err); cause != nil {
			a.Err = fmt.Errorf("rueidisebb: %s: %w: %w", words[0], conn.ErrUnavailable, cause)
		}
		return a
	})
	if err != nil && d.ctx.Err() != nil && ctx.Err() == nil {
		err = conn.ErrClosed
	}
	return v, err
}

// endless is a context that keeps its deadline to itself: rueidis waits for a reply until
// a deadline that it knows, whatever else ends the context before.
type endless struct{ context.Context }

// Deadline implements context.Context.
func (endless) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// apart does something that may outlive its context by the greeting of a connection. Close
// waits for it.
func (d *driver) apart(ctx context.Context, doing string, do func() remote.Answer) remote.Answer {
	done := make(chan remote.Answer, 1)
	d.calls.Go(func() { done <- do() })
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
	}
	left := time.NewTimer(letGo)
	defer left.Stop()
	select {
	case a := <-done:
		return a
	case <-left.C:
		return remote.Answer{Err: unavailable(ctx, doing, ctx.Err()), Ran: true}
	}
}

// place is where a call waits: the node of its key. One goroutine uses it.
type place struct {
	d    *driver
	key  string
	addr string // "" of a cluster without a key
	node rueidis.Client
}

// ask asks whether the node is there, over the connection that others share.
func (p *place) ask(ctx context.Context) error {
	if p.node == nil {
		if err := p.find(endless{ctx}); err != nil {
			return err
		}
	}
	if p.addr != "" && !p.d.cluster && p.d.client.Nodes()[p.addr] == nil { // of a cluster it answers, or not
		return fmt.Errorf("%w: %s was where it waits, and others are in its place", routing.ErrUnresponsive, p.addr)
	}
	ping := func() remote.Answer {
		return p.d.answer(ctx, "PING", p.node.Do(endless{ctx}, p.node.B().Ping().Build()))
	}
	return p.d.apart(ctx, "PING", ping).Err
}

// find finds the node: that of a single server, or of the key by what the first node
// says that answers.
func (p *place) find(ctx context.Context) error {
	nodes := p.d.client.Nodes()
	if !p.d.cluster || p.key == "" {
		p.node = p.d.client
		for addr := range nodes {
			if len(nodes) == 1 {
				p.addr = addr
			}
		}
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan string, len(nodes))
	for from, node := range nodes {
		p.d.calls.Go(func() {
			a := p.d.answer(ctx, "CLUSTER", node.Do(ctx, node.B().ClusterSlots().Build()))
			found <- masterOf(a.V, from, routing.Slot(p.key))
		})
	}
	for range nodes {
		select {
		case addr := <-found:
			if p.node = nodes[addr]; p.node != nil {
				p.addr = addr
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("no node says where the key is")
}
