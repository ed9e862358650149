package embedded

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/drivers"
)

// synced is a view of the driver whose writes return when they are on disk.
type synced struct{ *driver }

// DirectCalls implements direct.Driver: direct calls wait for no file.
func (synced) DirectCalls() direct.Calls { return nil }

// Replicated implements ReplicatedDriver: a write waits for the copy in the engine's
// files.
func (b *driver) Replicated(int, time.Duration) conn.Driver { return synced{b} }

// sync waits for the engine's files after a write.
func (b synced) sync(ctx context.Context, err error, cmds ...[]any) error {
	if err != nil || !slices.ContainsFunc(cmds, drivers.MayWrite) {
		return err
	}
	if err := b.eng.Sync(ctx); err != nil {
		return fmt.Errorf("%w: %w", conn.ErrNotReplicated, err)
	}
	return nil
}

// Do implements Driver.
func (b synced) Do(ctx context.Context, args []any) (conn.Value, error) {
	v, err := b.driver.Do(ctx, args)
	return v, b.sync(ctx, err, args)
}

// Block implements Driver.
func (b synced) Block(ctx context.Context, args []any) (conn.Value, error) { return b.Do(ctx, args) }

// Pipeline implements Driver.
func (b synced) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	vs, err := b.driver.Pipeline(ctx, cmds)
	return vs, b.sync(ctx, err, cmds...)
}

// Tx implements Driver.
func (b synced) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	vs, err := b.driver.Tx(ctx, cmds)
	return vs, b.sync(ctx, err, cmds...)
}

// Watch implements Driver.
func (b synced) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	return b.watch(ctx, keys, func(s *slot) error {
		return fn(conn.NewWatched(
			func(ctx context.Context, args []any) (conn.Value, error) {
				v, err := s.do(ctx, args)
				return v, b.sync(ctx, err, args)
			},
			func(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
				vs, err := s.tx(ctx, cmds)
				return vs, b.sync(ctx, err, cmds...)
			},
		))
	})
}
