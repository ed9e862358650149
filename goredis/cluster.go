package goredis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/resp"
)

// cluster sends commands to the nodes of a cluster. go-redis's client knows which node has
// which slot. This type decides what to do after an answer, because go-redis's client
// would send a command again that may have run.
//
//	node := master of the key's slot
//	send once ── reply ──────────────────────────────── done
//	         ├─ MOVED, ASK ──────────────────────────── once more, to the node named
//	         ├─ not run: not written, CLUSTERDOWN, ... ─ a pause, another look at the map
//	         └─ lost after it was written ───────────── ErrUnavailable
type cluster struct {
	client *redis.ClusterClient
	policy remote.Policy // for the errors

	look chan struct{} // cap 1: the holder of the token reads the map

	mu     sync.Mutex // guards what follows
	closed bool
	seen   int // reads of the map so far
	byAddr map[string]*redis.Client
	extra  map[string]*redis.Client // nodes that the map does not have yet; close closes them
	auto   map[*redis.Client]*autoPipeline
}

func newCluster(c *redis.ClusterClient) *cluster {
	return &cluster{
		client: c, policy: policy, look: make(chan struct{}, 1), byAddr: map[string]*redis.Client{}, extra: map[string]*redis.Client{},
		auto: map[*redis.Client]*autoPipeline{},
	}
}

// to returns the autoPipeline of a node.
func (k *cluster) to(node *redis.Client) *autoPipeline {
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.auto[node]
	if g == nil {
		g = newAutoPipeline(node)
		k.auto[node] = g
	}
	return g
}

// landed waits until all pipelines have ended.
func (k *cluster) landed() {
	k.mu.Lock()
	all := slices.Collect(maps.Values(k.auto))
	k.mu.Unlock()
	for _, g := range all {
		g.close()
	}
}

// close closes the clients in extra. The cluster's client belongs to the driver.
func (k *cluster) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	var errs []error
	for _, n := range k.extra {
		errs = append(errs, n.Close())
	}
	clear(k.extra)
	return errors.Join(errs...)
}

// looks returns the number of reads of the map.
func (k *cluster) looks() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen
}

// refresh reads the map of slots again, unless another call has read it after the read
// that the caller knows, whose number is seen.
func (k *cluster) refresh(ctx context.Context, seen int) error {
	select {
	case k.look <- struct{}{}:
		defer func() { <-k.look }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if k.looks() != seen {
		return nil
	}
	var mu sync.Mutex
	nodes := map[string]*redis.Client{}
	err := k.client.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes[c.Options().Addr] = c
		return nil
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	if err == nil {
		k.byAddr = nodes
	}
	return err
}

// named returns the node at an address that a redirection names.
func (k *cluster) named(ctx context.Context, from *redis.Client, addr string) (*redis.Client, error) {
	if strings.HasPrefix(addr, ":") { // the node does not know its own host
		host, _, err := net.SplitHostPort(from.Options().Addr)
		if err != nil {
			return nil, err
		}
		addr = host + addr
	}
	k.mu.Lock()
	n, seen := k.byAddr[addr], k.seen
	if n == nil {
		n = k.extra[addr]
	}
	k.mu.Unlock()
	if n != nil {
		return n, nil
	}
	if err := k.refresh(ctx, seen); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := k.byAddr[addr]; n != nil {
		return n, nil
	}
	if n := k.extra[addr]; n != nil {
		return n, nil
	}
	if k.closed {
		return nil, conn.ErrClosed
	}
	o := *from.Options() // a copy of complete options, where a 0 would become the default again
	o.Addr = addr
	o.MaxRetries = -1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	n = redis.NewClient(&o)
	k.extra[addr] = n
	return n, nil
}

func (k *cluster) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// masters returns the nodes that have slots, by address.
func (k *cluster) masters(ctx context.Context) ([]*redis.Client, error) {
	if err := k.refresh(ctx, k.looks()); err != nil {
		return nil, lost(ctx, "the map of the cluster", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []*redis.Client
	for _, n := range k.byAddr {
		all = append(all, n)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Options().Addr < all[j].Options().Addr })
	if len(all) == 0 {
		return nil, fmt.Errorf("ebb: %w: the cluster has no masters", conn.ErrUnavailable)
	}
	return all, nil
}

// artificial reports whether the client's own function says which node has which slot, as that of NewFailoverClusterClient does,
// which asks Sentinel. Such nodes tell each other nothing: a message reaches the subscribers of one of them.
func (k *cluster) artificial() bool { return k.client.Options().ClusterSlots != nil }

// address returns the address of the master of a key, "" if it is not known. While the client has a map it sends nothing.
func (k *cluster) address(ctx context.Context, key string) string {
	node, err := k.client.MasterForKey(ctx, key)
	if err != nil {
		return ""
	}
	return node.Options().Addr
}

// sendTo runs one command on a node, once, after ASKING if ask is true.
func sendTo(ctx context.Context, node *redis.Client, ask bool, plain []any) remote.Answer {
	if !ask {
		return send(ctx, node, plain)
	}
	return sendAll(ctx, node.Pipeline(), [][]any{{"ASKING"}, plain})[1]
}

func (k *cluster) do(ctx context.Context, plain []any) (conn.Value, error) {
	if everywhere := fanOut(plain); everywhere != nil {
		return everywhere(ctx, k, plain)
	}
	return k.run(ctx, plain, func(ctx context.Context, node *redis.Client, ask bool) remote.Answer {
		if ask {
			return sendTo(ctx, node, ask, plain)
		}
		return k.to(node).send(ctx, plain)
	})
}

// run tries a command on the node of its key.
func (k *cluster) run(ctx context.Context, plain []any,
	try func(ctx context.Context, node *redis.Client, ask bool) remote.Answer) (conn.Value, error) {
	return k.at(ctx, named(plain), route(plain), try)
}

// hops is the number of redirections that a call follows without a pause. A slot moves
// rarely, and two nodes that redirect to each other will soon agree.
const hops = 3

// at calls try with the node of a key ("": any node), until an answer is final or the
// policy allows no further try.
func (k *cluster) at(ctx context.Context, doing, key string,
	try func(ctx context.Context, node *redis.Client, ask bool) remote.Answer) (conn.Value, error) {
	var a remote.Answer
	var r routing.Retry
	defer r.Stop()
	for r.Next(ctx) {
		seen := k.looks()
		node, err := k.client.MasterForKey(ctx, key)
		if err != nil {
			a = remote.Answer{Err: lost(ctx, doing, err)}
		} else {
			a = k.hop(ctx, node, try)
		}
		if !again(ctx, a) {
			break
		}
		if errors.Is(a.Err, conn.ErrClosed) && k.isClosed() {
			break
		}
		_ = k.refresh(ctx, seen)
	}
	return k.policy.Result(ctx, doing, a)
}

// again reports whether another try is safe and may succeed. In a cluster this includes
// the error of a closed client, because its node has left the cluster.
func again(ctx context.Context, a remote.Answer) bool {
	switch {
	case a.Ran || ctx.Err() != nil:
		return false
	case a.Err == nil:
		return routing.Untouched(a.V)
	}
	return errors.Is(a.Err, conn.ErrUnavailable) || errors.Is(a.Err, conn.ErrClosed)
}

// hop calls try on a node, and on the nodes to which it redirects.
func (k *cluster) hop(ctx context.Context, node *redis.Client,
	try func(ctx context.Context, node *redis.Client, ask bool) remote.Answer) remote.Answer {
	ask := false
	for range hops {
		a := try(ctx, node, ask)
		if a.Err != nil {
			return a
		}
		addr, asking, ok := routing.Redirect(a.V)
		if !ok {
			return a
		}
		next, err := k.named(ctx, node, addr)
		if err != nil {
			return a
		}
		if !asking {
			k.client.ReloadState(ctx) // for the next call
		}
		node, ask = next, asking
	}
	return try(ctx, node, ask)
}

func (k *cluster) tx(ctx context.Context, plain [][]any) ([]conn.Value, error) {
	key, err := remote.OneSlot("a transaction", allKeys(plain))
	if err != nil {
		return nil, err
	}
	var replies []conn.Value
	_, err = k.at(ctx, "transaction", key, func(ctx context.Context, node *redis.Client, ask bool) remote.Answer {
		var a remote.Answer
		replies, a = txOn(ctx, node, ask, plain)
		return a
	})
	return replies, err
}

func (k *cluster) watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	if _, err := remote.OneSlot("Watch", slices.Values(keys)); err != nil {
		return err
	}
	var result error
	inside := false
	v, err := k.at(ctx, "WATCH", keys[0], func(ctx context.Context, node *redis.Client, ask bool) remote.Answer {
		if ask { // the keys are moving to that node: wait until they are there
			return remote.Answer{V: conn.Value{Kind: resp.KindError, Str: "TRYAGAIN the keys are being moved"}}
		}
		var a remote.Answer
		a, inside, result = watchOn(ctx, node, fn, keys)
		return a
	})
	switch {
	case inside:
		return result
	case err != nil:
		return err
	}
	return v.Err()
}
