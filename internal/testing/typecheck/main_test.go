package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module writes a module with these files, and makes its directory that of the test.
func module(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	files["go.mod"] = "module example.com/m\n\ngo 1.26\n"
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatTypesForbidOnAnotherSystemIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string // "": nothing is wrong
	}{
		"nothing": {map[string]string{"a.go": "package a\nimport \"os\"\nvar F = os.Stdin\n",
			"a_test.go": "package a\nimport \"testing\"\nfunc TestA(*testing.T) {}\n"}, ""},
		"a file for the system": {map[string]string{"a.go": "package a\n",
			"a_windows.go": "package a\nvar x int = \"x\"\n"}, "cannot use"},
		"a missing function": {map[string]string{"a.go": "package a\nvar x = f()\n",
			"a_linux.go": "package a\nfunc f() int { return 1 }\n"}, "undefined: f"},
		"a test": {map[string]string{"a.go": "package a\n",
			"a_test.go": "package a\nimport \"syscall\"\nvar x = syscall.Kill\n"}, "Kill"},
		"a test from outside": {map[string]string{"a.go": "package a\n", "b.go": "package a\nfunc f() {}\n",
			"a_test.go": "package a_test\nimport \"example.com/m\"\nvar x = a.F\n"},
			"undefined: a.F"},
		"what a test adds": {map[string]string{"a.go": "package a\n", "export_test.go": "package a\nvar F = 1\n",
			"a_test.go": "package a_test\nimport \"example.com/m\"\nvar x = a.F\n"}, ""},
		"a body":                   {map[string]string{"a.go": "package a\nfunc f() { g() }\n"}, "undefined: g"},
		"syntax":                   {map[string]string{"a.go": "package a\nfunc {\n"}, "expected"},
		"an import that is absent": {map[string]string{"a.go": "package a\nimport _ \"example.com/m/b\"\n"}, "example.com/m/b"},
		"a file that is not there": {map[string]string{"a.go": "package a\nimport _ \"embed\"\n//go:embed x.txt\nvar x string\n"}, "x.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			module(t, c.files)
			n, errs := check("windows/amd64", []string{"./..."})
			var said []string
			for _, err := range errs {
				said = append(said, err.Error())
			}
			all := strings.Join(said, "\n")
			if (all == "") != (c.want == "") || !strings.Contains(all, c.want) || n == 0 {
				t.Errorf("%d packages; got %q, want %q", n, all, c.want)
			}
		})
	}
}

func TestATargetHasASystemAndAProcessor(t *testing.T) {
	if _, errs := check("windows", nil); len(errs) != 1 || !strings.Contains(errs[0].Error(), "darwin/arm64") {
		t.Errorf("got %v", errs)
	}
}
