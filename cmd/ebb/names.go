package main

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// namedAs returns the arguments of the root command. A program that was started under the name of a program of Redis
// or Valkey, as packages, charts and test suites do, runs the corresponding command. The name may also be the first
// argument, and a first argument that is an option belongs to ebb serve: the entry point of an image is ebb, and gets
// the words behind the image's name.
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

// commandOf returns the subcommand and the arguments for the name of a program of Redis or Valkey.
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

// benchmarkValues maps flags of redis-benchmark that have a value to the names of ebb bench. Flags mapped to "" have
// no effect: ebb bench keeps its connections and uses all processors.
var benchmarkValues = map[string]string{"-d": "--size", "--dbnum": "--db", "-k": "", "--threads": "", "--precision": ""}

// benchmarkTests maps redis-benchmark's names of tests to those of ebb bench, where they differ.
var benchmarkTests = map[string]string{"ping_inline": "ping", "ping_mbulk": "ping", "lrange": "lrange_100"}

// benchmarkSwitches are redis-benchmark's flags without a value.
var benchmarkSwitches = []string{"-q", "-e", "-l", "-I", "-4", "-6", "--csv", "--tls", "--insecure", "--cluster",
	"--enable-tracking", "--help", "--version"}

// benchmarkArgs converts redis-benchmark's flags to those of ebb bench: -d is the size of values, and without -n
// there are 100,000 requests. The words behind the flags are a command.
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
		case name == "-k" && words[n-1] == "0": // each connection serves one request, which ebb bench refuses
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

// sentinelName is the command for programs that start ebb as redis-sentinel.
const sentinelName = "redis-sentinel"

// sentinelCommand returns a command that fails with an error: the help and status 0 would look like a running
// Sentinel.
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
