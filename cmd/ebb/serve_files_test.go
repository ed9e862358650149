package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// cue ends a server once it has printed that it is ready.
type cue struct {
	cancel context.CancelFunc
	text   strings.Builder
}

func (c *cue) Write(b []byte) (int, error) {
	c.text.Write(b)
	if strings.Contains(c.text.String(), "Ready to accept connections unix") {
		c.cancel()
	}
	return len(b), nil
}

func TestServeWritesItsPidfileAndSaysWhenItIsReady(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &cue{cancel: cancel}
	pidfile := filepath.Join(dir, "ebb.pid")
	var pid string
	err := serve(ctx, []string{"--port", "0", "--unixsocket", filepath.Join(dir, "s"), "--dir", dir, "--appendonly", "no", "--pidfile",
		"ebb.pid"}, nil, writerFunc(func(b []byte) (int, error) {
		if text, err := os.ReadFile(pidfile); err == nil {
			pid = string(text)
		}
		return out.Write(b)
	}))
	if err != nil || pid != strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("%v, the pidfile says %q, the server %q", err, pid, out.text.String())
	}
	if _, err := os.Stat(pidfile); err == nil {
		t.Error("the pidfile stays")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestALogfileTakesWhatIsSaid(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the server ends after its start
	var out strings.Builder
	if err := serve(ctx, []string{"--port", "0", "--unixsocket", filepath.Join(dir, "s"), "--dir", dir, "--logfile", "ebb.log"},
		nil, &out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "ebb.log"))
	if err != nil || !strings.Contains(string(text), "Ready to accept connections unix") || out.Len() > 0 {
		t.Errorf("%v, in the file %q, outside %q", err, text, out.String())
	}
}
