// Command typecheck checks the types of packages and of their tests for other systems, without compiling them:
//
//	typecheck darwin/arm64 windows/amd64 -- ./...
//
// It reads the packages, and all that they import, from source. `go build` and `go vet` compile all of that first, which
// takes ten times as long. Of packages outside the main module the bodies of functions are left out.
//
// It prints what the types forbid, and exits with status 1 if that is anything.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	targets, patterns := os.Args[1:], []string{"./..."}
	if i := slices.Index(targets, "--"); i >= 0 {
		targets, patterns = targets[:i], targets[i+1:]
	}
	failed := false
	for _, target := range targets {
		n, errs := check(target, patterns)
		for _, err := range errs {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
		}
		fmt.Printf("%s: %d packages\n", target, n)
		failed = failed || len(errs) > 0 || n == 0
	}
	if failed {
		os.Exit(1)
	}
}

// listed is a package as `go list` prints it.
type listed struct {
	ImportPath, Dir, Name string
	GoFiles, CgoFiles     []string // EmbedFiles are asked for as well: Error then names those that are missing
	ImportMap             map[string]string
	Module                *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Err string }
}

// own reports whether a package belongs to the module that is checked.
func (p *listed) own() bool { return p.Module != nil && p.Module.Main }

// check checks the packages for a target, such as "darwin/arm64", without cgo. It returns how many of them belong to the main module.
func check(target string, patterns []string) (n int, errs []error) {
	goos, goarch, ok := strings.Cut(target, "/")
	if !ok {
		return 0, []error{errors.New(`not a target: want a system and a processor, such as "darwin/arm64"`)}
	}
	cmd := exec.Command("go", append([]string{"list", "-e", "-deps", "-test",
		"-json=ImportPath,Dir,Name,GoFiles,CgoFiles,EmbedFiles,ImportMap,Module,Error"}, patterns...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, []error{fmt.Errorf("go list: %w", err)}
	}
	c := checker{set: token.NewFileSet(), done: map[string]*types.Package{"unsafe": types.Unsafe}, sizes: types.SizesFor("gc", goarch)}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return n, c.errs
		} else if err != nil {
			return n, append(c.errs, err)
		}
		if p.ImportPath == "unsafe" || p.Name == "main" && strings.HasSuffix(p.ImportPath, ".test") { // the latter is generated
			continue
		}
		if p.own() {
			n++
		}
		c.check(&p)
	}
}

// checker holds the packages that were checked so far, in the order of go list: imports first.
type checker struct {
	set   *token.FileSet
	done  map[string]*types.Package // by what go list calls them: "io", "example.com/a [example.com/a.test]"
	sizes types.Sizes
	errs  []error
}

func (c *checker) check(p *listed) {
	if p.Error != nil {
		c.errs = append(c.errs, errors.New(p.Error.Err))
	}
	var files []*ast.File
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		f, err := parser.ParseFile(c.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			c.errs = append(c.errs, err)
			continue
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: importer{c, p}, Sizes: c.sizes, IgnoreFuncBodies: !p.own(), FakeImportC: true,
		Error: func(err error) {
			if p.own() {
				c.errs = append(c.errs, err)
			}
		}}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	c.done[p.ImportPath], _ = conf.Check(path, c.set, files, nil) // its errors are those that Error got
}

// importer finds what a package imports.
type importer struct {
	c *checker
	p *listed
}

func (i importer) Import(path string) (*types.Package, error) {
	if to := i.p.ImportMap[path]; to != "" {
		path = to
	}
	if p := i.c.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("the package %s was not found", path)
}
