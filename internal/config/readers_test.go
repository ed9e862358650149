package config

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Each directive either has a reader, which is a string with its name in a function that
// something refers to, or says why it has none, and then has none. What only shows a
// value does not count.
func TestEachDirectiveHasAReaderOrSaysWhyNot(t *testing.T) {
	shown := map[string]bool{"hz": true} // INFO shows it
	root := "../.."
	inside := map[string][]string{} // a string, and the functions that hold it
	uses := map[string]int{}        // a name, and how often it occurs
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (top == "examples" || top == "contrib" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasSuffix(filepath.ToSlash(path), "config/table.go"):
			return nil
		}
		file, err := goparser.ParseFile(token.NewFileSet(), path, nil, goparser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			name := "" // a declaration of the package: it is always in force
			if f, ok := decl.(*ast.FuncDecl); ok {
				name = f.Name.Name
				uses[name]-- // its own
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					uses[n.Name]++
				case *ast.BasicLit:
					if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
						inside[s] = append(inside[s], name)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range directives {
		reader := ""
		for _, name := range []string{d.Name, d.Alias} {
			for _, f := range inside[name] {
				if name != "" && (f == "" || f == "main" || uses[f] > 0) {
					reader = "function " + f
				}
			}
		}
		switch {
		case d.Unused == "" && reader == "":
			t.Errorf("%s is documented as %q, and nothing reads it", d.Name, d.Doc)
		case d.Unused != "" && reader != "" && !shown[d.Name]:
			t.Errorf("%s is declared as without effect (%s), and is read in %s", d.Name, d.Unused, reader)
		}
	}
}

func TestTLSVersionsAreNextToEachOther(t *testing.T) {
	for _, x := range []struct {
		text      string
		low, high uint16
	}{
		{"", 0x303, 0x304}, {"TLSv1.2", 0x303, 0x303}, {"tlsv1.3 TLSv1.2", 0x303, 0x304}, {"TLSv1 TLSv1.1 TLSv1.2 TLSv1.3", 0x301, 0x304},
		{"TLSv1.1 TLSv1.3", 0, 0}, {"SSLv3", 0, 0},
	} {
		if low, high, err := TLSVersions(x.text); low != x.low || high != x.high || (err == nil) != (x.low != 0) {
			t.Errorf("%q: %x to %x, %v", x.text, low, high, err)
		}
	}
}
