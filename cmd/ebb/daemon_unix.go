//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// daemonVariable is set in the environment of the child that daemonize starts.
const daemonVariable = "EBB_DAEMON_CHILD"

// daemonReady is what the child says when it listens; anything else is its error.
const daemonReady = "ready"

// parentOf returns where a child of daemonize tells its parent how the start went, and
// nil in a program that is none.
func parentOf() *os.File {
	if os.Getenv(daemonVariable) == "" {
		return nil
	}
	_ = os.Unsetenv(daemonVariable)
	syscall.CloseOnExec(3)
	return os.NewFile(3, "the parent")
}

// daemonize runs this program again in a session of its own, without a terminal, with the
// same arguments and what was read of the standard input, and returns when that child
// listens, or with the error that it ended with. The child goes on when this program ends.
func daemonize(stdin []byte) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("daemonize yes: the program's own file is not known: %w", err)
	}
	said, say, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("daemonize yes: %w", err)
	}
	defer said.Close()
	child := exec.Command(self, os.Args[1:]...)
	child.Stdin = bytes.NewReader(stdin)
	child.Env = append(os.Environ(), daemonVariable+"=1")
	child.ExtraFiles = []*os.File{say}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = child.Start()
	_ = say.Close()
	if err != nil {
		return fmt.Errorf("daemonize yes: the server could not be started: %w", err)
	}
	answer, err := io.ReadAll(said) // the child closes its end
	switch text := strings.TrimSpace(string(answer)); {
	case err != nil:
		return fmt.Errorf("daemonize yes: %w", err)
	case text == daemonReady:
		return nil
	case text != "":
		_ = child.Wait()
		return errors.New(text)
	}
	return fmt.Errorf("daemonize yes: the server ended before it listened: %w", child.Wait())
}
