package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/lock"
)

// failover is the lock by SET NX on a master with a replica. The master acknowledges the lock before the replica has it;
// then the master is lost, and the replica takes over without the lock.
var failover = classic{
	title: "a lock by SET NX PX: the master is lost before its replica has the lock",
	right: "1",
	rows:  []row{{"holders at once", holdersBySet}, {"lock on a Conn.Replicated", holdersByReplicas}},
}

// failOver runs acquire on a master whose link to its replica is cut, and on the replica that has become the master.
func (b *bench) failOver(ctx context.Context, acquire func(c *ebb.Conn) (bool, error)) (holders int64, err error) {
	if b.pair == nil {
		return missing, nil
	}
	p, err := b.pair(ctx)
	if err != nil {
		return 0, err
	}
	defer p.stop()
	if _, err := p.master.Do(ctx, "SET", "before", "x"); err != nil {
		return 0, err
	}
	err = until(ctx, "the replica follows", func() (bool, error) {
		n, err := p.replica.Exists(ctx, "before")
		return n == 1, err
	})
	if err != nil {
		return 0, err
	}
	if _, err := p.replica.Do(ctx, "REPLICAOF", "127.0.0.1", 1); err != nil { // the network between the two breaks
		return 0, err
	}
	for i, c := range []*ebb.Conn{p.master, p.replica} {
		if i == 1 {
			if _, err := c.Do(ctx, "REPLICAOF", "NO", "ONE"); err != nil { // as Sentinel does; the master is gone
				return 0, err
			}
		}
		ok, err := acquire(c)
		if err != nil {
			return 0, err
		}
		if ok {
			holders++
		}
	}
	return holders, nil
}

func holdersBySet(ctx context.Context, b *bench) (int64, error) {
	return b.failOver(ctx, func(c *ebb.Conn) (bool, error) {
		v, err := c.Do(ctx, "SET", "report", "locked", "NX", "PX", time.Minute.Milliseconds())
		return err == nil && !v.IsNull(), err
	})
}

// holdersByReplicas asks for one replica before the failover, and has none to ask for afterwards.
func holdersByReplicas(ctx context.Context, b *bench) (int64, error) {
	replicas := 1
	return b.failOver(ctx, func(c *ebb.Conn) (bool, error) {
		view := c.Replicated(replicas, 100*time.Millisecond)
		if replicas == 0 {
			view = c
		}
		replicas = 0
		l, err := lock.New(view, "report")
		if err != nil {
			return false, err
		}
		lease, err := l.TryAcquire(ctx)
		switch {
		case errors.Is(err, ebb.ErrNotReplicated):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("the lock: %w", err)
		}
		return true, lease.Release(ctx)
	})
}
