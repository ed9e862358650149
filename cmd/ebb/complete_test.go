package main

import (
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
	} {
		got, _ := completeDirectives(nil, x.args, x.toComplete)
		if !strings.Contains(strings.Join(got, "\n"), x.want) {
			t.Errorf("%q %q: %q lacks %s", x.args, x.toComplete, got, x.want)
		}
	}
}
