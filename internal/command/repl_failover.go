package command

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/ebbdb/ebb/engine"
)

// FAILOVER: a master hands over to one of its replicas.
//
//	waiting-for-sync      writes wait, and nothing expires by itself, which would
//	                      write as well; a replica acknowledges all there is
//	failover-in-progress  this server follows it, and asks it to be the master
//	no-failover           it is; writes go on, and are refused here
//
// The offset at which the role changes is looked at with every shard locked, so
// what was acknowledged to a client is on the other side.

// failoverState is where a FAILOVER is.
type failoverState int32

const (
	failoverNone failoverState = iota
	failoverWaits
	failoverRuns
)

var failoverStates = [...]string{"no-failover", "waiting-for-sync", "failover-in-progress"}

// failover is a FAILOVER that is under way.
type failover struct {
	acks chan struct{} // a replica has acknowledged something, or there is news of another kind

	mu    sync.Mutex // guards what follows; taken with shards held
	is    failoverState
	order order
	stop  context.CancelFunc // ends the wait
	base  int64              // what the replica is to acknowledge
	mark  int64              // where the stream ends if nothing was written since
	dying bool               // things expired by themselves before it
}

// order is what FAILOVER was told.
type order struct {
	host    string // "": any replica
	port    int
	force   bool
	timeout time.Duration // 0: none
}

// replicaNode is a replica as FAILOVER sees it.
type replicaNode struct {
	Host   string
	Port   int
	Acked  int64 // offset in the stream
	Online bool  // it receives the stream
}

func (f *failover) state() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return failoverStates[f.is]
}

func (f *failover) active() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.is != failoverNone
}

// acked is called when a replica has acknowledged something.
func (r *replication) acked() {
	select {
	case r.failover.acks <- struct{}{}:
	default:
	}
}

// begin starts a FAILOVER: writes wait from here on.
func (r *replication) beginFailover(o order) {
	f := &r.failover
	ctx, stop := context.WithCancel(r.svc.ctx)
	f.mu.Lock()
	f.is, f.order, f.stop, f.mark = failoverWaits, o, stop, -1
	f.dying = r.svc.DB.ActiveExpiry()
	f.mu.Unlock()
	r.svc.DB.SetActiveExpiry(false)
	r.svc.pause.handOver(true)
	r.svc.Log.Info("FAILOVER: writes wait until a replica has all data", "to", o.host, "timeout", o.timeout)
	r.links.Go(func() {
		defer stop()
		r.awaitReplica(ctx, o)
	})
	r.acked() // look at once
}

// awaitReplica waits for a replica that has everything, and hands over to it.
func (r *replication) awaitReplica(ctx context.Context, o order) {
	var late <-chan time.Time
	if o.timeout > 0 {
		t := time.NewTimer(o.timeout)
		defer t.Stop()
		late = t.C
	}
	for {
		select {
		case <-r.failover.acks:
			if r.handOver(ctx, o, false) {
				return
			}
		case <-late:
			if !o.force || !r.handOver(ctx, o, true) {
				r.abort(ctx, "it took longer than its timeout")
			}
			return
		case <-ctx.Done():
			return
		}
	}
}

// handOver makes this server the replica of one that has everything, or of the one
// that is forced to, and reports whether it did.
func (r *replication) handOver(ctx context.Context, o order, forced bool) bool {
	tx := r.svc.DB.BeginAll(0)
	defer tx.Commit()
	f, log := &r.failover, r.svc.DB.Log()
	log.TakeMessages(false) // who publishes holds no shard: nothing may come from here on
	defer r.svc.takeMessages()
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil || f.is != failoverWaits {
		return false
	}
	to := replicaNode{Host: o.host, Port: o.port}
	if !forced {
		if log.End() != f.mark { // somebody has written, or it has just begun: ask
			f.base = log.End()
			f.mark = log.AppendControl([]byte(getAck))
			return false
		}
		var ok bool
		if to, ok = r.synced(o, f.base); !ok {
			return false
		}
	}
	f.is = failoverRuns
	r.svc.Log.Info("FAILOVER: hands over", "to", net.JoinHostPort(to.Host, strconv.Itoa(to.Port)), "offset", log.End(), "forced", forced)
	r.follow(tx, to.Host, to.Port, true)
	return true
}

// getAck asks replicas to acknowledge at once.
const getAck = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"

// synced returns a replica that has acknowledged everything: the one that is
// wanted, or any.
func (r *replication) synced(o order, base int64) (replicaNode, bool) {
	for _, n := range r.svc.replicaNodes() {
		if n.Online && n.Acked >= base && (o.host == "" || n.Host == o.host && n.Port == o.port) {
			return n, true
		}
	}
	return replicaNode{}, false
}

// done ends a FAILOVER whose replica has taken over.
func (r *replication) failoverDone() {
	f := &r.failover
	f.mu.Lock()
	was, dying := f.is, f.dying
	f.is = failoverNone
	f.mu.Unlock()
	if was != failoverNone {
		r.svc.DB.SetActiveExpiry(dying)
		r.svc.Log.Info("FAILOVER: the replica has taken over")
		r.svc.pause.handOver(false)
	}
}

// abort ends a FAILOVER that has not come to its end: this server is the master,
// or is it again.
func (r *replication) abort(ctx context.Context, why string) {
	tx := r.svc.DB.BeginAll(0)
	defer tx.Commit()
	if ctx.Err() == nil {
		r.abortIn(tx, why)
	}
}

// abortIn is abort with all shards locked. It reports whether there was a FAILOVER.
func (r *replication) abortIn(tx *engine.Tx, why string) bool {
	f := &r.failover
	f.mu.Lock()
	was, dying := f.is, f.dying
	f.is = failoverNone
	if was != failoverNone {
		f.stop()
	}
	f.mu.Unlock()
	if was == failoverNone {
		return false
	}
	if was == failoverRuns {
		r.promote(tx)
	}
	tx.SetActiveExpiry(dying)
	r.svc.Log.Warn("FAILOVER is given up", "why", why)
	r.svc.pause.handOver(false)
	return true
}

// notTaken ends a FAILOVER whose replica has refused.
func (r *replication) notTaken(l *link, why error) {
	tx := r.svc.DB.BeginAll(0)
	defer tx.Commit()
	if l.current() {
		r.abortIn(tx, why.Error())
	}
}

// promotedBy makes this replica the master, because its own hands over to it: PSYNC
// id offset FAILOVER. All shards are locked. Asked again, because the answer was
// lost, it says yes again: a refusal would make the other one a master as well.
func (r *replication) promotedBy(c *Ctx, id string) error {
	mine, before, _ := r.names()
	switch {
	case !r.isReplica() && id == before:
		return nil
	case !r.isReplica():
		return ReplyError("ERR PSYNC FAILOVER can't be sent to a master.")
	case id != mine:
		return ReplyError("ERR PSYNC FAILOVER replid must match my replid.")
	}
	r.svc.Log.Info("the master hands over to this replica")
	r.promote(c.Tx)
	return nil
}

// handOver has writes wait, or go on, beside what CLIENT PAUSE wants.
func (p *pause) handOver(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = on
	if on {
		p.set(true)
		return
	}
	p.set(p.until > p.svc.DB.Clock().Micros())
	for c := range p.waiting {
		delete(p.waiting, c)
		c.conn.Wake()
	}
}

// parseFailover reads FAILOVER's arguments.
func parseFailover(args [][]byte) (o order, abort bool, err error) {
	to, timed := false, false
	for i := 1; i < len(args); i++ {
		more := len(args) - i - 1
		switch {
		case EqualFold(args[i], "TIMEOUT") && more >= 1 && !timed:
			if o.timeout, err = failoverTimeout(args[i+1]); err != nil {
				return o, abort, err
			}
			timed = true
			i++
		case EqualFold(args[i], "TO") && more >= 2 && !to:
			to, o.host = true, string(args[i+1])
			if o.port, err = strconv.Atoi(string(args[i+2])); err != nil {
				return o, abort, ErrNotInteger
			}
			i += 2
		case EqualFold(args[i], "ABORT") && !abort:
			abort = true
		case EqualFold(args[i], "FORCE") && !o.force:
			o.force = true
		default:
			return o, abort, ErrSyntax
		}
	}
	return o, abort, nil
}

func failoverTimeout(b []byte) (time.Duration, error) {
	ms, err := strconv.ParseInt(string(b), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax) || err != nil:
		return 0, ErrNotInteger
	case ms <= 0:
		return 0, ReplyError("ERR FAILOVER timeout must be greater than 0")
	}
	return time.Duration(min(ms, int64(time.Hour*24*365/time.Millisecond))) * time.Millisecond, nil
}
