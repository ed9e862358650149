package gen

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/command"
)

// index returns the table of contents: a section for each group.
func index(t *command.Table) []byte {
	var b bytes.Buffer
	b.WriteString(Marker)
	b.WriteString("# Commands\n\n")
	b.WriteString("Every command has a page, and a transcript that the tests replay: its behaviour, by example.\n" +
		"[Those of ebb](" + ownPage + "), which Redis 7.0 does not have, are also on one page.\n")
	for _, g := range command.Groups {
		specs := inGroup(t, g)
		if len(specs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| Command | Summary | Transcript |\n|---|---|---|\n", title(g))
		for _, s := range specs {
			transcript := ""
			if s.Run != nil {
				transcript = fmt.Sprintf("[%s.txt](../../%s)", fileName(s), TranscriptName(s))
			}
			fmt.Fprintf(&b, "| [%s](%s) | %s | %s |\n", display(s), pageName(s), cell(s.Summary), transcript)
		}
	}
	writeMissing(&b, t)
	return b.Bytes()
}

// inGroup lists a group's commands by name.
func inGroup(t *command.Table, g command.Group) []*command.Spec {
	var specs []*command.Spec
	for id := range t.Len() {
		if s := t.Spec(id); s.Group == g {
			specs = append(specs, s)
		}
	}
	slices.SortFunc(specs, func(a, b *command.Spec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

var titles = map[command.Group]string{
	command.GroupSortedSet: "Sorted set", command.GroupPubSub: "Publish/subscribe",
	command.GroupHyperLogLog: "HyperLogLog", command.GroupQueue: "Delay queue", command.GroupBloom: "Bloom filter",
}

func title(g command.Group) string {
	if t, ok := titles[g]; ok {
		return t
	}
	return strings.ToUpper(string(g[:1])) + string(g[1:])
}

// display returns a command's name as users type it.
func display(s *command.Spec) string { return strings.ToUpper(strings.ReplaceAll(s.Name, "|", " ")) }

// errorItem returns an error of a Spec, "TEXT: when", as an item of a list. The text may have colons and backquotes itself.
func errorItem(e string) string {
	at, mark := strings.LastIndex(e, ": "), "`"
	if at < 0 {
		at = len(e)
	}
	if strings.Contains(e[:at], mark) {
		mark = "``"
	}
	return "* " + mark + e[:at] + mark + e[at:]
}

// page returns one command's page.
func page(s *command.Spec) []byte {
	var b bytes.Buffer
	b.WriteString(Marker)
	fmt.Fprintf(&b, "# %s\n\n%s\n\n    %s\n\n", display(s), s.Summary, s.Usage())
	if d := s.Deprecated; d != nil {
		fmt.Fprintf(&b, "**Deprecated** since %s; use %s.\n\n", d.Since, d.ReplacedBy)
	}
	writeFacts(&b, s)
	if len(s.Args) > 0 {
		b.WriteString("\n## Arguments\n\n| Argument | Type | |\n|---|---|---|\n")
		writeArgs(&b, s.Args, 0)
	}
	writeSubs(&b, s)
	if s.Replies != "" {
		fmt.Fprintf(&b, "\n## Replies\n\n%s\n", wrap(strings.TrimSpace(s.Replies)))
	}
	if len(s.Errors) > 0 {
		b.WriteString("\n## Errors\n\n")
		for _, e := range s.Errors {
			b.WriteString(errorItem(e) + "\n")
		}
	}
	if len(s.History) > 0 {
		b.WriteString("\n## History\n\n")
		for _, h := range s.History {
			fmt.Fprintf(&b, "* %s: %s\n", h.Since, h.Text)
		}
	}
	if s.Examples != "" {
		fmt.Fprintf(&b, "\n## Examples\n\n```\n%s\n```\n", strings.TrimRight(differs.ReplaceAllString(s.Examples, ""), "\n"))
		if len(s.Sub) == 0 { // subcommands have transcripts of their own
			fmt.Fprintf(&b, "\nMore in [the transcript](../../%s).\n", TranscriptName(s))
		}
	}
	return b.Bytes()
}

// writeFacts writes the table of a command's properties.
func writeFacts(b *bytes.Buffer, s *command.Spec) {
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "| %s | %s |\n", name, cell(value))
		}
	}
	b.WriteString("| | |\n|---|---|\n")
	fact("Group", "["+title(s.Group)+"](index.md)")
	fact("Since", s.Since)
	fact("Complexity", s.Complexity)
	fact("Flags", s.Flags.String())
	fact("ACL categories", at(s.ACL().Names()))
	fact("Arity", fmt.Sprint(s.Arity()))
	if s.ArityReason != "" {
		fact("", s.ArityReason)
	}
	fact("Keys", keys(s))
	fact("Tips", strings.Join(s.Tips, ", "))
}

func at(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "@" + n
	}
	return strings.Join(out, " ")
}

// keys describes the positions of a command's keys, and the command's access to them.
func keys(s *command.Spec) string {
	var out []string
	for _, k := range s.AllKeySpecs() {
		out = append(out, place(&k)+" ("+strings.Join(k.Flags.Names(), " ")+")")
	}
	return strings.Join(out, "; ")
}

func place(k *command.KeySpec) string {
	switch {
	case k.Begin == command.BeginUnknown:
		return "depends on the arguments"
	case k.Begin == command.BeginKeyword:
		return "behind " + k.Keyword
	case k.Find == command.FindKeyNum:
		return fmt.Sprintf("as many as argument %d says", k.Index+k.Count)
	case k.Last == 0:
		return fmt.Sprintf("argument %d", k.Index)
	case k.Last == -1 && k.Step == 1:
		return fmt.Sprintf("argument %d to the last", k.Index)
	case k.Step == 1:
		return fmt.Sprintf("argument %d to the last but %d", k.Index, -1-k.Last)
	}
	return fmt.Sprintf("argument %d and every %d further", k.Index, k.Step)
}

// writeArgs writes a row for each argument, its parts below it.
func writeArgs(b *bytes.Buffer, args []command.Arg, depth int) {
	for i := range args {
		a := &args[i]
		fmt.Fprintf(b, "| %s`%s` | %s | %s |\n", strings.Repeat("&emsp;", depth), cell(a.Hint()), a.Kind, notes(a))
		if a.Kind == command.KindBlock || a.Kind == command.KindOneOf {
			writeArgs(b, a.Args, depth+1)
		}
	}
}

// notes describes properties of an argument that the usage does not show.
func notes(a *command.Arg) string {
	var out []string
	if a.Optional {
		out = append(out, "optional")
	}
	if a.Multiple {
		out = append(out, "repeatable")
	}
	if a.Counts {
		out = append(out, "how many follow")
	}
	if a.Kind == command.KindKey {
		out = append(out, strings.Join(a.Access.Names(), " "))
	}
	if a.KeyNote != "" {
		out = append(out, cell(a.KeyNote))
	}
	if a.Added != "" {
		out = append(out, "since "+a.Added)
	}
	if a.Obsolete != "" {
		out = append(out, "deprecated since "+a.Obsolete)
	}
	return strings.Join(out, ", ")
}

// writeSubs links a container's subcommands.
func writeSubs(b *bytes.Buffer, s *command.Spec) {
	if len(s.Sub) == 0 {
		return
	}
	b.WriteString("\n## Subcommands\n\n| Subcommand | Summary |\n|---|---|\n")
	for _, sub := range s.Sub {
		fmt.Fprintf(b, "| [%s](%s) | %s |\n", display(sub), pageName(sub), cell(sub.Summary))
	}
}

// differs are the remarks of transcripts about other servers; pages are about ebb.
var differs = regexp.MustCompile(`(?m) \(differs: [a-z0-9, -]+\)$`)

// cell escapes a text for a table's cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

// width is the length of a line of prose at most.
const width = 120

// item matches the mark that begins an item of a list.
var item = regexp.MustCompile(`^(\* |\d+\. )`)

// wrap breaks the lines of a text at width. The further lines of an item of a list are
// indented, so that they stay in it.
func wrap(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		indent := strings.Repeat(" ", len(item.FindString(line)))
		n := 0
		for i, word := range strings.Fields(line) {
			switch size := utf8.RuneCountInString(word); {
			case i == 0:
				n = size
			case n+1+size > width && !markup.MatchString(word):
				b.WriteString("\n" + indent)
				n = len(indent) + size
			default:
				b.WriteByte(' ')
				n += 1 + size
			}
			b.WriteString(word)
		}
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// markup matches a word that would begin a list, a heading, a quotation or a table at the
// beginning of a line.
var markup = regexp.MustCompile(`^([-+*#>|=~` + "`" + `]+|\d+[.)])$|^[>|#]`)
