package rueidisebb

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/routing"
)

// newLearner returns what finds out about the server.
func (d *driver) newLearner() *routing.Learner[conn.Capabilities] {
	return &routing.Learner[conn.Capabilities]{Door: "rueidisebb", Ask: d.greet, Better: func(c conn.Capabilities) bool {
		return c.Native || c.HashFieldTTL || c.ShardedPubSub
	}}
}

// Capabilities implements ebb.Driver. It asks the server if it is not known yet.
func (d *driver) Capabilities() conn.Capabilities { return d.learner.Guess(d.ctx) }

// known makes sure, before a command is sent, that the server is known.
func (d *driver) known(ctx context.Context) error {
	err := d.learner.Known(ctx)
	if errors.Is(err, routing.ErrGuessed) {
		err = fmt.Errorf("rueidisebb: %w: %w", conn.ErrUnavailable, err)
	}
	return err
}

// greet makes sure that a server is there, and learns what it is.
func (d *driver) greet(ctx context.Context) (caps conn.Capabilities, err error) {
	if !d.calls.enter() { // Capabilities may ask after Close
		return caps, conn.ErrClosed
	}
	defer d.calls.Done()
	info, has, err := routing.Greet(func(words ...string) (conn.Value, error) { return d.plain(ctx, words...) })
	if err != nil {
		return caps, err
	}
	caps = conn.CapabilitiesOf(info, has)
	caps.Cluster = caps.Cluster || d.cluster
	return caps, nil
}

// plain runs a command without a key, on a server that is not known yet.
func (d *driver) plain(ctx context.Context, words ...string) (conn.Value, error) {
	return d.persist(ctx, words[0], func() answer {
		return d.shared(ctx, words[0], func() answer {
			return d.answer(ctx, words[0], d.client.Do(ctx, d.client.B().Arbitrary(words...).Build()))
		})
	})
}
