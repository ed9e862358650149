package loadgen

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
)

// single is a conn.Driver on one connection, for programs that send a few commands and end. It runs
// one command at a time, and neither subscribes nor watches.
type single struct {
	caps conn.Capabilities
	addr string

	mu sync.Mutex // guards what follows
	c  *client
}

// errSingle is the error of calls that need a connection of their own.
var errSingle = errors.New("a connection of a benchmark has no Watch, Block or Subscribe")

// Open connects to the target. The Conn has one connection and runs one command at a time.
func (t Target) Open(ctx context.Context) (*conn.Conn, error) {
	c, err := t.client(ctx)
	if err != nil {
		return nil, err
	}
	s := &single{c: c, addr: t.Addr}
	info, err := s.Do(ctx, []any{"INFO", "server"})
	if err == nil {
		var commands conn.Value
		if commands, err = s.Do(ctx, []any{"COMMAND", "INFO", "HPEXPIRE", "FCALL", "SSUBSCRIBE", "LOCK.ACQUIRE"}); err == nil {
			text := info.String()
			if info.Err() != nil {
				text = "" // the user may not run it
			}
			s.caps = driverutil.CapabilitiesOf(text, commands)
			return conn.New(s), nil
		}
	}
	_ = s.Close()
	return nil, err
}

// Do implements conn.Driver.
func (s *single) Do(ctx context.Context, args []any) (conn.Value, error) {
	replies, err := s.Pipeline(ctx, [][]any{args})
	if err != nil {
		return conn.Value{}, err
	}
	return replies[0], nil
}

// Block implements conn.Driver.
func (s *single) Block(ctx context.Context, args []any) (conn.Value, error) { return s.Do(ctx, args) }

// Pipeline implements conn.Driver. It sends all commands before it reads the first reply.
func (s *single) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	all := make([][]string, len(cmds))
	for i, args := range cmds {
		for _, a := range args {
			word, err := driverutil.ArgText(a)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], word)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.c.closeWith(ctx)()
	for _, words := range all {
		s.c.add(words...)
	}
	if err := s.c.flush(); err != nil {
		return nil, driverutil.Unavailable(ctx, all[0][0], err)
	}
	replies := make([]conn.Value, len(cmds))
	for i := range replies {
		var err error
		if replies[i], err = s.c.read(); err != nil {
			return nil, driverutil.Unavailable(ctx, all[i][0], err)
		}
	}
	return replies, nil
}

// Tx implements conn.Driver; it returns an error.
func (s *single) Tx(context.Context, [][]any) ([]conn.Value, error) {
	return nil, fmt.Errorf("%w: MULTI", errSingle)
}

// Watch implements conn.Driver; it returns an error.
func (s *single) Watch(context.Context, func(*conn.Watched) error, []string) error {
	return fmt.Errorf("%w: WATCH", errSingle)
}

// Subscribe implements conn.Driver; it returns an error.
func (s *single) Subscribe(context.Context, conn.SubscribeKind, []string) (conn.Feed, error) {
	return nil, fmt.Errorf("%w: SUBSCRIBE", errSingle)
}

// Capabilities implements conn.Driver.
func (s *single) Capabilities() conn.Capabilities { return s.caps }

func (s *single) String() string { return s.addr }

// Close implements conn.Driver.
func (s *single) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c.conn.Close()
}
