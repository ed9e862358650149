package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// nameOfCode matches a name of the code in the glossary, such as (`uncovered`). Names in capitals are words of commands.
var nameOfCode = regexp.MustCompile("\\(`(\\w*[a-z]\\w*)`\\)")

// codeSpan matches a path of names as a design page has it: `Tx.changed`, `dispatchSafely()`.
var codeSpan = regexp.MustCompile("`([A-Za-z_][\\w.]*\\w)(?:\\(\\))?`")

// mixed matches a name that only code has: one with a capital letter behind a small one.
var mixed = regexp.MustCompile(`[a-z][A-Z]`)

// placeholders are names of design pages that stand for several of the code.
var placeholders = []string{"NewKind"}

// namesIn returns the names of the code that a page has, and the page for each.
func namesIn(t *testing.T, pages ...string) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "glossary.md" {
			for _, m := range nameOfCode.FindAllStringSubmatch(string(page), -1) {
				names[m[1]] = name
			}
			continue
		}
		for _, m := range codeSpan.FindAllStringSubmatch(string(page), -1) {
			for part := range strings.SplitSeq(m[1], ".") {
				if mixed.MatchString(part) && !slices.Contains(placeholders, part) {
					names[part] = name
				}
			}
		}
	}
	return names
}

// A page that names a function, a type or a field of the code is stale when the code has no such name any longer.
func TestPagesNameWhatTheCodeHas(t *testing.T) {
	pages, err := filepath.Glob("design/*.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := namesIn(t, append(pages, "glossary.md")...)
	if len(missing) < 100 {
		t.Errorf("the glossary and the design pages have %d names of the code", len(missing))
	}
	err = filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".js"):
			text, err := os.ReadFile(name)
			for _, word := range regexp.MustCompile(`\w+`).FindAllString(string(text), -1) {
				delete(missing, word)
			}
			return err
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				delete(missing, id.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("%s names %s, which the code does not have", missing[name], name)
	}
}
