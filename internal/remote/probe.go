package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/routing"
)

// Probe is the capability probe of a driver.
type Probe struct {
	routing.Probe[conn.Capabilities]
}

// NewProbe returns the probe of a driver, whose name begins the errors. run runs a command
// without a key before the capabilities are known. Its errors, and those of the server,
// begin with doing unless that is "". cluster says that the driver's client is one of a
// cluster.
func NewProbe(name, doing string, cluster bool, run func(ctx context.Context, words ...string) (conn.Value, error)) *Probe {
	return &Probe{routing.Probe[conn.Capabilities]{
		Name: name,
		Ask: func(ctx context.Context) (caps conn.Capabilities, err error) {
			info, has, err := routing.Handshake(func(words ...string) (conn.Value, error) { return run(ctx, words...) })
			if err != nil && doing != "" {
				err = fmt.Errorf("%s: %w", doing, err)
			}
			if err != nil {
				return caps, err
			}
			caps = driverutil.CapabilitiesOf(info, has)
			caps.Cluster = caps.Cluster || cluster
			return caps, nil
		},
		Better: func(c conn.Capabilities) bool { return c.Native || c.HashFieldTTL || c.ShardedPubSub },
	}}
}

// Known makes sure, before a command is sent, that the probe has succeeded; see
// routing.Probe.Known.
func (p *Probe) Known(ctx context.Context) error {
	err := p.Probe.Known(ctx)
	if errors.Is(err, routing.ErrGuessed) {
		err = fmt.Errorf("%s: %w: %w", p.Name, conn.ErrUnavailable, err)
	}
	return err
}
