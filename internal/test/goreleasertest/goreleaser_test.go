// Package goreleasertest reads .goreleaser.yaml with goreleaser's own types, which refuse unknown fields, and compares it with the
// files that build packages and the image. Its module is apart because of goreleaser's dependencies.
package goreleasertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"go.yaml.in/yaml/v3"
)

const (
	top = "../../.."
	// made is the folder of the files that packaging/files.sh makes; ours is the same one in packaging/nfpm.yaml.
	made, ours = ".release/", "dist/"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func load(t *testing.T) config.Project {
	t.Helper()
	p, err := config.Load(filepath.Join(top, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// nfpm has the fields of packaging/nfpm.yaml.
type nfpm struct {
	Name, Section, Priority, Maintainer, Description, Homepage, License string

	Contents []config.NFPMContent
	Scripts  struct{ Postinstall, Preremove, Postremove string }
}

func loadNFPM(t *testing.T) (n nfpm) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, "packaging/nfpm.yaml")), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The packages of a release are those of `make packages`.
func TestTheReleasesPackagesAreThoseOfTheTree(t *testing.T) {
	p, n := load(t), loadNFPM(t)
	if len(p.NFPMs) != 1 || len(p.Builds) != 1 {
		t.Fatalf("%d nfpms, %d builds", len(p.NFPMs), len(p.Builds))
	}
	g, build := p.NFPMs[0], p.Builds[0]
	program := n.Contents[0]
	if program.Source != ours+build.Binary || program.Destination != g.Bindir+"/"+build.Binary {
		t.Errorf("the program is %s in %s, and goreleaser puts %s into %s", program.Source, program.Destination, build.Binary, g.Bindir)
	}
	var contents []config.NFPMContent
	for _, c := range n.Contents[1:] {
		if rest, ok := strings.CutPrefix(c.Source, ours); ok {
			c.Source = made + rest
		}
		contents = append(contents, c)
	}
	if d := cmp.Diff(contents, g.Contents); d != "" {
		t.Errorf("contents (-packaging/nfpm.yaml +.goreleaser.yaml):\n%s", d)
	}
	for what, pair := range map[string][2]string{
		"name": {n.Name, g.PackageName}, "section": {n.Section, g.Section}, "priority": {n.Priority, g.Priority},
		"maintainer": {n.Maintainer, g.Maintainer}, "description": {n.Description, g.Description}, "homepage": {n.Homepage, g.Homepage},
		"license":     {n.License, g.License},
		"postinstall": {n.Scripts.Postinstall, g.Scripts.PostInstall}, "preremove": {n.Scripts.Preremove, g.Scripts.PreRemove},
		"postremove": {n.Scripts.Postremove, g.Scripts.PostRemove},
		"formats":    {formats(t), strings.Join(g.Formats, " ")},
	} {
		if pair[0] != pair[1] || pair[0] == "" {
			t.Errorf("%s: packaging has %q, .goreleaser.yaml has %q", what, pair[0], pair[1])
		}
	}
}

// formats returns the packages that `make packages` builds.
func formats(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`packaging/build\.sh dist (.*)`).FindStringSubmatch(read(t, "Makefile"))
	if m == nil {
		t.Fatal("the Makefile does not call packaging/build.sh")
	}
	return m[1]
}

// The programs of the archives, the packages and the image are built with the same flags.
func TestTheReleasesProgramsAreBuiltLikeThoseOfTheTree(t *testing.T) {
	b := load(t).Builds[0]
	if _, err := os.Stat(filepath.Join(top, b.Main, "main.go")); err != nil || b.Binary != "ebb" {
		t.Errorf("it builds %s as %s: %v", b.Main, b.Binary, err)
	}
	want := strings.Join(b.Env, " ") + " " + strings.Join(b.Flags, " ") + " -ldflags '" + strings.Join(b.Ldflags, " ") + "'"
	for _, file := range []string{"packaging/build.sh", "Dockerfile"} {
		m := regexp.MustCompile(`(CGO_ENABLED=0) .*build (-trimpath) (-ldflags '[^']*') -o \S+ \./cmd/ebb`).FindStringSubmatch(read(t, file))
		if m == nil {
			t.Errorf("%s does not build ./cmd/ebb", file)
		} else if got := strings.Join(m[1:], " "); got != want {
			t.Errorf("%s builds with %s, .goreleaser.yaml with %s", file, got, want)
		}
	}
	if b.ModTimestamp != "{{ .CommitTimestamp }}" {
		t.Errorf("mod_timestamp is %q: two builds of a tag differ", b.ModTimestamp)
	}
	for _, platform := range []string{"linux amd64", "linux arm64", "linux arm", "linux riscv64",
		"darwin amd64", "darwin arm64", "windows amd64", "windows arm64"} {
		goos, goarch, _ := strings.Cut(platform, " ")
		ignored := slices.ContainsFunc(b.Ignore, func(i config.IgnoredBuild) bool { return i.Goos == goos && i.Goarch == goarch })
		if !slices.Contains(b.Goos, goos) || !slices.Contains(b.Goarch, goarch) || ignored {
			t.Errorf("there is no build for %s", platform)
		}
	}
}

// Every file that the configuration names is in the tree, or packaging/files.sh makes it.
func TestTheReleasesFilesAreThere(t *testing.T) {
	p := load(t)
	out := t.TempDir()
	hook := strings.Fields(p.Before.Hooks[0])
	if len(p.Before.Hooks) != 1 || len(hook) != 2 || hook[1]+"/" != made {
		t.Fatalf("the hooks are %v, want packaging/files.sh %s", p.Before.Hooks, made)
	}
	cmd := exec.Command("./"+hook[0], out)
	cmd.Dir = top
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	// find returns the files that a pattern names.
	find := func(pattern string) []string {
		t.Helper()
		place := filepath.Join(top, pattern)
		if rest, ok := strings.CutPrefix(pattern, made); ok {
			place = filepath.Join(out, rest)
		}
		found, err := filepath.Glob(place)
		if err != nil || len(found) == 0 {
			t.Errorf("%s names no file: %v", pattern, err)
		}
		return found
	}
	archived := map[string]bool{}
	for _, f := range p.Archives[0].Files {
		for _, found := range find(f.Source) {
			if f.Destination != "" && !f.StripParent {
				t.Errorf("%s: without strip_parent its path is below %s", f.Source, f.Destination)
			}
			archived[filepath.ToSlash(filepath.Join(f.Destination, filepath.Base(found)))] = true
		}
	}
	for _, c := range p.NFPMs[0].Contents {
		find(c.Source)
	}
	s := p.NFPMs[0].Scripts
	for _, script := range []string{s.PostInstall, s.PreRemove, s.PostRemove} {
		find(script)
	}
	cask := p.Casks[0]
	for _, name := range append([]string{cask.Completions.Bash, cask.Completions.Zsh, cask.Completions.Fish}, cask.Manpages...) {
		if !archived[name] {
			t.Errorf("the cask installs %s, which is not in the archive: %v", name, archived)
		}
	}
	for _, want := range []string{"LICENSE", "packaging/ebb.service", "packaging/ebb.conf",
		"man/man1/ebb.1.gz",
		"man/man5/ebb.conf.5.gz", "completions/ebb.bash"} {
		if !archived[want] {
			t.Errorf("the archives have no %s", want)
		}
	}
	if p.Checksum.Algorithm != "sha256" || len(p.Signs) != 1 || p.Signs[0].Artifacts != "checksum" || len(p.SBOMs) != 1 {
		t.Errorf("checksums %+v, signatures %+v, SBOMs %+v", p.Checksum, p.Signs, p.SBOMs)
	}
}

// The workflow runs the version of goreleaser whose types these are, and its actions are pinned.
func TestTheWorkflowRunsThisGoreleaser(t *testing.T) {
	workflow := read(t, ".github/workflows/release.yml")
	var w struct {
		Env  map[string]string
		Jobs map[string]struct {
			Steps []struct{ Uses, Run string }
		}
	}
	if err := yaml.Unmarshal([]byte(workflow), &w); err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`github.com/goreleaser/goreleaser/v2 (v\S+)`).FindStringSubmatch(read(t,
		"internal/test/goreleasertest/go.mod"))
	if version == nil || w.Env["GORELEASER"] != "github.com/goreleaser/goreleaser/v2@"+version[1] {
		t.Errorf("the workflow has %s, go.mod has %v", w.Env["GORELEASER"], version)
	}
	helm := regexp.MustCompile(`helm.sh/helm/v3 (v\S+)`).FindStringSubmatch(read(t, "internal/test/charttest/go.mod"))
	if helm == nil || w.Env["HELM"] != "helm.sh/helm/v3/cmd/helm@"+helm[1] {
		t.Errorf("the workflow has %s, charttest has %v", w.Env["HELM"], helm)
	}
	steps := 0
	for name, job := range w.Jobs {
		for _, s := range job.Steps {
			steps++
			if s.Uses != "" && !regexp.MustCompile(`^[\w/-]+@[0-9a-f]{40}$`).MatchString(s.Uses) {
				t.Errorf("job %s: the action %s is not pinned by a commit", name, s.Uses)
			}
		}
	}
	if steps < 10 {
		t.Errorf("the workflow has %d steps", steps)
	}
}
