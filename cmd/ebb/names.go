package main

import (
	"path/filepath"
	"slices"
	"strings"
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
	case "benchmark":
		return append([]string{"bench"}, benchmarkArgs(args)...), true
	}
	return nil, false
}

// benchmarkArgs converts the arguments of redis-benchmark where ebb bench has another flag: -d is the size
// of values, and without -n there are 100,000 requests.
func benchmarkArgs(args []string) []string {
	out := slices.Clone(args)
	requests := false
	for i, a := range out {
		switch {
		case a == "-n":
			requests = true
		case a == "-d":
			out[i] = "--size"
		}
	}
	if !requests {
		out = append([]string{"-n", "100000"}, out...)
	}
	return out
}
