package command

import (
	"fmt"
	"strconv"
	"strings"
)

// HelpSpec is the HELP subcommand of a container. Its reply is made from the
// specs of the container's subcommands, and NewTable makes its example.
func HelpSpec(container string, g Group, cats Category) Spec {
	return Spec{
		Name: container + "|help", Group: g, Since: "5.0.0", Complexity: "O(1)",
		Summary:    "Explains the subcommands.",
		Flags:      Loading | Stale | Inert,
		Categories: cats,
		Replies:    "An array of lines.",
		Examples:   "> " + strings.ToUpper(container) + " HELP\n",
		Run:        RunHelp,
	}
}

func RunHelp(c *Ctx) error {
	container := c.Spec.Parent()
	lines := container.HelpLines()
	lines[0] = strings.ToUpper(container.Called()) + strings.TrimPrefix(lines[0], strings.ToUpper(container.Name))
	c.Out.Array(len(lines))
	for _, l := range lines {
		c.Out.Simple(l)
	}
	return nil
}

// HelpLines is the text of a container's HELP.
func (s *Spec) HelpLines() []string {
	lines := []string{strings.ToUpper(s.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	if s.Run != nil {
		lines = append(lines, "(no subcommand)", "    "+s.Summary)
	}
	for _, sub := range s.Sub {
		_, usage, _ := strings.Cut(sub.Usage(), " ")
		lines = append(lines, usage, "    "+sub.Summary)
	}
	return lines
}

// helpExample is the transcript of a container's HELP.
func (s *Spec) helpExample() string {
	lines := s.HelpLines()
	width := len(strconv.Itoa(len(lines)))
	var b strings.Builder
	fmt.Fprintf(&b, "> %s HELP\n", strings.ToUpper(s.Name))
	for i, l := range lines {
		fmt.Fprintf(&b, "%*d) %s\n", width, i+1, l)
	}
	return b.String()
}
