package replication

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
)

// FAILOVER: a master hands over to one of its replicas.
//
//	waiting-for-sync      clients' writes wait, and active expiration stops, because
//	                      that writes too; a replica acknowledges the whole stream
//	failover-in-progress  this server follows the replica, and asks it to become the master
//	no-failover           the replica is the master; this server refuses the writes that
//	                      waited
//
// Every shard is locked when the server compares the offset and changes its role, so the
// new master has every write whose reply a client has received.

// failoverState is the step of a FAILOVER.
type failoverState int32

const (
	failoverNone failoverState = iota
	failoverWaits
	failoverRuns
)

var failoverStates = [...]string{"no-failover", "waiting-for-sync", "failover-in-progress"}

// failover is the state of FAILOVER.
type failover struct {
	acks chan struct{} // capacity 1; wakes awaitReplica, for instance after an acknowledgement

	mu    sync.Mutex // guards the fields below; taken with shards held
	is    failoverState
	order Order
	stop  context.CancelFunc // ends the wait
	base  int64              // the offset that the replica has to acknowledge
	mark  int64              // the end of the stream, unless something was written since
	dying bool               // active expiry was on before the FAILOVER
}

// Order holds the options of a FAILOVER command.
type Order struct {
	Host    string // "": any replica
	Port    int
	Force   bool          // after Timeout the replica takes over with the data that it has
	Timeout time.Duration // 0: none
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

// acked makes a FAILOVER check the replicas again, after one has acknowledged something or
// has disconnected.
func (r *Node) acked() {
	select {
	case r.failover.acks <- struct{}{}:
	default:
	}
}

// FailingOver reports whether a FAILOVER is under way.
func (r *Node) FailingOver() bool { return r.failover.active() }

// CanFailOver returns nil if a FAILOVER can begin, else the reason. The texts are Redis's,
// without "ERR ".
func (r *Node) CanFailOver(o Order) error {
	all := r.Replicas()
	switch {
	case r.failover.active():
		return errors.New("FAILOVER already in progress.")
	case r.IsReplica():
		return errors.New("FAILOVER is not valid when server is a replica.")
	case len(all) == 0:
		return errors.New("FAILOVER requires connected replicas.")
	case o.Force && (o.Timeout == 0 || o.Host == ""):
		return errors.New("FAILOVER with force option requires both a timeout and target HOST and IP.")
	case o.Host == "":
		return nil
	}
	for _, n := range all {
		if n.Host == o.Host && n.Port == o.Port {
			if !n.Online {
				return errors.New("FAILOVER target replica is not online.")
			}
			return nil
		}
	}
	return errors.New("FAILOVER target HOST and PORT is not a replica.")
}

// FailOver starts a FAILOVER, which CanFailOver has allowed, and returns at once: writes
// wait until the replica has taken over or the FAILOVER is aborted. All shards are locked.
func (r *Node) FailOver(o Order) {
	f := &r.failover
	ctx, stop := context.WithCancel(r.ctx)
	f.mu.Lock()
	f.is, f.order, f.stop, f.mark = failoverWaits, o, stop, -1
	f.dying = r.db.ActiveExpiry()
	f.mu.Unlock()
	r.db.SetActiveExpiry(false)
	r.host.PauseWrites(true)
	r.log.Info("FAILOVER: writes wait until a replica has the whole stream", "to", shownText(o.Host), "timeout", o.Timeout)
	r.links.Go(func() {
		defer stop()
		r.awaitReplica(ctx, o)
	})
	r.acked() // check at once
}

// awaitReplica waits for a replica that has the whole stream, and hands over to it.
func (r *Node) awaitReplica(ctx context.Context, o Order) {
	var late <-chan time.Time
	if o.Timeout > 0 {
		t := time.NewTimer(o.Timeout)
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
			if !o.Force || !r.handOver(ctx, o, true) {
				r.abort(ctx, "the FAILOVER took longer than its timeout")
			}
			return
		case <-ctx.Done():
			return
		}
	}
}

// handOver makes this server the replica of one that has the whole stream, or, if forced,
// of the one that FAILOVER names. It reports whether it did.
func (r *Node) handOver(ctx context.Context, o Order, forced bool) bool {
	tx := r.db.BeginAll(0)
	defer tx.Commit()
	f, log := &r.failover, r.db.Log()
	log.TakeMessages(false) // PUBLISH locks no shard; it must append nothing from here on
	defer r.takeMessages()
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil || f.is != failoverWaits {
		return false
	}
	to := ReplicaState{Host: o.Host, Port: o.Port}
	if !forced {
		if log.End() != f.mark { // something was written since, or the FAILOVER has just begun: ask again
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
	r.log.Info("FAILOVER: this server hands over to the replica", "to", shownText(net.JoinHostPort(to.Host, strconv.Itoa(to.Port))),
		"offset", log.End(), "forced", forced)
	r.follow(tx, to.Host, to.Port, true)
	return true
}

// getAck is the command in the stream that makes replicas acknowledge at once.
const getAck = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"

// synced returns a replica that has acknowledged the stream up to base: the one that
// FAILOVER names, or any.
func (r *Node) synced(o Order, base int64) (ReplicaState, bool) {
	for _, n := range r.Replicas() {
		if n.Online && n.Acked >= base && (o.Host == "" || n.Host == o.Host && n.Port == o.Port) {
			return n, true
		}
	}
	return ReplicaState{}, false
}

// failoverDone ends a FAILOVER whose replica has taken over.
func (r *Node) failoverDone() {
	f := &r.failover
	f.mu.Lock()
	was, dying := f.is, f.dying
	f.is = failoverNone
	f.mu.Unlock()
	if was != failoverNone {
		r.db.SetActiveExpiry(dying)
		r.log.Info("FAILOVER: the replica has taken over")
		r.host.PauseWrites(false)
	}
}

// abort ends a FAILOVER that was not completed: this server is the master, or becomes it
// again.
func (r *Node) abort(ctx context.Context, why string) {
	tx := r.db.BeginAll(0)
	defer tx.Commit()
	if ctx.Err() == nil {
		r.AbortFailover(tx, why)
	}
}

// AbortFailover ends a FAILOVER that was not completed. This server stays the master or becomes it again, and writes
// continue. It reports whether there was a FAILOVER. tx holds all shards. why is for the log.
func (r *Node) AbortFailover(tx *engine.Tx, why string) bool {
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
		r.Promote(tx)
	}
	tx.SetActiveExpiry(dying)
	r.log.Warn("FAILOVER was aborted", "why", why)
	r.host.PauseWrites(false)
	return true
}

// notTaken ends a FAILOVER whose replica has refused to take over.
func (r *Node) notTaken(l *link, why error) {
	tx := r.db.BeginAll(0)
	defer tx.Commit()
	if l.current() {
		r.AbortFailover(tx, why.Error())
	}
}

// promotedBy makes this replica the master, because its master hands over to it with PSYNC id offset FAILOVER. tx
// holds all shards. If the master repeats the request because it has not received the reply, promotedBy agrees again;
// after a refusal both would be masters.
func (r *Node) promotedBy(tx *engine.Tx, id string) error {
	mine, before, _ := r.Names()
	switch {
	case !r.IsReplica() && id == before:
		return nil
	case !r.IsReplica():
		return errors.New("PSYNC FAILOVER can't be sent to a master.")
	case id != mine:
		return errors.New("PSYNC FAILOVER replid must match my replid.")
	}
	r.log.Info("the master hands over to this replica")
	r.Promote(tx)
	return nil
}
