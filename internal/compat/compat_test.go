package compat

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// root is the repository's root, seen from this package.
const root = "../.."

func TestTheProgramsAreThoseThatTestsStart(t *testing.T) {
	want := []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9}
	if got := All.Programs(); !slices.Equal(got, want) {
		t.Errorf("the list is about %q, tests start %q", got, want)
	}
	for _, p := range want {
		if Of(p) == 0 || !All.Has(Of(p)) {
			t.Errorf("%s is in no set", p)
		}
	}
	if Of("ebb") != 0 {
		t.Error("ebb is among the servers that ebb is compared with")
	}
}

var (
	idForm       = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	commandsForm = regexp.MustCompile(`^([a-z0-9_.|-]+( [a-z0-9_.|-]+)*)?$`)
)

func TestEveryDifferenceIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range differences {
		switch {
		case !idForm.MatchString(d.ID):
			t.Errorf("%q: an ID is two or more words in lower case, joined by hyphens", d.ID)
		case seen[d.ID]:
			t.Errorf("%s is there twice", d.ID)
		case !slices.Contains(Areas, d.Area):
			t.Errorf("%s: the area %q is not on the page", d.ID, d.Area)
		case d.Servers == 0 || !All.Has(d.Servers):
			t.Errorf("%s differs from no server", d.ID)
		case !commandsForm.MatchString(d.Commands):
			t.Errorf("%s: Commands is %q", d.ID, d.Commands)
		case !strings.HasSuffix(d.What, ".") || !strings.HasSuffix(d.Reason, "."):
			t.Errorf("%s: What and Reason are sentences", d.ID)
		}
		seen[d.ID] = true
	}
}

// TestEveryDifferenceIsNamedByATest looks for each ID as a string of its own in the Go files
// that import this package, and in transcripts and the scripts of effecttest as a word behind "differs:".
func TestEveryDifferenceIsNamedByATest(t *testing.T) {
	used := map[string]bool{}
	usedByGo(t, used)
	usedByTranscripts(t, used)
	usedByExamples(t, used)
	for _, d := range differences {
		if !used[d.ID] {
			t.Errorf("no test names the difference %s: ebb may no longer differ there; remove it from differences.go, and run `make docs`", d.ID)
		}
	}
}

func usedByGo(t *testing.T, used map[string]bool) {
	t.Helper()
	fset := token.NewFileSet()
	walk(t, root, ".go", func(path string) {
		if filepath.Base(filepath.Dir(path)) == "compat" {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "ebb/internal/compat\"") {
			return
		}
		f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					used[s] = true
				}
			}
			return true
		})
	})
}

var differs = regexp.MustCompile(`(?m)[(#] ?differs: ([a-z0-9-]+(?:, [a-z0-9-]+)*)\)?$`)

func usedByTranscripts(t *testing.T, used map[string]bool) {
	t.Helper()
	look := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			return
		}
		for _, m := range differs.FindAllStringSubmatch(string(text), -1) {
			for id := range strings.SplitSeq(m[1], ", ") {
				used[id] = true
				if _, ok := Find(id); !ok {
					t.Errorf("%s: %s is not a difference of internal/compat", path, id)
				}
			}
		}
	}
	walk(t, filepath.Join(root, "testdata", "transcripts"), ".txt", look)
	walk(t, filepath.Join(root, "internal", "testing", "effecttest", "testdata"), ".txt", look)
}

// inExample is the remark of a transcript within a string literal of Go.
var inExample = regexp.MustCompile(`\(differs: ([a-z0-9, -]+)\)`)

// usedByExamples looks in the examples of commands, which are transcripts as well.
func usedByExamples(t *testing.T, used map[string]bool) {
	t.Helper()
	walk(t, filepath.Join(root, "internal", "command"), ".go", func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			return
		}
		for _, m := range inExample.FindAllStringSubmatch(string(text), -1) {
			for id := range strings.SplitSeq(m[1], ", ") {
				used[id] = true
			}
		}
	})
}

// walk calls do with the files below a directory whose names end in ext.
func walk(t *testing.T, dir, ext string, do func(path string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ext):
			do(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCoversTellsForWhichServersADifferenceHolds(t *testing.T) {
	for program, want := range map[string]bool{realserver.Redis7: true, realserver.Redis8: false, "ebb": false} {
		if got, err := Covers("getkeys-bare", program); err != nil || got != want {
			t.Errorf("%s: %v, %v", program, got, err)
		}
	}
	if _, err := Covers("no-such", realserver.Redis7); err == nil {
		t.Error("an ID that is not on the list is not an error")
	}
}
