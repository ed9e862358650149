// Package wording_test checks the English of the tree: of pages, of Go comments and of Go
// string literals.
//
//	*.md ───────────┐
//	Go comments ────┼──▶ sentences ──▶ findings ──▶ count per area <= ceiling
//	string literals ┘
//
// A sentence names its subject: the client, the caller, the server. An indefinite person
// (nobody, somebody, "who waits ...") hides it. CONTRIBUTING.md has the rules. ceilings says
// what is still left; a ceiling may only sink. Start reading at TestSentencesNameTheirSubject.
package wording_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the length of a line of Go at most. It fits a window of a review with two
// columns on a wide screen.
const columns = 160

var (
	list = flag.Bool("wording.list", false, "print each finding, also below the ceilings")
	root = flag.String("wording.root", "../..", "the tree to check")
)

// ceilings are the findings that an area still has, at most. Lower a number after you have
// reworded a text; never raise one. An area without a line has none.
var ceilings = map[string]count{
	"internal": {md: 0, comments: 0, strings: 4},
}

// allowed are texts that look like a finding and are none, with the reason. The key is a
// part of the sentence.
var allowed = map[string]string{
	`host and port, or "no one"`:     "the value of the directive replicaof",
	`a host and a port, or "no one"`: "the same, in the error for a wrong value",
}

// generated are pages that a program writes; their texts are checked where they come from.
var generated = []string{"docs/commands/", "docs/compatibility.md"}

// count counts findings by where they stand.
type count struct{ md, comments, strings int }

func (c count) String() string {
	return fmt.Sprintf("{md: %d, comments: %d, strings: %d}", c.md, c.comments, c.strings)
}

// indefinite matches an indefinite person anywhere, and "who" with a verb where a clause
// begins with it.
var indefinite = regexp.MustCompile(`\b((?i:nobody|somebody|anybody|everybody|whoever|whomever|someone|anyone|everyone)|[Nn]o[ -]one)\b|` +
	`(?:^|[.;:!?|(]\s+|\n\s*[*-]\s+|\n\n\s*|\|\s*|[Aa]nd |[Bb]ut |\(|,\s+and\s+)[Ww]ho\s+[a-z]`)

// finding is a sentence that hides its subject.
type finding struct {
	file string
	line int
	text string
}

// find returns the findings of a text that begins at a line of a file.
func find(file string, line int, text string) (all []finding) {
	for _, at := range indefinite.FindAllStringIndex(text, -1) {
		s := sentence(text, at)
		if strings.HasSuffix(s, "?") || isAllowed(s) {
			continue // a question has its answer in the next sentence
		}
		all = append(all, finding{file, line + strings.Count(text[:at[1]], "\n"), s})
	}
	return all
}

// sentence returns the sentence around text[at[0]:at[1]], on one line.
func sentence(text string, at []int) string {
	ends := regexp.MustCompile(`[.!?](\s|$)|\n\n|\n\s*[*|-]\s`)
	start, end := 0, len(text)
	for _, e := range ends.FindAllStringIndex(text, -1) {
		if e[0] <= at[0] {
			start = e[1]
		} else {
			end = e[0] + 1
			break
		}
	}
	return strings.Join(strings.Fields(text[start:min(end, len(text))]), " ")
}

func isAllowed(sentence string) bool {
	for part := range allowed {
		if strings.Contains(sentence, part) {
			return true
		}
	}
	return false
}

// area returns the part of the tree whose findings are counted together. Code moves between
// packages of internal, and between the root and its driver packages; the count stays.
func area(file string) string {
	parts := strings.Split(file, "/")
	switch {
	case len(parts) == 1, slices.Contains([]string{"conn", "embed", "goredis", "redisson"}, parts[0]):
		return "."
	case parts[0] == "docs" && len(parts) > 2:
		return "docs/" + parts[1]
	default:
		return parts[0]
	}
}

// walk calls fn with each file of the tree and its path from the root, with slashes.
func walk(t *testing.T, fn func(name string, data []byte)) {
	t.Helper()
	err := filepath.WalkDir(*root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(*root, path)
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".md") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil {
			fn(name, data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// comments and literals return what of a Go file is text.
func comments(fset *token.FileSet, f *ast.File) (all []finding) {
	for _, g := range f.Comments {
		all = append(all, finding{line: fset.Position(g.Pos()).Line, text: g.Text()})
	}
	return all
}

func literals(fset *token.FileSet, f *ast.File) (all []finding) {
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, _ := strconv.Unquote(lit.Value)
			all = append(all, finding{line: fset.Position(lit.Pos()).Line, text: s})
		}
		return true
	})
	return all
}

func TestSentencesNameTheirSubject(t *testing.T) {
	counts := map[string]count{}
	found := map[string][]finding{}
	add := func(file string, texts []finding, in func(*count) *int) {
		c := counts[area(file)]
		for _, text := range texts {
			all := find(file, text.line, text.text)
			*in(&c) += len(all)
			found[area(file)] = append(found[area(file)], all...)
		}
		counts[area(file)] = c
	}
	here := "internal/wording/"
	walk(t, func(name string, data []byte) {
		isGenerated := slices.ContainsFunc(generated, func(g string) bool { return strings.HasPrefix(name, g) })
		switch {
		case isGenerated || strings.HasPrefix(name, here):
		case strings.HasSuffix(name, ".md"):
			add(name, []finding{{line: 1, text: string(data)}}, func(c *count) *int { return &c.md })
		default:
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				return
			}
			add(name, comments(fset, f), func(c *count) *int { return &c.comments })
			add(name, literals(fset, f), func(c *count) *int { return &c.strings })
		}
	})
	if len(counts) < 10 {
		t.Errorf("%d areas were found: is %s the root of the tree?", len(counts), *root)
	}
	var total count
	for _, a := range slices.Sorted(maps.Keys(counts)) {
		c, max := counts[a], ceilings[a]
		total.md, total.comments, total.strings = total.md+c.md, total.comments+c.comments, total.strings+c.strings
		if c != (count{}) {
			t.Logf("%q: %v,", a, c)
		}
		over := c.md > max.md || c.comments > max.comments || c.strings > max.strings
		if over {
			t.Errorf("%s has %v sentences whose subject is an indefinite person; its ceiling is %v. Name the client, the caller or the server", a, c, max)
		} else if c != max {
			t.Logf("%s: lower its ceiling to %v", a, c)
		}
		if over || *list {
			for _, f := range found[a] {
				t.Logf("%s:%d: %s", f.file, f.line, f.text)
			}
		}
	}
	t.Logf("all: %v", total)
}

// longCeilings are the lines of Go that an area still has with more than columns, at most.
// They may only sink, as ceilings do.
var longCeilings = map[string]int{
	"internal": 4, // transcripts in raw strings, and the generated table of keys
}

func TestLinesOfGoFitTheScreen(t *testing.T) {
	found := map[string][]string{}
	walk(t, func(name string, data []byte) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		for i, line := range strings.Split(string(data), "\n") {
			if n := utf8.RuneCountInString(line); n > columns {
				found[area(name)] = append(found[area(name)], fmt.Sprintf("%s:%d: %d columns", name, i+1, n))
			}
		}
	})
	for _, a := range slices.Sorted(maps.Keys(found)) {
		switch n, max := len(found[a]), longCeilings[a]; {
		case n > max:
			t.Errorf("%s has %d lines of Go that are longer than %d columns; its ceiling is %d:\n%s", a, n, columns, max, strings.Join(found[a], "\n"))
		case n < max:
			t.Logf("%s: lower its ceiling of long lines to %d", a, n)
		}
	}
}

func TestAFindingIsAnIndefiniteSubject(t *testing.T) {
	for text, want := range map[string]int{
		"Nobody waits.":                               1,
		"What nobody\nholds.":                         1,
		"Who waits gets it.":                          1,
		"It ends; who has lost it hears so.":          1,
		"A list:\n\n* who listens":                    1,
		"| who listens | x |":                         1,
		"The client who waits gets it.":               0,
		"The server says who holds the lock.":         0,
		"Who holds the lock? The client.":             0,
		"REPLICAOF NO ONE ends it.":                   0,
		"The waiter that is first acquires the lock.": 0,
	} {
		if got := len(find("x", 1, text)); got != want {
			t.Errorf("%q has %d findings, want %d", text, got, want)
		}
	}
}
