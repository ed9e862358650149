package group

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/settings"
	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/testing/services"
)

func TestAStampIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []shard.Stamp{{}, {Sent: 7 * time.Second}, {Sent: 1, Released: true}, {Sent: 1, Lease: time.Second}} {
		epoch, got, ok := parseStamp(stampText(3, want))
		if !ok || epoch != 3 || got != want {
			t.Errorf("%+v is read as %+v of epoch %d, %v", want, got, epoch, ok)
		}
	}
	for _, bad := range []string{"", "PING", "1/2/0", "x/2/1/0", "1/x/1/0", "1/2/x/0", "1/2/1/0/0", "-1/2/1/0"} {
		if _, _, ok := parseStamp(bad); ok {
			t.Errorf("%q is read as a stamp", bad)
		}
	}
}

func TestANodeKeepsItsIncarnationOnlyWithProof(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, level := range []directory.SyncLevel{directory.Memory, directory.Disk} {
		m := New(Options{Group: &settings.Settings{Level: level}, Now: func() time.Duration { return 0 }, Dir: dir,
			Logger: slog.New(slog.DiscardHandler)})
		m.save(directory.Member{Node: 2, Incarnation: 5})
		b, err := os.ReadFile(filepath.Join(dir, folder, shard.StateFile))
		if level == directory.Memory {
			if err == nil {
				t.Error("a node at level memory has written a proof")
			}
			continue
		}
		if c := shard.Restart(2, b, true, true); err != nil || !c.Kept || c.Incarnation != 5 {
			t.Errorf("%v, it registers %+v", err, c)
		}
	}
}

func TestAMemberSaysThatItLeavesUntilItStays(t *testing.T) {
	m := New(Options{Group: &settings.Settings{Name: "ebb", Lease: time.Second, Lag: time.Second}, Now: func() time.Duration { return 0 },
		Random: func() uint64 { return 1 }})
	m.log = oplog.New(0)
	m.registered(directory.Member{Node: 2, Incarnation: 1}, []directory.Shard{{ID: 1, Epoch: 1, Version: 1,
		Master: directory.Member{Node: 1, Incarnation: 1}}}) // it is not in sync, so no master waits for it
	if _, err := m.Connected(1); err != nil {
		t.Fatal(err)
	}
	if err := m.Answered(1, m.nameOf(1), false); err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		if got, ok := m.Acknowledge(1); !ok || got != want {
			t.Errorf("the member acknowledges %q, %v, want %q", got, ok, want)
		}
	}
	says("0/0")
	stay := m.Leave(t.Context())
	says("0/0/leaves")
	stay()
	says("0/0")
}

func TestAnAcknowledgementWakesNoDirector(t *testing.T) {
	m := New(Options{Group: &settings.Settings{Name: "ebb", Lease: time.Second, Lag: time.Second}, Now: func() time.Duration { return 0 },
		Random: func() uint64 { return 1 }})
	m.log = oplog.New(0)
	m.registered(directory.Member{Node: 2, Incarnation: 1}, []directory.Shard{{ID: 1, Epoch: 1, Version: 1,
		Master: directory.Member{Node: 1, Incarnation: 1}}})
	m.writable = true // the director has done its work: clients of a replica are not refused because of the group
	if _, err := m.Connected(1); err != nil {
		t.Fatal(err)
	}
	if err := m.Answered(1, m.nameOf(1), false); err != nil {
		t.Fatal(err)
	}
	select {
	case <-m.wake:
	default:
	}
	m.log.AppendControl([]byte("PING\r\n"))
	if text, ok := m.Acknowledge(1); !ok || text != "6/0" {
		t.Errorf("the member acknowledges %q, %v", text, ok)
	}
	select {
	case <-m.wake:
		t.Error("an acknowledgement of a replica has woken the director, which has nothing to do")
	default:
	}
}

func TestTheNameOfAStreamHasItsEpoch(t *testing.T) {
	m := &Member{opt: Options{Random: func() uint64 { return 1<<64 - 1 }, Group: &settings.Settings{Name: "ebb", Secret: "s"}}}
	for _, want := range []uint64{1, 17, 1<<63 - 1} {
		name := m.nameOf(want)
		if got, err := m.epochOf(name); err != nil || got != want || len(name) != 40 {
			t.Errorf("%s: epoch %d, %v, want %d", name, got, err, want)
		}
	}
	others := &Member{opt: Options{Random: m.opt.Random, Group: &settings.Settings{Name: "ebb", Secret: "other"}}}
	for _, bad := range []string{"", "?", "0123456789abcdef", "xyz3456789abcdef0123456789abcdef01234567",
		replication.NewID(), others.nameOf(1)} {
		if got, err := m.epochOf(bad); err == nil {
			t.Errorf("%q has the epoch %d", bad, got)
		}
	}
}

// A server outside of the group may answer at a member's address.
func TestTheStreamOfAnyServerIsNoMasters(t *testing.T) {
	m := New(Options{Group: &settings.Settings{Name: "ebb", Lease: time.Second, Lag: time.Second}, Now: func() time.Duration { return 0 },
		Random: func() uint64 { return 1 }})
	m.log = oplog.New(0)
	m.registered(directory.Member{Node: 2, Incarnation: 1}, []directory.Shard{{ID: 1, Epoch: 1, Version: 1,
		Master: directory.Member{Node: 1, Incarnation: 1}}})
	if _, err := m.Connected(1); err != nil {
		t.Fatal(err)
	}
	for _, full := range []bool{false, true} {
		if err := m.Answered(1, replication.NewID(), full); err == nil || m.node.Epoch() != 1 {
			t.Errorf("the member follows: %v, and knows epoch %d", err, m.node.Epoch())
		}
	}
	if err := m.Answered(1, m.nameOf(1), true); err != nil {
		t.Errorf("the member's master: %v", err)
	}
}

// A promoted node that cannot become the master, because something holds its shards, is replaced like a silent one.
func TestAHeartbeatSaysWhatTheServerIs(t *testing.T) {
	m := New(Options{Group: &settings.Settings{Lease: time.Second, Lag: time.Second}, Now: func() time.Duration { return 0 }})
	m.log, m.svc = oplog.New(0), services.Start(t)
	self := directory.Member{Node: 1, Incarnation: 1}
	m.registered(self, nil)
	m.applied([]directory.Shard{{ID: 1, Epoch: 1, Version: 1, Master: self, InSync: []directory.Member{self}}})
	if got := m.node.Gates(0).Epoch; got != 1 {
		t.Fatalf("the node is the master of epoch %d", got)
	}
	if r := m.report(); r.Master != 0 || r.From != self {
		t.Errorf("the heartbeat is %+v", r)
	}
	m.role.epoch = 1
	if r := m.report(); r.Master != 1 {
		t.Errorf("the master says %+v", r)
	}
}

func TestAGreetingIsOfTheSameGroup(t *testing.T) {
	m := &Member{opt: Options{Group: &settings.Settings{Name: "ebb", Secret: "s"}}}
	sealed := func(text string) string { return text + "/" + m.seal("greeting", text) }
	want, has := shard.Greeted{From: directory.Member{Node: 2, Incarnation: 5}, Epoch: 7}, terms{directory.Disk, 9}
	if got, t2, err := m.parseGreeting(sealed("ebb/2/5/7/1/9")); err != nil || got != want || t2 != has {
		t.Errorf("%+v, %v, %v, want %+v, %v", got, t2, err, want, has)
	}
	if g, _, err := m.parseGreeting("ebb/2/5/7/1/9/0123456789abcdef"); err == nil {
		t.Errorf("a stranger is read as %+v", g)
	}
	for _, bad := range []string{"", "other/2/5/7/1/9", "ebb/2/5/7", "ebb/x/5/7/1/9", "ebb/2/x/7/1/9", "ebb/2/5/x/1/9", "ebb/2/5/-7/1/9",
		"ebb/2/5/7/2/9", "ebb/2/5/7/x/9", "ebb/2/5/7/1/-9", "ebb/2/5/7/1/9/8"} {
		for _, text := range []string{bad, sealed(bad)} {
			g, _, err := m.parseGreeting(text)
			if err == nil {
				t.Errorf("%q is read as %+v", text, g)
			} else if strings.Contains(err.Error(), m.seal("greeting", bad)) {
				t.Errorf("the error about %q shows its seal: %v", text, err)
			}
		}
	}
}

// A member may promise more than its master counts on, as while an operator raises a directive on one node after
// another, but not less.
func TestAMemberThatPromisesLessThanItsMasterCountsOnIsRefused(t *testing.T) {
	for _, c := range []struct {
		name        string
		own, member terms
		refused     bool
		warnings    int
	}{
		{"the same", terms{directory.Memory, time.Second}, terms{directory.Memory, time.Second}, false, 0},
		{"the same on disk", terms{directory.Disk, time.Second}, terms{directory.Disk, time.Second}, false, 0},
		{"in memory, where the master counts on the disk", terms{directory.Disk, 1}, terms{directory.Memory, 1}, true, 1},
		{"on disk, where memory is enough", terms{directory.Memory, 1}, terms{directory.Disk, 1}, false, 1},
		{"a longer lease", terms{directory.Disk, 1}, terms{directory.Disk, 2}, false, 1},
		{"a shorter lease on disk", terms{directory.Disk, 2}, terms{directory.Disk, 1}, true, 1},
		{"a shorter lease on disk, where memory is enough", terms{directory.Memory, 2}, terms{directory.Disk, 1}, true, 1},
		{"a shorter lease in memory", terms{directory.Memory, 2}, terms{directory.Memory, 1}, false, 1},
	} {
		var said bytes.Buffer
		m := New(Options{Group: &settings.Settings{Name: "ebb", Level: c.own.level, Lease: c.own.lease}, Now: func() time.Duration { return 0 },
			Logger: slog.New(slog.NewTextHandler(&said, nil))})
		for range 3 { // one for each link
			err := m.checkTerms(2, c.member)
			if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "want the same on all nodes") {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if n := strings.Count(said.String(), "directives differ"); n != c.warnings {
			t.Errorf("%s: %d warnings, want %d:\n%s", c.name, n, c.warnings, &said)
		}
	}
}

func TestANodeSaysOnceThatTheGroupCountsOtherwise(t *testing.T) {
	for k, want := range map[int]int{1: 0, 0: 1, 2: 1} {
		var said bytes.Buffer
		m := New(Options{Group: &settings.Settings{K: k, Lease: time.Second, Lag: time.Second}, Now: func() time.Duration { return 0 },
			Logger: slog.New(slog.NewTextHandler(&said, nil))})
		m.log = oplog.New(0)
		self := directory.Member{Node: 1, Incarnation: 1}
		m.registered(self, nil)
		for v := range uint64(3) {
			m.applied([]directory.Shard{{ID: 1, Epoch: 1, Version: v + 1, K: 1, Master: self, InSync: []directory.Member{self}}})
		}
		if n := strings.Count(said.String(), "min-sync-replicas"); n != want {
			t.Errorf("with %d, where the group keeps 1: %d warnings, want %d", k, n, want)
		}
	}
}
