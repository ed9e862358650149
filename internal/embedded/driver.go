package embedded

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/direct/calls"
	"github.com/ebbdb/ebb/internal/drivers"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/transport"
)

const (
	// keepSessions is the number of idle sessions that a Conn keeps, about 2 KiB each. It is
	// more than the number of goroutines that usually run a command at the same moment.
	keepSessions = 64
	// keepArgs is the most memory, in bytes, that a session keeps for the
	// arguments of the next call.
	keepArgs = 64 << 10
)

// driver is the conn.Driver that calls the engine. Every call borrows a session.
type driver struct {
	eng    *Engine
	dbi    int
	direct *calls.Direct // nil: it has none

	mu     sync.Mutex // guards what follows
	idle   []*slot
	busy   int // sessions in use, those of feeds included
	closed bool
	quit   chan struct{} // closed with the driver: ends the calls that wait
	quiet  sync.Cond     // signalled when the driver is closed and no session is lent

	kills sync.WaitGroup // goroutines that close inboxes
}

// slot is a session and the memory for its arguments.
type slot struct {
	s    *session.Session
	flat []byte
	args [][]byte
}

// DirectCalls implements direct.Driver.
func (b *driver) DirectCalls() direct.Calls {
	if b.direct == nil {
		return nil
	}
	return b.direct
}

// enter counts a call as under way, and returns an idle session for it if there is one.
func (b *driver) enter() (*slot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, conn.ErrClosed
	}
	b.busy++
	if n := len(b.idle); n > 0 {
		s := b.idle[n-1]
		b.idle = b.idle[:n-1]
		return s, nil
	}
	return nil, nil
}

// leave ends a call that enter has counted, and keeps its session if there is space.
func (b *driver) leave(keep *slot) {
	b.mu.Lock()
	if keep != nil && len(b.idle) < keepSessions {
		b.idle = append(b.idle, keep)
		keep = nil
	}
	b.busy--
	if b.closed && b.busy == 0 {
		b.quiet.Broadcast()
	}
	b.mu.Unlock()
	if keep != nil {
		keep.s.Closed(nil)
	}
}

// borrow returns a session that belongs to the caller until it calls leave.
func (b *driver) borrow() (*slot, error) {
	s, err := b.enter()
	if s != nil || err != nil {
		return s, err
	}
	s = &slot{s: b.eng.svc.NewSession(nil)}
	s.s.LeaveOn(b.quit)
	if err := b.handshake(s); err != nil {
		s.s.Closed(nil)
		b.leave(nil)
		return nil, err
	}
	return s, nil
}

// handshake gives a new session the protocol and the database of the driver.
func (b *driver) handshake(s *slot) error {
	ctx := context.Background()
	v, err := s.do(ctx, []any{"HELLO", "3"})
	if err == nil && v.Err() == nil && b.dbi != 0 {
		v, err = s.do(ctx, []any{"SELECT", b.dbi})
	}
	return errors.Join(err, v.Err())
}

// do runs one command. A command that waits ends when ctx ends, and has then done nothing.
func (s *slot) do(ctx context.Context, args []any) (conn.Value, error) {
	flat, list := s.flat[:0], s.args[:0]
	for _, a := range args {
		if b, ok := a.([]byte); ok { // handlers copy the arguments that they keep
			list = append(list, b)
			continue
		}
		from := len(flat)
		var err error
		if flat, err = drivers.AppendArg(flat, a); err != nil {
			return conn.Value{}, err
		}
		list = append(list, flat[from:len(flat):len(flat)])
	}
	return s.run(ctx, flat, list)
}

// run runs a command. flat holds the bytes of most of the arguments in list.
func (s *slot) run(ctx context.Context, flat []byte, list [][]byte) (conn.Value, error) {
	v, err := s.s.DoContext(ctx, list...)
	if errors.Is(err, engine.ErrClosed) {
		err = conn.ErrClosed
	}
	clear(list)
	s.args = list
	if cap(flat) <= keepArgs {
		s.flat = flat
	}
	return v, err
}

// Do implements Driver.
func (b *driver) Do(ctx context.Context, args []any) (conn.Value, error) {
	s, err := b.borrow()
	if err != nil {
		return conn.Value{}, err
	}
	defer b.leave(s)
	return s.do(ctx, args)
}

// Block implements Driver. It is the same as Do, because each call has a session of its
// own.
func (b *driver) Block(ctx context.Context, args []any) (conn.Value, error) { return b.Do(ctx, args) }

// Pipeline implements Driver.
func (b *driver) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	if err := checkArgs(cmds); err != nil {
		return nil, err
	}
	s, err := b.borrow()
	if err != nil {
		return nil, err
	}
	defer b.leave(s)
	replies := make([]conn.Value, len(cmds))
	for i, args := range cmds {
		if replies[i], err = s.do(ctx, args); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// Tx implements Driver.
func (b *driver) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	s, err := b.borrow()
	if err != nil {
		return nil, err
	}
	defer b.leave(s)
	return s.tx(ctx, cmds)
}

// tx queues the commands and runs them.
func (s *slot) tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	if err := checkArgs(cmds); err != nil {
		return nil, err
	}
	_, _ = s.do(ctx, []any{"MULTI"})
	var refused error
	for _, args := range cmds {
		v, err := s.do(ctx, args)
		if err == nil {
			err = v.Err()
		}
		if refused == nil {
			refused = err
		}
	}
	v, err := s.do(ctx, []any{"EXEC"})
	if err != nil { // the commands ran, but may not be on disk
		return nil, err
	}
	return execReply(v, refused)
}

// execReply converts the reply of EXEC to the result of Tx.
func execReply(v conn.Value, refused error) ([]conn.Value, error) {
	switch err := v.Err(); {
	case err != nil && refused != nil:
		return nil, fmt.Errorf("%w %w", err, refused)
	case err != nil:
		return nil, err
	case v.IsNull():
		return nil, conn.ErrConflict
	}
	return v.Elems, nil
}

// checkArgs returns an error for an argument of an unknown type, before any command of a
// batch runs.
func checkArgs(cmds [][]any) error {
	for _, args := range cmds {
		for _, a := range args {
			switch a.(type) {
			case string, []byte, int, int64, uint64, float64, bool:
				continue
			}
			if _, err := drivers.AppendArg(nil, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// Watch implements Driver.
func (b *driver) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	return b.watch(ctx, keys, func(s *slot) error { return fn(conn.NewWatched(s.do, s.tx)) })
}

// watch calls fn with a session that watches keys.
func (b *driver) watch(ctx context.Context, keys []string, fn func(s *slot) error) error {
	s, err := b.borrow()
	if err != nil {
		return err
	}
	defer b.leave(s)
	args := []any{"WATCH"}
	for _, k := range keys {
		args = append(args, k)
	}
	v, err := s.do(ctx, args)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return err
	}
	defer func() { _, _ = s.do(ctx, []any{"UNWATCH"}) }()
	return fn(s)
}

// Capabilities implements Driver.
func (b *driver) Capabilities() conn.Capabilities {
	return conn.Capabilities{Native: true, Embedded: true, Server: "ebb", Version: admin.RedisVersion,
		HashFieldTTL: true, Functions: true, ShardedPubSub: true}
}

// Engine returns the engine; embedded.Of calls it.
func (b *driver) Engine() *Engine { return b.eng }

// Host lets package ebbtest serve the engine with faults of its own.
func (b *driver) Host() transport.Host { return host{b.eng} }

// Select returns a driver of another database, which the caller closes. Package ebbtest
// looks into other databases with it.
func (b *driver) Select(dbi int) conn.Driver {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	b.eng.refs++
	return newDriver(b.eng, dbi)
}

// String implements Driver.
func (b *driver) String() string {
	what := "private, in memory"
	switch p := b.eng.place; {
	case p.dir != "":
		what = "files, fsync=" + p.fsync
	case p.name != "":
		what = "shared by name, in memory"
	}
	for _, d := range b.eng.place.limit {
		what += ", " + d.name + "=" + d.value
	}
	return fmt.Sprintf("%s (an engine in this process, %s)", b.url(), what)
}

// url returns the URL of the engine and the database.
func (b *driver) url() string {
	u := b.eng.place.String()
	switch {
	case b.dbi == 0:
		return u
	case b.eng.place.dir != "":
		return u + "?db=" + strconv.Itoa(b.dbi)
	}
	return u + "/" + strconv.Itoa(b.dbi)
}

// Close implements Driver.
func (b *driver) Close() error {
	if b.direct != nil {
		b.direct.Close()
	}
	b.mu.Lock()
	if !b.closed {
		close(b.quit)
	}
	b.closed = true
	for b.busy > 0 {
		b.quiet.Wait()
	}
	idle := b.idle
	b.idle = nil
	b.mu.Unlock()
	b.kills.Wait()
	for _, s := range idle {
		s.s.Closed(nil)
	}
	return b.eng.release()
}
