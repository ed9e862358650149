package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebbdb/ebb/command"
	"github.com/ebbdb/ebb/internal/rdb"
)

// A replica that starts again goes on with its master's stream where the file ends,
// in the database that is selected there: the master does not select it again.
func TestARestartedReplicaGoesOnInTheDatabaseOfTheStream(t *testing.T) {
	for _, c := range []struct {
		db, master string
		offset     int64
		want       int
	}{
		{"3", "127.0.0.1 1", 4711, 3},
		{"3", "no one", 4711, -1},   // a master's own stream begins with a SELECT
		{"16", "127.0.0.1 1", 0, 0}, // there is no such database: all is asked for again
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
		s := serve(t, "--dir", dir, "--appendonly", "no", "--replicaof", c.master)
		if err := s.OpenFiles(command.FileOptions{AcceptClock: true}); err != nil {
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
