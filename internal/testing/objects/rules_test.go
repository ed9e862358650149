package objects

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bloom"
	"github.com/ebbdb/ebb/cache"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/expset"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
	"github.com/ebbdb/ebb/stream"
	"github.com/ebbdb/ebb/topic"
)

func TestMain(m *testing.M) { backends.Main(m) }

func each(t *testing.T, rule func(t testing.TB, s Site)) {
	t.Helper()
	backends.Each(t, func(t *testing.T, b *backends.Backend) { rule(t, On(b)) })
}

func TestAReleaseOutlivesItsContextAndItsConnection(t *testing.T) { each(t, Releases) }
func TestWhatIsHeldDuringACallbackIsGivenBack(t *testing.T)       { each(t, Callbacks) }
func TestALoopEndsAsItsKindSays(t *testing.T)                     { each(t, Loops) }
func TestNamesAreCheckedWhereTheObjectIsMade(t *testing.T)        { each(t, Names) }
func TestDeleteLeavesNothing(t *testing.T)                        { each(t, Deletes) }
func TestTwoPrefixesDoNotMeet(t *testing.T)                       { each(t, Prefixes) }

func TestWhatACallGaveUpIsGivenBack(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) { GivenUp(t, b.Conn, b.Name("up")) })
}

func TestAConstructorRefusesATypeThatItsCodecCannotEncode(t *testing.T) {
	type value = chan int
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const name = "x"
	for what, got := range map[string]error{
		"bloom.New":        second(bloom.New[value](c, name)),
		"cache.New":        second(cache.New[string, value](c, name)),
		"cache.New, keys":  second(cache.New[value, int](c, name)),
		"lock.OnceValue":   second(lock.NewOnceValue[value](c, name, time.Hour)),
		"expmap.New, keys": second(expmap.New[value, int](c, name)),
		"expmap.New":       second(expmap.New[string, value](c, name)),
		"expmap.NewFamily": second(expmap.NewFamily[string, value](c, name)),
		"expset.New":       second(expset.New[value](c, name)),
		"expset.NewFamily": second(expset.NewFamily[value](c, name)),
		"queue.New":        second(queue.New[value](c, name)),
		"stream.New":       second(stream.New[value](c, name)),
		"topic.New":        second(topic.New[value](c, name)),
		"topic.PSubscribe": second(topic.PSubscribe(t.Context(), c, topic.Options[value]{}, "x*")),
	} {
		if !errors.Is(got, ebb.ErrArgument) || !strings.Contains(got.Error(), "JSON cannot encode chan int") {
			t.Errorf("%s returns %v, want ErrArgument", what, got)
		}
	}
	if _, err := queue.New(c, name, queue.Options[value]{Codec: chans{}}); err != nil {
		t.Errorf("with a codec: %v", err)
	}
}

// chans is a codec of a type that the default codec refuses.
type chans struct{}

func (chans) Encode(chan int) ([]byte, error) { return nil, nil }
func (chans) Decode([]byte) (chan int, error) { return nil, nil }

// A database has 128 rules.
func TestTheRulesOfMapsAreGivenBack(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		for n := range 130 {
			m, err := expmap.New(b.Conn, b.Name(fmt.Sprint("map", n)), expmap.Options[string, int]{Events: true})
			if err == nil {
				err = m.Set(b.Context(), "k", 1, 0)
			}
			if err == nil {
				err = m.Delete(b.Context())
			}
			if err != nil {
				t.Fatalf("map %d: %v", n, err)
			}
		}
	})
}

// apart are exported functions with a Conn that make no object of the table.
var apart = map[string]string{
	"lock.Acquire":     "lock.New and Acquire",
	"topic.PSubscribe": "patterns are not names",
}

func TestFunctionsApartFromTheTableRefuseANilConn(t *testing.T) {
	_, err := lock.Acquire(t.Context(), nil, "x", lease)
	if !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
	if _, err := topic.PSubscribe(context.Background(), nil, topic.Options[string]{}, "x*"); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
}

// A constructor is an exported function with a Conn, or an exported method without a
// context that returns an exported type of its package, a pointer, and an error.
func TestEveryObjectIsInTheTable(t *testing.T) {
	rows := map[string]bool{"lock.Multi": true} // which is made of locks
	for name := range constructors(t) {
		rows[name] = true
	}
	for _, o := range All() {
		if !rows[o.Constructor] {
			t.Errorf("%s is in the table and nowhere else", o.Constructor)
		}
		delete(rows, o.Constructor)
	}
	for name := range apart {
		if !rows[name] {
			t.Errorf("%s is no longer there", name)
		}
		delete(rows, name)
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		t.Errorf("%s has no row in table.go: the rules are not checked for it", name)
	}
}

func constructors(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir("../../..", func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel("../../..", name)
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && rel != "." || slices.Contains(elsewhere, top) || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Dir(rel) == "." || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() {
				if name := constructor(f.Name.Name, fn); name != "" {
					found[name] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Fatalf("only %d were found: %v", len(found), found)
	}
	return found
}

// elsewhere are the directories that hold no toolkit.
var elsewhere = []string{"bench", "cmd", "conn", "contrib", "docs", "ebbtest", "embed", "engine", "examples",
	"goredis", "internal", "redisson",
	"resp", "server", "testdata"}

func constructor(pkg string, fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		for _, p := range fn.Type.Params.List {
			if typeName(p.Type) == "conn.Conn" {
				return pkg + "." + fn.Name.Name
			}
		}
		return ""
	}
	recv := typeName(fn.Recv.List[0].Type)
	if !ast.IsExported(recv) || fn.Type.Results == nil || len(fn.Type.Results.List) != 2 || typeName(fn.Type.Results.List[1].Type) != "error" {
		return ""
	}
	for _, p := range fn.Type.Params.List {
		if typeName(p.Type) == "context.Context" {
			return ""
		}
	}
	// A field is a part of its bitmap.
	if made := typeName(fn.Type.Results.List[0].Type); !ast.IsExported(made) || made == "Field" {
		return ""
	}
	return pkg + "." + recv + "." + fn.Name.Name
}

// typeName is a type without pointers and parameters.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	case *ast.SelectorExpr:
		return typeName(x.X) + "." + x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}
