// Package wording_test checks the English of the tree: of pages, and of the comments and
// string literals of Go and of the console (JavaScript, and the JSON of its texts).
//
//	*.md ───────────┐
//	comments ───────┼──▶ sentences ──▶ findings ──▶ count per area <= ceiling
//	string literals ┘
//	names of tests ────▶ words ──────▶ none      (testnames_test.go)
//
// A sentence names its subject: the client, the caller, the server. An indefinite person
// (nobody, somebody, "who waits ...", "those who wait") hides it. CONTRIBUTING.md has the
// rules. ceilings says what is still left; a ceiling may only sink. Start reading at
// TestSentencesNameTheirSubject.
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

// columns is the length of a line of Go at most, where a tab counts as one. It fits a
// window of a review with two columns on a wide screen.
const columns = 140

var (
	list = flag.Bool("wording.list", false, "print each finding, also below the ceilings")
	root = flag.String("wording.root", "../../..", "the tree to check")
)

// ceilings are the findings that an area still has, at most. Lower a number after you have
// reworded a text; never raise one. An area without a line has none.
var ceilings = map[string]count{
	"internal": {strings: 3}, // names of the wire
}

// allowed are texts that look like a finding and are none, with the reason. The key is a
// part of the sentence.
var allowed = map[string]string{
	`host and port, or "no one"`:     "the value of the directive replicaof",
	`a host and a port, or "no one"`: "the same, in the error for a wrong value",
	`主机和端口，或 "no one"`:               "the same, in Chinese",
}

// count counts findings by where they stand.
type count struct{ md, comments, strings int }

func (c count) String() string {
	return fmt.Sprintf("{md: %d, comments: %d, strings: %d}", c.md, c.comments, c.strings)
}

// indefinite matches an indefinite person anywhere, and "who" with a verb where a clause
// begins with it: at the beginning of a sentence, and as the subject or the object behind a
// preposition, a conjunction or a verb. "The client who waits" and "says who waits" have a
// noun, and a verb that takes a question.
var indefinite = regexp.MustCompile(`\b((?i:nobody|somebody|anybody|everybody|whoever|whomever|someone|anyone|everyone)|[Nn]o[ -]one)\b|` +
	`\b(?i:those|one|each|all|any|others)\s+who\b|` +
	`\b(?i:for|to|by|with|from|at|behind|after|before|than|unless|until|till|while|when|if|because|since|often|long|` +
	`reach(?:es|ed)?|serve[sd]?|wakes?|woken?|gives?|gave|lets?|makes?|made|helps?|blocks?|holds?|keeps?|kept|leaves?|left)\s+whom?\s+[a-z]|` +
	`(?:^|[.;:!?|(]\s+|\n\s*[*-]\s+|\n\n\s*|\|\s*|[Aa]nd |[Bb]ut |\(|,\s+and\s+)[Ww]ho\s+[a-z]`)

// finding is a sentence that hides its subject.
type finding struct {
	file string
	line int
	text string
}

// find returns the findings of a text that begins at a line of a file.
func find(file string, line int, text string) (all []finding) {
	if !mayBeIndefinite(text) {
		return nil
	}
	for _, at := range indefinite.FindAllStringIndex(text, -1) {
		s := sentence(text, at)
		if strings.HasSuffix(s, "?") || isAllowed(s) {
			continue // a question has its answer in the next sentence
		}
		all = append(all, finding{file, line + strings.Count(text[:at[1]], "\n"), s})
	}
	return all
}

// mayBeIndefinite reports whether a text has a part of each match of indefinite, which takes
// much longer.
func mayBeIndefinite(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"who", "body", "someone", "anyone", "everyone", "no one", "no-one"}, func(part string) bool {
		return strings.Contains(text, part)
	})
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
		if !slices.Contains([]string{".go", ".md", ".js", ".json"}, filepath.Ext(name)) {
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

// scriptToken matches a comment, a string, a template or a regular expression of JavaScript, and
// the strings of JSON. A regular expression stands where a value may begin.
var scriptToken = regexp.MustCompile("//[^\\n]*|(?s:/\\*.*?\\*/)|\"(?:[^\"\\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\\n]|\\\\.)*'|" +
	"`(?:[^`\\\\]|(?s:\\\\.))*`|" +
	"[(,=:\\[!&|?{};]\\s*/(?:[^/\\\\\\n\\[]|\\\\.|\\[(?:[^\\]\\\\\\n]|\\\\.)*\\])+/")

// script returns the comments and the strings of a file of JavaScript or JSON. Comments on
// lines that follow each other are one text.
func script(src string) (comments, strs []finding) {
	line, counted := 1, 0 // the line of src[counted]
	last := 0             // the line of the last comment
	for _, at := range scriptToken.FindAllStringIndex(src, -1) {
		text := src[at[0]:at[1]]
		line, counted = line+strings.Count(src[counted:at[0]], "\n"), at[0]
		switch {
		case strings.HasPrefix(text, "//"):
			text = strings.TrimSpace(text[2:])
			if n := len(comments); n > 0 && last == line-1 {
				comments[n-1].text += "\n" + text
			} else {
				comments = append(comments, finding{line: line, text: text})
			}
			last = line
		case strings.HasPrefix(text, "/*"):
			comments = append(comments, finding{line: line, text: strings.Trim(text, "/*")})
		case strings.ContainsAny(text[:1], "\"'`"):
			s, err := strconv.Unquote(text)
			if err != nil { // in single quotes, or with an escape that Go does not have
				s = text[1 : len(text)-1]
			}
			strs = append(strs, finding{line: line, text: s})
		}
	}
	return comments, strs
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
	here := "internal/testing/wording/"
	walk(t, func(name string, data []byte) {
		switch {
		case strings.HasPrefix(name, here):
		case strings.HasSuffix(name, ".md"):
			add(name, []finding{{line: 1, text: string(data)}}, func(c *count) *int { return &c.md })
		case !strings.HasSuffix(name, ".go"):
			words, texts := script(string(data))
			add(name, words, func(c *count) *int { return &c.comments })
			add(name, texts, func(c *count) *int { return &c.strings })
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
			t.Errorf("%s has %v sentences whose subject is an indefinite person; its ceiling is %v. Name the client, the "+
				"caller or the server", a, c, max)
		} else if c != max {
			t.Logf("%s: lower its ceiling to %v", a, c)
		}
		for _, f := range found[a] {
			if over {
				t.Errorf("%s:%d: %s", f.file, f.line, f.text)
			} else if *list {
				t.Logf("%s:%d: %s", f.file, f.line, f.text)
			}
		}
	}
	t.Logf("all: %v", total)
}

// longCeilings are the lines of Go with more than columns that a folder of the tree still
// has, or a folder of internal, at most. They may only sink, as ceilings do. Those of at
// most three are raw strings, patterns and generated tables, which cannot be broken.
var longCeilings = map[string]int{
	".": 1, "cmd": 1, "goredis": 1, "console": 98, "lock": 16, "queue": 10,
	"internal/commands": 1, "internal/engine": 31, "internal/gen": 1, "internal/instance": 3, "internal/loadgen": 1,
	"internal/lua": 1, "internal/oplog": 6, "internal/replication": 3, "internal/routing": 2, "internal/script": 1,
	"internal/servercmd": 8, "internal/session": 3,
}

// folder returns the first folder of a file's name, or the first two of internal.
func folder(file string) string {
	parts := strings.Split(file, "/")
	switch {
	case len(parts) == 1:
		return "."
	case parts[0] == "internal":
		return "internal/" + parts[1]
	}
	return parts[0]
}

func TestLinesOfGoFitTheScreen(t *testing.T) {
	found := map[string][]string{}
	walk(t, func(name string, data []byte) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		for i, line := range strings.Split(string(data), "\n") {
			if n := utf8.RuneCountInString(line); n > columns {
				at := folder(name)
				found[at] = append(found[at], fmt.Sprintf("%s:%d: %d columns", name, i+1, n))
			}
		}
	})
	for _, a := range slices.Sorted(maps.Keys(found)) {
		switch n, max := len(found[a]), longCeilings[a]; {
		case n > max:
			t.Errorf("%s has %d lines of Go that are longer than %d columns; its ceiling is %d:\n%s", a, n, columns, max,
				strings.Join(found[a], "\n"))
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
		"It says how often who waits looks.":          1,
		"Those\nwho wait get it.":                     1,
		"The one who waits gets it.":                  1,
		"It did not reach who took it.":               1,
		"The lock goes to who asked first.":           1,
		"A job for whoever comes.":                    1,
		"The client who waits gets it.":               0,
		"The server says who holds the lock.":         0,
		"Who holds the lock? The client.":             0,
		"REPLICAOF NO ONE ends it.":                   0,
		"It depends on who is first.":                 0,
		"The waiter that is first acquires the lock.": 0,
	} {
		if got := len(find("x", 1, text)); got != want {
			t.Errorf("%q has %d findings, want %d", text, got, want)
		}
	}
}

func TestCommentsAndStringsOfScriptsAreTexts(t *testing.T) {
	words, texts := script("const a = 'it\\'s // text'; // first\n// second\nconst b = /[/'\"]/.test(x)\n" +
		"/** doc\n */\nsay(`no ${n}`, {\"key\": \"value\"})\n")
	wantWords := []finding{{line: 1, text: "first\nsecond"}, {line: 4, text: " doc\n "}}
	wantTexts := []finding{{line: 1, text: `it\'s // text`}, {line: 6, text: "no ${n}"}, {line: 6, text: "key"}, {line: 6, text: "value"}}
	if !slices.Equal(words, wantWords) || !slices.Equal(texts, wantTexts) {
		t.Errorf("comments %+v, want %+v\nstrings %+v, want %+v", words, wantWords, texts, wantTexts)
	}
}
