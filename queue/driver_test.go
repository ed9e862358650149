package queue

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
)

// between stands between a queue and its backend, and may change the calls.
type between struct {
	conn.Driver // nil: no other method is called
	c           *ebb.Conn
	// call receives a command's name, and runs the command or not. nil: it runs.
	call func(ctx context.Context, name string, run func() (ebb.Value, error)) (ebb.Value, error)
	// subscribe is the same for a subscription.
	subscribe func(ctx context.Context, run func() (conn.Feed, error)) (conn.Feed, error)
	far       bool // it claims to be a server
}

func (d *between) through(ctx context.Context, args []any, run func(context.Context, ...any) (ebb.Value, error)) (ebb.Value, error) {
	do := func() (ebb.Value, error) { return run(ctx, args...) }
	if d.call == nil {
		return do()
	}
	return d.call(ctx, fmt.Sprint(args[0]), do)
}

func (d *between) Do(ctx context.Context, args []any) (ebb.Value, error) {
	return d.through(ctx, args, d.c.Do)
}

func (d *between) Block(ctx context.Context, args []any) (ebb.Value, error) {
	return d.through(ctx, args, d.c.Block)
}

func (d *between) Pipeline(ctx context.Context, cmds [][]any) ([]ebb.Value, error) {
	var b ebb.Batch
	for _, args := range cmds {
		b.Do(args...)
	}
	return d.c.Pipeline(ctx, &b)
}

func (d *between) Subscribe(ctx context.Context, _ conn.SubscribeKind, names []string) (conn.Feed, error) {
	run := func() (conn.Feed, error) { return d.c.Subscribe(ctx, names...) }
	if d.subscribe == nil {
		return run()
	}
	return d.subscribe(ctx, run)
}

func (d *between) Capabilities() ebb.Capabilities {
	caps := d.c.Capabilities()
	caps.Embedded = caps.Embedded && !d.far
	return caps
}

func (d *between) String() string { return "between" }
func (d *between) Close() error   { return nil }
