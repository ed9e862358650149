package rueidisebb

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// fanOut runs a command on all masters of a cluster.
type fanOut func(ctx context.Context, d *driver, w *wait, words []string) (conn.Value, error)

// fanOutOf returns the function that runs a command on all masters, or nil if the command has
// one node.
func fanOutOf(words []string) fanOut {
	run := routing.FanOutOf(nameOf(words))
	if run == nil {
		return nil
	}
	return func(ctx context.Context, d *driver, w *wait, words []string) (conn.Value, error) {
		all, err := d.masters(ctx)
		if err != nil {
			return conn.Value{}, err
		}
		addrs := make([]string, len(all))
		for i, m := range all {
			addrs[i] = m.addr
		}
		word := func(s string) string { return s }
		return remote.FanOut(run, words, word, addrs,
			func(at int, args []string) (conn.Value, error) { return d.onMaster(ctx, all[at], w, args) })
	}
}

// master is a node that has slots.
type master struct {
	addr string
	rueidis.Client
}

// masters returns the nodes that have slots, by address, from the map of the first node
// that answers. It fails if rueidis has no client for one of them.
func (d *driver) masters(ctx context.Context) ([]master, error) {
	var found []master
	_, err := d.policy.Persist(ctx, "CLUSTER", func() (a remote.Answer) {
		nodes := d.client.Nodes()
		addrs := make([]string, 0, len(nodes))
		for addr := range nodes {
			addrs = append(addrs, addr)
		}
		slices.Sort(addrs)
		a = remote.Answer{Err: fmt.Errorf("rueidisebb: %w: the cluster has no nodes", conn.ErrUnavailable)}
		for _, addr := range addrs {
			a = d.shared(ctx, "CLUSTER", func() remote.Answer {
				return d.answer(ctx, "CLUSTER", nodes[addr].Do(ctx, d.client.B().ClusterSlots().Build()))
			})
			if a.Err != nil || a.V.Err() != nil {
				continue
			}
			var err error
			if found, err = named(mastersOf(a.V, addr), nodes); err == nil {
				return a
			}
			a = remote.Answer{Err: err} // rueidis reads the map again after a while
		}
		if ctx.Err() == nil && a.Err != nil {
			a.Ran = false // the command only reads
		}
		return a
	})
	return found, err
}

// mastersOf returns the masters in a reply of CLUSTER SLOTS. from is the address of the
// node that sent it.
func mastersOf(slots conn.Value, from string) (addrs []string) {
	for _, r := range slots.Elems {
		if addr := masterIn(r, from); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

// masterOf returns the master of a slot; "" if there is none.
func masterOf(slots conn.Value, from string, slot int) string {
	for _, r := range slots.Elems {
		if len(r.Elems) > 1 && r.Elems[0].Int <= int64(slot) && int64(slot) <= r.Elems[1].Int {
			return masterIn(r, from)
		}
	}
	return ""
}

// masterIn returns the master of a range; "" if there is none.
func masterIn(r conn.Value, from string) string {
	if len(r.Elems) < 3 || len(r.Elems[2].Elems) < 2 {
		return ""
	}
	host := r.Elems[2].Elems[0].Str
	if host == "" { // the node does not know its own host
		host, _, _ = net.SplitHostPort(from)
	}
	return net.JoinHostPort(host, r.Elems[2].Elems[1].String())
}

// named returns the nodes at some addresses.
func named(addrs []string, nodes map[string]rueidis.Client) ([]master, error) {
	all := make([]master, len(addrs))
	for i, addr := range addrs {
		if all[i] = (master{addr, nodes[addr]}); all[i].Client == nil {
			return nil, fmt.Errorf("rueidisebb: %w: the node %s is not known yet", conn.ErrUnavailable, addr)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("rueidisebb: %w: the cluster has no masters", conn.ErrUnavailable)
	}
	return all, nil
}

// onMaster runs a command on this node only.
func (d *driver) onMaster(ctx context.Context, m master, w *wait, words []string) (conn.Value, error) {
	return d.policy.Persist(ctx, words[0], func() remote.Answer {
		if w = w.of(words); w == nil {
			return d.shared(ctx, words[0], func() remote.Answer {
				return d.answer(ctx, words[0], m.Do(ctx, d.client.B().Arbitrary(words...).Build()))
			})
		}
		return withDedicated(m, func(c rueidis.DedicatedClient) (remote.Answer, bool) {
			a := d.sendOn(ctx, c, false, w, words)[0]
			return a, a.Err == nil
		})
	})
}
