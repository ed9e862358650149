package rueidisebb

import (
	"context"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
)

// Capabilities implements conn.Driver. It runs the capability probe if that has had no
// answer yet.
func (d *driver) Capabilities() conn.Capabilities { return d.probe.Guess(d.ctx) }

// raw runs a command without a key, before the capabilities of the server are known.
func (d *driver) raw(ctx context.Context, words ...string) (conn.Value, error) {
	if !d.calls.Enter() { // the caller may call Capabilities after Close
		return conn.Value{}, conn.ErrClosed
	}
	defer d.calls.Leave()
	return d.policy.Persist(ctx, words[0], func() remote.Answer {
		return d.shared(ctx, words[0], func() remote.Answer {
			return d.answer(ctx, words[0], d.client.Do(ctx, d.client.B().Arbitrary(words...).Build()))
		})
	})
}
