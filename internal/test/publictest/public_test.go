// Package publictest_test checks the exported names of the public packages. It stands in
// this module because it starts go list, and because the type checker takes seconds to compile.
package publictest_test

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

const module = "github.com/ebbdb/ebb"

// TestNoExportedSignatureNamesAnInternalType loads what the compiler exports of each public
// package, so that inferred types and embedded fields count as well. An internal type that has
// an exported alias counts as public.
func TestNoExportedSignatureNamesAnInternalType(t *testing.T) {
	var found []string
	public := publicPackages(t)
	w := walk{aliased: map[*types.TypeName]bool{}, seen: map[types.Type]bool{}}
	eachExported(public, func(_ string, o types.Object) {
		if n, ok := types.Unalias(o.Type()).(*types.Named); ok && isAlias(o) {
			w.aliased[n.Obj()] = true
		}
	})
	eachExported(public, func(name string, o types.Object) {
		w.found = func(where, of string) { found = append(found, where+" names "+of) }
		w.object(name, o)
	})
	slices.Sort(found)
	for _, f := range slices.Compact(found) {
		t.Error(f)
	}
}

// publicPackages returns the packages that a program outside of this module may import.
func publicPackages(t *testing.T) (public []*types.Package) {
	t.Helper()
	realserver.Program(t, "go")
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}} {{.Name}}", "./...")
	list.Dir = filepath.Join("..", "..", "..")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list -export: %v", err)
	}
	exports := map[string]string{}
	var paths []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		exports[f[0]] = f[1]
		dir, inside := strings.CutPrefix(f[0]+"/", module+"/")
		if inside && f[2] != "main" && !isInternal(f[0]) && !strings.HasPrefix(dir, "examples/") && !strings.HasPrefix(dir, "cmd/") {
			paths = append(paths, f[0])
		}
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range paths {
		p, err := from.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		public = append(public, p)
	}
	if len(public) < 15 {
		t.Fatalf("go list names only %d public packages", len(public))
	}
	return public
}

// eachExported visits what the packages export, under names such as lock.Lease.
func eachExported(public []*types.Package, visit func(name string, o types.Object)) {
	for _, p := range public {
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); o.Exported() {
				visit(ourPath(p)+"."+name, o)
			}
		}
	}
}

func isAlias(o types.Object) bool {
	name, ok := o.(*types.TypeName)
	return ok && name.IsAlias()
}

func isInternal(path string) bool { return strings.Contains("/"+path+"/", "/internal/") }

func ourPath(p *types.Package) string {
	return strings.TrimPrefix(strings.TrimPrefix(p.Path(), module), "/")
}

// walk looks for internal types in what a package exports.
type walk struct {
	aliased map[*types.TypeName]bool // types that have an exported alias
	seen    map[types.Type]bool      // types on the path to where the walk is
	found   func(where, of string)
}

// object walks an exported object of the package.
func (w *walk) object(where string, o types.Object) {
	if _, isType := o.(*types.TypeName); !isType {
		w.typ(where, o.Type())
		return
	}
	named, ok := types.Unalias(o.Type()).(*types.Named)
	if !ok {
		w.typ(where, types.Unalias(o.Type()))
		return
	}
	if p := named.Obj().Pkg(); p != nil && !strings.HasPrefix(p.Path(), module) {
		return // an alias of another module's
	}
	w.typ(where, named.Underlying())
	// The method set has the methods of embedded fields too, whatever the fields are called.
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if m.Obj().Exported() {
			w.typ(where+"."+m.Obj().Name(), m.Type())
			if p := m.Obj().Pkg(); len(m.Index()) > 1 && p != nil && isInternal(p.Path()) {
				w.found(where+"."+m.Obj().Name(), "a method of "+p.Path()+", which go doc does not show")
			}
		}
	}
}

// typ walks what a program sees of a type.
func (w *walk) typ(where string, t types.Type) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	defer delete(w.seen, t)
	switch t := t.(type) {
	case *types.Alias:
		w.named(where, t.Obj())
	case *types.Named:
		w.named(where, t.Obj())
		for arg := range t.TypeArgs().Types() {
			w.typ(where, arg)
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				w.typ(where+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			w.typ(where+"."+m.Name(), m.Type())
		}
	case *types.Signature:
		w.typ(where, t.Params())
		w.typ(where, t.Results())
		for p := range t.TypeParams().TypeParams() {
			w.typ(where, p.Constraint())
		}
	case *types.Tuple:
		for v := range t.Variables() {
			w.typ(where, v.Type())
		}
	case *types.Union:
		for term := range t.Terms() {
			w.typ(where, term.Type())
		}
	case *types.Map:
		w.typ(where, t.Key())
		w.typ(where, t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.typ(where, t.Elem())
	}
}

func (w *walk) named(where string, o *types.TypeName) {
	if p := o.Pkg(); p != nil && isInternal(p.Path()) && strings.HasPrefix(p.Path(), module) && !w.aliased[o] {
		w.found(where, p.Path()+"."+o.Name())
	}
}
