package expmap

import (
	"context"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/nearcache"
	"github.com/ebbdb/ebb/resp"
)

// localize makes the near cache of a map without a family. The keys of its entries and of their deadlines
// count as one: a change of either removes all local values.
func (m *Map[K, V]) localize() {
	if m.o.Local == 0 {
		return
	}
	m.near = nearcache.New(m.c, m.o.Local, func(string) string { return m.key }, m.key, m.extra[0])
}

// changed removes the local values of the map, so that this process reads its own writes. Each call that
// writes calls it at its end, even after an error, because the write may have taken effect.
func (m *Map[K, V]) changed() {
	if m.near != nil {
		m.near.Changed(m.key)
	}
}

const (
	// Without reports of changes a value is kept for a tenth of its remaining time, and for maxLocal at most.
	localShare, maxLocal = 10, time.Second
)

// getLocal reads as get does, through the near cache.
func (m *Map[K, V]) getLocal(ctx context.Context, field string) (value V, ok bool, err error) {
	if stored, ok := m.near.Get(m.key, field); ok {
		m.local.Add(1)
		return m.read(conn.Value{Kind: resp.KindBulk, Str: stored})
	}
	field = strings.Clone(field) // the cache keeps it, and it may be a part of a long string
	var stored conn.Value
	var ttl time.Duration
	kept := false
	r := m.near.Begin(m.key)
	defer func() {
		bound := maxLocal
		if ttl >= 0 {
			bound = min(bound, ttl/localShare)
		}
		m.near.End(r, kept, field, stored.String(), ttl, bound)
	}()
	v, err := m.run(ctx, m.layout().peek, "", field)
	if err != nil {
		return value, false, err
	}
	if len(v.Elems) == 2 {
		stored = v.Elems[0]
		if ttl = time.Duration(v.Elems[1].Int) * time.Millisecond; v.Elems[1].Int < 0 {
			ttl = conn.Forever
		}
	} else {
		stored = conn.Value{Kind: resp.KindNull}
	}
	value, ok, err = m.read(stored)
	kept = ok
	return value, ok, err
}
