package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/durable"
)

// ShutdownOptions configure a shutdown. With the zero value the server saves if there are save points, and
// waits for replicas.
type ShutdownOptions struct {
	Mode  durable.ShutdownMode
	Now   bool // do not wait for replicas that lag
	Force bool // end even if the server cannot write a file
}

// ending is a shutdown in progress.
type ending struct {
	mu     sync.Mutex
	cancel context.CancelFunc // nil: none
}

var errEnding = errors.New("a shutdown is in progress")

func (e *ending) begin(ctx context.Context) (context.Context, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil {
		return nil, errEnding
	}
	ctx, e.cancel = context.WithCancel(ctx)
	return ctx, nil
}

func (e *ending) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil {
		e.cancel()
		e.cancel = nil
	}
}

// abort ends a waiting shutdown, and reports whether there was one.
func (e *ending) abort() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel == nil {
		return false
	}
	e.cancel()
	return true
}

// AbortShutdown ends a shutdown that waits for replicas, and reports whether there was one.
func (s *Service) AbortShutdown() bool { return s.ending.abort() }

// Shutdown returns Options.Shutdown, which ends the server; nil if clients may not end it.
func (s *Service) Shutdown() func() { return s.opts.Shutdown }

// PrepareShutdown saves the data as the options and the configuration require. A member of a group first
// leaves the group, unless Now is set. From then on writes wait. After an error, which it returns only
// without Force, writes continue. Otherwise the caller must end the server.
func (s *Service) PrepareShutdown(ctx context.Context, o ShutdownOptions) error {
	ctx, err := s.ending.begin(ctx)
	if err != nil {
		return err
	}
	defer s.ending.end()
	stay := func() {}
	if g := s.opts.Group; g != nil && !o.Now {
		stay = g.Leave(ctx)
	}
	s.pause.begin(1<<50, false)
	if !o.Now {
		err = s.repl.AwaitReplicas(ctx, time.Duration(s.Config.Int("shutdown-timeout"))*time.Second)
	}
	if err == nil {
		err = s.keeper.Shutdown(ctx, o.Mode, o.Force)
	}
	if err != nil && !o.Force {
		s.pause.end()
		stay()
		return err
	}
	if err != nil {
		s.Log.Error("the server ends although some files could not be written", "err", err)
	}
	return nil
}
