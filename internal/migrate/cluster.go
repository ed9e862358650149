package migrate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/serverurl"
)

// sources returns the server of a URL, or the masters of its cluster.
func (m *Migration) sources(ctx context.Context, url string) ([]*peer, error) {
	urls := []string{url}
	if scheme, rest, ok := strings.Cut(url, "://"); ok {
		if canonical, _ := serverurl.Canonical(scheme); strings.HasSuffix(canonical, "+cluster") {
			urls = nodeURLs(strings.TrimSuffix(canonical, "+cluster"), rest)
		}
	}
	var failed []error
	for _, one := range urls {
		p, err := m.connect(ctx, "FROM", one)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if p.info["cluster_enabled"] != "1" || p.product == "ebb" {
			return []*peer{p}, nil
		}
		defer p.close()
		return m.masters(ctx, p)
	}
	return nil, errors.Join(failed...)
}

// nodeURLs splits user:password@host,host/?options into URLs of one host each.
func nodeURLs(scheme, rest string) (urls []string) {
	login, tail := "", ""
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		login, rest = rest[:i+1], rest[i+1:]
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest, tail = rest[:i], rest[i:]
	}
	for _, host := range strings.Split(rest, ",") {
		urls = append(urls, scheme+"://"+login+host+tail)
	}
	return urls
}

// node is a master of a cluster, and its slots as CLUSTER NODES writes them.
type node struct{ addr, slots string }

// masters connects to the masters of a node's cluster that have slots.
func (m *Migration) masters(ctx context.Context, p *peer) (all []*peer, err error) {
	nodes, err := layout(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		s := p.server
		if s.Host, s.Port, err = net.SplitHostPort(n.addr); err != nil {
			return all, fmt.Errorf("FROM %s: CLUSTER NODES: %w", p, err)
		}
		one, err := m.reach(ctx, "FROM", s)
		if err != nil {
			for _, p := range all {
				p.close()
			}
			return nil, fmt.Errorf("master of the slots %s: %w", n.slots, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("FROM %s: no master of its cluster has slots", p)
	}
	return all, nil
}

// layout returns the masters with slots, by address. Slots that are moving between nodes are an error: their keys
// would be read on the wrong node.
func layout(ctx context.Context, p *peer) (nodes []node, _ error) {
	v, err := p.do(ctx, "CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(v.String()) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.Contains(f[2], "master") {
			continue
		}
		addr, _, _ := strings.Cut(f[1], "@")
		if host, port, err := net.SplitHostPort(addr); err == nil && host == "" {
			addr = net.JoinHostPort(p.server.Host, port)
		}
		slots := strings.Join(f[8:], " ")
		if strings.Contains(slots, "[") {
			return nil, fmt.Errorf("FROM %s moves slots between nodes (%s): migrate when that is done", addr, slots)
		}
		if strings.Contains(f[2], "fail") {
			return nil, fmt.Errorf("FROM %s, the master of the slots %s, is down (%s)", addr, slots, f[2])
		}
		nodes = append(nodes, node{addr, slots})
	}
	slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(a.addr, b.addr) })
	return nodes, nil
}
