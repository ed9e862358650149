package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// source holds the functions of the test files of a directory, by name.
type source map[string]*function

// function is a function of a test file, or all methods of one name.
type function struct {
	file, text string          // the last of them, from its doc comment
	names      map[string]bool // the names in it; of a package that the file imports, the quoted path
}

func readSource(dir string) (source, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	s := source{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.add(name, string(text), file)
	}
	return s, nil
}

func (s source) add(name, text string, file *ast.File) {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		as := strings.Trim(path.Base(spec.Path.Value), `"`)
		if spec.Name != nil {
			as = spec.Name.Name
		}
		imports[as] = spec.Path.Value
	}
	for _, d := range file.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		f := s[decl.Name.Name]
		if f == nil {
			f = &function{names: map[string]bool{}}
			s[decl.Name.Name] = f
		}
		from := decl.Pos()
		if decl.Doc != nil {
			from = decl.Doc.Pos()
		}
		f.file, f.text = name, text[from-file.FileStart:decl.End()-file.FileStart]
		ast.Inspect(decl, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && imports[id.Name] != "" {
				f.names[imports[id.Name]] = true
			} else if ok {
				f.names[id.Name] = true
			}
			return true
		})
	}
}

// reached returns the functions of the directory's test files that a test calls, itself among them.
func (s source) reached(test string) map[string]bool {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if s[name] != nil && !seen[name] {
			seen[name] = true
			for name := range s[name].names {
				visit(name)
			}
		}
	}
	visit(test)
	return seen
}

// outside matches the packages by which a test meets processes, sockets and the machine's clock.
var outside = regexp.MustCompile(
	`^"(net|net/http|net/http/httptest|os/exec|os/signal)"$|/(realserver|backends|hangtest|objects|instance|ebbtest|embed|embedded|chromedp|` +
		`ebb)"$`)

// isOutside reports whether the result of a test can depend on what happens outside of its process. Of other tests, and
// of those in virtual time, a second try could only hide a fault.
func (s source) isOutside(test string) (is bool) {
	for called := range s.reached(test) {
		for name := range s[called].names {
			if name == `"testing/synctest"` || name == "Virtual" { // of package backends
				return false
			}
			is = is || outside.MatchString(name)
		}
	}
	return is
}

// changed returns the functions that the working tree adds or edits since base, or has moved to another file.
func (s source) changed() map[string]bool {
	before, all := map[string]string{}, map[string]bool{}
	for name, f := range s {
		if _, read := before[f.file]; !read {
			before[f.file], _ = git("-C", filepath.Dir(f.file), "show", base()+":./"+filepath.Base(f.file)) // a new file was not there
		}
		all[name] = !strings.Contains(before[f.file], f.text)
	}
	return all
}

// testName matches what go test -run finds.
var testName = regexp.MustCompile(`^(Test|Example|Fuzz)`)

// printChanged prints, for each directory, a pattern that finds the tests that were added or edited, or that call a function of the
// directory's test files that was.
func printChanged(out io.Writer) error {
	edited, err := git("diff", "-z", "--name-only", base(), "--", "*_test.go")
	if err != nil {
		return err
	}
	added, err := git("ls-files", "-z", "--others", "--exclude-standard", "--", "*_test.go")
	if err != nil {
		return err
	}
	dirs := map[string]bool{}
	for name := range strings.FieldsFuncSeq(edited+added, func(r rune) bool { return r == 0 }) {
		dirs[filepath.Dir(name)] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		s, err := readSource(dir)
		if err != nil {
			return err
		}
		changed := s.changed()
		var names []string
		for _, name := range slices.Sorted(maps.Keys(s)) {
			calls := func(called string) bool { return changed[called] }
			if testName.MatchString(name) && name != "TestMain" && slices.ContainsFunc(slices.Collect(maps.Keys(s.reached(name))), calls) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(out, "%s ^(%s)$\n", dir, strings.Join(names, "|"))
		}
	}
	return nil
}

// git runs git, and returns what it prints.
func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}
