//go:build unix

package realserver

import (
	"bufio"
	"context"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// The programs that the shell has started keep its standard output open.
func TestTheEndOfAContextEndsWhatTheProgramHasStarted(t *testing.T) {
	sh := Program(t, "sh")
	for _, own := range []string{"", "setsid "} { // in the group of the shell, and in a session of its own
		if own != "" && runtime.GOOS != "linux" {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
		defer cancel()
		cmd := CommandContext(ctx, sh, "-c", own+`sleep 3600 & echo began; wait`)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(out)
		if line, err := in.ReadString('\n'); err != nil || line != "began\n" {
			t.Fatalf("%q, %v", line, err)
		}
		cancel()
		if rest, err := in.ReadString('\n'); rest != "" || err == nil { // the end comes when all have closed the pipe
			t.Errorf("%q, %v", rest, err)
		}
		var status *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &status) || status.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("%swait: %v", own, err)
		}
	}
}

func TestWaitDoesNotWaitForAProgramThatKeepsTheOutput(t *testing.T) {
	var said strings.Builder
	cmd := CommandContext(t.Context(), Program(t, "sh"), "-c", `sleep 3600 & echo $!`)
	cmd.WaitDelay = time.Millisecond
	cmd.Stdout = &said
	if err := cmd.Run(); !errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("%v, want %v", err, exec.ErrWaitDelay)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}
