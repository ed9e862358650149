package conn

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/internal/drivers"
)

// Replicated returns a view of the Conn whose calls return when n replicas have received their
// writes too (WAIT). Without it a failover can lose acknowledged writes, because Sentinel and a
// cluster may promote a replica that has not received them. If fewer replicas have a write
// after within, the call returns its reply and ErrNotReplicated: the command has run, and a
// failover may lose it. Calls that only read, and calls that an error reply refuses, do not
// wait.
//
// Each write costs a round trip from the master to its replicas. The longest within is three
// quarters of the URL's read_timeout (3 s). A Pipeline waits once for all its writes. On an
// embedded engine with files, a call returns when its write is on disk; without files it does
// not wait. If the Driver is not a ReplicatedDriver, every write returns ErrArgument.
//
// The view shares all resources of the Conn and ends with it. Closing the view does nothing.
func (c *Conn) Replicated(n int, within time.Duration) *Conn {
	prefix, shown := c.prefix, c.shown
	if c.of != nil {
		c = c.of
	}
	view := &Conn{of: c, d: unreplicated{c.d}, prefix: prefix, shown: shown, wait: fmt.Sprintf(", writes on %d replicas within %v", n, within)}
	if d, ok := c.d.(ReplicatedDriver); ok {
		view.d = d.Replicated(n, within)
	}
	return view
}

// unreplicated is the view of a Driver that is not a ReplicatedDriver.
type unreplicated struct{ Driver }

func (u unreplicated) err() error {
	return fmt.Errorf("%w: Replicated: the Driver of %s has no such method", ErrArgument, u.Driver)
}

// refuse returns the error if one of the commands may write.
func (u unreplicated) refuse(cmds ...[]any) error {
	for _, args := range cmds {
		if drivers.MayWrite(args) {
			return u.err()
		}
	}
	return nil
}

func (u unreplicated) Do(ctx context.Context, args []any) (Value, error) {
	if err := u.refuse(args); err != nil {
		return Value{}, err
	}
	return u.Driver.Do(ctx, args)
}

func (u unreplicated) Block(ctx context.Context, args []any) (Value, error) {
	if err := u.refuse(args); err != nil {
		return Value{}, err
	}
	return u.Driver.Block(ctx, args)
}

func (u unreplicated) Pipeline(ctx context.Context, cmds [][]any) ([]Value, error) {
	if err := u.refuse(cmds...); err != nil {
		return nil, err
	}
	return u.Driver.Pipeline(ctx, cmds)
}

func (u unreplicated) Tx(ctx context.Context, cmds [][]any) ([]Value, error) {
	if err := u.refuse(cmds...); err != nil {
		return nil, err
	}
	return u.Driver.Tx(ctx, cmds)
}

func (u unreplicated) Watch(context.Context, func(*Watched) error, []string) error { return u.err() }
