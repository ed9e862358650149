package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ebbdb/ebb/command"
)

// Test harnesses read the version of Redis from the first v= of this line.
func TestServePrintsTheVersionThatHarnessesRead(t *testing.T) {
	for _, option := range []string{"--version", "-v"} {
		var out strings.Builder
		cmd := serveCommand()
		cmd.SetOut(&out)
		cmd.SetArgs([]string{option})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`^\S+ server v=(\S+) sha=[0-9a-f]+:[01] malloc=\S+ bits=(32|64) build=\S+ .*ebb=(\S+)`).FindStringSubmatch(out.String())
		if m == nil || m[1] != command.RedisVersion || m[3] != command.Version || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s prints %q", option, out.String())
		}
	}
}

// A signal ends a server that is busy writing out what is to be kept.
func TestASecondSignalCallsTheWritingOff(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	err := untilSignal(signals, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil || len(signals) > 0 {
		t.Errorf("%v", err)
	}
	full := errors.New("no space left")
	if err := untilSignal(signals, func(context.Context) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}
