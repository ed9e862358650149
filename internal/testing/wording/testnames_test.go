package wording_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namedTest matches the name of a function that go test runs. camel matches a word of it.
var (
	namedTest = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark|Example)(?:[A-Z_0-9]|$)`)
	camel     = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+|[0-9]+`)
)

// hidesItsSubject reports whether the name of a test, which is a sentence in CamelCase, has an indefinite person: Who, Whom,
// Nobody, NoOne and their like. "Whose" follows a noun, and is none.
func hidesItsSubject(name string) bool {
	words := camel.FindAllString(name, -1)
	return slices.ContainsFunc(words, func(w string) bool {
		switch strings.ToLower(w) {
		case "who", "whom", "whoever", "whomever", "nobody", "nobodys", "somebody", "somebodys", "anybody", "anybodys", "everybody",
			"everybodys", "someone", "anyone", "everyone":
			return true
		}
		return false
	}) || indefinite.MatchString(strings.ToLower(strings.Join(words, " ")))
}

func TestNamesOfTestsNameTheirSubject(t *testing.T) {
	fset := token.NewFileSet()
	walk(t, func(name string, data []byte) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		f, err := parser.ParseFile(fset, name, data, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && namedTest.MatchString(fn.Name.Name) && hidesItsSubject(fn.Name.Name) {
				t.Errorf("%s:%d: %s: name the client, the caller or the waiter", name, fset.Position(fn.Pos()).Line, fn.Name.Name)
			}
		}
	})
}

func TestAnIndefinitePersonInANameIsFound(t *testing.T) {
	for name, want := range map[string]bool{
		"TestWaiterIsServed":                      false,
		"TestWhoWaitsIsServed":                    true,
		"TestALeaseGoesToWhoeverWaits":            true,
		"TestACookieLogsNoOneIn":                  true,
		"TestAJobIsNobodys":                       true,
		"TestTheWholeIsRead":                      false,
		"TestACallWhoseReplyIsLostIsRepeated":     false,
		"TestNoOtherOneIsServed":                  false,
		"BenchmarkSetWhileSomeoneTracks":          true,
		"TestProtectedDirectivesOpenToWhomItSays": true,
	} {
		if got := hidesItsSubject(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
