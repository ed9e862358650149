// Command man writes the manual pages of the program EBB below DIR: man1 has one for each of its commands, made of what the
// command prints with --help, and man5 has ebb.conf(5), with every directive. packaging/files.sh runs it.
//
//	man EBB DIR
//
// Start reading at pages.command.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ebbdb/ebb/internal/config"
)

func main() {
	err := errors.New("usage: man EBB DIR")
	if len(os.Args) == 3 {
		err = write(os.Args[1], os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write writes all pages.
func write(program, dir string) error {
	for _, section := range []string{"man1", "man5"} {
		if err := os.MkdirAll(filepath.Join(dir, section), 0o755); err != nil {
			return err
		}
	}
	p := pages{program: program, dir: filepath.Join(dir, "man1")}
	out, err := p.run("version")
	if err != nil {
		return err
	}
	p.version = strings.Join(strings.Fields(out)[:2], " ") // "ebb 1.2.3"
	if err := p.command([]string{"ebb"}, "a Redis-compatible in-memory data store"); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "man5", "ebb.conf.5"), []byte(confPage(p.version)), 0o644)
}

// pages writes the pages of a program's commands.
type pages struct{ program, version, dir string }

func (p *pages) run(args ...string) (string, error) {
	out, err := exec.Command(p.program, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", p.program, strings.Join(args, " "), err)
	}
	return string(out), nil
}

var (
	// section matches a line that begins a part of the help.
	section = regexp.MustCompile(`(?m)^(Usage|Examples|Available Commands|Flags):(?:\n| )`)
	// item matches a command or an option with its meaning.
	item = regexp.MustCompile(`^ +(\S.*?)  +(\S.*)$`)
)

// command writes the page of a command, by its words, and the pages of the commands below it.
func (p *pages) command(words []string, short string) error {
	help, err := p.run(append(words[1:len(words):len(words)], "--help")...)
	if err != nil {
		return err
	}
	help, _, _ = strings.Cut(help, "\nUse \"ebb ") // the hint at the end
	parts := map[string]string{}
	name, from := "", 0
	for _, at := range section.FindAllStringSubmatchIndex(help, -1) {
		parts[name] = help[from:at[0]]
		name, from = help[at[2]:at[3]], at[1]
	}
	parts[name] = help[from:]
	synopsis, more, _ := strings.Cut(parts["Usage"], "\n\n") // a help of its own goes on there

	file := strings.Join(words, "-")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"%s\" \"ebb\"\n", strings.ToUpper(file), p.version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n%s.SH DESCRIPTION\n%s", troff(file), troff(short), plain(synopsis), plain(parts[""]+more))
	below, also := [][2]string(nil), ""
	if len(words) > 1 {
		also = fmt.Sprintf("\\fB%s\\fP(1)\n", troff(strings.Join(words[:len(words)-1], "-")))
	}
	for line := range strings.Lines(parts["Available Commands"]) {
		if m := item.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && m[1] != "help" {
			below = append(below, [2]string{m[1], m[2]})
			also += fmt.Sprintf("\\fB%s\\fP(1)\n", troff(file+"-"+m[1]))
		}
	}
	for _, part := range [][2]string{{"COMMANDS", "Available Commands"}, {"OPTIONS", "Flags"}} {
		if parts[part[1]] != "" {
			fmt.Fprintf(&b, ".SH %s\n%s", part[0], tagged(parts[part[1]]))
		}
	}
	if parts["Examples"] != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n%s", plain(parts["Examples"]))
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\\fBebb.conf\\fP(5)\n", also)
	if err := os.WriteFile(filepath.Join(p.dir, file+".1"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	for _, c := range below {
		if err := p.command(append(words[:len(words):len(words)], c[0]), c[1]); err != nil {
			return err
		}
	}
	return nil
}

// plain returns text in which the lines that are indented stay as they are.
func plain(text string) string {
	var b strings.Builder
	kept := false // within lines that stay
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		if indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") || kept && line == ""; indented != kept {
			kept = indented
			b.WriteString(map[bool]string{true: ".PP\n.nf\n", false: ".fi\n.PP\n"}[kept])
		}
		if line == "" && !kept {
			line = ".PP"
		} else {
			line = troff(line)
		}
		fmt.Fprintln(&b, line)
	}
	if kept {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// tagged returns a list of commands or options.
func tagged(list string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.Trim(list, "\n"), "\n") {
		if m := item.FindStringSubmatch(line); m != nil {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", troff(m[1]), troff(m[2]))
		} else {
			fmt.Fprintln(&b, troff(strings.TrimSpace(line)))
		}
	}
	return b.String()
}

// troff escapes what troff would take for a request or an escape sequence.
func troff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

const confHead = `.SH NAME
ebb.conf \- the configuration of ebb serve
.SH SYNOPSIS
\fBebb serve\fP \fIFILE\fP [\fB\-\-directive\fP \fIvalue\fP ...]
.SH DESCRIPTION
A file has a directive with its value on each line, in the syntax of redis.conf: words are separated by
blanks, quotes hold words with blanks, and a line that begins with # is a comment. \fBinclude\fP reads another file.
An environment variable sets a directive too: EBB_MAXMEMORY_POLICY is maxmemory\-policy, and EBB_REQUIREPASS_FILE names a file
that holds the value of requirepass. Options of the command line override the environment, and the environment overrides
the file. \fBCONFIG SET\fP changes most directives while the server runs, and \fBCONFIG REWRITE\fP writes them into the file.
.SH DIRECTIVES
`

// confPage returns ebb.conf(5), from the table of directives.
func confPage(version string) string {
	var b, unused strings.Builder
	fmt.Fprintf(&b, ".TH \"EBB.CONF\" \"5\" \"\" \"%s\" \"ebb\"\n%s", version, confHead)
	for _, d := range config.Directives() {
		if d.Unused != "" {
			fmt.Fprintf(&unused, ".TP\n\\fB%s\\fP\n%s.\n", troff(d.Name), troff(d.Unused))
			continue
		}
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fP \\fI%s\\fP\n%s.\n", troff(d.Name), troff(d.Usage()), troff(d.Doc))
		if d.Default != "" {
			fmt.Fprintf(&b, "Default: %s.\n", troff(d.Default))
		}
		if d.FileDefault != "" {
			fmt.Fprintf(&b, "Default with a configuration file: %s.\n", troff(d.FileDefault))
		}
		if d.Immutable {
			b.WriteString("It can be given at the start only.\n")
		}
	}
	return b.String() + ".SH DIRECTIVES WITHOUT AN EFFECT\nFiles of Redis and Valkey may have them.\n" + unused.String() +
		".SH SEE ALSO\n\\fBebb\\-serve\\fP(1), \\fBebb\\-check\\fP(1)\n"
}
