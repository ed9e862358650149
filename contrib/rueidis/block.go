package rueidisebb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

const (
	// firstPing is the time after which a call that waits without a limit first pings the node
	// at which it waits. Few calls last that long, and no failover is quicker.
	firstPing = 250 * time.Millisecond
	// abandonAfter is the time that a call whose context has ended waits for its connection to
	// end, by which the server ends the command. A handshake ends at
	// ClientOption.Dialer.Timeout only; it continues in the background.
	abandonAfter = hangupTime + 50*time.Millisecond
)

// timeouts holds the timeouts of a client: to connect, and for a reply.
type timeouts struct{ dial, reply time.Duration }

// defaultReadTimeout is the read timeout of ebb.Open over go-redis.
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
	d.deadlines.reply = d.timeouts.reply
}

// Block implements conn.Driver. When the context ends, Block hangs up, and the server ends the command. In a cluster, and over a
// client of Wrap, rueidis closes the connection, and a reply that comes then is lost.
func (d *driver) Block(ctx context.Context, args []any) (conn.Value, error) {
	words, err := texts(args)
	if err != nil {
		return conn.Value{}, err
	}
	if err := d.enter(ctx); err != nil {
		return conn.Value{}, err
	}
	defer d.calls.Leave()
	return d.blocked(ctx, words, 0, func(bounded context.Context) remote.Answer {
		if !d.hangsUp() {
			return d.answer(bounded, words[0], d.client.Do(bounded, d.blocking(words)))
		}
		return d.onBlocker(ctx, bounded, words[0], func(ctx context.Context, c rueidis.DedicatedClient) remote.Answer {
			return d.answer(ctx, words[0], c.Do(ctx, d.blocking(words)))
		})
	})
}

// hangsUp reports whether the driver knows the connections of commands that wait.
func (d *driver) hangsUp() bool { return d.hangups != nil && !d.cluster }

// blocked runs a command that waits, and tries again while more says so. The context of a
// try ends when the caller's does, at Close, and when the server is silent.
func (d *driver) blocked(ctx context.Context, words []string, more time.Duration,
	try func(ctx context.Context) remote.Answer) (conn.Value, error) {
	open, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	v, err := d.policy.Persist(open, words[0], func() remote.Answer {
		p := routing.Liveness{Own: routing.OwnWait(len(words), func(i int) string { return words[i] }),
			ReadTimeout: d.timeouts.reply, First: firstPing}
		if p.Own > 0 {
			p.Own += more
		}
		at := waitNode{d: d, key: keyOf(words)}
		p.Ping = at.ping
		bounded, end := p.Bound(open)
		defer end()
		a := d.awaitBlocked(bounded, words[0], func() remote.Answer { return try(endless{bounded}) })
		if a.Err != nil && ctx.Err() != nil && d.hangups != nil {
			a.Err = driverutil.PendingReply(a.Err, d.awaitClosed)
		}
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

// endless is a context that hides its deadline. rueidis waits for a reply until the
// context's deadline if it has one, even if the context is cancelled before; without one
// it observes the cancellation.
type endless struct{ context.Context }

// Deadline implements context.Context.
func (endless) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// awaitBlocked runs do, which may continue after its context has ended, until the handshake of a
// connection is over. Close waits for it.
func (d *driver) awaitBlocked(ctx context.Context, doing string, do func() remote.Answer) remote.Answer {
	done := make(chan remote.Answer, 1)
	d.calls.Go(func() { done <- do() })
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
	}
	timer := time.NewTimer(abandonAfter)
	defer timer.Stop()
	select {
	case a := <-done:
		return a
	case <-timer.C:
		return remote.Answer{Err: unavailable(ctx, doing, ctx.Err()), Ran: true}
	}
}

// waitNode is the node at which a call waits: the node of its key. One goroutine uses it.
type waitNode struct {
	d    *driver
	key  string
	addr string // "" of a cluster without a key
	node rueidis.Client
}

// ping checks that the node answers, over the connection that all calls share.
func (p *waitNode) ping(ctx context.Context) error {
	if p.node == nil {
		if err := p.find(endless{ctx}); err != nil {
			return err
		}
	}
	if p.addr != "" && !p.d.cluster && p.d.client.Nodes()[p.addr] == nil { // in a cluster the node answers, or it does not
		return fmt.Errorf("%w: the call waited at %s, which is no longer a node of the client", routing.ErrUnresponsive, p.addr)
	}
	ping := func() remote.Answer {
		return p.d.answer(ctx, "PING", p.node.Do(endless{ctx}, p.node.B().Ping().Build()))
	}
	return p.d.awaitBlocked(ctx, "PING", ping).Err
}

// find finds the node: the single server, or the master of the key by the map of the first
// node that answers.
func (p *waitNode) find(ctx context.Context) error {
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
	return errors.New("no node knows the master of the key's slot")
}
