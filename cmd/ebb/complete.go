package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/config"
)

// completeDirectives completes the options of ebb serve: names of directives with their meaning, and values
// of those that have a few.
func completeDirectives(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		if d := config.Lookup(strings.TrimPrefix(args[len(args)-1], "--")); d != nil && strings.HasPrefix(args[len(args)-1], "--") {
			switch {
			case d.Kind == config.Bool:
				return []string{"yes", "no"}, cobra.ShellCompDirectiveNoFileComp
			case len(d.Choices) > 0:
				return d.Choices, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	if !strings.HasPrefix(toComplete, "-") {
		return nil, cobra.ShellCompDirectiveDefault // a configuration file
	}
	var names []string
	for _, d := range config.Directives() {
		if name := "--" + d.Name; d.Unused == "" && !d.Hidden && strings.HasPrefix(name, toComplete) {
			names = append(names, name+"\t"+d.Doc)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
