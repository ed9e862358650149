package goredis

import (
	"context"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
)

// Capabilities implements Driver: it returns the known capabilities, after a capability
// probe if there are none yet.
func (b *driver) Capabilities() conn.Capabilities { return b.probe.Guess(context.Background()) }

// raw runs a command without a key, on a server whose capabilities are not known yet.
func (b *driver) raw(ctx context.Context, words ...string) (conn.Value, error) {
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	if b.nodes != nil {
		return b.nodes.do(ctx, args)
	}
	return b.policy.Persist(ctx, named(args), func() remote.Answer { return send(ctx, b.client, args) })
}
