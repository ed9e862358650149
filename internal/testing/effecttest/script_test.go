package effecttest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// section is one part of a script: what it is about, and what is done.
type section struct {
	kind    string   // directive, limit or info
	about   []string // the words of the title
	start   string   // options
	without []string // programs that it is not played on, because they do not have the subject
	differs []string // IDs of internal/compat
	lines   []string
	at      string // file:line
}

func (s *section) name() string { return s.kind + " " + strings.Join(s.about, " ") }

// alone reports whether the section needs processes of its own.
func (s *section) alone() bool {
	for _, l := range s.lines {
		verb, _, _ := strings.Cut(l, " ")
		switch _, v := splitVerb(verb); v {
		case "restart", "end", "peer", "spare", "write", "alone":
			return true
		}
	}
	return false
}

// sections reads the scripts.
func sections(t *testing.T) (all []*section) {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var s *section
		for i, line := range strings.Split(string(text), "\n") {
			at := fmt.Sprintf("%s:%d", name, i+1)
			word, rest, _ := strings.Cut(line, " ")
			switch {
			case s != nil && strings.HasPrefix(line, "# differs: "):
				s.differs = append(s.differs, line[len("# differs: "):])
			case line == "" || strings.HasPrefix(line, "#"):
			case word == "==":
				words := strings.Fields(rest)
				if len(words) < 2 {
					t.Fatalf("%s: a title has a kind and a subject", at)
				}
				s = &section{kind: words[0], about: words[1:], at: at}
				all = append(all, s)
			case s == nil:
				t.Fatalf("%s: no section has begun", at)
			case word == "start":
				s.start = rest
			case word == "without":
				s.without = append(s.without, strings.Fields(rest)...)
			default:
				s.lines = append(s.lines, line)
			}
		}
	}
	pattern := regexp.MustCompile(*only)
	return slices.DeleteFunc(all, func(s *section) bool { return !pattern.MatchString(s.name()) })
}

var repeated = regexp.MustCompile(`\{([^{}*]+)\*(\d+)\}`)

// expand replaces {x*3} by xxx, and {k#*3} by k1 k2 k3.
func expand(text string) string {
	return repeated.ReplaceAllStringFunc(text, func(m string) string {
		parts := repeated.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[2])
		if strings.Contains(parts[1], "#") {
			words := make([]string, n)
			for i := range words {
				words[i] = strings.ReplaceAll(parts[1], "#", strconv.Itoa(i+1))
			}
			return strings.Join(words, " ")
		}
		return strings.Repeat(parts[1], n)
	})
}

// splitVerb parts the name of a connection from what is done: "2>" is ("2", ">").
func splitVerb(word string) (conn, verb string) {
	for _, v := range []string{">>", ">", "!", "<", "raw", "closed", "until", "drain"} {
		if name, ok := strings.CutSuffix(word, v); ok && len(name) <= 3 {
			return name, v
		}
	}
	return "", word
}
