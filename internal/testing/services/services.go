// Package services starts services, and plays their clients, for the tests of packages session, commands and servercmd.
//
//	Start ─ Dial ─ Peer.Send    a service on a manual clock, and a connection's bytes
//	At, Bubble ─ Ask            one on another clock, and an embedded client
//	Played                      one that a transcript plays
//
// Start reading at Start, then at Peer.
package services

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

// Start starts a service on a manual clock, configured as on a command line. The end of the test closes it.
func Start(t testing.TB, options ...string) *session.Service {
	t.Helper()
	cfg, err := config.Load(options, nil)
	Must(t, err)
	return start(t, clock.NewManual(time.Unix(1_700_000_000, 0)), cfg)
}

// At starts a service with the defaults on an engine of the clock; nil is the system's. The end of the test closes it.
func At(t testing.TB, clock clock.Clock) *session.Service {
	t.Helper()
	return start(t, clock, nil)
}

func start(t testing.TB, clock clock.Clock, cfg *config.Set) *session.Service {
	t.Helper()
	var hooks session.Hooks
	db := engine.Open(engine.Options{Clock: clock, Hooks: &hooks})
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Config: cfg}, &hooks)
	Must(t, err)
	t.Cleanup(func() { s.Close(); db.Close() })
	return s
}

// Bubble calls f with a service on the system's clock, in a bubble whose time is the test's own.
func Bubble(t *testing.T, f func(s *session.Service)) {
	synctest.Test(t, func(t *testing.T) {
		var hooks session.Hooks
		db := engine.Open(engine.Options{Hooks: &hooks})
		s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
		Must(t, err)
		f(s)
		s.Close()
		db.Close()
	})
}

// Played returns an engine in which connections are played. The end of the test closes it.
func Played(t testing.TB) *transcript.Engine {
	t.Helper()
	e, err := transcript.NewEngine()
	Must(t, err)
	t.Cleanup(e.Close)
	return e
}

// Table returns all commands, under the names that they have without rename-command.
func Table(t testing.TB) *command.Table {
	t.Helper()
	table, err := servercmd.DefaultTable()
	Must(t, err)
	return table
}

// Ask runs a command in a session and returns the reply.
func Ask(s *session.Session, words ...string) resp.Value {
	v, _ := AskContext(context.Background(), s, words...)
	return v
}

// AskContext is Ask with a context.
func AskContext(ctx context.Context, s *session.Session, words ...string) (resp.Value, error) {
	return s.DoContext(ctx, Bytes(words)...)
}

// AskServer sends a request to another server, on a connection that transcripts do not use, and returns the reply.
func AskServer(t testing.TB, s *transcript.Server, args ...string) resp.Value {
	t.Helper()
	const admin = 1000
	Must(t, s.Send(admin, args))
	v, ok := s.Next(admin)
	if !ok {
		t.Fatalf("%q: no reply", args)
	}
	return v
}

// Bytes returns the arguments of a request.
func Bytes(words []string) [][]byte {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	return args
}

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
