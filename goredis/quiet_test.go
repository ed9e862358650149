package goredis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// quietRun is the variable that makes a test binary run one of the programs of
// TestAFailedDialWritesNothing instead of its tests: go-redis's log belongs to the process,
// and the other tests turn it off.
const quietRun = "EBB_TEST_QUIET"

// failDials is a program that opens servers that are not there, and one that goes away. It
// returns an error unless each call returns ErrUnavailable.
func failDials(ctx context.Context) error {
	for _, url := range []string{"redis://127.0.0.1:1", "redis+sentinel://127.0.0.1:1/m", "redis+cluster://127.0.0.1:1,127.0.0.1:2"} {
		if _, err := ebb.Open(ctx, url); !errors.Is(err, ebb.ErrUnavailable) {
			return fmt.Errorf("%s: %v", url, err)
		}
	}
	own, err := ebb.Open(ctx, "mem://")
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- ebb.EngineOf(own).Serve(serving, ln) }()
	c, err := ebb.Open(ctx, "redis://"+ln.Addr().String())
	if err != nil {
		return err
	}
	stop()
	if err := <-done; err != nil {
		return err
	}
	for range 3 {
		if err := c.Set(ctx, "k", "v"); !errors.Is(err, ebb.ErrUnavailable) {
			return fmt.Errorf("a server that has gone: %v", err)
		}
	}
	return errors.Join(c.Close(), own.Close())
}

// runQuiet runs the program that the variable names, if it does.
func runQuiet() {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	switch os.Getenv(quietRun) {
	case "":
		return
	case "go-redis": // alone: the library does write there
		_ = redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1}).Ping(ctx).Err()
	case "ebb":
		if err := failDials(ctx); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(0)
}

func TestAFailedDialWritesNothing(t *testing.T) {
	for _, program := range []string{"ebb", "go-redis"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), quietRun+"="+program)
		var out, log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &log
		if err := cmd.Run(); err != nil || out.Len() > 0 {
			t.Errorf("%s: %v: %s", program, err, &out)
		}
		if program == "ebb" && log.Len() > 0 {
			t.Errorf("failed dials write to standard error:\n%s", &log)
		}
		if program == "go-redis" && log.Len() == 0 {
			t.Error("go-redis itself writes nothing to standard error: this test cannot fail")
		}
	}
}
