package gen

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebbdb/ebb/command"
)

// redis70 lists the commands of redis-server 7.0.15, a line each.
//
//go:embed redis70.txt
var redis70 string

const (
	cluster = "one node has nothing to rearrange"
	modules = "there are no loadable modules"
)

// reasons say why a command of redis-server 7.0 is not there. A name stands for
// its subcommands too.
var reasons = map[string]string{
	"cluster": cluster, "module": modules,
}

func reasonFor(name string) string {
	head, _, _ := strings.Cut(name, "|")
	if r := reasons[name]; r != "" {
		return r
	}
	return reasons[head]
}

// Missing lists the commands of redis-server 7.0 that a table does not have, and
// of these the ones without a reason.
func Missing(t *command.Table) (missing, unexplained []string) {
	have := map[string]bool{}
	for id := range t.Len() {
		have[t.Spec(id).Name] = true
	}
	for name := range strings.FieldsSeq(redis70) {
		if have[name] {
			continue
		}
		missing = append(missing, name)
		if reasonFor(name) == "" {
			unexplained = append(unexplained, name)
		}
	}
	return missing, unexplained
}

// writeMissing writes the section on what redis-server 7.0 has besides.
func writeMissing(b *bytes.Buffer, t *command.Table) {
	missing, _ := Missing(t)
	all := len(strings.Fields(redis70))
	fmt.Fprintf(b, "\n## What Redis 7.0 has and ebb does not\n\nredis-server 7.0.15 has %d commands, subcommands counted; ebb has %d of them.\n\n| Command | Why not |\n|---|---|\n", all, all-len(missing))
	for _, name := range missing {
		fmt.Fprintf(b, "| %s | %s |\n", strings.ToUpper(strings.ReplaceAll(name, "|", " ")), reasonFor(name))
	}
}

// cases counts a transcript's cases and requests; 0 if there is none.
func cases(root string, s *command.Spec) (cases, requests int) {
	text, err := os.ReadFile(filepath.Join(root, TranscriptName(s)))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		prompt := strings.TrimLeft(line, "0123456789")
		switch {
		case strings.HasPrefix(line, "# "):
			cases++
		case strings.HasPrefix(prompt, "> "):
			requests++
		}
	}
	return cases, requests
}
