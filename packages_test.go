package ebb_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// public returns the directories of the packages that programs import, those of the modules
// below contrib included, and the packages' non-test and test files.
func public(t *testing.T) map[string][]string {
	t.Helper()
	dirs := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case "internal", "cmd", "examples", "bench", "testdata", "node_modules", "docs", "packaging", "browsertest":
				return filepath.SkipDir
			}
			if len(d.Name()) > 1 && d.Name()[0] == '.' {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") {
			dir := filepath.ToSlash(filepath.Dir(path))
			dirs[dir] = append(dirs[dir], path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, files := range dirs {
		if !slices.ContainsFunc(files, func(f string) bool { return !strings.HasSuffix(f, "_test.go") }) {
			delete(dirs, dir) // tests alone
		}
	}
	if len(dirs) < 25 {
		t.Fatalf("there are %d public packages only", len(dirs))
	}
	return dirs
}

func TestEveryPackageHasAnExampleWithOutput(t *testing.T) {
	for dir, files := range public(t) {
		var tests []*ast.File
		for _, path := range files {
			if !strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			tests = append(tests, f)
		}
		if !slices.ContainsFunc(doc.Examples(tests...), func(e *doc.Example) bool { return e.Output != "" }) {
			t.Errorf("package %s has no Example with // Output", dir)
		}
	}
}

// The list is in the comment of package ebb, which go doc shows.
func TestTheDocumentationListsEveryPackage(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for dir := range public(t) {
		name := strings.TrimPrefix(dir, "contrib/")
		if dir == "." {
			name = "ebb"
		}
		if !regexp.MustCompile(`(?m)^//	([a-z, ]+, )?` + regexp.QuoteMeta(name) + `[ ,]`).Match(text) {
			t.Errorf("doc.go does not list package %s", dir)
		}
	}
}
