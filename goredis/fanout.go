package goredis

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// fanOut returns the function that runs a command on all masters of a cluster, or nil if
// the command has one node.
func fanOut(plain []any) func(ctx context.Context, k *cluster, plain []any) (conn.Value, error) {
	run := routing.FanOutOf(nameOf(plain))
	if run == nil {
		return nil
	}
	return func(ctx context.Context, k *cluster, plain []any) (conn.Value, error) {
		nodes, err := k.masters(ctx)
		if err != nil {
			return conn.Value{}, err
		}
		addrs := make([]string, len(nodes))
		for i, n := range nodes {
			addrs[i] = n.Options().Addr
		}
		word := func(s string) any { return s }
		return remote.FanOut(run, plain, word, addrs, func(at int, args []any) (conn.Value, error) { return onNode(ctx, nodes[at], args) })
	}
}

// onNode runs a command on this node only.
func onNode(ctx context.Context, node *redis.Client, plain []any) (conn.Value, error) {
	var a remote.Answer
	var r routing.Retry
	defer r.Stop()
	for r.Next(ctx) {
		if a = send(ctx, node, plain); !again(ctx, a) {
			return a.V, a.Err
		}
	}
	return policy.Result(ctx, named(plain), a)
}
