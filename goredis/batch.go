package goredis

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// job is one command of a batch for a cluster.
type job struct {
	i     int // in the batch
	plain []any
	keys  []string
	route string        // the key that leads to its node
	node  *redis.Client // that a redirection named; nil: the slot's master
	ask   bool
	last  remote.Answer
}

// pipeline sends the commands to their nodes, to all nodes at the same time. A command for
// all nodes runs after the commands before it and before those after it.
func (k *cluster) pipeline(ctx context.Context, plain [][]any) ([]conn.Value, error) {
	answers := make([]remote.Answer, 0, len(plain))
	for len(plain) > 0 {
		n := 0
		for n < len(plain) && fanOut(plain[n]) == nil {
			n++
		}
		if n == 0 {
			v, err := k.do(ctx, plain[0])
			answers = append(answers, remote.Answer{V: v, Err: err, Ran: true})
			n = 1
		} else {
			answers = append(answers, k.batch(ctx, plain[:n])...)
		}
		plain = plain[n:]
	}
	if a := remote.Together(answers); !a.Ran && a.Err == nil && routing.Untouched(a.V) {
		_, err := policy.Result(ctx, "pipeline", a)
		return nil, err
	}
	return values(answers)
}

// batch runs commands that have one node each. It sends a command again that did not run,
// unless a later command on one of its keys has run. Then the error stays in its reply,
// because the order of the commands on a key must hold.
func (k *cluster) batch(ctx context.Context, plain [][]any) []remote.Answer {
	jobs := newJobs(plain)
	pending := jobs
	var r routing.Retry
	defer r.Stop()
	for r.Next(ctx) {
		seen, moved := k.looks(), true
		for h := 0; moved && len(pending) > 0 && h <= hops; h++ {
			k.round(ctx, pending)
			pending, moved = k.unfinished(ctx, pending)
		}
		if len(pending) == 0 || ctx.Err() != nil {
			break
		}
		for _, j := range pending {
			j.node, j.ask = nil, false
		}
		_ = k.refresh(ctx, seen)
	}
	answers := make([]remote.Answer, len(jobs))
	for i, j := range jobs {
		answers[i] = j.last
	}
	return answers
}

// newJobs finds the node of each command. Commands without a key go to a node that has
// others.
func newJobs(plain [][]any) []*job {
	jobs := make([]*job, len(plain))
	some := ""
	for i, args := range plain {
		j := &job{i: i, plain: args, keys: keysOf(args), route: route(args)}
		if some == "" {
			some = j.route
		}
		jobs[i] = j
	}
	for _, j := range jobs {
		if j.route == "" {
			j.route = some
		}
	}
	return jobs
}

// round sends jobs to their nodes, to all nodes at the same time, and waits.
func (k *cluster) round(ctx context.Context, jobs []*job) {
	groups := map[*redis.Client][]*job{}
	for _, j := range jobs {
		node := j.node
		if node == nil {
			var err error
			if node, err = k.client.MasterForKey(ctx, j.route); err != nil {
				j.last = remote.Answer{Err: lost(ctx, "pipeline", err)}
				continue
			}
		}
		groups[node] = append(groups[node], j)
	}
	var all sync.WaitGroup
	for node, group := range groups {
		all.Go(func() { sendGroup(ctx, node, group) })
	}
	all.Wait()
}

// sendGroup sends jobs to one node.
func sendGroup(ctx context.Context, node *redis.Client, group []*job) {
	var plain [][]any
	var at []int
	for _, j := range group {
		if j.ask {
			plain = append(plain, []any{"ASKING"})
		}
		at = append(at, len(plain))
		plain = append(plain, j.plain)
	}
	answers := sendAll(ctx, node.Pipeline(), plain)
	for i, j := range group {
		j.node, j.last = node, answers[at[i]]
	}
}

// unfinished returns the jobs of a round that are to be sent again; moved says
// that each of them was redirected.
func (k *cluster) unfinished(ctx context.Context, jobs []*job) (pending []*job, moved bool) {
	ran := map[string]int{} // the last job on a key that has run, counted from 1
	for _, j := range jobs {
		for _, key := range j.keys {
			if !again(ctx, j.last) {
				ran[key] = j.i + 1
			}
		}
	}
	moved = true
	for _, j := range jobs {
		if !again(ctx, j.last) || slices.ContainsFunc(j.keys, func(key string) bool { return ran[key] > j.i }) {
			continue
		}
		pending = append(pending, j)
		addr, ask, ok := routing.Redirect(j.last.V)
		if ok && j.last.Err == nil {
			if next, err := k.named(ctx, j.node, addr); err == nil {
				j.node, j.ask = next, ask
				if !ask {
					k.client.ReloadState(ctx)
				}
				continue
			}
		}
		moved = false
	}
	return pending, moved
}
