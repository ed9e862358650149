package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/example"
)

// bench is a backend for one way of a classic, and the names of its keys.
type bench struct {
	c    *ebb.Conn
	pair func(ctx context.Context) (*pair, error) // nil: there are no servers to fail over
	name string                                   // is in the names of all keys
}

var benches atomic.Int64

func newBench(c *ebb.Conn, pair func(ctx context.Context) (*pair, error)) *bench {
	return &bench{c, pair, fmt.Sprintf("classic-%d-", benches.Add(1))}
}

// key returns the full name of a key or an object.
func (b *bench) key(name string) string { return b.name + name }

// now returns the time of the server in ms. A classic way takes it for the client's clock, so that wrong
// clocks, a trap of their own, play no part.
func (b *bench) now(ctx context.Context) (int64, error) {
	v, err := b.c.Do(ctx, "TIME")
	if err != nil {
		return 0, err
	}
	if len(v.Elems) != 2 {
		return 0, fmt.Errorf("TIME replied %s, want seconds and microseconds", v)
	}
	s, err1 := v.Elems[0].AsInt()
	us, err2 := v.Elems[1].AsInt()
	return s*1000 + us/1000, errors.Join(err1, err2)
}

// tx runs commands as one, and returns the reply of one of them as a number.
func (b *bench) tx(ctx context.Context, reply int, cmds ...[]any) (int64, error) {
	var batch ebb.Batch
	for _, args := range cmds {
		batch.Do(args...)
	}
	replies, err := b.c.Tx(ctx, &batch)
	if err != nil {
		return 0, err
	}
	return replies[reply].AsInt()
}

// number runs a command and returns its reply as a number.
func (b *bench) number(ctx context.Context, args ...any) (int64, error) {
	v, err := b.c.Do(ctx, args...)
	if err != nil {
		return 0, err
	}
	return v.AsInt()
}

// until checks every 2 ms whether something holds, for at most 20 s.
func until(ctx context.Context, what string, holds func() (bool, error)) error {
	for range 10_000 {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		if err := example.Sleep(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("did not happen within 20 s: %s", what)
}

// gone waits until keys have expired.
func (b *bench) gone(ctx context.Context, keys ...string) error {
	return until(ctx, "the keys expire", func() (bool, error) {
		n, err := b.c.Exists(ctx, keys...)
		return n == 0, err
	})
}

// keys returns the keys of the bench.
func (b *bench) keys(ctx context.Context) (keys []string, err error) {
	for key, err := range b.c.Scan(ctx, "*"+b.name+"*") {
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// clear removes the keys of the bench.
func (b *bench) clear(ctx context.Context) error {
	keys, err := b.keys(ctx)
	for len(keys) > 0 && err == nil {
		n := min(len(keys), 1000)
		_, err = b.c.Del(ctx, keys[:n]...)
		keys = keys[n:]
	}
	return err
}

// withoutTTL returns the number of keys that never expire.
func (b *bench) withoutTTL(ctx context.Context) (n int64, err error) {
	keys, err := b.keys(ctx)
	for _, key := range keys {
		ttl, err := b.number(ctx, "PTTL", key)
		if err != nil {
			return 0, err
		}
		if ttl == -1 {
			n++
		}
	}
	return n, err
}

// inTime repeats a trial, each time with twice the period, until its requests came when they were due. A busy machine
// delays them.
func inTime(trial func(period time.Duration) (figure int64, ok bool, err error)) (int64, error) {
	for period := 200 * time.Millisecond; period <= 3200*time.Millisecond; period *= 2 {
		if figure, ok, err := trial(period); ok || err != nil {
			return figure, err
		}
	}
	return 0, errors.New("the machine is too busy: requests come late even in a period of 3.2 s")
}

// process is a client program that dies or stalls: then its requests do not reach the server.
type process struct {
	conn.Driver
	conn *ebb.Conn

	left    atomic.Int64 // requests that the process sends before it dies
	stalled atomic.Bool
	died    atomic.Bool
	die     context.CancelFunc
}

// newProcess returns a process that dies after some requests. die is called at that moment.
func (b *bench) newProcess(requests int64, die context.CancelFunc) *process {
	p := &process{Driver: b.c.Driver(), die: die}
	p.left.Store(requests)
	p.conn = ebb.Use(p)
	return p
}

var errDead = fmt.Errorf("%w: the process has died, or stalls", ebb.ErrUnavailable)

// sends counts a request, and returns an error instead of those that the process does not send.
func (p *process) sends() error {
	if p.stalled.Load() {
		return errDead
	}
	if p.left.Add(-1) < 0 {
		p.died.Store(true)
		p.die()
		return errDead
	}
	return nil
}

// Do implements conn.Driver.
func (p *process) Do(ctx context.Context, args []any) (v ebb.Value, err error) {
	if err = p.sends(); err == nil {
		v, err = p.Driver.Do(ctx, args)
	}
	return v, err
}

// Block implements conn.Driver.
func (p *process) Block(ctx context.Context, args []any) (v ebb.Value, err error) {
	if err = p.sends(); err == nil {
		v, err = p.Driver.Block(ctx, args)
	}
	return v, err
}

// Pipeline implements conn.Driver.
func (p *process) Pipeline(ctx context.Context, cmds [][]any) (v []ebb.Value, err error) {
	if err = p.sends(); err == nil {
		v, err = p.Driver.Pipeline(ctx, cmds)
	}
	return v, err
}

// Tx implements conn.Driver.
func (p *process) Tx(ctx context.Context, cmds [][]any) (v []ebb.Value, err error) {
	if err = p.sends(); err == nil {
		v, err = p.Driver.Tx(ctx, cmds)
	}
	return v, err
}

// deaths runs a way in a process that dies after one request, then in one that dies after two, and so on until one lives to the
// end. It returns the number of keys without a TTL that the processes leave.
func (b *bench) deaths(ctx context.Context, way func(ctx context.Context, c *ebb.Conn) error) (left int64, err error) {
	for requests := int64(1); ; requests++ {
		life, die := context.WithCancel(ctx)
		p := b.newProcess(requests, die)
		err := way(life, p.conn)
		die()
		if err != nil && !p.died.Load() {
			return left, err
		}
		n, err := b.withoutTTL(ctx)
		if err == nil {
			err = b.clear(ctx)
		}
		if left += n; err != nil || !p.died.Load() {
			return left, err
		}
	}
}

// unknown reports whether a server refused a command because it does not know it.
func unknown(err error) bool {
	var reply ebb.ReplyError
	return errors.As(err, &reply) && strings.Contains(string(reply), "unknown command")
}
