package instance

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// openIn calls Open, without Load, in a working directory, with a unix socket elsewhere.
func openIn(t *testing.T, options ...string) (in *Instance, socket string, end func()) {
	t.Helper()
	socket = realserver.Socket(t)
	cfg, err := config.Load(append([]string{"--port", "0", "--unixsocket", socket}, options...), nil)
	if err != nil {
		t.Fatal(err)
	}
	if in, err = Open(Options{Config: cfg, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return in, socket, func() { shutDown(t, in) }
}

// A directive that needs files uses the working directory if no directory is set, as in Redis.
func TestWhatIsToBeKeptIsKeptInTheWorkingDirectory(t *testing.T) {
	for _, x := range []struct {
		options []string
		file    string // the file that exists afterwards; "": none
	}{
		{[]string{"--appendonly", "yes"}, "appendonlydir"},
		{[]string{"--appendonly", "yes", "--save", ""}, "appendonlydir"},
		{[]string{"--save", "3600 1"}, "dump.rdb"},
		{[]string{"--dbfilename", "mine.rdb", "--save", "3600", "1"}, "mine.rdb"},
		{nil, ""},
		{[]string{"--appendonly", "no", "--save", ""}, ""},
		{[]string{"--appendfsync", "always"}, ""},
	} {
		t.Chdir(t.TempDir())
		round := func(send string, want string) {
			t.Helper()
			in, socket, end := openIn(t, x.options...)
			if err := in.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := dial(t, socket).ask(strings.Fields(send)...).Str; got != want {
				t.Errorf("%q: %s: %q, want %q", x.options, send, got, want)
			}
			if x.file == "" && in.Service().Keeper().Dir() != "" {
				t.Errorf("%q: there is a directory", x.options)
			}
			if err := in.Prepare(t.Context(), session.ShutdownOptions{}); err != nil {
				t.Error(err)
			}
			end()
		}
		round("SET k v", "OK")
		want := ""
		if x.file != "" {
			want = "v"
		}
		round("GET k", want)
		names, err := os.ReadDir(".")
		if err != nil || x.file == "" && len(names) > 0 {
			t.Errorf("%q leaves %v, %v", x.options, names, err)
		}
		if _, err := os.Stat(x.file); x.file != "" && err != nil {
			t.Errorf("%q: %v", x.options, err)
		}
	}
}

// A server without a directory refuses a setting that needs one.
func TestConfigSetOfWhatNeedsADirectoryIsRefusedWithoutOne(t *testing.T) {
	c := dial(t, startInstance(t, nil, "--enable-protected-configs", "yes"))
	for _, pair := range [][]string{{"appendonly", "yes"}, {"save", "3600 1"}, {"dir", t.TempDir()}, {"dbfilename", "x.rdb"}} {
		before := c.ask("CONFIG", "GET", pair[0]).Elems[1].Str
		if v := c.ask("CONFIG", "SET", pair[0], pair[1]); !strings.Contains(v.Str, "there is no directory for files: start with --dir") {
			t.Errorf("CONFIG SET %s: %q", pair, v.Str)
		}
		if now := c.ask("CONFIG", "GET", pair[0]).Elems[1].Str; now != before {
			t.Errorf("CONFIG SET %s has left %q", pair, now)
		}
	}
	for _, pair := range [][]string{{"appendonly", "no"}, {"save", ""}, {"appendfsync", "always"}} {
		if v := c.ask("CONFIG", "SET", pair[0], pair[1]); v.Str != "OK" {
			t.Errorf("CONFIG SET %s: %q", pair, v.Str)
		}
	}
}

// Two servers may share a directory if neither writes files by itself.
func TestTwoServersThatKeepNothingShareADirectory(t *testing.T) {
	dir := t.TempDir()
	options := []string{"--dir", dir, "--save", "", "--appendonly", "no"}
	a, socketA, endA := openIn(t, options...)
	defer endA()
	b, socketB, endB := openIn(t, options...)
	defer endB()
	for _, in := range []*Instance{a, b} {
		if err := in.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := dial(t, socketA).ask("SET", "k", "a").Str + dial(t, socketA).ask("SAVE").Str; got != "OKOK" {
		t.Error(got)
	}
	if got := dial(t, socketB).ask("CONFIG", "SET", "save", "3600 1").Str; got != "OK" {
		t.Error(got)
	}
	if got := dial(t, socketA).ask("SAVE").Str; !strings.HasPrefix(got, "ERR ") || !strings.Contains(got, dir) {
		t.Errorf("SAVE into the directory of another: %q", got)
	}
}

// A server with little data answers its first client; one with more data replies LOADING until Load has returned.
func TestNoClientHearsLoadingWhereThereIsLittleToLoad(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct{ first, want, last string }{
		{"SET k v", "OK", "SET small x"},
		{"GET k", "v", "SET large " + strings.Repeat("x", quickLoad)},
		{"GET k", "LOADING Redis is loading the dataset in memory", "PING"},
	} {
		in, socket, end := openIn(t, "--dir", dir)
		if got := dial(t, socket).ask(strings.Fields(x.first)...).Str; got != x.want {
			t.Errorf("%s: %q", x.first, got)
		}
		if err := in.Load(context.Background()); err != nil {
			t.Error(err)
		}
		c := dial(t, socket)
		if got := c.ask("GET", "k").Str; got != "v" {
			t.Errorf("after Load: %q", got)
		}
		c.ask(strings.Fields(x.last)...)
		end()
	}
}
