package goredis

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/routing"
)

// newProbe returns the capability probe of the driver.
func (b *driver) newProbe() *routing.Learner[conn.Capabilities] {
	return &routing.Learner[conn.Capabilities]{Door: "ebb", Ask: b.handshake, Better: func(c conn.Capabilities) bool {
		return c.Native || c.HashFieldTTL || c.ShardedPubSub
	}}
}

// Capabilities implements Driver: it returns what is known, and asks first if that is
// nothing.
func (b *driver) Capabilities() conn.Capabilities { return b.probe.Guess(context.Background()) }

// known makes sure, before a command is sent, that the backend is known.
func (b *driver) known(ctx context.Context) error {
	err := b.probe.Known(ctx)
	if errors.Is(err, routing.ErrGuessed) {
		err = fmt.Errorf("ebb: %w: %w", conn.ErrUnavailable, err)
	}
	return err
}

// handshake makes sure that a server is there, and asks it what it is.
func (b *driver) handshake(ctx context.Context) (caps conn.Capabilities, err error) {
	info, has, err := routing.Greet(func(words ...string) (conn.Value, error) { return b.raw(ctx, words) })
	if err != nil {
		return caps, fmt.Errorf("open %s: %w", b.name, err)
	}
	caps = conn.CapabilitiesOf(info, has)
	caps.Cluster = caps.Cluster || b.nodes != nil
	return caps, nil
}

// raw runs a command without a key, on a backend that is not known yet.
func (b *driver) raw(ctx context.Context, words []string) (conn.Value, error) {
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	if b.nodes != nil {
		return b.nodes.do(ctx, args)
	}
	return b.persist(ctx, named(args), func() answer { return send(ctx, b.client, args) })
}
