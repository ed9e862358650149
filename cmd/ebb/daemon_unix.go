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

// daemonReady is the text that the child sends when it listens. Any other text is an error.
const daemonReady = "ready"

// parentOf returns the pipe on which a child of daemonize reports the result of its start
// to its parent. It returns nil in a program that is not such a child.
func parentOf() *os.File {
	if os.Getenv(daemonVariable) == "" {
		return nil
	}
	_ = os.Unsetenv(daemonVariable)
	syscall.CloseOnExec(3)
	return os.NewFile(3, "the parent")
}

// daemonize runs this program again in a new session, without a terminal. The child gets the same arguments, and
// stdin as its standard input. daemonize returns when the child listens, or with the error that ended it. The child
// keeps running when this program ends.
func daemonize(stdin []byte) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("daemonize yes: cannot find the executable file of this program: %w", err)
	}
	said, say, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("daemonize yes: %w", err)
	}
	defer said.Close()
	child := exec.Command(self, os.Args[1:]...)
	child.Args[0] = os.Args[0] // the name may select the command (namedAs)
	child.Stdin = bytes.NewReader(stdin)
	child.Env = append(os.Environ(), daemonVariable+"=1")
	child.ExtraFiles = []*os.File{say}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = child.Start()
	_ = say.Close()
	if err != nil {
		return fmt.Errorf("daemonize yes: cannot start the server: %w", err)
	}
	answer, err := io.ReadAll(said) // ends when the child closes its end
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
