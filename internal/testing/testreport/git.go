package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// git runs git, and returns what it prints. What the user has configured for the form of a diff does not count. The error has what git
// says of it.
func git(args ...string) (string, error) {
	fixed := []string{"-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "core.quotePath=false"}
	out, err := exec.Command("git", append(fixed, args...)...).Output()
	if refused, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(refused.Stderr)))
	}
	if err != nil {
		err = fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), err
}
