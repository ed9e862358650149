package goredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/remote"
)

// tracker makes the connections of a feed of Track. Each is a RESP2 connection that has turned
// tracking on for prefixes, that redirects its invalidations to itself, and that subscribes to
// their channel. In a cluster there is one for each master.
type tracker struct {
	b        *driver
	prefixes []string
}

// Track implements TrackingDriver.
func (b *driver) Track(ctx context.Context, prefixes []string) (conn.Feed, error) {
	if b.one == nil && b.nodes == nil {
		return nil, fmt.Errorf("ebb: track: %s: a Ring does not say which server has a key: %w", b, errors.ErrUnsupported)
	}
	if !b.calls.Enter() {
		return nil, conn.ErrClosed
	}
	defer b.calls.Leave()
	if err := b.probe.Known(ctx); err != nil {
		return nil, err
	}
	f := &feed{b: b, kind: conn.Channels, names: []string{conn.Tracking}, track: &tracker{b: b, prefixes: prefixes}}
	return remote.NewFeed(ctx, context.Background(), 0, f.open)
}

// clients returns a client for each server, whose connections track. The caller closes them.
func (t *tracker) clients(of []subscriber) []*redis.Client {
	var all []*redis.Client
	for _, s := range of {
		node, ok := s.(*redis.Client)
		if !ok {
			continue
		}
		o := *node.Options()
		o.Protocol = 2
		o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.MaxConcurrentDials = 1, 0, 1, 1, 1
		o.MaxRetries = -1
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		then := o.OnConnect
		o.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
			if then != nil {
				if err := then(ctx, cn); err != nil {
					return err
				}
			}
			id, err := cn.ClientID(ctx).Result()
			if err != nil {
				return err
			}
			args := []any{"CLIENT", "TRACKING", "ON", "REDIRECT", id, "BCAST"}
			for _, p := range t.prefixes {
				args = append(args, "PREFIX", p)
			}
			return cn.Do(ctx, args...).Err()
		}
		c := redis.NewClient(&o)
		if t.b.moves != nil {
			c.AddHook(t.b.moves)
		}
		all = append(all, c)
	}
	return all
}

func closeClients(all []*redis.Client) {
	for _, c := range all {
		_ = c.Close()
	}
}

// probeTTL is the life of the key that verify writes.
const probeTTL = time.Second

// verify writes a key, on ebb, and waits for its invalidation: servers of ebb 0.6 and before accept a
// redirection of a connection to itself, and send nothing. A program would keep stale copies for
// ever.
func (t *tracker) verify(ctx context.Context, sources []*source, within time.Duration) error {
	if !t.b.Capabilities().Native || len(sources) != 1 {
		return nil
	}
	s := sources[0]
	s.probe = t.prefixes[0] + ":probe:"
	key := s.probe + kit.ID()
	if v, err := t.b.run(ctx, []any{"SET", key, "", "PX", int(probeTTL / time.Millisecond)}); err != nil || v.Err() != nil {
		return errors.Join(err, v.Err())
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	defer context.AfterFunc(bounded, func() { _ = s.Close() })()
	for {
		x, err := s.ReceiveTimeout(bounded, within)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("ebb: track: no invalidation came within %v: %w: %w", within, errors.ErrUnsupported, err)
		}
		if m, ok := x.(*redis.Message); ok {
			if slices.Contains(m.PayloadSlice, key) {
				return nil
			}
			s.early = append(s.early, m)
		}
	}
}
