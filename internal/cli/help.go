package cli

import (
	"fmt"
	"slices"
	"strings"
)

const helpText = `To get help about commands type:
      "help @<group>" to get a list of commands in <group>
      "help <command>" for help on <command>
      "help <tab>" to get a list of possible help topics
      "quit" to exit

In this program:
      "<n> <command>" runs a command n times
      "connect <host> <port>" goes to another server
      "clear" clears the screen
      ":set hints" and ":set nohints" show and hide hints
`

// help prints the server's documentation of a group, or of a command and its subcommands.
// Without a topic it prints how to use help.
func (c *client) help(topic []string) {
	if len(topic) == 0 {
		fmt.Fprintf(c.env.Out, "ebb cli %s\n%s", c.env.Version, helpText)
		return
	}
	if c.docs == nil {
		c.lookUp()
	}
	all := c.docs.all(true)
	if all == nil {
		c.lookUp() // the server may have been down, or may be another one
		all = c.docs.all(true)
	}
	if all == nil {
		fmt.Fprintln(c.env.Out, "No help: the server does not support COMMAND DOCS.")
		return
	}
	name := strings.ToUpper(strings.Join(topic, " "))
	found := false
	for _, cmd := range all {
		isGroup := strings.EqualFold("@"+cmd.group, name)
		if isGroup || cmd.name == name || strings.HasPrefix(cmd.name, name+" ") {
			c.describe(cmd, !isGroup)
			found = true
		}
	}
	if !found {
		fmt.Fprintf(c.env.Out, "No help for '%s'. Groups: %s\n", strings.Join(topic, " "), strings.Join(groups(all), " "))
	}
	fmt.Fprintln(c.env.Out)
}

// describe prints one command.
func (c *client) describe(cmd command, group bool) {
	bold, dim, colour, plain := "", "", "", ""
	if c.env.OutTTY {
		bold, dim, colour, plain = "\x1b[1m", "\x1b[90m", "\x1b[33m", "\x1b[0m"
	}
	w := c.env.Out
	fmt.Fprintf(w, "\n  %s%s%s %s%s%s\n", bold, cmd.name, plain, dim, syntax(cmd.args), plain)
	fmt.Fprintf(w, "  %ssummary:%s %s\n", colour, plain, cmd.summary)
	if cmd.complexity != "" && group {
		fmt.Fprintf(w, "  %scomplexity:%s %s\n", colour, plain, cmd.complexity)
	}
	fmt.Fprintf(w, "  %ssince:%s %s\n", colour, plain, cmd.since)
	if group {
		fmt.Fprintf(w, "  %sgroup:%s %s\n", colour, plain, cmd.group)
	}
}

// groups returns the names of all groups.
func groups(all []command) (names []string) {
	for _, c := range all {
		names = append(names, "@"+c.group)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
