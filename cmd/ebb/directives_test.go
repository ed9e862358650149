package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/config"
)

func TestServeListsTheDirectives(t *testing.T) {
	var out strings.Builder
	root := &cobra.Command{Use: "ebb"}
	root.AddCommand(commands()...)
	root.SetOut(&out)
	root.SetArgs([]string{"serve", "--directives"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, d := range config.Directives() {
		if has := strings.Contains("\n"+out.String(), "\n"+d.Name+" "); has == (d.Unused != "") {
			t.Errorf("%s: listed %v", d.Name, has)
		}
	}
}

// The shells complete the names and values of directives.
func TestServeCompletesDirectives(t *testing.T) {
	for _, x := range []struct {
		args       []string
		toComplete string
		want       string
	}{
		{nil, "--maxmemory-po", "--maxmemory-policy"},
		{[]string{"--maxmemory-policy"}, "allkeys-l", "allkeys-lru"},
		{[]string{"--appendonly"}, "", "yes"},
		{nil, "--pe", "--peers"}, {nil, "--cons", "--console"}, {[]string{"--accept-clock"}, "", "no"}, {nil, "--direc", "--directives"},
	} {
		got, _ := completeDirectives(nil, x.args, x.toComplete)
		if !strings.Contains(strings.Join(got, "\n"), x.want) {
			t.Errorf("%q %q: %q lacks %s", x.args, x.toComplete, got, x.want)
		}
	}
}

// The shells complete the options and the commands of ebb cli, and the tests of ebb bench.
func TestTheShellsCompleteCommands(t *testing.T) {
	for _, x := range []struct {
		line    string // the last word is the one to complete
		want    string // a line of the completions
		without string
	}{
		{"cli HGETA", "HGETALL\tReturns all fields and values", "HGETDEL"},
		{"cli -p 7000 lock.a", "lock.acquire\t", "LOCK"},
		{"cli --bigk", "--bigkeys\n", "--scan"},
		{"cli -p ", ":0\n", "GET"},
		{"cli CONFIG RE", "REWRITE\t", "GET"},
		{"cli set k v k", "keepttl\n", "get\n"},
		{"cli EXPIRY RULE SET r MATCH * T", "TO\n", "MATCH"},
		{"bench -t set,ge", "set,get\n", "set,set"},
	} {
		words := strings.Split(x.line, " ")
		var out strings.Builder
		root := &cobra.Command{Use: "ebb"}
		root.AddCommand(commands()...)
		root.SetOut(&out)
		root.SetErr(io.Discard)
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, words...))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s: %v", x.line, err)
		}
		if got := out.String(); !strings.Contains("\n"+got, "\n"+x.want) || strings.Contains("\n"+got, "\n"+x.without) {
			t.Errorf("%s: want %q, and not %q:\n%s", x.line, x.want, x.without, got)
		}
	}
}
