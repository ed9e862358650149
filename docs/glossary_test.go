package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A name of the code in the glossary, such as (`uncovered`), stands in a package of internal. Names in capitals are words of commands.
func TestTheGlossaryNamesWhatTheCodeHas(t *testing.T) {
	page, err := os.ReadFile("glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, m := range regexp.MustCompile("\\(`(\\w*[a-z]\\w*)`\\)").FindAllStringSubmatch(string(page), -1) {
		missing[m[1]] = true
	}
	if len(missing) == 0 {
		t.Error("the glossary has no name of the code")
	}
	err = filepath.WalkDir("../internal", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
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
	for name := range missing {
		t.Errorf("the glossary names %s, which the code does not have", name)
	}
}
