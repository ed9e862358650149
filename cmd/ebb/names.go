package main

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// namedAs returns the arguments of the root command for a program that was started under a name of
// Redis's or Valkey's programs, as packages, charts and test suites do. ebb check finds out by itself what
// a file is. The name may be the first argument too, and an option as the first argument is one of ebb serve: the
// entry point of an image is ebb, and gets what follows the image's name.
func namedAs(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	rest := args[1:]
	if command, ok := commandOf(args[0], rest); ok {
		return command
	}
	if len(rest) > 0 {
		if command, ok := commandOf(rest[0], rest[1:]); ok {
			return command
		}
		if strings.HasPrefix(rest[0], "--") && rest[0] != "--help" && rest[0] != "--version" {
			return append([]string{"serve"}, rest...)
		}
	}
	return rest
}

// commandOf returns the subcommand that a program's name stands for, with its arguments.
func commandOf(path string, args []string) (command []string, ok bool) {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	program, ok := strings.CutPrefix(name, "redis-")
	if !ok {
		if program, ok = strings.CutPrefix(name, "valkey-"); !ok {
			return nil, false
		}
	}
	switch program {
	case "server":
		return append([]string{"serve"}, args...), true
	case "cli":
		return append([]string{"cli"}, args...), true
	case "check-rdb", "check-aof":
		return append([]string{"check"}, args...), true
	case "sentinel":
		return append([]string{sentinelName}, args...), true
	case "benchmark":
		return append([]string{"bench"}, benchmarkArgs(args)...), true
	}
	return nil, false
}

// benchmarkValues are redis-benchmark's flags with a value that ebb bench has under another name. Those without one have no effect: it
// keeps its connections and uses all processors.
var benchmarkValues = map[string]string{"-d": "--size", "--dbnum": "--db", "-k": "", "--threads": "", "--precision": ""}

// benchmarkTests are redis-benchmark's names of tests for which ebb bench has others.
var benchmarkTests = map[string]string{"ping_inline": "ping", "ping_mbulk": "ping", "lrange": "lrange_100"}

// benchmarkSwitches are its flags without a value.
var benchmarkSwitches = []string{"-q", "-e", "-l", "-I", "-4", "-6", "--csv", "--tls", "--insecure", "--cluster",
	"--enable-tracking", "--help", "--version"}

// benchmarkArgs converts the flags of redis-benchmark where ebb bench has others: -d is the size
// of values, and without -n there are 100,000 requests. What stands behind the flags is a command.
func benchmarkArgs(args []string) (out []string) {
	requests := false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, n := args[0], 2
		if len(args) == 1 || slices.Contains(benchmarkSwitches, name) || strings.Contains(name, "=") {
			n = 1
		}
		words := args[:n]
		args = args[n:]
		requests = requests || name == "-n"
		switch other, known := benchmarkValues[name]; {
		case name == "-e": // ebb bench ends at an error anyway
		case name == "-k" && words[n-1] == "0": // a connection for each request, which ebb bench refuses
			out = append(out, words...)
		case name == "-t" && n == 2:
			out = append(out, name, testNames(words[1]))
		case !known:
			out = append(out, words...)
		case other != "":
			out = append(append(out, other), words[1:]...)
		}
	}
	if !requests {
		out = append([]string{"-n", "100000"}, out...)
	}
	return append(out, args...)
}

// testNames converts a list of redis-benchmark's tests.
func testNames(list string) string {
	var names []string
	for name := range strings.SplitSeq(strings.ToLower(list), ",") {
		name = cmp.Or(benchmarkTests[name], name)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// sentinelName is the name of the command that says that ebb is not a Sentinel.
const sentinelName = "redis-sentinel"

// sentinelCommand returns the command of a link of the name redis-sentinel: an error, where the help would look like a success.
func sentinelCommand() *cobra.Command {
	return &cobra.Command{
		Use:                sentinelName,
		Short:              "Not a part of ebb",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("ebb has no Sentinel: install that of Redis or Valkey, which works with ebb servers; " +
				"the nodes of a group (ebb serve --group) answer its protocol themselves")
		},
	}
}
