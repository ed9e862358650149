package instance

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
)

// The content of a replica's files.

// startIn serves the data of a directory. The caller calls end.
func startIn(t *testing.T, dir string, options ...string) (in *Instance, end func()) {
	t.Helper()
	options = append([]string{"--dir", dir, "--bind", "127.0.0.1", "--port", fmt.Sprint(unusedPort(t)), "--repl-diskless-sync-delay", "0",
		"--enable-debug-command", "yes"}, options...)
	cfg, err := config.Load(options, nil)
	if err != nil {
		t.Fatal(err)
	}
	if in, err = Start(context.Background(), Options{Config: cfg, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return in, func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := in.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}
}

// commands returns commands in the form of a stream.
func commands(lines ...string) string {
	var b []byte
	for _, l := range lines {
		var args [][]byte
		for _, word := range strings.Fields(l) {
			args = append(args, []byte(word))
		}
		b = wire.AppendCommand(b, args...)
	}
	return string(b)
}

// A command of the master that a replica refuses ends the link and is in no file of the replica: the next start would
// fail at it.
func TestAReplicaStartsAgainAfterWhatItRefused(t *testing.T) {
	dir := t.TempDir()
	stream := commands("SELECT 2", "SET k v", "MULTI", "SET a 1", "SELECT 1", "SET a 2", "EXEC", "SET b 3", "NOSUCH k", "SET late 4")
	s := newScripted(t, full(50, snapshot(t, "new"), ""), "+CONTINUE\r\n"+stream)
	in, end := startIn(t, dir, "--appendonly", "yes")
	c := dialTCP(t, in.Addrs()[0].String())
	host, port, _ := net.SplitHostPort(s.Addr().String())
	c.must("REPLICAOF", host, port)
	linked(t, c)
	tier.Eventually(t, "the stream goes into files", in.svc.Keeper().AppendOnly)
	c.must("CLIENT", "KILL", "TYPE", "master")
	tier.Eventually(t, "a command is refused", func() bool { return c.field("replica_refused_commands") == "1" })
	at := 50 + strings.Index(stream, commands("NOSUCH k"))
	if last, want := c.field("replica_refused_last"), fmt.Sprintf("offset=%d,command=", at); !strings.HasPrefix(last, want) ||
		!strings.Contains(last, "NOSUCH") {
		t.Errorf("INFO says %q, want %q and the command", last, want)
	}
	c.must("REPLICAOF", "NO", "ONE")
	c.must("SELECT", "0")
	c.must("SET", "last", "v")
	end()

	in, end = startIn(t, dir, "--appendonly", "yes")
	defer func() { end() }()
	c = dialTCP(t, in.Addrs()[0].String())
	for _, x := range []struct{ db, key, value string }{
		{"2", "k", "v"}, {"2", "a", "1"}, {"1", "a", "2"}, {"1", "b", "3"}, {"1", "late", ""}, {"0", "last", "v"}, {"0", "new", "v"},
	} {
		c.must("SELECT", x.db)
		if v := c.must("GET", x.key); v.Str != x.value {
			t.Errorf("%s in database %s is %q, want %q", x.key, x.db, v.Str, x.value)
		}
	}
}

// A replica saves nothing while it loads its master's data: the file would have a part of the new data under the old
// name and offset.
func TestHalfOfASnapshotIsNotSaved(t *testing.T) {
	dir := t.TempDir()
	all := full(100, snapshot(t, "new"), "")
	s := newScripted(t, all[:len(all)-9])
	in, end := startIn(t, dir, "--appendonly", "no", "--save", "3600 1", "--repl-diskless-load", "on-empty-db")
	defer func() { end() }()
	c := dialTCP(t, in.Addrs()[0].String())
	c.must("SET", "old", "v")
	c.must("SAVE")
	c.must("DEL", "old")
	before, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(s.Addr().String())
	c.must("REPLICAOF", host, port)
	tier.Eventually(t, "it loads", func() bool { return strings.HasPrefix(c.ask("GET", "old").Str, "LOADING") })

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if done, err := in.svc.Keeper().Turn(ctx); err == nil {
		done()
		t.Error("a snapshot may be made while data is loaded")
	}
	if err := in.Prepare(t.Context(), session.ShutdownOptions{Mode: durable.ShutdownSave, Now: true}); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "dump.rdb")); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed: %v", err)
	}
}

// A replica that loads for longer than repl-timeout reads nothing from its master meanwhile, and treats the master as
// alive, so it gets the stream behind the data.
func TestALongLoadKeepsItsMaster(t *testing.T) {
	t.Parallel() // the test mostly waits
	stream := commands("SELECT 0", "SET behind v")
	s := newScripted(t, full(100, snapshot(t, "new"), stream))
	in, end := startIn(t, t.TempDir(), "--appendonly", "no", "--save", "", "--repl-timeout", "1")
	defer func() { end() }()
	c := dialTCP(t, in.Addrs()[0].String())
	c.must("SET", "old", "v")
	done, err := in.svc.Keeper().Turn(t.Context()) // as if another replica's snapshot took long
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	host, port, _ := net.SplitHostPort(s.Addr().String())
	c.must("REPLICAOF", host, port)
	uptime := func() (n int) {
		_, _ = fmt.Sscan(c.field("uptime_in_seconds"), &n)
		return n
	}
	from := uptime()
	tier.Eventually(t, "repl-timeout is over", func() bool { return uptime() > from+3 })
	done()
	tier.Eventually(t, "it acknowledges the stream", func() bool {
		select {
		case at := <-s.acks:
			return at == int64(100+len(stream))
		default:
			return false
		}
	})
}

// Before appendonly is turned on, nothing is in files, so no offset counts as synced.
func TestNothingIsSyncedBeforeTheFirstBase(t *testing.T) {
	t.Parallel() // the test mostly waits
	in, end := startIn(t, t.TempDir(), "--appendonly", "no", "--save", "")
	defer func() { end() }()
	c := dialTCP(t, in.Addrs()[0].String())
	c.must("SET", "k", "v")
	done, err := in.svc.Keeper().Turn(t.Context()) // prevents the base
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	c.must("CONFIG", "SET", "appendonly", "yes")
	if v := c.must("WAITAOF", "1", "0", "20"); v.Elems[0].Int != 0 {
		t.Errorf("WAITAOF says %v while nothing is in files", v)
	}
	done()
	if v := c.must("WAITAOF", "1", "0", "0"); v.Elems[0].Int != 1 {
		t.Errorf("WAITAOF says %v", v)
	}
}
