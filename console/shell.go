package console

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
)

// commandRow is one command for the shell's completion and hints.
type commandRow struct {
	Name    string   `json:"name"` // in capitals, "CONFIG GET"
	Group   string   `json:"group"`
	Summary string   `json:"summary"`
	Since   string   `json:"since"`
	Syntax  string   `json:"syntax"`
	Args    []argRow `json:"args"`
	Flags   []string `json:"flags"`
	Danger  bool     `json:"danger,omitempty"` // it is in the category dangerous
}

// argRow is one argument of a command's grammar.
type argRow struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"` // as in COMMAND DOCS
	Token    string   `json:"token,omitempty"`
	Optional bool     `json:"optional,omitempty"`
	Multiple bool     `json:"multiple,omitempty"`
	Args     []argRow `json:"args,omitempty"`
}

// getCommands answers GET api/commands.
func getCommands(c *Console, _ *request) (any, error) {
	t := c.svc.Table()
	rows := make([]commandRow, 0, t.Len())
	for id := range t.Len() {
		s := t.Spec(id)
		if s.Run == nil || s.Parent() == nil && s.Called() == "" {
			continue
		}
		_, syntax, _ := strings.Cut(s.Usage()[len(display(s)):], " ")
		rows = append(rows, commandRow{Name: display(s), Group: string(s.Group), Summary: s.Summary, Since: s.Since, Syntax: syntax,
			Args: argRows(s.Args), Flags: s.Flags.Names(), Danger: s.ACL()&command.CatDangerous != 0})
	}
	return struct {
		Rows []commandRow `json:"rows"`
	}{rows}, nil
}

func argRows(args []command.Arg) []argRow {
	rows := make([]argRow, len(args))
	for i := range args {
		a := &args[i]
		rows[i] = argRow{Name: a.Name, Kind: a.Kind.String(), Token: a.Token, Optional: a.Optional, Multiple: a.Multiple}
		if len(a.Args) > 0 {
			rows[i].Args = argRows(a.Args)
		}
	}
	return rows
}

// getHelp answers GET api/help?name=SET with the command's page as text.
func getHelp(c *Console, q *request) (any, error) {
	name := strings.Join(strings.Fields(strings.ToLower(q.text("name"))), "|")
	s := c.svc.Table().LookupFull(name)
	if s == nil {
		return nil, errGone("the server has no command " + strings.ToUpper(q.text("name")))
	}
	return struct {
		Text string `json:"text"`
	}{page(s)}, nil
}

// page returns a command's page as text.
func page(s *command.Spec) string {
	var b strings.Builder
	section := func(title, text string) {
		if text = strings.TrimSpace(text); text != "" {
			fmt.Fprintf(&b, "\n%s\n  %s\n", title, strings.ReplaceAll(text, "\n", "\n  "))
		}
	}
	fmt.Fprintf(&b, "%s\n\n%s\n\ngroup: %s   since: %s\ncomplexity: %s\nACL: @%s\n", s.Usage(), s.Summary, s.Group, s.Since, s.Complexity,
		strings.Join(s.ACL().Names(), " @"))
	if d := s.Deprecated; d != nil {
		fmt.Fprintf(&b, "deprecated since %s; use %s\n", d.Since, d.ReplacedBy)
	}
	var subs []string
	for _, sub := range s.Sub {
		subs = append(subs, sub.Usage()+"\n  "+sub.Summary)
	}
	section("Subcommands", strings.Join(subs, "\n"))
	section("Replies", s.Replies)
	section("Errors", strings.Join(s.Errors, "\n"))
	section("Examples", s.Examples)
	return b.String()
}
