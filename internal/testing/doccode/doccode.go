// Package doccode compiles the Go that documentation shows: the fenced blocks of pages,
// and those of the doc comments of packages.
//
//	```go ... ```   ──▶ a function of its own ─┐
//	//	l, err := …  ──▶ a function of its own ─┴▶ go build, beside testdata/reader.go
//
// Definitions that a block leaves to its reader, such as a type Mail or a function send,
// are in testdata/reader.go of the calling test. Compile ignores a line "..." and a body {
// ... }. It also ignores variables that are declared again or never used.
//
// Start reading at Code.Compile.
package doccode

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// Code names the pages and packages that a test compiles, in the module of the test's
// directory.
type Code struct {
	// Root is the directory from which Pages and Packages begin; "": the test's directory.
	Root string
	// Pages are patterns of files, Packages directories.
	Pages, Packages []string
	// Imports are packages by the names that blocks call them, besides the toolkit's and
	// some of the library.
	Imports map[string]string
	// Others, if not nil, matches the code of other libraries: Compile leaves out a block
	// with a match.
	Others *regexp.Regexp
	// Only, if not nil, matches the blocks that are compiled.
	Only *regexp.Regexp
	// Least is the least number of blocks; Compile fails if it finds fewer.
	Least int
}

// Toolkit are the packages of the toolkit, from the root of the tree.
var Toolkit = []string{"limit", "limit/httplimit", "lock", "lock/httpidem", "queue", "expmap", "expset", "topic", "stream",
	"bloom", "unique", "bits", "near",
	"cache", "ebbtest"}

// known returns the packages that a block may use anywhere.
func known() map[string]string {
	all := map[string]string{
		"context": "context", "errors": "errors", "fmt": "fmt", "strings": "strings", "testing": "testing", "time": "time",
		"http": "net/http", "synctest": "testing/synctest", "ebb": "github.com/ebbdb/ebb",
	}
	for _, p := range Toolkit {
		all[filepath.Base(p)] = "github.com/ebbdb/ebb/" + p
	}
	return all
}

// block is some lines of Go in a file.
type block struct {
	file  string
	line  int // of the first
	lines []string
}

// Compile compiles each block, and reports the errors of the compiler.
func (c Code) Compile(t *testing.T) {
	t.Helper()
	realserver.Program(t, "go")
	imports := known()
	maps.Copy(imports, c.Imports)
	var all []block
	for _, f := range c.glob(t, c.Pages, "") {
		all = append(all, fenced(t, f)...)
	}
	for _, f := range c.glob(t, c.Packages, "*.go") {
		all = append(all, commented(t, f)...)
	}
	dir := t.TempDir()
	overlay := map[string]string{"reader.go": "testdata/reader.go"}
	n := 0
	for i, b := range all {
		text := strings.Join(b.lines, "\n")
		if c.Others != nil && c.Others.MatchString(text) || c.Only != nil && !c.Only.MatchString(text) {
			continue
		}
		name := fmt.Sprintf("block%d.go", i)
		overlay[name] = filepath.Join(dir, name)
		write(t, overlay[name], b.program(t, imports))
		n++
	}
	if n < c.Least {
		t.Errorf("%d blocks were found: are these all?", n)
	}
	for _, e := range build(t, dir, overlay) {
		t.Error(e)
	}
}

func (c Code) glob(t *testing.T, patterns []string, under string) (names []string) {
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(c.Root, p, under))
		if err != nil || len(found) == 0 {
			t.Fatal(p, len(found), err)
		}
		names = append(names, found...)
	}
	return names
}

func read(t *testing.T, name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, name, text string) {
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fenced returns a page's blocks of Go. All Go of a page is fenced: what is indented is
// a transcript or a picture.
func fenced(t *testing.T, page string) (all []block) {
	in, code := false, false
	for i, line := range strings.Split(read(t, page), "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			in, code = !in, line == "```go"
			if code {
				all = append(all, block{file: page, line: i + 2})
			}
		case in && code:
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		case !in && strings.HasPrefix(line, "    ") && strings.Contains(line, ", err := "):
			t.Errorf("%s:%d: Go stands between ```go and ```", page, i+1)
		}
	}
	return all
}

// commented returns the code in a file's comments: indented text that declares something.
func commented(t *testing.T, file string) (all []block) {
	if strings.HasSuffix(file, "_test.go") {
		return nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range f.Comments {
		b := block{file: file}
		part := 0 // where it began in b
		end := func() {
			if !strings.Contains(strings.Join(b.lines[part:], "\n"), ":=") {
				clear(b.lines[part:]) // a picture: nothing is in its place
			}
			part = len(b.lines)
		}
		add := func() {
			if end(); strings.Join(b.lines, "") != "" {
				all = append(all, b)
			}
			b.lines, part = nil, 0
		}
		for _, c := range group.List {
			line, code := strings.CutPrefix(c.Text, "//\t")
			switch {
			case code && len(b.lines) == 0:
				b.line = fset.Position(c.Pos()).Line
				fallthrough
			case code:
				b.lines = append(b.lines, line)
			case c.Text == "//":
				if end(); part > 0 {
					b.lines = append(b.lines, "")
				}
			default:
				add()
			}
		}
		add()
	}
	return all
}

// left matches a body that is left out.
var left = regexp.MustCompile(`\{ ?\.\.\. ?\}`)

// program returns the block as a file of Go.
func (b block) program(t *testing.T, imports map[string]string) string {
	full, err := filepath.Abs(b.file)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, line := range b.lines {
		if strings.TrimSpace(line) == "..." {
			line = ""
		}
		text += left.ReplaceAllString(line, "{ panic(0) }") + "\n"
	}
	var s strings.Builder
	s.WriteString("package code\n")
	for name, path := range imports {
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(text) {
			fmt.Fprintf(&s, "import %s %q\n", name, path)
		}
	}
	declares := strings.HasPrefix(text, "func ") || strings.HasPrefix(text, "type ")
	if !declares {
		s.WriteString("func _() error {\n")
	}
	fmt.Fprintf(&s, "//line %s:%d\n%s", full, b.line, text)
	if !declares {
		s.WriteString("panic(0)\n}\n")
	}
	return s.String()
}

// pardoned matches compiler errors that a reader can fix.
var pardoned = regexp.MustCompile(`declared and not used|no new variables on left side|imported (as \w+ )?and not used|^#`)

// build compiles a package of these files, and returns the errors of the compiler.
func build(t *testing.T, dir string, files map[string]string) (errs []string) {
	replace := map[string]string{}
	for name, at := range files {
		virtual, err := filepath.Abs(filepath.Join("code", name)) // a directory that is not there
		if err != nil {
			t.Fatal(err)
		}
		if replace[virtual], err = filepath.Abs(at); err != nil {
			t.Fatal(err)
		}
	}
	j, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	write(t, overlay, string(j))
	out, err := exec.Command("go", "build", "-overlay", overlay, "-gcflags=-e", "./code").CombinedOutput()
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if line != "" && !pardoned.MatchString(line) {
			errs = append(errs, line)
		}
	}
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return errs
}
