package ebb_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// screen is the number of lines that a function of the product has at most, as in console/uitest/lengths.js.
const screen = 60

// long lists the functions that are longer, with their number of lines and the reason.
var long = map[string]struct {
	lines int
	why   string
}{
	"internal/lua.Thread.execute":    {820, "the loop of the machine: a case for each instruction, on variables that stay in registers"},
	"internal/lua.matcher.match":     {86, "a case for each item of a pattern, with jumps between them, as in Lua itself"},
	"internal/session.Session.serve": {79, "the loop over a batch of requests: calls would cost time, and the recovery shares its variables"},
}

// A function that a reader sees at once is understood at once. Tests and examples may be longer: they are read from top to bottom.
func TestAFunctionFitsOnAScreen(t *testing.T) {
	p, err := parsedAll()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, s := range p.all {
		if !s.product() {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			at, name := p.fset.Position(f.Pos()), s.dir+"."+receiver(f)+f.Name.Name
			lines := p.fset.Position(f.End()).Line - at.Line + 1
			if lines <= screen {
				continue
			}
			allowed, listed := long[name]
			found[name] = true
			switch {
			case !listed:
				t.Errorf("%s: %s has %d lines: split it; a function has at most %d", at, name, lines, screen)
			case lines > allowed.lines:
				t.Errorf("%s: %s has %d lines: the list has it with %d, a number that may only sink", at, name, lines, allowed.lines)
			}
		}
	}
	for name := range long {
		if !found[name] {
			t.Errorf("no function %s has more than %d lines: remove it from the list", name, screen)
		}
	}
}

// product reports whether a file is neither a test, nor of a package for tests, nor an example.
func (s source) product() bool {
	switch {
	case s.test(), slices.Contains(s.imports(), "testing"), within(s.dir, "internal/test"), within(s.dir, "internal/testing"):
		return false
	}
	parts := strings.Split(s.dir, "/")
	return !slices.Contains(parts, "examples") && !slices.Contains(parts, "luafuzz")
}

// receiver returns the type of a method's receiver with a point behind it, or "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.IndexListExpr:
			of = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}
