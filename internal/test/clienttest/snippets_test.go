package clienttest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// snippets returns the code blocks of a language in the guide for other languages, in one text.
func snippets(t *testing.T, language string) string {
	t.Helper()
	guide, err := os.ReadFile("../../../docs/guides/other-languages.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(guide, -1) {
		b.Write(m[1])
	}
	if b.Len() == 0 {
		t.Fatalf("the guide has no %s", language)
	}
	return b.String()
}

// promised returns what the comments behind the calls that print say, line by line.
func promised(t *testing.T, code, call, comment string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(code) {
		if !strings.HasPrefix(line, call+"(") {
			continue
		}
		_, want, ok := strings.Cut(strings.TrimRight(line, "\n"), comment+" ")
		if !ok {
			t.Errorf("the guide does not say what this prints: %s", line)
		}
		lines = append(lines, want)
	}
	return lines
}

func TestThePythonOfTheGuidePrintsWhatItSays(t *testing.T) {
	code := snippets(t, "python")
	_, port, err := net.SplitHostPort(startEbb(t))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "guide.py")
	if err := os.WriteFile(program, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("EBB_PORT", port)
	out := python(t, program, port)
	if diff := cmp.Diff(promised(t, code, "print", "  #"), strings.Split(strings.TrimSpace(out), "\n")); diff != "" {
		t.Errorf("(-the guide +the program)\n%s", diff)
	}
}

func TestTheJavaScriptOfTheGuidePrintsWhatItSays(t *testing.T) {
	code := snippets(t, "js")
	_, port, err := net.SplitHostPort(startEbb(t))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "guide.js")
	body := "(async () => {\n" + code + "})().catch(e => { console.error(e); process.exit(1) })\n"
	if err := os.WriteFile(program, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("node/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NODE_PATH", modules)
	t.Setenv("EBB_PORT", port)
	out := node(program)(t, port)
	if diff := cmp.Diff(promised(t, code, "console.log", " //"), strings.Split(strings.TrimSpace(out), "\n")); diff != "" {
		t.Errorf("(-the guide +the program)\n%s", diff)
	}
}

func TestTheCommandLinesOfTheGuidePrintWhatItSays(t *testing.T) {
	cli := realserver.Program(t, "redis-cli")
	_, port, err := net.SplitHostPort(startEbb(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link := "#!/bin/sh\nexec " + cli + " -p " + port + " \"$@\"\n" // the redis-cli of the guide's reader has the default port
	if err := os.WriteFile(filepath.Join(dir, "redis-cli"), []byte(link), 0o700); err != nil {
		t.Fatal(err)
	}
	var commands, want strings.Builder
	for line := range strings.Lines(snippets(t, "console")) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands.WriteString(command)
			continue
		}
		want.WriteString(line)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := realserver.CommandContext(ctx, "sh", "-ec", commands.String())
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.Output()
	if diff := cmp.Diff(want.String(), string(out)); err != nil || diff != "" {
		t.Errorf("%v (-the guide +the shell)\n%s", err, diff)
	}
}
