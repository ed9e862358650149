package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/cli"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/servercmd"
)

// serveOnly lists the options of ebb serve that are not directives, with their descriptions.
var serveOnly = [][2]string{
	{"--accept-clock", "start although the clock is far behind the files (yes or no)"},
	{"--console", "serve the web console at 127.0.0.1:9121, or at the next free port"},
	{"--directives", "print the directives with their defaults"},
	{"--help", "help for ebb serve"},
	{"--peers", "the servers that replicate one master"},
	{"--version", "print the version"},
}

// completeDirectives completes the options of ebb serve: the names of directives with their descriptions, and the
// values of directives that have few.
func completeDirectives(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		last := args[len(args)-1]
		if d := config.Lookup(strings.TrimPrefix(last, "--")); d != nil && strings.HasPrefix(last, "--") {
			switch {
			case d.Kind == config.Bool:
				return []string{"yes", "no"}, cobra.ShellCompDirectiveNoFileComp
			case len(d.Choices) > 0:
				return d.Choices, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		}
		switch last {
		case "--accept-clock":
			return []string{"yes", "no"}, cobra.ShellCompDirectiveNoFileComp
		case "--peers":
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
	if !strings.HasPrefix(toComplete, "-") {
		return nil, cobra.ShellCompDirectiveDefault // a configuration file
	}
	var names []string
	for _, o := range serveOnly {
		if strings.HasPrefix(o[0], toComplete) {
			names = append(names, o[0]+"\t"+o[1])
		}
	}
	for _, d := range config.Directives() {
		if name := "--" + d.Name; d.Unused == "" && !d.Hidden && strings.HasPrefix(name, toComplete) {
			names = append(names, name+"\t"+d.Doc)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeCLI completes the command line of ebb cli: its options, the names of commands and subcommands, and the
// tokens of their arguments. Names are in the case in which the word begins. It does not ask a server.
func completeCLI(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	words, value := cli.CommandWords(args)
	switch {
	case value: // the value of an option
		return nil, cobra.ShellCompDirectiveDefault
	case len(words) == 0 && strings.HasPrefix(toComplete, "-"):
		return beginning(cli.OptionNames(), toComplete), cobra.ShellCompDirectiveNoFileComp
	}
	table, err := servercmd.DefaultTable()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var found []string
	propose := func(name, meaning string) {
		if strings.ToLower(toComplete) == toComplete {
			name = strings.ToLower(name)
		}
		if strings.HasPrefix(name, toComplete) {
			if meaning != "" {
				name += "\t" + meaning
			}
			found = append(found, name)
		}
	}
	if len(words) == 0 {
		for _, s := range table.Commands() {
			propose(strings.ToUpper(s.Name), s.Summary)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
	spec := table.Lookup([]byte(words[0]))
	if spec != nil && len(spec.Sub) > 0 {
		if len(words) == 1 {
			for _, s := range spec.Sub {
				_, name, _ := strings.Cut(s.Name, "|")
				propose(strings.ToUpper(name), s.Summary)
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		}
		spec = table.LookupFull(words[0] + "|" + words[1])
	}
	if spec == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, token := range tokens(spec.Args, nil) {
		propose(token, "")
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// tokens appends the tokens of arguments to all, each only once.
func tokens(args []command.Arg, all []string) []string {
	for _, a := range args {
		if token := strings.ToUpper(a.Token); token != "" && !slices.Contains(all, token) {
			all = append(all, token)
		}
		all = tokens(a.Args, all)
	}
	return all
}

// completeTests completes a comma-separated list of tests of ebb bench.
func completeTests(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	list := toComplete[:strings.LastIndexByte(toComplete, ',')+1]
	var all []string
	for _, name := range loadgen.Names() {
		all = append(all, list+name)
	}
	return beginning(all, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// beginning returns the words with a prefix.
func beginning(words []string, so string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, so) })
}
