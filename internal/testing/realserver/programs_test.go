package realserver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// always are the programs of every machine that runs the tests, and those that .ci/run gets otherwise than by its list.
var always = map[string]bool{"go": true, "sh": true, "sudo": true, "getent": true, "setsid": true, "env": true,
	"ebb": true, "chromium": true, Redis8: true, Valkey9: true}

// asks are the functions that take the name of a program, and the place of that argument.
var asks = map[string]int{"Program": 1, "Has": 0, "LookPath": 0, "Command": 0, "CommandContext": 1, "Start": 1, "NewProcess": 1}

// A fresh machine has what a test asks for: .ci/run installs it.
func TestCIInstallsEveryProgramThatATestAsksFor(t *testing.T) {
	const top = "../../.."
	script, err := os.ReadFile(filepath.Join(top, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^need (\S+) \S+`).FindAllStringSubmatch(string(script), -1) {
		installed[m[1]] = true
	}
	files, asked := token.NewFileSet(), 0
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".git")):
			return filepath.SkipDir
		case d.IsDir():
			consts, parsed := parseDir(t, files, path)
			for _, f := range parsed {
				ast.Inspect(f, func(n ast.Node) bool {
					if name := programOf(n, consts); name != "" {
						asked++
						if !installed[name] && !always[name] {
							t.Errorf("%s: a test asks for %s, which .ci/run does not install", files.Position(n.Pos()), name)
						}
					}
					return true
				})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if asked < 30 {
		t.Errorf("%d requests for programs were found, want 30 at least", asked)
	}
}

// parseDir returns the files of a directory that tests may use, which are all but those of programs, and its string constants.
func parseDir(t *testing.T, files *token.FileSet, dir string) (consts map[string]string, parsed []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	consts = map[string]string{"Redis7": Redis7, "Redis8": Redis8, "Valkey9": Valkey9}
	for _, name := range names {
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				for i, value := range s.(*ast.ValueSpec).Values {
					if text := literal(value); text != "" {
						consts[s.(*ast.ValueSpec).Names[i].Name] = text
					}
				}
			}
		}
		if f.Name.Name != "main" || strings.HasSuffix(name, "_test.go") || strings.Contains(filepath.ToSlash(name), "test/") {
			parsed = append(parsed, f)
		}
	}
	return consts, parsed
}

// programOf returns the name of the program that a call asks for, as far as the call says it; "" otherwise.
func programOf(n ast.Node, consts map[string]string) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, _ := fun.X.(*ast.Ident)
	at, ok := asks[fun.Sel.Name]
	if !ok || pkg == nil || pkg.Name != "realserver" && pkg.Name != "exec" || at >= len(call.Args) {
		return ""
	}
	name := literal(call.Args[at])
	switch arg := call.Args[at].(type) {
	case *ast.Ident:
		name = consts[arg.Name]
	case *ast.SelectorExpr:
		name = consts[arg.Sel.Name]
	}
	return name
}

func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(lit.Value)
	return text
}
