// Package releasetest checks what a release consists of: the modules of a tag, and the files of .goreleaser.yaml.
package releasetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

const (
	top  = "../../.."
	root = "github.com/ebbdb/ebb"
)

// run runs a program in a directory with more variables and returns what it printed.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// modules returns the directories of the modules that a release tags beside the root: those below contrib, and redisson.
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(top, "contrib/*/go.mod"))
	if err != nil || len(files) < 9 {
		t.Fatalf("%d modules below contrib, %v", len(files), err)
	}
	for _, f := range files {
		dirs = append(dirs, "contrib/"+filepath.Base(filepath.Dir(f)))
	}
	return append(dirs, "redisson")
}

// next returns the version that these modules require of the root: that of the next tag.
func next(t *testing.T) (version string) {
	t.Helper()
	for _, dir := range modules(t) {
		file := filepath.Join(top, dir, "go.mod")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := modfile.Parse(file, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range m.Require {
			if r.Mod.Path != root {
				continue
			}
			if version != "" && r.Mod.Version != version {
				t.Errorf("%s requires %s of the root, and another module %s", file, r.Mod.Version, version)
			}
			version = r.Mod.Version
		}
	}
	return version
}

// The replace directives of these modules are for this tree: for a program that requires such a module only the
// version in its require counts. It is that of a tag, either the newest release's or the next one's.
func TestModulesRequireATagOfTheRoot(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^## ((\d+)\.(\d+)\.\d+) \(\d`).FindSubmatch(text)
	if m == nil {
		t.Fatal("CHANGELOG.md has no release")
	}
	released, version := "v"+string(m[1]), next(t)
	want, unreleased := released, regexp.MustCompile(`(?m)^## (\S+) \(unreleased\)`).FindSubmatch(text)
	if unreleased != nil {
		want = "v" + string(unreleased[1]) + "-dev"
	}
	if "v"+admin.Version != want {
		t.Errorf("the program has version %s, and CHANGELOG.md wants %s", admin.Version, want)
	}
	if version == released || unreleased != nil && newer(version, released) {
		return
	}
	t.Errorf("the modules of a release require %s of the root: want %s, or a later version while CHANGELOG.md "+
		"has changes that are not released", version, released)
}

func newer(a, b string) bool {
	return slices.Compare(numbers(a), numbers(b)) > 0
}

func numbers(version string) (list []int) {
	for part := range strings.SplitSeq(strings.TrimPrefix(version, "v"), ".") {
		n := 0
		for _, digit := range part {
			n = n*10 + int(digit-'0')
		}
		list = append(list, n)
	}
	return list
}

// proxy writes the modules of a tag as a proxy of Go's serves them, and returns its directory. The tag is one of a clone.
func proxy(t *testing.T, version string) (dir string) {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, top, nil, "git", "clone", "-q", "--shared", "--no-tags", ".", clone)
	dir = t.TempDir()
	for _, sub := range append([]string{""}, modules(t)...) {
		path, tag := root, version
		if sub != "" {
			path, tag = root+"/"+sub, sub+"/"+version // as Go wants it for a module in a directory
		}
		run(t, clone, nil, "git", "tag", tag)
		place := filepath.Join(dir, filepath.FromSlash(path), "@v")
		if err := os.MkdirAll(place, 0o755); err != nil {
			t.Fatal(err)
		}
		var archive bytes.Buffer
		if err := zip.CreateFromVCS(&archive, module.Version{Path: path, Version: version}, clone, tag, sub); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		mod, err := os.ReadFile(filepath.Join(clone, sub, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": []byte(`{"Version":"` + version + `"}`),
			version + ".mod": mod, version + ".zip": archive.Bytes()} {
			if err := os.WriteFile(filepath.Join(place, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// `go install` of a tag makes the program, and `go get` of a tag of each other module finds all packages that it needs.
func TestATagCanBeInstalled(t *testing.T) {
	if tier.Short() {
		realserver.Require(t, "with -short, no tag is installed")
	}
	realserver.Program(t, "git")
	version := next(t)
	usual := strings.Fields(run(t, top, nil, "go", "env", "GOPROXY", "GOMODCACHE"))
	url := func(dir string) string { return "file://" + filepath.ToSlash(dir) }
	if runtime.GOOS == "windows" {
		url = func(dir string) string { return "file:///" + filepath.ToSlash(dir) }
	}
	// The modules of others come from the cache of this machine, as far as it has them. The tag's go into a cache of its own.
	bin := t.TempDir()
	env := []string{"GOPROXY=" + url(proxy(t, version)) + "," + url(filepath.Join(usual[1], "cache", "download")) + "," + usual[0],
		"GOMODCACHE=" + t.TempDir(), "GOBIN=" + bin, "GOFLAGS=-modcacherw -mod=mod", "GOSUMDB=off", "GOWORK=off",
		"CGO_ENABLED=0", "GOTOOLCHAIN=local"}

	t.Run("install", func(t *testing.T) {
		run(t, bin, env, "go", "install", "-trimpath", root+"/cmd/ebb@"+version) // -trimpath: the compiler's cache does not depend on the folder
		program := filepath.Join(bin, "ebb")
		if runtime.GOOS == "windows" {
			program += ".exe"
		}
		if out := run(t, bin, nil, "go", "version", "-m", program); !strings.Contains(out, root+"\t"+version) {
			t.Errorf("the program is not of the tag:\n%s", out)
		}
		if out := run(t, bin, nil, program, "version"); !strings.HasPrefix(out, "ebb ") {
			t.Errorf("ebb version prints %q", out)
		}
	})
	for _, sub := range modules(t) {
		t.Run(filepath.Base(sub), func(t *testing.T) {
			dir := t.TempDir()
			path := root + "/" + sub
			text := "package main\n\nimport _ \"" + path + "\"\n\nfunc main() {}\n"
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			run(t, dir, env, "go", "mod", "init", "example.com/shop")
			run(t, dir, env, "go", "get", path+"@"+version)
			run(t, dir, env, "go", "list", "-deps", ".") // it fails if a package that a build compiles is not there
			if out := run(t, dir, env, "go", "list", "-m", root); out != root+" "+version+"\n" {
				t.Errorf("%s requires %q, want %s", path, out, version)
			}
		})
	}
}
