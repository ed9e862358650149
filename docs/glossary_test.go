package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// nameOfCode matches a name of the code in the glossary, such as (`uncovered`). Names in capitals are words of commands.
var nameOfCode = regexp.MustCompile("\\(`(\\w*[a-z]\\w*)`\\)")

// codeSpan matches a path of names as a design page has it: `Tx.changed`, `dispatchSafely()`.
var codeSpan = regexp.MustCompile("`([A-Za-z_][\\w.]*\\w)(?:\\(\\))?`")

// mixed matches a name that only code has: one with a capital letter behind a small one.
var mixed = regexp.MustCompile(`[a-z][A-Z]`)

// placeholders are names of design pages that stand for several of the code.
var placeholders = []string{"NewKind"}

// namesIn returns the names of the code that a page has, and the page for each.
func namesIn(t *testing.T, pages ...string) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "glossary.md" {
			for _, m := range nameOfCode.FindAllStringSubmatch(string(page), -1) {
				names[m[1]] = name
			}
			continue
		}
		for _, m := range codeSpan.FindAllStringSubmatch(string(page), -1) {
			for part := range strings.SplitSeq(m[1], ".") {
				if mixed.MatchString(part) && !slices.Contains(placeholders, part) {
					names[part] = name
				}
			}
		}
	}
	return names
}

// foreign are names in comments of Go that other projects have: products, and functions of theirs.
var foreign = regexp.MustCompile(`^(CamelCase|CloseNotify|DevTools|FreeBSD|GitHub|HighwayHash|JavaScript|LangChain|MurmurHash64A|NaNs|` +
	`NoOne|OpenTelemetry|RM_\w+|RoundTripper|SplitMix64|StopCleanup|TypeScript|` +
	`VictoriaMetrics|arXiv|gRPC|lua[LO]_\w+|xHH|` +
	`R[A-Z]\w+|StringCodec|get[A-Z]\w+|lockWatchdogTimeout|trySetMaxSize|` + // of Redisson
	`ClientIP|HTTPErrorHandler|NewFailoverClusterClient|RealIP|WrapMiddleware|` + // of gin, go-redis and echo
	`LogStore|SnapshotStore|StableStore|StreamLayer|` + // of raft
	`TestSessionExpires|universalClient)$`) // of the program that a package's page shows

// nameInComment matches a path of names in a comment, outside of URLs and of paths of files.
var nameInComment = regexp.MustCompile(`(?:^|[^\w/.-])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`)

// words matches what may be a name in a text.
var words = regexp.MustCompile(`\w+`)

// A page or a comment that names a function, a type or a field of the code is stale when the code has no such name any longer.
func TestPagesAndCommentsNameWhatTheCodeHas(t *testing.T) {
	pages, err := filepath.Glob("design/*.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := namesIn(t, append(pages, "glossary.md")...)
	if len(missing) < 100 {
		t.Errorf("the glossary and the design pages have %d names of the code", len(missing))
	}
	inPages, has := len(missing), map[string]bool{}
	err = filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".js") || strings.HasSuffix(name, ".yml"): // the alerts of Prometheus are there
			text, err := os.ReadFile(name)
			for _, word := range words.FindAllString(string(text), -1) {
				has[word] = true
			}
			return err
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				has[n.Name] = true
			case *ast.BasicLit: // a name of JSON, of a script or of a path
				for _, word := range words.FindAllString(n.Value, -1) {
					has[word] = true
				}
			}
			return true
		})
		for _, group := range f.Comments {
			for _, m := range nameInComment.FindAllStringSubmatch(group.Text(), -1) {
				for part := range strings.SplitSeq(m[1], ".") {
					if mixed.MatchString(part) {
						missing[part] = fset.Position(group.Pos()).String()
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) < inPages+1000 {
		t.Errorf("comments have %d names of the code", len(missing)-inPages)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if !has[name] && !foreign.MatchString(name) {
			t.Errorf("%s names %s, which the code does not have", missing[name], name)
		}
	}
}
