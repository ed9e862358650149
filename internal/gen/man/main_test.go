package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// Every command and every directive has its place in the manual pages.
func TestTheManualPagesAreComplete(t *testing.T) {
	dir, program := t.TempDir(), realserver.Ebb(t)
	if err := write(program, dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer(`\-`, "-", `\&`, "", `\fB`, "", `\fP`, "", `\e`, `\`).Replace(string(text))
	}
	for name, parts := range map[string][]string{
		"ebb.1":            {".SH NAME\nebb - a Redis", "ebb-serve(1)", "ebb-completion(1)"},
		"ebb-serve.1":      {"ebb-serve - Run a server", ".SH SYNOPSIS\n.PP\n.nf\n  ebb serve [", "\n  ebb serve --dir data\n", "SIGHUP makes"},
		"ebb-cli.1":        {".SH SYNOPSIS\nebb cli [OPTIONS]", "\n  --bigkeys  ", "TLS\n"},
		"ebb-queue.1":      {".TP\npeek\nShow jobs", ".SH EXAMPLES\n.PP\n.nf\n  ebb queue list\n", "ebb(1)\nebb-queue-list(1)"},
		"ebb-queue-list.1": {".TP\n-p, --port int\nport (default 6379)\n"},
	} {
		page := read(filepath.Join("man1", name))
		for _, part := range parts {
			if !strings.Contains(page, part) {
				t.Errorf("%s does not have %q:\n%s", name, part, page)
			}
		}
		if strings.Contains(page, "more information about a command") {
			t.Errorf("%s has the hint to --help", name)
		}
	}
	page := read("man5/ebb.conf.5")
	for _, d := range config.Directives() {
		if !strings.Contains(page, ".TP\n"+d.Name) {
			t.Errorf("ebb.conf(5) does not have %s", d.Name)
		}
	}
}
