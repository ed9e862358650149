package replication

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/reactor"
)

// fakeHost is a server without sessions, files and functions.
type fakeHost struct {
	closed    [GateLoading + 1]atomic.Bool
	demotions int
}

func (h *fakeHost) SetGate(g Gate, closed bool)                    { h.closed[g].Store(closed) }
func (h *fakeHost) PauseWrites(bool)                               {}
func (h *fakeHost) Paused() bool                                   { return false }
func (h *fakeHost) AwaitPause(context.Context) error               { return nil }
func (h *fakeHost) Demoted(*engine.Tx)                             { h.demotions++ }
func (h *fakeHost) NewApplier(reactor.Conn) Applier                { return nil }
func (h *fakeHost) Keeper() *durable.Keeper                        { return nil }
func (h *fakeHost) Port() int                                      { return 0 }
func (h *fakeHost) Shutdown() bool                                 { return false }
func (h *fakeHost) Functions() [][]byte                            { return nil }
func (h *fakeHost) LoadFunction([]byte) error                      { return nil }
func (h *fakeHost) DropFunctions()                                 {}
func (h *fakeHost) StageFunctions(context.Context) StagedFunctions { return nil }

// newNode returns the Node of a server with some directives.
func newNode(t *testing.T, directives ...string) (*Node, *fakeHost) {
	t.Helper()
	c, err := config.Load(directives, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, db := new(fakeHost), engine.Open(engine.Options{})
	r := New(Options{DB: db, Config: c, Logger: slog.New(slog.DiscardHandler), Host: h})
	t.Cleanup(func() { r.Close(); db.Close() })
	return r, h
}

// A replica refuses writes, and with replica-serve-stale-data no everything while its link
// is down. A promotion opens both gates, and keeps the stream's old name for the replicas
// that followed it.
func TestAPromotionOpensTheGatesAndKeepsTheOldName(t *testing.T) {
	r, h := newNode(t, "--replicaof", "127.0.0.1 1", "--replica-serve-stale-data", "no", "--min-replicas-to-write", "1")
	if !h.closed[GateNoReplicas].Load() {
		t.Error("a master without replicas takes writes, although min-replicas-to-write is 1")
	}
	r.Begin()
	r.SetRequired()
	if !r.IsReplica() || h.demotions != 1 {
		t.Fatalf("replica: %v, demoted %d times", r.IsReplica(), h.demotions)
	}
	for g, want := range [...]bool{GateReadOnly: true, GateStale: true, GateNoReplicas: false, GateLoading: false} {
		if got := h.closed[g].Load(); got != want {
			t.Errorf("a replica without its master's stream closes gate %d: %v, want %v", g, got, want)
		}
	}
	if link, _ := r.Link(); link.Host != "127.0.0.1" || link.Port != 1 || link.Step != "connect" || link.Up || link.Idle != -1 {
		t.Errorf("the link is %+v", link)
	}

	before, _, _ := r.Names()
	tx := r.db.BeginAll(0)
	r.Promote(tx)
	r.Promote(tx) // does nothing
	tx.Commit()
	if h.closed[GateReadOnly].Load() || h.closed[GateStale].Load() {
		t.Error("a master refuses commands as a replica does")
	}
	id, old, second := r.Names()
	if end := r.db.Log().End(); id == before || old != before || second != end+1 {
		t.Errorf("the stream %s is now %s, and before the offset %d %s", before, id, second, old)
	}
	if !r.knows(before, second) || r.knows(before, second+1) {
		t.Error("a replica of the old name goes on from an offset other than that of the promotion")
	}
	r.Distrust("a test")
	if now, old, _ := r.Names(); now == id || old != noReplID || r.knows(before, 1) {
		t.Errorf("after Distrust the stream has the names %s and %s", now, old)
	}
}
