package rueidisebb

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// keepBlockers is the number of idle connections that Block keeps; see blockers.
const keepBlockers = 8

// blocker is a connection that waits for one command at a time. rueidis ends such a wait by closing the connection, and throws
// away a reply that comes meanwhile, which may be a job or a turn. So a blocker knows its connection, and hangs up itself.
type blocker struct {
	c       rueidis.DedicatedClient
	release func()
	nc      *hangupConn // nil: it cannot be half-closed
	hangup  *remote.Hangup
}

// blockers are the idle ones. They are kept, because rueidis sends four commands when a dedicated client goes back to its pool.
type blockers struct {
	most int // at most half of the pool, so that some are left for Watch

	mu   sync.Mutex // guards what follows
	idle []*blocker
}

// takeBlocker returns an idle blocker, or a new one; nil: the answer says why.
func (d *driver) takeBlocker(ctx context.Context) (*blocker, remote.Answer) {
	b := &d.blockers
	b.mu.Lock()
	for len(b.idle) > 0 {
		k := b.idle[len(b.idle)-1]
		b.idle = b.idle[:len(b.idle)-1]
		if !k.nc.closed.Load() && d.client.Nodes()[k.nc.addr] != nil { // else the server has closed it, or is the master no more
			b.mu.Unlock()
			k.hangup = &remote.Hangup{}
			return k, remote.Answer{}
		}
		d.abandoned.Go(k.close)
	}
	b.mu.Unlock()
	k := &blocker{hangup: &remote.Hangup{}}
	k.c, k.release = d.client.Dedicate()
	found := d.identify(kit.ID(), func(name string) error {
		a := d.answer(ctx, "PING", k.c.Do(ctx, k.c.B().Arbitrary("PING", name).Build()))
		return a.Err
	})
	if k.nc = found.nc; found.err != nil {
		k.close()
		return nil, remote.Answer{Err: found.err}
	}
	return k, remote.Answer{}
}

// giveBlocker keeps a connection for the next call if it is sound: no call has hung up or is about to, and its last command got
// a reply. If too many are idle, giveBlocker closes it.
func (d *driver) giveBlocker(k *blocker, sound bool) {
	b := &d.blockers
	b.mu.Lock()
	if sound = sound && k.nc != nil && len(b.idle) < b.most; sound {
		b.idle = append(b.idle, k)
	}
	b.mu.Unlock()
	if !sound {
		k.close()
	}
}

// dropBlockers closes the idle connections.
func (d *driver) dropBlockers() {
	b := &d.blockers
	b.mu.Lock()
	idle := b.idle
	b.idle = nil
	b.mu.Unlock()
	for _, k := range idle {
		k.close()
	}
}

// close closes the connection. It closes the network connection first: rueidis would wait for a reply to PING.
func (k *blocker) close() {
	if k.nc != nil {
		_ = k.nc.Close()
	}
	k.c.Close()
	k.release()
}

// hangUp ends the command that waits.
func (k *blocker) hangUp(abort func()) {
	if k.nc == nil {
		abort()
		return
	}
	k.hangup.Begin(k.nc, abort)
}

// onBlocker runs one command on a connection of its own, once. bounded is the context of blocked, and ctx the caller's, whose
// end lets the command end with its reply.
func (d *driver) onBlocker(ctx, bounded context.Context, doing string,
	use func(ctx context.Context, c rueidis.DedicatedClient) remote.Answer) remote.Answer {
	k, a := d.takeBlocker(bounded)
	if k == nil {
		return a
	}
	patient, cancel := context.WithCancel(context.WithoutCancel(bounded))
	defer cancel()
	stop := context.AfterFunc(bounded, func() {
		if ctx.Err() != nil {
			k.hangUp(cancel)
		} else {
			cancel()
		}
	})
	if bounded.Err() == nil {
		a = use(patient, k.c)
	}
	if bounded.Err() != nil && !errors.Is(a.Err, conn.ErrNotReplicated) && (a.Err != nil || !a.Ran) {
		a.Err = unavailable(bounded, doing, a.Err)
	}
	sound := stop() && a.Err == nil && !routing.Untouched(a.V)
	k.hangup.End()
	d.giveBlocker(k, sound)
	if !sound && bounded.Err() == nil {
		d.dropBlockers() // they may be lost too, and a call that uses one would wait as long to find out
	}
	return a
}

// search is a search for the connection that carries a name.
type search struct {
	name []byte
	nc   *hangupConn
	err  error
}

// identify finds the connection on which send sends a new name.
func (p *hangups) identify(name string, send func(name string) error) search {
	n := &search{name: []byte(name)}
	p.mu.Lock()
	p.searches = append(p.searches, n)
	p.mu.Unlock()
	p.searching.Add(1)
	err := send(name)
	p.searching.Add(-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.searches {
		if other == n {
			p.searches = append(p.searches[:i], p.searches[i+1:]...)
			break
		}
	}
	n.err = err
	return *n
}

// match looks for the names of all searches in the bytes that are written to a connection.
func (p *hangups) match(c *hangupConn, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.searches {
		if n.nc == nil && bytes.Contains(b, n.name) {
			n.nc = c
		}
	}
}
