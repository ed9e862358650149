//go:build man

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/config"
)

// The manual pages have every command and every directive.
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
	for name, want := range map[string]string{
		"ebb-cli.1": "cacertdir", "ebb-migrate-check.1": "Exit status", "ebb-migrate-follow.1": "Ctrl-C", "ebb-migrate-verify.1": "DUMP",
		"ebb-migrate-cutover.1": "CLIENT PAUSE", "ebb-migrate-back.1": "accept-loss",
	} {
		page, err := os.ReadFile(filepath.Join(dir, "man1", name))
		text := strings.ReplaceAll(string(page), `\-`, "-")
		_, text, _ = strings.Cut(text, ".SH DESCRIPTION")
		text, _, _ = strings.Cut(text, ".SH OPTIONS")
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("the description of %s has no %q: %v\n%s", name, want, err, text)
		}
		if strings.Contains(string(page), "1970") || strings.Contains(string(page), "[=false]") {
			t.Errorf("%s:\n%s", name, page)
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
