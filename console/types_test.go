package console

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write ui/lib/rows.d.ts from the structs again")

const rowsFile = "ui/lib/rows.d.ts"

// The pages are checked against the types in rows.d.ts. This test compares these with the structs that the
// API sends, so that a field that is added or renamed here must be changed there too.
func TestTheTypesOfThePagesAreThoseOfTheAPI(t *testing.T) {
	want := declarations(t)
	if *update {
		if err := os.WriteFile(rowsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(rowsFile)
	if err != nil || string(got) != want {
		t.Errorf("%s is not that of the structs (%v): go test ./console -run TheTypes -update, and read the difference", rowsFile, err)
	}
	for _, line := range []string{"export interface LimitRow {", "  pttl?: number; // ms; -1: no deadline", "  k: B;",
		"export interface LimitsAnswer extends Ranked<LimitRow> {"} {
		if !strings.Contains(want, line+"\n") {
			t.Errorf("%s has no line %q", rowsFile, line)
		}
	}
}

// special are fields whose Go type is less exact than the page needs.
var special = map[string]string{
	"Me.open": "string | false", "Entry.fields": "[B, B][]", "KeyView.body": "Body | null", "Failure.loading": "Progress | null",
	"PostBatchAnswer.replies": "Resp[]", "Reply.reply": "Resp", "ViewInfoAnswer.info": "Facts", "ViewStreamAnswer.info": "Facts",
}

// declarations returns the interfaces of all structs of the package that have JSON tags. One without a name
// is named after its function, such as LimitsAnswer for limits and getLimits.
func declarations(t *testing.T) string {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	g := &generator{fset: token.NewFileSet(), made: map[string]string{}}
	for _, f := range files {
		if name := f.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(g.fset, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			g.file(file)
		}
	}
	names := make([]string, 0, len(g.made))
	for name := range g.made {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("// The answers of the API, written by `go test ./console -run TheTypes -update` from its structs.\n" +
		"import type { B, Body, Facts, Resp } from './types.js';\n")
	for _, name := range names {
		b.WriteString("\n" + g.made[name])
	}
	return b.String()
}

type generator struct {
	fset *token.FileSet
	made map[string]string // interfaces by name
}

// file adds the interfaces of a file.
func (g *generator) file(f *ast.File) {
	for _, d := range f.Decls {
		in := ""
		if fn, ok := d.(*ast.FuncDecl); ok {
			if fn.Name.Name == "UnmarshalJSON" {
				continue // the function reads a request
			}
			in = exported(strings.TrimPrefix(fn.Name.Name, "get")) + "Answer"
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					g.declare(exported(n.Name.Name), n.TypeParams, s)
				}
				return false
			case *ast.AssignStmt: // in is the body of a request
				if id, ok := n.Lhs[0].(*ast.Ident); ok && id.Name == "in" {
					return false
				}
			case *ast.ValueSpec:
				if n.Names[0].Name == "in" {
					return false
				}
			case *ast.StructType:
				g.declare(in, nil, n)
				return false
			}
			return true
		})
	}
}

// declare adds the interface of a struct, if it has JSON tags.
func (g *generator) declare(name string, params *ast.FieldList, s *ast.StructType) {
	var bases []string
	fields := ""
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 && f.Tag == nil {
			bases = append(bases, strings.TrimSuffix(g.kind(f.Type), " | null"))
			continue
		}
		fields += g.field(name, f, "  ")
	}
	if fields == "" && len(bases) == 0 || !tagged(s) {
		return
	}
	head := name
	if params != nil {
		head += "<" + params.List[0].Names[0].Name + ">"
	}
	if len(bases) > 0 {
		head += " extends " + strings.Join(bases, ", ")
	}
	g.made[name] = "export interface " + head + " {\n" + fields + "}\n"
}

// tagged reports whether a struct has JSON tags of its own.
func tagged(s *ast.StructType) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return f.Tag != nil })
}

// field returns the lines of a field of the interface in.
func (g *generator) field(in string, f *ast.Field, indent string) string {
	if f.Tag == nil {
		return ""
	}
	name, option, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
	kind, note := g.kind(f.Type), strings.TrimSpace(f.Comment.Text())
	if inner, ok := f.Type.(*ast.StructType); ok {
		kind = "{\n"
		for _, x := range inner.Fields.List {
			kind += g.field(in+"."+name, x, indent+"  ")
		}
		kind += indent + "}"
	}
	if option == "omitempty" {
		name, kind = name+"?", strings.TrimSuffix(kind, " | null")
	} else if strings.Contains(note, "null:") && !strings.HasSuffix(kind, " | null") {
		kind += " | null"
	}
	if s := special[in+"."+strings.TrimSuffix(name, "?")]; s != "" {
		kind = s
	}
	if note != "" {
		note = " // " + note
	}
	return indent + name + ": " + kind + ";" + note + "\n"
}

// kind returns a type of Go as one of TypeScript.
func (g *generator) kind(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return g.kind(x.X) + " | null"
	case *ast.ArrayType:
		n, _ := x.Len.(*ast.BasicLit)
		elem := g.kind(x.Elt)
		if n != nil && n.Value == "2" {
			return "[" + elem + ", " + elem + "]"
		}
		return elem + "[]"
	case *ast.MapType:
		return "Record<string, " + g.kind(x.Value) + ">"
	case *ast.IndexExpr:
		return g.kind(x.X) + "<" + g.kind(x.Index) + ">"
	case *ast.Ident:
		switch x.Name {
		case "string", "any":
			return x.Name
		case "bool":
			return "boolean"
		case "int", "int64", "float64":
			return "number"
		case "blob":
			return "B"
		}
		return exported(x.Name)
	}
	return fmt.Sprintf("%T", x)
}

// exported returns a name with a capital first letter.
func exported(name string) string {
	return strings.ToUpper(name[:min(1, len(name))]) + name[min(1, len(name)):]
}
