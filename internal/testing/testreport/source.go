package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source holds the functions of the test files of a directory.
type source struct {
	fset  *token.FileSet
	funcs map[string]*function
}

// function is a function of a test file, or all methods of one name.
type function struct {
	imports map[string]bool // the import paths that it names
	calls   map[string]bool // the other names in it
	file    string
	begin   int // its lines, from its doc comment
	end     int
}

func readSource(dir string) (*source, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	s := &source{token.NewFileSet(), map[string]*function{}}
	for _, name := range files {
		file, err := parser.ParseFile(s.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.add(name, file)
	}
	return s, nil
}

func (s *source) add(name string, file *ast.File) {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		to, _ := strconv.Unquote(spec.Path.Value)
		as := path.Base(to)
		if spec.Name != nil {
			as = spec.Name.Name
		}
		imports[as] = to
	}
	for _, d := range file.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if !ok || decl.Body == nil {
			continue
		}
		f := s.funcs[decl.Name.Name]
		if f == nil {
			f = &function{imports: map[string]bool{}, calls: map[string]bool{}}
			s.funcs[decl.Name.Name] = f
		}
		f.file, f.begin, f.end = name, s.fset.Position(decl.Pos()).Line, s.fset.Position(decl.End()).Line
		if decl.Doc != nil {
			f.begin = s.fset.Position(decl.Doc.Pos()).Line
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if to := imports[id.Name]; to != "" {
					f.imports[to] = true
				} else {
					f.calls[id.Name] = true
				}
			}
			return true
		})
	}
}

// reached returns the functions of the directory's test files that a test calls, itself among them.
func (s *source) reached(test string) map[string]bool {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		f := s.funcs[name]
		if f == nil || seen[name] {
			return
		}
		seen[name] = true
		for name := range f.calls {
			visit(name)
		}
	}
	visit(test)
	return seen
}

// imports returns the import paths that a test names, itself or by the functions of its directory's test files.
func (s *source) imports(test string) map[string]bool {
	all := map[string]bool{}
	for name := range s.reached(test) {
		for to := range s.funcs[name].imports {
			all[to] = true
		}
	}
	return all
}

// outside matches the packages by which a test meets processes, sockets and the machine's clock.
var outside = regexp.MustCompile(
	`^(net|net/http|net/http/httptest|os/exec|os/signal)$|/(realserver|backends|hangtest|objects|instance|ebbtest|embed|embedded|chromedp)$|/ebb$`)

// isOutside reports whether the result of a test can depend on what happens outside of its process. Of other tests, and
// of those in virtual time, a second try could only hide a fault.
func (s *source) isOutside(test string) bool {
	imports := s.imports(test)
	if imports["testing/synctest"] {
		return false
	}
	for name := range s.reached(test) {
		if s.funcs[name].calls["Virtual"] { // of package backends
			return false
		}
	}
	for to := range imports {
		if outside.MatchString(to) {
			return true
		}
	}
	return false
}

// changes are the lines of test files that are new since a commit, by file (from the top of the repository).
type changes map[string][]lines

type lines struct{ from, to int }

var (
	newFile = regexp.MustCompile(`^\+\+\+ b/(.*)`)
	hunk    = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)
)

// changesSince asks git what the working tree changes since a commit.
func changesSince(commit string) (changes, error) {
	diff, err := git("diff", "--no-color", "--no-ext-diff", "-U0", commit, "--", "*_test.go")
	if err != nil {
		return nil, err
	}
	all := parseChanges(diff)
	names, err := git("ls-files", "--others", "--exclude-standard", "--full-name", "--", "*_test.go")
	for name := range strings.SplitSeq(names, "\n") {
		all[name] = append(all[name], lines{1, math.MaxInt})
	}
	return all, err
}

func parseChanges(diff string) changes {
	all, file := changes{}, ""
	for line := range strings.SplitSeq(diff, "\n") {
		if m := newFile.FindStringSubmatch(line); m != nil {
			file = m[1]
		}
		if m := hunk.FindStringSubmatch(line); m != nil {
			from, _ := strconv.Atoi(m[1])
			n := 1
			if m[2] != "" {
				n, _ = strconv.Atoi(m[2])
			}
			all[file] = append(all[file], lines{from, from + max(n, 1) - 1})
		}
	}
	return all
}

// printChanged prints, for each directory, a pattern that finds the tests that were added or edited.
func printChanged(out io.Writer) error {
	changed, top, err := changedTests()
	if err != nil {
		return err
	}
	dirs := map[string]bool{}
	for name := range changed {
		if strings.HasSuffix(name, "_test.go") {
			dirs[path.Dir(name)] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		s, err := readSource(filepath.Join(top, dir))
		if err != nil {
			return err
		}
		if names := s.touched(changed, top); len(names) > 0 {
			fmt.Fprintf(out, "%s ^(%s)$\n", dir, strings.Join(names, "|"))
		}
	}
	return nil
}

// testName matches what go test -run finds.
var testName = regexp.MustCompile(`^(Test|Example|Fuzz)`)

// touched returns the tests that are new or edited, or that call a function of the directory's test files that is.
func (s *source) touched(changed changes, top string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(s.funcs)) {
		if !testName.MatchString(name) || name == "TestMain" {
			continue
		}
		for called := range s.reached(name) {
			if changed.touch(top, s.funcs[called]) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// touch reports whether a function is new or edited. top is the top of the repository.
func (c changes) touch(top string, f *function) bool {
	name, err := filepath.Rel(top, f.file)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(c[filepath.ToSlash(name)], func(l lines) bool { return l.from <= f.end && l.to >= f.begin })
}
