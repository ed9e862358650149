package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestGroupCommandsNeedAGroup(t *testing.T) {
	s := startServe(t, "--http", "127.0.0.1:0")
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := groupCommand()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		return out.String(), cmd.ExecuteContext(t.Context())
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"status", "-s", s.socket}, "belongs to no group"},
		{[]string{"promote", "2", "-s", s.socket}, "belongs to no group"},
		{[]string{"set-k", "1", "-s", s.socket}, "belongs to no group"},
		{[]string{"remove", "3", "-s", s.socket}, "belongs to no group"},
		{[]string{"recover", "2", "--accept-loss", "-s", s.socket}, "belongs to no group"},
		{[]string{"recover", "2", "-s", s.socket}, "--accept-loss accepts that"},
		{[]string{"promote", "-s", s.socket}, "accepts 1 arg"},
	} {
		if out, err := run(x.args...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %q, %v, want an error with %q", x.args, out, err, x.want)
		}
	}
}
