package wording_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// firstName matches a doc comment whose first word looks like an identifier: in lower case,
// or with a capital inside.
var firstName = regexp.MustCompile(`^([a-z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)\b`)

// misnamed returns the declarations of a file whose doc comment begins with another name
// than theirs, as it does after a rename. The names of tests are sentences, and are skipped.
func misnamed(fset *token.FileSet, f *ast.File) (all []string) {
	check := func(name *ast.Ident, doc *ast.CommentGroup) {
		if doc == nil || name.Name == "_" {
			return
		}
		if first := firstName.FindString(doc.Text()); first != "" && first != name.Name {
			all = append(all, fmt.Sprintf("%d: the doc comment of %s begins with %s", fset.Position(doc.Pos()).Line, name.Name, first))
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if isTest := strings.HasPrefix(d.Name.Name, "Test") || strings.HasPrefix(d.Name.Name, "Benchmark") ||
				strings.HasPrefix(d.Name.Name, "Example") || strings.HasPrefix(d.Name.Name, "Fuzz"); !isTest {
				check(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				name, doc := (*ast.Ident)(nil), (*ast.CommentGroup)(nil)
				switch s := s.(type) {
				case *ast.TypeSpec:
					name, doc = s.Name, s.Doc
				case *ast.ValueSpec:
					if len(s.Names) == 1 {
						name, doc = s.Names[0], s.Doc
					}
				}
				if doc == nil && !d.Lparen.IsValid() {
					doc = d.Doc
				}
				if name != nil {
					check(name, doc)
				}
			}
		}
	}
	return all
}

func TestADocCommentBeginsWithTheNameThatItDescribes(t *testing.T) {
	fset := token.NewFileSet()
	walk(t, func(name string, data []byte) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		f, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range misnamed(fset, f) {
			t.Errorf("%s:%s", name, m)
		}
	})
}

func TestAMisnamedDocCommentIsFound(t *testing.T) {
	const src = `package p

// runBeside runs it.
func runInBackground() {}

// TrySet sets it.
func trySet() {}

// good is one.
var good, _ = 1, 2

// Redis wants this.
const want = 1

type (
	// old is a type.
	young struct{}
)

// go-redis reads it.
func TestGoRedis() {}
`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"3: the doc comment of runInBackground begins with runBeside", "6: the doc comment of trySet begins with TrySet",
		"16: the doc comment of young begins with old"}
	if got := misnamed(fset, f); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
