package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/config"
)

// Every command and every directive has its place in the manual pages.
func TestTheManualPagesAreComplete(t *testing.T) {
	dir := t.TempDir()
	root := &cobra.Command{Use: "ebb"}
	root.AddCommand(commands()...)
	root.SetArgs([]string{"man", dir})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands() {
		if !c.IsAvailableCommand() {
			continue // deprecated
		}
		name := "ebb-" + c.Name() + ".1"
		page, err := os.ReadFile(filepath.Join(dir, "man1", name))
		if err != nil || !strings.Contains(string(page), strings.Fields(c.Short)[0]) {
			t.Errorf("%s: %v\n%.300s", name, err, page)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "man5", "ebb.conf.5"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.NewReplacer(`\-`, "-", `\&`, "").Replace(string(text))
	for _, d := range config.Directives() {
		if !strings.Contains(page, `\fB`+d.Name+`\fP`) {
			t.Errorf("ebb.conf(5) does not have %s", d.Name)
		}
	}
}

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
