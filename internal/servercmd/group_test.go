package servercmd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
)

// operated is a group that records the requests of an operator. The server is its only node.
type operated struct {
	session.Member
	asked []string
	err   error
}

func (g *operated) ask(format string, args ...any) error {
	g.asked = append(g.asked, fmt.Sprintf(format, args...))
	return g.err
}

func (g *operated) Promote(_ context.Context, node uint32) error { return g.ask("promote %d", node) }
func (g *operated) SetK(_ context.Context, k int) error          { return g.ask("k %d", k) }
func (g *operated) Remove(_ context.Context, node uint32) error  { return g.ask("remove %d", node) }
func (g *operated) Recover(_ context.Context, node uint32) error { return g.ask("recover %d", node) }
func (g *operated) Lease() bool                                  { return true }
func (g *operated) Info(func(string, any))                       {}
func (g *operated) Status(put func(string, any)) {
	put("group_state", "leading")
	put("group_lease", true)
}

func (g *operated) Numbers() admin.GroupNumbers {
	return admin.GroupNumbers{Epoch: 7, InSync: 2, Promoted: 3, HandedOver: 1, Replaced: 2}
}

// inGroup returns a service that is a member of a group, and its log.
func inGroup(t *testing.T) (*session.Service, *operated, *strings.Builder) {
	t.Helper()
	var hooks session.Hooks
	db := engine.Open(engine.Options{Hooks: &hooks})
	t.Cleanup(db.Close)
	g, log := &operated{}, &strings.Builder{}
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Group: g,
		Logger: slog.New(slog.NewTextHandler(log, nil))}, &hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, g, log
}

func TestAnOperatorChangesTheGroup(t *testing.T) {
	s, g, log := inGroup(t)
	c := newSession(t, s)
	for request, want := range map[string]string{"PROMOTE 2": "promote 2", "SETK 0": "k 0", "REMOVE 3": "remove 3",
		"RECOVER 4294967295 accept-loss": "recover 4294967295"} {
		log.Reset()
		g.asked, g.err = nil, nil
		words := append([]string{"GROUP"}, strings.Fields(request)...)
		if got := do(c, words...); got != "OK" || strings.Join(g.asked, ",") != want {
			t.Errorf("%s: %s, and the group is asked to %q, want %q", request, got, g.asked, want)
		}
		if said := log.String(); !strings.Contains(said, "a client has changed the group") || !strings.Contains(said, "user=default") ||
			!strings.Contains(said, "command="+strings.ToLower(words[1])) {
			t.Errorf("%s is logged as %q", request, said)
		}
		g.err = errors.New("not in sync:\r\nwhy")
		if got := do(c, words...); !strings.HasPrefix(got, "(error) ERR not in sync:") || strings.ContainsAny(got, "\r\n") {
			t.Errorf("%s that fails: %q", request, got)
		}
		if !strings.Contains(log.String(), "which failed") {
			t.Errorf("%s that fails is not logged", request)
		}
	}
	if got := do(c, "GROUP", "STATUS"); got != `"group_state:leading\r\ngroup_lease:1\r\n"` {
		t.Errorf("GROUP STATUS: %q", got)
	}
	do(c, "ACL", "SETUSER", "default", "-@dangerous")
	g.asked, g.err = nil, nil
	if got := do(c, "GROUP", "PROMOTE", "2"); !strings.HasPrefix(got, "(error) NOPERM") || len(g.asked) > 0 {
		t.Errorf("a user without the permission: %s, %q", got, g.asked)
	}
}

func TestMetricsOfAGroup(t *testing.T) {
	s, _, _ := inGroup(t)
	wantMetrics(t, admin.NewMeter(s.Admin()), `ebb_group_epoch 7`, `ebb_group_insync 2`, `ebb_group_held_bytes 0`,
		`ebb_group_failovers_total{result="promoted"} 3`, `ebb_group_failovers_total{result="handed_over"} 1`,
		`ebb_group_failovers_total{result="replaced"} 2`)
	s.Admin().Loops[0].Held.Record(3000)
	s.Admin().Loops[len(s.Admin().Loops)-1].Held.Record(1 << 40)
	x := read(admin.NewMeter(s.Admin()))["ebb_group_wait_seconds"]
	if x.Kind != admin.Distribution || x.Count != 2 || x.Buckets[0.002048] != 0 || x.Buckets[0.004096] != 1 || x.Buckets[134.217728] != 1 {
		t.Errorf("the histogram of waits is %+v", x)
	}
	_, _, alone := metered(t)
	for name := range read(alone) {
		if strings.HasPrefix(name, "ebb_group") {
			t.Errorf("a server without a group has %s", name)
		}
	}
}
