package gen

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
)

// ownPage is the list of the commands that no other server has, or not in this
// form.
const ownPage = "own-commands.md"

// own lists syntax, replies and errors of ebb's own commands, group by group.
func own(t *command.Table) []byte {
	var b bytes.Buffer
	b.WriteString(Marker)
	b.WriteString("# ebb's own commands\n\nSyntax, replies and errors of the commands that Redis 7.0 does not have. " +
		"All of them also answer WRONGTYPE,\n" +
		"an error on a wrong number of arguments, and one on what should be an integer and is none.\n")
	for _, g := range command.Groups {
		var specs []*command.Spec
		for _, s := range inGroup(t, g) {
			if s.Run != nil && isOwn(s) {
				specs = append(specs, s)
			}
		}
		if len(specs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", title(g))
		for _, s := range specs {
			fmt.Fprintf(&b, "\n### [%s](%s)\n\n    %s\n\n%s\n", display(s), pageName(s), s.Usage(), wrap(replies(s)))
			if len(s.Errors) > 0 {
				b.WriteString("\nErrors:\n\n")
			}
			for _, e := range s.Errors {
				b.WriteString(wrap(errorItem(e)) + "\n")
			}
		}
	}
	return b.Bytes()
}

func replies(s *command.Spec) string {
	if s.Replies == "" {
		return s.Summary
	}
	return strings.TrimSpace(s.Replies)
}

// isOwn reports whether Redis 7.0 does not have the command.
func isOwn(s *command.Spec) bool {
	return strings.HasPrefix(s.Since, "0.") || !onRedis70(s.Name)
}

func onRedis70(name string) bool {
	for have := range strings.FieldsSeq(redis70) {
		if have == name {
			return true
		}
	}
	return false
}
