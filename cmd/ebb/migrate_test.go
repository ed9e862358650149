package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestACheckThatCannotRunHasAStatusOfItsOwn(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int // 0: an error without an exit status
		says string
	}{
		{[]string{"check", "redis://127.0.0.1:1/3", "redis://127.0.0.1:1"}, 3, "TO"},
		{[]string{"verify", "redis://127.0.0.1:1", "redis://127.0.0.1:1"}, 0, "TO"},
		{[]string{"cutover", "redis://127.0.0.1:1"}, 0, "want FROM and TO"},
		{[]string{"check", "redis://127.0.0.1:1"}, 3, "want FROM and TO"},
		{[]string{"nosuch", "redis://127.0.0.1:1", "redis://127.0.0.1:1"}, 0, `no step "nosuch"`},
		{[]string{"cutover", "--pause", "0", "redis://127.0.0.1:1", "redis://127.0.0.1:1"}, 0, "--pause is 0s"},
		{[]string{"back", "--pause", "-1s", "redis://127.0.0.1:1", "redis://127.0.0.1:1"}, 0, "--pause is -1s"},
		{[]string{"cutover", "--pause", "999h", "redis://127.0.0.1:1", "redis://127.0.0.1:1"}, 0, "to 1h0m0s"},
	} {
		var said bytes.Buffer
		cmd := migrateCommand()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs(c.args)
		cmd.SetOut(&said)
		cmd.SetErr(&said)
		err := cmd.ExecuteContext(t.Context())
		var exit exitStatus
		if err == nil || errors.As(err, &exit) != (c.want != 0) || int(exit) != c.want || !strings.Contains(said.String()+err.Error(), c.says) {
			t.Errorf("%q: status %d, %v, %s", c.args, exit, err, said.String())
		}
	}
}
