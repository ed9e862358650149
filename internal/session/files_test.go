package session_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// A replica that starts again continues its master's stream at the end of the file, in the database that is
// selected there: the master does not select it again.
func TestARestartedReplicaGoesOnInTheDatabaseOfTheStream(t *testing.T) {
	for _, c := range []struct {
		db, master string
		offset     int64
		want       int
	}{
		{"3", "127.0.0.1 1", 4711, 3},
		{"3", "no one", 4711, -1},   // a master's own stream begins with a SELECT
		{"16", "127.0.0.1 1", 0, 0}, // there is no such database: the replica requests all data again
	} {
		dir := t.TempDir()
		var b bytes.Buffer
		w := rdb.NewWriter(&b, rdb.WriterOptions{Checksum: true})
		w.Header(10)
		w.Aux("repl-stream-db", c.db)
		w.Aux("repl-id", "0123456789012345678901234567890123456789")
		w.Aux("repl-offset", "4711")
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "dump.rdb"), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		s := services.Start(t, "--dir", dir, "--appendonly", "no", "--replicaof", c.master)
		if err := s.OpenFiles(session.FileOptions{AcceptClock: true}); err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if log := s.DB.Log(); log.End() != c.offset || c.offset > 0 && log.DB() != c.want {
			t.Errorf("%+v: the stream is at %d, database %d", c, log.End(), log.DB())
		}
		if err := s.Keeper().Close(); err != nil {
			t.Error(err)
		}
	}
}

// If a load leaves out the dead elements of a list, the list differs from that of its replicas, which count
// elements from the ends: they must request all data.
func TestWhatALoadShortensIsNotTheReplicas(t *testing.T) {
	for _, c := range []struct {
		later time.Duration
		want  int64
	}{{0, 2}, {time.Minute, 1}} {
		dir := t.TempDir()
		open := func(later time.Duration) (*session.Service, *session.Session) {
			s := services.Start(t, "--dir", dir, "--appendonly", "no", "--enable-debug-command", "yes")
			s.DB.Clock().(*clock.Manual).Advance(later)
			err := s.OpenFiles(session.FileOptions{AcceptClock: true})
			if err == nil {
				err = s.Load(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			return s, s.NewSession(nil)
		}
		s, ask := open(0)
		for _, line := range []string{"RPUSH l a b", "LPEXPIRE l 1000 INDEXES 1 0", "SAVE"} {
			if v := ask.Do(bytes.Fields([]byte(line))...); v.Err() != nil {
				t.Fatal(line, v.Err())
			}
		}
		if err := s.Keeper().Close(); err != nil {
			t.Error(err)
		}
		s, ask = open(c.later)
		if known := s.Keeper().Origin().ID != ""; known != (c.later == 0) {
			t.Errorf("%v later the stream goes on: %v", c.later, known)
		}
		if n := ask.Do([]byte("LLEN"), []byte("l")).Int; n != c.want {
			t.Errorf("%v later there are %d elements", c.later, n)
		}
		if err := s.Keeper().Close(); err != nil {
			t.Error(err)
		}
	}
}
