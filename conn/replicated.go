package conn

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/internal/routing"
)

// Replicated returns a view of the Conn whose calls return when what they wrote is
// on n replicas too (WAIT), so that no failover loses it: Sentinel and a cluster
// promote a replica that has what the master acknowledged, or may not have it. If
// fewer have it after within, the call returns ErrNotReplicated beside its reply:
// it has run, and may be lost with the master. Calls that only read are as before,
// and so are calls that an error reply refuses.
//
// Each write costs a round trip from the master to its replicas. within is cut to
// three quarters of the URL's read_timeout (3 s). Writes of a Pipeline are waited
// for together. On an embedded engine with files a call returns when what it wrote
// is on disk; without files there is nothing to wait for. On a Driver that is no
// ReplicatedDriver, every write fails with ErrArgument.
//
// The view shares everything with the Conn, and ends with it: closing the view
// does nothing.
func (c *Conn) Replicated(n int, within time.Duration) *Conn {
	if c.of != nil {
		c = c.of
	}
	view := &Conn{of: c, d: unreplicated{c.d}, wait: fmt.Sprintf(", writes on %d replicas within %v", n, within)}
	if d, ok := c.d.(ReplicatedDriver); ok {
		view.d = d.Replicated(n, within)
	}
	return view
}

// unreplicated is the view of a Driver that is no ReplicatedDriver.
type unreplicated struct{ Driver }

func (u unreplicated) err() error {
	return fmt.Errorf("%w: Replicated: the Driver of %s has no such method", ErrArgument, u.Driver)
}

// refuse returns the error if one of some commands may write.
func (u unreplicated) refuse(cmds ...[]any) error {
	for _, args := range cmds {
		if MayWrite(args) {
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

// MayWrite reports whether a command may change data, for Drivers: one that is not known
// may, and so may a script.
func MayWrite(args []any) bool {
	if len(args) == 0 {
		return true
	}
	name, err := ArgText(args[0])
	if err != nil {
		return true
	}
	second := ""
	if len(args) > 1 {
		second, _ = ArgText(args[1]) // one without a text is no subcommand
	}
	return routing.MayWrite(name, second)
}
