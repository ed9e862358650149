package rueidisebb

import (
	"context"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
)

// Capabilities implements conn.Driver. It asks the server if it is not known yet.
func (d *driver) Capabilities() conn.Capabilities { return d.probe.Guess(d.ctx) }

// raw runs a command without a key, on a server that is not known yet.
func (d *driver) raw(ctx context.Context, words ...string) (conn.Value, error) {
	if !d.calls.Enter() { // Capabilities may ask after Close
		return conn.Value{}, conn.ErrClosed
	}
	defer d.calls.Leave()
	return d.policy.Persist(ctx, words[0], func() remote.Answer {
		return d.shared(ctx, words[0], func() remote.Answer {
			return d.answer(ctx, words[0], d.client.Do(ctx, d.client.B().Arbitrary(words...).Build()))
		})
	})
}
